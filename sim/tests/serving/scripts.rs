//! Scripts that take longer than `busy-reply-threshold`: other clients get turns in between, and
//! the scripts end by themselves.

use std::time::{Duration, Instant};

use lockstorm_sim::{TestServer, config::Config, generation::Generation};

use crate::peer::Peer;

const BUSY: &str =
    "-BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.\r\n";

/// Lua that runs until `ms` milliseconds have passed, by the clock of TIME.
fn lasting(ms: u32) -> String {
    format!(
        "local function now() local t = redis.call('time') return t[1] * 1000 + t[2] / 1000 end \
         local from = now() while now() < from + {ms} do end "
    )
}

/// A server whose scripts yield to others after 20 ms.
fn server() -> TestServer {
    server_of(Generation::default())
}

fn server_of(generation: Generation) -> TestServer {
    let config = Config::of(generation).with(|config| config.scripts.busy_reply_threshold = 20);
    TestServer::builder().config(config).start_blocking().expect("a free port")
}

/// The reply while the node is busy with a script of another client.
fn busy_answer(peer: &mut Peer) -> String {
    // The script comes on another connection, and may arrive later.
    let answers = std::iter::repeat_with(|| peer.line("PING"));
    answers.take(100_000).find(|answer| answer != "+PONG\r\n").expect("the script runs")
}

/// Waits until the node is busy with a script.
fn until_busy(peer: &mut Peer) {
    assert_eq!(busy_answer(peer), BUSY);
}

#[test]
fn a_long_script_ends_by_itself_and_time_goes_on_in_it() {
    let server = server();
    let (mut peer, mut long) = (Peer::connect(&server), Peer::connect(&server));
    long.send(format!("EVAL \"{} redis.call('set', 'k', 'done') return 'done'\" 0\r\n", lasting(1000)));
    until_busy(&mut peer);
    long.gets("$4\r\ndone\r\n");
    peer.asks("GET k", "$4\r\ndone\r\n");
    // Its duration was recorded, all turns together.
    let took = peer.info("commandstats", "cmdstat_eval");
    let usec = took.split(',').find_map(|field| field.strip_prefix("usec=")).expect("it is told");
    assert!(usec.parse::<u64>().expect("a number") >= 1_000_000, "{took}");
}

#[test]
fn what_a_script_took_is_counted_once() {
    // On later generations TIME stands still until the script is busy.
    let config = Config::of(Generation::Redis70);
    let server = TestServer::builder().config(config).start_blocking().expect("a free port");
    let mut peer = Peer::connect(&server);
    peer.asks(&format!("EVAL \"{}\" 0", lasting(500)), "$-1\r\n");
    let took = peer.info("commandstats", "cmdstat_eval");
    let usec = took.split(',').find_map(|field| field.strip_prefix("usec=")).expect("it is told");
    assert!((500_000..1_000_000).contains(&usec.parse::<u64>().expect("a number")), "{took}");
}

#[test]
fn more_work_than_any_budget_is_no_endless_script() {
    let server = TestServer::start_blocking().expect("a free port");
    // More than `Config::script_budget`, and far less than the five seconds of
    // `busy-reply-threshold`.
    Peer::connect(&server).asks("EVAL \"for i = 1, 6e7 do end return 'done'\" 0", "$4\r\ndone\r\n");
}

#[test]
fn a_script_is_killed_in_whatever_it_calls() {
    let server = server();
    let mut peer = Peer::connect(&server);
    for body in [
        "while true do end",
        "while true do pcall(function() while true do end end) end",
        "while true do xpcall(function() while true do end end, function() end) end",
        "while true do coroutine.resume(coroutine.create(function() while true do end end)) end",
        "table.sort({1, 2, 3}, function() while true do end end)",
        "local t = setmetatable({}, {__index = function() while true do end end}) return t.x",
        "return ('x'):rep(100000):find(('.-'):rep(30)..'y')",
        "return ('x'):gsub('x', function() while true do end end)",
        "while true do redis.pcall('get', 'k') end",
        "while true do loadstring(('x'):rep(1e6)) end",
        "while true do load(function() while true do end end) end",
    ] {
        let mut endless = Peer::connect(&server);
        endless.send(format!("EVAL \"{body}\" 0\r\n"));
        until_busy(&mut peer);
        peer.asks("SCRIPT KILL", "+OK\r\n");
        let killed = endless.line("");
        let expected = "-ERR Script killed by user with SCRIPT KILL... script: ";
        assert!(killed.starts_with(expected), "{body}: {killed}");
        assert!(killed.ends_with("on @user_script:1.\r\n"), "{body}: {killed}");
        endless.asks("EVAL \"return 1\" 0", ":1\r\n");
    }
}

/// Regression: these expressions delayed BUSY and SCRIPT KILL for over 90 seconds, because a time
/// slice was a number of instructions, and each expression is one instruction that takes some
/// milliseconds.
#[test]
fn a_script_is_killed_between_instructions_that_are_dear() {
    // A hundred of the most expensive instructions take at most two seconds on an idle machine.
    const BOUND: Duration = Duration::from_secs(10);
    let server = server();
    let mut peer = Peer::connect(&server);
    for body in [
        "local t = s .. 'y'",
        "local t = s .. n n = n + 1",
        "local b = s < s2",
        "s:upper()",
        "s:lower()",
        "s:reverse()",
        "s:rep(2)",
        "s:sub(2)",
        "s:gsub('x', 'y')",
        "('%s!'):format(s)",
        "('%q'):format(s)",
        "table.concat({s, s})",
        "tostring(s)",
        "tonumber(digits)",
        "redis.call('echo', s)",
        "local t = {s:byte(1, 7000)}",
        "cjson.encode(s)",
        "pcall(string.upper, s)",
    ] {
        let mut endless = Peer::connect(&server);
        let before =
            "local s, n = ('x'):rep(1e7), 0 local s2, digits = s .. 'y', ('1'):rep(1e7) while true do";
        endless.send(format!("EVAL \"{before} {body} end\" 0\r\n"));
        until_busy(&mut peer);
        #[expect(clippy::disallowed_methods, reason = "it measures a real wait")]
        let began = Instant::now();
        peer.asks("SCRIPT KILL", "+OK\r\n");
        let killed = endless.line("");
        assert!(killed.starts_with("-ERR Script killed by user"), "{body}: {killed}");
        assert!(began.elapsed() < BOUND, "{body}: {:?}", began.elapsed());
    }
}

#[test]
fn a_script_that_has_written_goes_on_to_its_end() {
    let server = server();
    let (mut peer, mut long) = (Peer::connect(&server), Peer::connect(&server));
    long.send(format!("EVAL \"redis.call('set', 'k', 'v') {}\" 0\r\n", lasting(2000)));
    until_busy(&mut peer);
    let refused = peer.line("SCRIPT KILL");
    assert!(refused.starts_with("-UNKILLABLE "), "{refused}");
    long.gets("$-1\r\n");
    peer.asks("GET k", "$1\r\nv\r\n");
}

#[test]
fn what_a_script_does_is_done_although_its_client_is_gone() {
    let server = server();
    let (mut peer, mut long) = (Peer::connect(&server), Peer::connect(&server));
    long.send(format!(
        "EVAL \"{} redis.call('select', 3) redis.call('set', 'k', 'v')\" 0\r\n",
        lasting(2000)
    ));
    until_busy(&mut peer);
    drop(long);
    while peer.line("PING") == BUSY {}
    peer.asks("SELECT 3\r\nGET k", "+OK\r\n$1\r\nv\r\n");
    peer.awaits("clients", "connected_clients", "1");
}

#[test]
fn a_transaction_goes_on_behind_a_long_script() {
    let server = server();
    let (mut peer, mut long) = (Peer::connect(&server), Peer::connect(&server));
    let script = format!("EVAL \"{} return redis.call('get', 'a')\" 0", lasting(1000));
    long.send(format!("MULTI\r\nSET a 1\r\n{script}\r\n{script}\r\nSET b 2\r\nEXEC\r\nPING\r\n"));
    until_busy(&mut peer);
    long.gets("+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n");
    long.gets("*4\r\n+OK\r\n$1\r\n1\r\n$1\r\n1\r\n+OK\r\n+PONG\r\n");
    peer.asks("MGET a b", "*2\r\n$1\r\n1\r\n$1\r\n2\r\n");
}

#[test]
fn a_function_shares_the_node_too() {
    let server = server();
    let (mut peer, mut long) = (Peer::connect(&server), Peer::connect(&server));
    let code = "#!lua name=l\\nredis.register_function('endless', function() while true do end end)";
    peer.asks(&format!("FUNCTION LOAD \"{code}\""), "$1\r\nl\r\n");
    long.send("FCALL endless 0\r\n");
    let busy = busy_answer(&mut peer);
    assert!(busy.contains("FUNCTION KILL"), "{busy}");
    peer.asks("FUNCTION KILL", "+OK\r\n");
    let killed = long.line("");
    assert!(killed.starts_with("-ERR Script killed by user with SCRIPT KILL... script: endless"), "{killed}");
}

/// As in Redis 7.0, before the clock stood still in scripts.
#[test]
fn keys_stay_for_a_script_as_they_were_when_it_began() {
    let server = server_of(Generation::Redis70);
    let mut peer = Peer::connect(&server);
    let script = format!("{} return {{redis.call('get', 'k'), redis.call('pttl', 'k')}}", lasting(100));
    // In one write, so that no other command comes between.
    peer.asks(&format!("SET k v PX 50\r\nEVAL \"{script}\" 0"), "+OK\r\n*2\r\n$1\r\nv\r\n:0\r\n");
    peer.asks("GET k", "$-1\r\n");
    // Commands after the script in a transaction see that time has passed.
    let script = lasting(100);
    peer.send(format!(
        "MULTI\r\nSET k v PX 50\r\nEVAL \"{script} return redis.call('get', 'k')\" 0\r\nGET k\r\nEXEC\r\n"
    ));
    peer.gets("+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n*3\r\n+OK\r\n$1\r\nv\r\n$-1\r\n");
    // A TTL counts from the moment when it is set.
    let script = format!(
        "{} redis.call('set', 'n', 'v', 'px', 60000) return redis.call('pttl', 'n') > 59900",
        lasting(150)
    );
    peer.asks(&format!("EVAL \"{script}\" 0"), ":1\r\n");
}

#[test]
fn a_server_ends_in_the_middle_of_a_script() {
    let server = server();
    let (mut peer, mut endless) = (Peer::connect(&server), Peer::connect(&server));
    endless.send("EVAL \"while true do pcall(function() while true do end end) end\" 0\r\n");
    until_busy(&mut peer);
    drop(server);
}
