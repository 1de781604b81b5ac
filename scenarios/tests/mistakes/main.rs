//! Error messages for mistakes in a scenario file: the place, the expected form, and the nearest
//! name.

mod groups;
#[path = "../limits/mod.rs"]
mod limits;

use lockstorm::file::scenario::{Setting, Source, parse};

/// A file without a mistake, which each row below changes or extends.
const GOOD: &str = r#"
[node.redis]
[client.c1]
steps = [{ acquire = {} }, { release = {} }]
[fault.crash]
crash = "redis"
at = "3s"
[expect]
l1 = "holds"
"#;

/// Checks a file with one mistake, marked by `«` and `»` where the report must point, and the text
/// of the report.
#[track_caller]
fn check(marked: &str, says: &str) {
    let start = marked.find('«').expect("the place is marked");
    let before = &marked[..start];
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().map_or(0, str::len) + 1;
    let text = marked.replace(['«', '»'], "");
    let error = parse("my.toml", &text).expect_err("the file has a mistake");
    let shown = format!("{:?}", miette::Report::new(*error.clone()));
    let said = format!("{error}\n{shown}");
    assert_eq!((error.line, error.column), (line, column), "{shown}");
    assert!(said.contains(says), "expected {says:?} in\n{shown}");
    assert!(said.starts_with(&format!("my.toml:{line}:{column}: ")), "{said}");
}

/// Replaces one part of the good file and checks the report.
#[track_caller]
fn with(part: &str, mistaken: &str, says: &str) {
    assert_eq!(GOOD.matches(part).count(), 1, "{part:?} is once in the good file");
    check(&GOOD.replace(part, mistaken), says);
}

#[test]
fn the_file_that_the_others_are_made_of_is_good() {
    parse("my.toml", GOOD).expect("no mistake");
}

#[test]
fn mistakes_of_form_are_pointed_at() {
    // Errors of TOML itself.
    with("at = \"3s\"", "at = \"3s«", "invalid basic string");
    // Unknown keys, with the nearest known one.
    with("steps =", "«stesp» =", "did you mean `steps`?");
    with("[fault.crash]", "[«faults».crash]", "did you mean `fault`?");
    with("crash = \"redis\"", "«crahs» = \"redis\"", "did you mean `crash`?");
    with("{ acquire = {} }", "{ «aquire» = {} }", "did you mean `acquire`?");
    with("{ acquire = {} }", "{ acquire = { «leese» = \"1s\" } }", "did you mean `lease`?");
    with("{ acquire = {} }", "{ poll = «\"1s\"» }", "expected a table with `every` and perhaps `lease`");
    // Values of a wrong type.
    with("steps = [{ acquire = {} }, { release = {} }]", "steps = «3»", "expected a list");
    with("[node.redis]", "[node.redis]\ncount = «\"three\"»", "expected a whole number, found string");
    with(
        "crash = \"redis\"",
        "cut = «\"redis\"»",
        "expected a table with `from`, `to` and perhaps `one_way`, found string",
    );
    with(
        "at = \"3s\"",
        "at = \"3s\"\n[lock]\nlease = \"1s\"\n[run]\nseeds = «[1]»",
        "expected a whole number",
    );
    // Invalid quantities.
    with("at = \"3s\"", "at = «\"3 parsecs\"»", "expected a duration with its unit");
    with("at = \"3s\"", "at = «\"3\"»", "found \"3\"");
    with("at = \"3s\"", "at = «\"9999999h\"»", "\"9999999h\" is too long: at most 2562047h can be");
    with("at = \"3s\"", "at = «\"5s..3s\"»", "ends before it begins");
    with("[client.c1]", "[client.c1]\nclock.rate = «\"fast\"»", "expected a rate above -100%");
    // Words that are not in a list.
    with("[node.redis]", "[node.redis]\ndurability = «\"aof-allways\"»", "did you mean `aof-always`?");
    with("l1 = \"holds\"", "l1 = «\"hold\"»", "did you mean `holds`?");
}

#[test]
fn names_that_stand_for_nothing_are_pointed_at() {
    with("crash = \"redis\"", "crash = «\"reddis\"»", "did you mean `redis`?");
    with("crash = \"redis\"", "crash = «\"@holders\"»", "unknown selector `@holders`");
    with(
        "[node.redis]\n[client.c1]\nsteps = [{ acquire = {} }, { release = {} }]\n[fault.crash]\ncrash = \"redis\"",
        "[node.redis]\ncount = 3\n[lock]\nkind = \"redlock\"\n[client.c1]\nsteps = [{ acquire = {} }, { release = {} }]\n\
         [fault.crash]\ncrash = «\"@master\"»",
        "this lock lives on 3 (redis1, redis2, redis3)",
    );
    // Two locks; one of them has two masters.
    let two = |crash: &str, says| {
        let hosts = "[node.a]\n[node.b]\n[lock.stock]\nnodes = [\"a\"]\n[lock.cash]\nkind = \"redlock\"\n";
        check(&format!("{hosts}[client.c1]\n[fault.crash]\n{crash}"), says);
    };
    two("crash = «\"@master\"»\nat = \"3s\"", "these locks live on 2 (a, b)");
    two("crash = «\"@master\"»\nat = \"3s\"", "say which lock is meant, such as \"@master of stock\"");
    two("crash = «\"@master of cash\"»\nat = \"3s\"", "this lock lives on 2 (a, b)");
    two("crash = «\"@holder of stok\"»\nat = \"3s\"", "did you mean `stock`?");
    two("crash = «\"@nodes of stock\"»\nat = \"3s\"", "`@nodes` is of no lock: only `@holder`");
    two("crash = \"a\"\non = { event = \"acquired\", of = «\"cahs\"» }", "did you mean `cash`?");
    with("crash = \"redis\"", "crash = [\"redis\", «\"c9\"»]", "there is no host `c9`");
    with("[node.redis]", "[node.redis]\nreplica_of = «\"rediss\"»", "did you mean `redis`?");
    with("[node.redis]", "[node.redis]\nreplica_of = «\"redis\"»", "cannot be a replica of itself");
    with(
        "[node.redis]",
        "[node.other]\nreplica_of = «\"redis\"»\n\n[node.redis]\nreplica_of = \"other\"",
        "other and redis follow each other: one of them must be a master",
    );
    // Regression: only the names of groups were compared, and not those of their hosts.
    let group = |replicas: &str, says: &str| with("[node.redis]", &format!("{replicas}\n[node.redis]"), says);
    group(
        "[node.b]\ncount = 2\nreplica_of = «\"b1\"»",
        "b1 cannot be a replica of itself: name another node",
    );
    group("[node.b]\ncount = 2\nreplica_of = «\"b\"»", "b1 cannot be a replica of itself");
    group(
        "[node.a]\nreplica_of = «\"b1\"»\n[node.b]\ncount = 2\nreplica_of = \"a\"",
        "a and b1 follow each other",
    );
    group(
        "[node.a]\ncount = 2\nreplica_of = \"redis\"\n[node.b]\nreplica_of = «\"e2\"»\n\
         [node.e]\ncount = 2\nreplica_of = \"d\"\n[node.d]\ncount = 2\nreplica_of = \"b\"",
        "b, e2 and d2 follow each other",
    );
    // Commands that a server or a kind of lock does not have.
    let traits = |more: &str, traits: &str, says: &str| {
        let lock = format!("{more}\n[lock]\nsubject = \"token-lock\"\ntraits = {{ {traits} }}\n[client.c1]");
        with("[client.c1]", &lock, says);
    };
    traits("", "«release» = \"del-if-eq\"", "DELIFEQ is no command of node redis");
    traits("", "«renewal» = \"set-if-eq\"", "SET IFEQ is no command of node redis");
    let old = "server = \"redis-7.0\"";
    traits(old, "«synced» = true", "WAITAOF is no command of node redis");
    traits("server = \"valkey-8.1\"", "«release» = \"del-if-eq\"", "DELIFEQ is no command of node redis");
    traits(old, "«replicas» = \"in-script\"", "WAIT in a script is no command of node redis");
    traits("server = \"valkey-8.1\"", "«lease» = \"field\"", "HSETEX is no command of node redis");
    let new = "server = \"redis-8.2\"";
    traits(new, "key = \"queue\", «lease» = \"field\"", "it needs key = \"token\" or \"count\"");
    traits(new, "renewal = \"recreate\", «lease» = \"field\"", "its owner renews by a script");
    traits(new, "release = \"remember\", «lease» = \"field\"", "its owner releases by a script");
    traits(new, "key = \"count\", «replicas» = \"in-script\"", "it needs key = \"token\"");
    traits(new, "key = \"count\", «grant» = \"after-work\"", "it needs key = \"token\"");
    traits(
        "server = \"valkey-9.1\"",
        "key = \"count\", «release» = \"del-if-eq\"",
        "the key of this lock is none",
    );
    traits(
        "server = \"valkey-9.1\"",
        "pace = \"message\", «release» = \"del-if-eq\"",
        "publishes no message",
    );
    with("[client.c1]", "[client.c1]\nnodes = [«\"m1\"»]", "there is no node `m1`");
    with("[client.c1]", "[sentinel.s]\nwatches = [«\"rediss\"»]\n[client.c1]", "did you mean `redis`?");
    with("[client.c1]", "[sentinel.s]\ncount = 3\nquorum = «4»\n[client.c1]", "cannot be reached by 3");
    with(
        "[client.c1]",
        "[node.r]\nreplica_of = \"redis\"\n[sentinel.s]\nwatches = [«\"r\"»]\n[client.c1]",
        "Sentinels find replicas by their master",
    );
    with(
        "[client.c1]",
        "[node.r]\ncount = 2\nreplica_of = \"redis\"\n[sentinel.s]\nwatches = [«\"r2\"»]\n[client.c1]",
        "r2 is a replica: Sentinels find replicas by their master",
    );
    with(
        "crash = \"redis\"\nat = \"3s\"",
        "crash = «\"s3\"»\nat = \"3s\"\n[sentinel.s]\ncount = 2",
        "there is no host `s3`",
    );
    with("[node.redis]", "[node.redis]\nconfig = { «maxmemori» = \"1mb\" }", "did you mean `maxmemory`?");
    with("[node.redis]", "[node.redis]\nconfig = { maxmemory = «\"much\"» }", "maxmemory");
    with("l1 = \"holds\"", "«l5» = \"holds\"", "there is no checker `l5`");
    with("[node.redis]", "plot = «\"l5\"»\n[node.redis]", "there is no checker `l5`");
    with("l1 = \"holds\"", "l2 = { violated = { «overlaps» = \"1s..\" } }", "did you mean `overlap`?");
}

#[test]
fn what_contradicts_itself_is_pointed_at() {
    let steps = "steps = [{ acquire = {} }, { release = {} }]";
    with("{ release = {} }", "«{ release = {}, write = {} }»", "step 2 does several things (release, write)");
    with("{ release = {} }", "«{ }»", "step 2 does nothing");
    with(
        steps,
        &format!("{steps}\n«workload».contend = {{ hold = \"1s\", think = \"1s\" }}"),
        "both steps and",
    );
    with(steps, "«workload» = {}", "a workload needs a kind");
    with(steps, "workload = { «contends» = {} }", "did you mean `contend`?");
    with(steps, "workload.contend = { hold = \"1s\", «thinks» = \"1s\" }", "did you mean `think`?");
    with(
        steps,
        "workload.contend = { hold = \"1s\", think = \"1s\", levels = «0» }",
        "a round cannot take 0 levels",
    );
    with("[client.c1]", "[client.«redis»]\n[client.c1]", "two hosts are called `redis`");
    with("[node.redis]", "[node.redis]\n[node.«resource»]", "choose another name");
    with("[node.redis]", "[node.redis]\n[node.n]\ncount = «0»", "there are no hosts in [node.n]");
    with("[node.redis]", "[node.redis]\n[node.n]\ncount = «4000000000»", "at most 1000");
    with("[client.c1]", "[lock]\nnodes = «[]»\n[client.c1]", "needs a node to live on");
    let fault = "[fault.crash]\ncrash = \"redis\"\nat = \"3s\"";
    with(fault, "[fault.«crash»]\ncrash = \"redis\"", "needs a time");
    with(fault, "[fault.«crash»]\nat = \"3s\"", "must do exactly one thing");
    let on = "on = { event = \"acquired\" }";
    with(fault, &format!("{fault}\n«{}", on.replace("on ", "on» ")), "has both `at` and `on`");
    let never = "on = { event = \"acquired\", nth = «0» }";
    with("at = \"3s\"", never, "the first time is nth = 1");
    let whose = "on = { event = \"promoted\", client = «\"c1\"» }";
    with("at = \"3s\"", whose, "a node is promoted, not a client or a lock");
    with("at = \"3s\"", &format!("{on}\n«every» = \"1s\""), "say `always`");
    with("at = \"3s\"", "at = \"3s\"\n«until» = \"5s\"", "occurs once, so `until` means nothing");
    with(fault, "[fault.now]\npromote = \"redis\"\nat = \"3s\"\n«for» = \"1s\"", "promote is done at once");
    with("at = \"3s\"", "at = \"3s\"\nevery = «\"0s\"»", "too short to do something again and again");
    with("at = \"3s\"", "at = \"3s\"\nevery = «\"1ns\"»", "give at least 10us");
    with("at = \"3s\"", "at = \"3s\"\nevery = «\"10us..1s\"»", "would occur 6000000 times within 1m");
    with("{ acquire = {} }", "{ poll = { every = «\"0s\"» } }", "give at least 10us");
    with("{ acquire = {} }", "{ poll = { every = «\"1ns\"» } }", "1ns is too short");
    with("{ release = {} }", "{ work = { for = \"1s\", write_every = «\"0s\"» } }", "give at least 10us");
    with("[expect]", "[run]\nstorm = «\"100000000000ms\"»\n[expect]", "is too long to run: give at most 24h");
    with("[expect]", "[run]\ncalm = «\"24.1h\"»\n[expect]", "is too long to run: give at most 24h");
    with(
        "[expect]",
        "[lock]\nlease = «\"0s\"»\n[expect]",
        "a lease of 0ms is too short to hold anything: give at least 10ms",
    );
    with("[expect]", "[lock]\nwatchdog = «\"999us\"»\n[expect]", "give at least 10ms");
    with("{ acquire = {} }", "{ acquire = { lease = «\"0s\"» } }", "give at least 10ms");
    with("{ acquire = {} }", "{ try_acquire = { lease = «\"0s\"» } }", "give at least 10ms");
    with("{ acquire = {} }", "{ poll = { every = \"1s\", lease = «\"0s\"» } }", "give at least 10ms");
    with("{ release = {} }", "{ extend = { lease = «\"0s\"» } }", "give at least 10ms");
    with("[expect]", "[run]\nseeds = «0»\n[expect]", "0 seeds cannot be tried");
    with("[expect]", "[run]\nseeds = «1000001»\n[expect]", "from one to 1000000 can");
    with("[expect]", "[lock]\npermits = «2»\n[expect]", "only a semaphore or a rate limiter has permits");
    with("[expect]", "[lock]\ncount = «2»\n[expect]", "only a latch has a count");
    with("[expect]", "[lock]\nkind = \"redlock\"\nsync = «\"all\"»\n[expect]", "asks no replica to confirm");
    let on = |server: &str, keys: &str| {
        let (node, lock) =
            (format!("[node.redis]\nserver = \"{server}\""), format!("[lock]\n{keys}\n[expect]"));
        GOOD.replace("[node.redis]", &node).replace("[expect]", &lock)
    };
    check(&on("redis-7.0", "synced = «\"all\"»"), "WAITAOF is no command of node redis");
    let newer = |keys: &str| on("redis-8.2", keys);
    check(&newer("kind = \"redlock\"\nsynced = «\"all\"»"), "a Redlock waits for no disk");
    check(&newer("subject = \"token-lock\"\nsynced = «\"master\"»"), "lock.traits.synced = true");
    let latch = "[lock]\nkind = \"latch\"\ncount = «0»\n[expect]";
    with("[expect]", latch, "a latch with a count of zero is open already");
    with("{ acquire = {} }", "{ count_down = «{}» }", "only a latch is counted down");
    with("{ acquire = {} }", "{ take = «{}» }", "only permits of a rate limiter are taken");
    with("[expect]", "[lock]\nwindow = «\"1s\"»\n[expect]", "only a rate limiter has a window");
    with("[expect]", "[lock]\nscript_time = «\"1s\"»\n[expect]", "only a model with the trait grant");
    with("[expect]", "[lock]\ndelay = «\"1s\"»\n[expect]", "only a model with the trait grant");
    with("[expect]", "[lock]\nkind = \"rate\"\nwindow = «\"9ms\"»\n[expect]", "at least 10ms long");
    let of_latch = |steps: &str| {
        let good = GOOD.replace("[expect]", "[lock]\nkind = \"latch\"\n[expect]");
        good.replace("{ acquire = {} }, { release = {} }", steps)
    };
    check(&of_latch("{ release = «{}» }"), "a latch has no holder");
    let of_rate = |steps: &str| of_latch(steps).replace("latch", "rate");
    check(&of_rate("{ release = «{}» }"), "a rate limiter has no holder");
    check(&of_rate("{ take = { permits = «2» } }"), "from one to 1 permits can be taken at once");
    check(&of_latch("{ wait = { «fro» = \"1s\" } }"), "did you mean `for`?");
    let over = |lock: &str| format!("[lock]\n{lock}\n[expect]");
    let row = |lock: &str, says: &str| with("[expect]", &over(lock), says);
    row("subject = «\"cliend\"»", "did you mean `client`?");
    row("subject = \"token-lock\"\ntraits = { «relase» = \"delete\" }", "did you mean `release`?");
    row("subject = \"token-lock\"\ntraits = { release = «\"delet\"» }", "did you mean `delete`?");
    row("traits = { «release» = \"delete\" }", "which has no trait `release`");
    row("traits = { «clock» = \"wall\" }", "\"boottime\" or \"monotonic\"");
    row("kind = «\"read-write\"»\nsubject = \"token-lock\"", "but of \"plain\", \"fair\", ");
    row("«lesae» = \"1s\"", "did you mean `lease`?");
    row("[lock.a]\n«lesae» = \"1s\"\n[lock.b]", "did you mean `lease`?");
    let semaphore = "[lock]\nkind = \"semaphore\"\nsubject = \"semaphore\"\npermits = «0»\n[expect]";
    with("[expect]", semaphore, "no client could ever get a permit");
    with("{ acquire = {} }", "{ acquire = { shared = «true» } }", "only a read-write lock can be shared");
}

#[test]
fn a_lock_of_one_master_lives_on_one() {
    let two = |lock: &str, says| check(&format!("[node.a]\n[node.b]\n{lock}\n[client.c1]"), says);
    two("«[lock.stock]»", "lives on one master, and this one on 2 (a, b)");
    two(
        "[lock.stock]\nnodes = «[\"a\", \"b\"]»\nkind = \"fair\"",
        "a lock of the kind \"fair\" lives on one master",
    );
    let good = |text: &str| parse("my.toml", text).map(drop).unwrap_or_else(|error| panic!("{error}"));
    good("[node.a]\n[node.b]\n[lock.stock]\nnodes = [\"a\"]\n[client.c1]");
    good("[node.a]\n[node.b]\nreplica_of = \"a\"\n[lock.stock]\nnodes = [\"a\", \"b\"]\n[client.c1]");
    good("[node.a]\ncount = 3\n[lock.stock]\nkind = \"redlock\"\n[client.c1]");
    good("[node.a]\ncluster = true\ncount = 2\n[lock.stock]\n[client.c1]");
}

#[test]
fn mistakes_about_several_locks_and_lines_of_work_are_pointed_at() {
    let locks = "[lock]\nlease = \"1s\"\n[lock.stock]\n[lock.cash]\n[fault.crash]";
    let steps = "steps = [{ acquire = {} }, { release = {} }]";
    let row = |client: &str, says: &str| {
        check(&GOOD.replace("[fault.crash]", locks).replace(steps, client), says);
    };
    parse(
        "my.toml",
        &GOOD.replace("[fault.crash]", locks).replace("acquire = {}", "acquire = {}, of = \"cash\""),
    )
    .expect("the step says which");
    row("steps = [«{ acquire = {} }»]", "step 1 does not say which lock it is about");
    row("steps = [{ acquire = {}, of = «\"stok\"» }]", "did you mean `stock`?");
    row("steps = [{ acquire = {}, «off» = \"stock\" }]", "did you mean `of`?");
    row("steps = [{ sleep = \"1s\", of = «\"stock\"» }]", "is about no lock");
    let contend = "hold = \"1s\", think = \"1s\"";
    row(&format!("workload.contend = {{ {contend}, of = [«\"cahs\"»] }}"), "did you mean `cash`?");
    row(&format!("workload.contend = {{ {contend}, of = «[]» }}"), "a round needs a lock to take");
    row(
        &format!("workload.contend = {{ {contend}, shared = «\"50%\"» }}"),
        "only a read-write lock can be shared",
    );
    row(&format!("workload.contend = {{ {contend}, downgrades = «\"120%\"» }}"), "from 0% to 100%");
    row(
        &format!("workload.contend = {{ {contend}, together = «true», shared = \"50%\" }}"),
        "are not shared",
    );
    row("[client.c1.line.a]\n«stesp» = []", "did you mean `steps`?");
    row("[client.c1.line.a]\nsteps = [«{ acquire = {} }»]", "does not say which lock");
    row("[client.c1.line.a]\ncount = «0»", "there is nothing in [client.c1.line.a]");
    row("steps = [{ sleep = \"1s\" }]\n[client.c1.«line».a]", "does something beside them");
    row("[client.c1.«line».a]\ncount = 2000", "at most 1000 can be");
    // Regression: a misspelt key with a table as its value was taken for a lock of that name.
    for (table, says) in [
        ("«trait» = { release = \"delete\" }", "did you mean `traits`?"),
        ("«trait» = {}", "did you mean `traits`?"),
        ("watchdog = «{ every = \"1s\" }»", "expected"),
        ("traits = { «releas» = \"delete\" }", "did you mean `release`?"),
    ] {
        with("[fault.crash]", &format!("[lock]\n{table}\n[fault.crash]"), says);
    }
    // Settings in [lock] are common to all locks.
    with(
        "[fault.crash]",
        "[lock]\nsubject = \"token-lock\"\nkind = «\"read-write\"»\n[lock.a]\n[lock.b]\n[fault.crash]",
        "is no lock of the kind",
    );
    with("[fault.crash]", "[lock.a]\nlease = «\"9ms\"»\n[lock.b]\n[fault.crash]", "give at least 10ms");
    with(
        "[fault.crash]",
        "[lock.a]\n[lock.b]\n«name» = \"a\"\n[fault.crash]",
        "two locks live in the key \"a\"",
    );
}

#[test]
fn a_mistake_in_a_variant_is_pointed_at_where_the_variant_is_written() {
    let variant = "l1 = \"holds\"\n[variant.worse]\nfault.crash.crash = «\"redsi\"»";
    with("l1 = \"holds\"", variant, "did you mean `redis`?");
    with("l1 = \"holds\"", "l1 = \"holds\"\n[variant.worse]\nexpect.«l9» = \"holds\"", "no checker `l9`");
    with("l1 = \"holds\"", "l1 = \"holds\"\n[variant.worse]\nvariant = «{}»", "cannot have variants");
    with("l1 = \"holds\"", "l1 = \"holds\"\n[variant]\nworse = «3»", "expected a table: [variant.worse]");
    let without = |without: &str| format!("l1 = \"holds\"\n[variant.worse]\nwithout = {without}");
    with("l1 = \"holds\"", &without("[«\"fault.crush\"»]"), "there is no `fault.crush` to leave out");
    with("l1 = \"holds\"", &without("[«\"node.redis.deeper.down\"»]"), "to leave out");
    with("l1 = \"holds\"", &without("[«3»]"), "expected the path of a key");
    with("l1 = \"holds\"", &without("«\"fault.crash\"»"), "expected a list of keys to leave out");
}

#[test]
fn a_mistake_in_a_sweep_is_pointed_at_where_the_sweep_is_written() {
    let sweep = |axes: &str, says| with("l1 = \"holds\"", &format!("l1 = \"holds\"\n[sweep]\n{axes}"), says);
    with("l1 = \"holds\"", "l1 = \"holds\"\n«[sweep]»", "the sweep has no axis");
    with("[node.redis]", "sweep = «3»\n[node.redis]", "expected a table of axes");
    sweep("fault.crash.at = «3»", "expected the values of this key");
    sweep("fault.crash.at = «[]»", "an axis without values");
    sweep("fault.crash.at = «[\"1s\", \"1000ms\"]»", "1s is on this axis twice");
    sweep("fault.crash.crash = «[[\"redis\"], [\"redis\"]]»", "[\"redis\"] is on this axis twice");
    // An invalid value and an unknown key, reported as if the point were written out.
    sweep("fault.crash.at = [\"3s\", «\"soon\"»]", "expected a duration with its unit");
    sweep("\"fault.crash.att\" = [«\"3s\"»]", "did you mean `at`?");
    sweep("\"expect.l1.of\" = [«3»]", "`l1` is no table, so it has no `of`");
    sweep("\"client.c1.steps.2.at\" = [«\"3s\"»]", "`steps` is a list of 2, counted from 0, and has no `2`");
    let range = |axis: &str, says| sweep(&format!("\"fault.crash.at\" = {axis}"), says);
    range("«{ from = \"3s\", step = \"1s\" }»", "a range needs `to`");
    range("«{ from = \"3s\", to = \"5s\" }»", "either `step` or `points`");
    range("«{ from = \"3s\", to = \"5s\", step = \"1s\", points = 3 }»", "either `step` or `points`");
    range("«{ from = \"5s\", to = \"3s\", step = \"1s\" }»", "from a smaller value to a larger one");
    range("«{ from = \"3s\", to = 5, points = 2 }»", "of the same kind");
    range("«{ from = \"3s\", to = \"5s\", step = \"0s\" }»", "the step is to be of the kind of the range");
    range("«{ from = \"3s\", to = \"5s\", step = \"1us\" }»", "give a longer step");
    let short = "steps of 2s from 3s end at 5s and not at 6s: give `to = \"5s\"`";
    range("«{ from = \"3s\", to = \"6s\", step = \"2s\" }»", short);
    range("{ from = 1, to = 2, points = «5» }", "from 1 to 2 there are 2 values");
    range("{ from = \"3s\", to = \"5s\", points = «1» }", "a number of points, from 2");
    range("{ from = \"3s\", to = \"5s\", points = 3, «nmae» = \"crash\" }", "did you mean `name`?");
    range(
        "{ from = \"3s\", to = \"5s\", points = 3, name = «\"a crash\"» }",
        "expected the name of the axis",
    );
    range("{ values = [\"3s\"], «to» = \"5s\" }", "`values` or a range, and not `to`");
}

#[test]
fn a_mistake_in_a_boundary_is_pointed_at() {
    let boundary = |more: &str, says| {
        let keys = format!("[boundary]\nkey = \"fault.crash.at\"\nfrom = \"1s\"\n{more}");
        with("[expect]", &format!("{keys}\n[expect]"), says);
    };
    boundary("to = «\"1s\"»", "from a smaller value to a larger one");
    boundary("to = «\"2%\"»", "of the same kind");
    boundary("to = \"9s\"\nwithin = «3»", "expected a distance between 1s and 9s");
    boundary("to = \"9s\"\nchecker = «\"l5\"»", "there is no checker `l5`");
    let of_words = "expected a value, the path of a key or one of lease, drift, latency, rtt";
    boundary("to = \"9s\"\nformula = «\"leese\"»", of_words);
    boundary("to = \"9s\"\nformula = «\"2%\"»", "+2% is no value between 1s and 9s");
    boundary("to = \"9s\"\nformula = «\"fault.crash.at + 1s\"»", "fault.crash.at is moved");
    boundary("to = \"9s\"\nformula = «\"lock.watchdog .. 3s\"»", "from 30s to 3s is no range");
    boundary("to = \"9s\"\nformula = «\"lease\"»", "the lock has no fixed lease");
    boundary("to = \"9s\"\nformula = «\"3s / 0\"»", "3s cannot be divided by 0");
    boundary("to = \"9s\"\nformula = «\"1s * (2s / (3s - 3s))\"»", "2s cannot be divided by 0ms");
    boundary("to = \"9s\"\nformula = «\"lock.watchdog / 3s\"»", "10 is no value between 1s and 9s");
    boundary("to = \"9s\"\nformula = «\"2 * (3s\"»", "there is no ) after a (");
}

#[test]
fn a_mistake_in_a_measure_is_pointed_at() {
    let measure = |keys: &str, says| {
        with("[expect]\nl1", &format!("[measure]\n{keys}\n[expect]\nprogress = \"holds\"\nl1"), says);
    };
    // An unknown measure of a checker: the report names the nearest one, or all.
    measure("progress.«stalld» = { formula = \"1s\" }", "did you mean `stalled`?");
    measure("progress.«wait» = { formula = \"1s\" }", "there is no measure of progress `wait`");
    measure("progress.«wait» = { formula = \"1s\" }", "there are: stalled, stalled_in_storm");
    measure("«progres».stalled = { formula = \"1s\" }", "did you mean `progress`?");
    measure("«l2».overlap = { formula = \"1s\" }", "nothing is expected of `l2`");
    measure("progress.stalled = «{ within = \"1s\" }»", "missing field `formula`");
    let stalled =
        |formula: &str, says| measure(&format!("progress.stalled = {{ formula = {formula} }}"), says);
    stalled("«\"fault.crash.in\"»", "the scenario says nothing of fault.crash.in");
    stalled("«\"2%\"»", "+2% is neither a time nor a number");
    stalled("\"1s\", within = «3»", "3 is no distance from 1s");
    stalled("\"1s .. 2s\", within = «\"1%\"»", "+1% is no distance from 1s to 2s");
}

#[test]
fn an_empty_file_is_told_what_it_needs() {
    for (text, says) in [("", "has no Redis node"), ("[node.redis]", "has no client")] {
        let error = parse("my.toml", text).expect_err("it is no scenario");
        assert!(error.message.contains(says), "{error}");
        assert_eq!((error.line, error.column), (1, 1));
    }
}

#[test]
fn what_is_said_of_real_servers_must_be_about_what_is_expected_and_have_a_reason() {
    let with_real = |mistaken: &str, says: &str| with("l1 = \"holds\"", mistaken, says);
    with_real("l1 = \"holds\"\n[real.«l2»]\nbecause = \"x\"", "nothing is expected of `l2`");
    with_real("l1 = \"holds\"\n[real.l1]\nbecause = «\" \"»", "expected the reason");
    with_real(
        "l1 = \"holds\"\n[real.l1]\nbecause = \"x\"\ncomes = { violated = { «overlp» = \"1s..\" } }",
        "did you mean `overlap`?",
    );
}

#[test]
fn users_have_names_and_rules_that_a_node_takes() {
    with("[client.c1]", "[user.app]\n[client.c1]\nuser = «\"ap\"»", "did you mean `app`?");
    with("[client.c1]", "[client.c1]\nuser = «\"app\"»", "there is no user `app`");
    with("[client.c1]", "[user.app]\nnodes = [«\"rediss\"»]\n[client.c1]", "did you mean `redis`?");
    with("[client.c1]", "[user.«default»]\n[client.c1]", "give clients another one");
    with("[client.c1]", "[user.«\"a b\"»]\n[client.c1]", "a user cannot be called \"a b\"");
    with("[client.c1]", "[user.app]\npassword = «\"\"»\n[client.c1]", "a password is one line");
    let rules = |rules: &str, says: &str| {
        with("[client.c1]", &format!("[user.app]\nrules = {rules}\n[client.c1]"), says);
    };
    rules("[\"~app:*\", «\"+gett\"»]", "\"+gett\" is no rule of ACL SETUSER: Unknown command or category");
    rules("[«\"app:*\"»]", "\"app:*\" is no rule of ACL SETUSER: Syntax error");
    rules("[\"allkeys\", «\"~app:*\"»]", "Adding a pattern after the * pattern");
    rules("[«\"(~a\"»]", "Unmatched parenthesis");
}

#[test]
fn locks_under_one_name_are_of_kinds_that_are_one_lock_together() {
    let two = |one: &str, other: &str, says: &str| {
        let locks = format!("[lock.a]\nname = \"A\"\n{one}\n[lock.b]\nname = \"A\"\n{other}\n");
        check(&format!("[node.m]\n[node.n]\n[client.c]\n{locks}"), says);
    };
    let same = "[node.m]\n[client.c]\n[lock.a]\nname = \"A\"\n[lock.b]\n«name» = \"A\"\n";
    check(same, "two locks live in the key \"A\"");
    two(
        "nodes = [\"m\"]",
        "nodes = [\"m\"]\nkind = «\"fair\"»",
        "kinds \"fair\" and \"plain\" cannot have one name, \"A\": \"fair\" is granted in the order of its queue",
    );
    two(
        "kind = \"fenced\"\nnodes = [\"m\"]",
        "nodes = [\"m\"]\nkind = «\"read-write\"»",
        "\"fenced\" and \"read-write\" cannot have one name, \"A\": \"fenced\" hands out a token",
    );
    two(
        "kind = \"semaphore\"\nnodes = [\"m\"]",
        "nodes = [\"m\"]\nkind = «\"permit-semaphore\"»",
        "does not keep what holds it in the form of a lock",
    );
    two(
        "nodes = [\"m\"]",
        "kind = \"read-write\"\nnodes = «[\"n\"]»",
        "live on the same nodes: b on n, and a on m",
    );
    two("kind = \"redlock\"\nnodes = [\"m\", \"n\"]", "nodes = «[\"m\", \"n\"]»", "most of 2 masters");
}

#[test]
fn drivers_addresses_and_disks_are_of_those_that_have_them() {
    with(
        "[client.c1]",
        "[client.c1]\nretries = «3»",
        "the production client ends a connection on the server",
    );
    with("[client.c1]", "[lock]\nsubject = \"token-lock\"\n[client.c1]\nretries = «1001»", "at most 1000");
    with("{ acquire = {} }", "{ acquire = { lease = «\"0s\"» } }", "refuses a lease of 0s");
    let good = GOOD.replace("[client.c1]", "[lock]\nsubject = \"token-lock\"\n[client.c1]");
    let good = good.replace("acquire = {}", "acquire = { lease = \"0s\" }");
    parse("my.toml", &good).expect("what a model makes of no lease is for a scenario to find out");
    with("crash = \"redis\"", "disk_full = «\"c1\"»", "disk_full is about nodes, and `c1` is none");
    with(
        "crash = \"redis\"",
        "disk_fails = «\"@holder\"»",
        "disk_fails is about nodes, and `@holder` is none",
    );
    let address = |fault: &str, says: &str| {
        let address = "[address.vip]\npoints_to = \"redis\"\n";
        let text = GOOD.replace("[client.c1]", &format!("{address}[client.c1]"));
        check(&text.replace("crash = \"redis\"", fault), says);
    };
    address("move_address = { address = «\"vpi\"», to = \"redis\" }", "did you mean `vip`?");
    address("move_address = { address = \"vip\", to = «\"c1\"» }", "`c1` is none");
    address(
        "move_address = { address = \"vip\", to = «\"@nodes\"» }",
        "an address leads to one node at a time",
    );
    // Its grants would be grants of another lock, which no checker follows.
    let unrelated = "[node.b]\n[lock]\nnodes = [\"redis\"]\n";
    let elsewhere = "[address.vip]\npoints_to = «\"b\"»\n[client.c1]";
    with("[client.c1]", &format!("{unrelated}{elsewhere}"), "no lock lives on b");
    let text = GOOD.replace("[client.c1]", &format!("{unrelated}[address.vip]\n[client.c1]"));
    let moved = |to: &str| format!("move_address = {{ address = \"vip\", to = {to} }}");
    check(&text.replace("crash = \"redis\"", &moved("«\"b\"»")), "no lock lives on b");
    check(&text.replace("crash = \"redis\"", &moved("«\"@any-node\"»")), "no lock lives on b");
    with("[client.c1]", &format!("{unrelated}[client.c1]\nnodes = [«\"b\"»]"), "no lock lives on b");
    let replica = text.replace("[node.b]", "[node.b]\nreplica_of = \"redis\"");
    parse("my.toml", &replica.replace("crash = \"redis\"", &moved("\"b\"")))
        .expect("a replica of the lock's node");
    with("[client.c1]", "[address.vip]\npoints_to = «\"rediss\"»\n[client.c1]", "did you mean `redis`?");
    with("[client.c1]", "[address.«redis»]\npoints_to = \"redis\"\n[client.c1]", "a host is called `redis`");
}

/// Regression: the error was that the scenario has no Redis node.
#[test]
fn a_scenario_without_a_file_has_no_keys_to_set() {
    let scenario = parse("my.toml", GOOD).expect("no mistake").variants[0].scenario.clone();
    let source = Source::of("built", scenario).expect("no mistake");
    let setting: Setting = "network.latency=5ms".parse().expect("a setting");
    let expected = "built: with network.latency=5ms: the scenario has no file whose keys can be set";
    let error = source.with(std::slice::from_ref(&setting)).expect_err("it has no file");
    assert_eq!(error.to_string(), expected);
    let error = source.variant_with(&source.variants[0], std::slice::from_ref(&setting));
    assert_eq!(error.expect_err("it has no file").to_string(), expected);
    let error = source.points_of("", setting).expect_err("it has no file");
    assert_eq!(error.to_string(), expected);
}
