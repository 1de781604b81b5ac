//! The binary from the outside: what it prints, and its exit codes.

use std::{
    fs,
    path::PathBuf,
    process::{Command, Output, Stdio},
};

/// A lock that two clients take and give back; nothing goes wrong.
const GOOD: &str = r#"
[node.redis]
[client.c1]
steps = [{ acquire = { lease = "1s" } }, { release = {} }]
count = 2
[run]
storm = "3s"
[expect]
l1 = "holds"
"#;

/// A folder of one test's own.
struct Folder(PathBuf);

impl Folder {
    fn new(test: &str) -> Folder {
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(test);
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).expect("a folder for the test");
        Folder(path)
    }

    fn with(test: &str, file: &str, text: &str) -> Folder {
        let folder = Folder::new(test);
        fs::write(folder.0.join(file), text).expect("a file for the test");
        folder
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lockstorm"));
        command.args(arguments).current_dir(&self.0);
        for variable in ["LOCKSTORM_SEED", "LOCKSTORM_SEEDS", "LOCKSTORM_JOBS"] {
            command.env_remove(variable);
        }
        command
    }

    fn run(&self, arguments: &[&str]) -> Ran {
        Ran::of(self.command(arguments).output().expect("the binary runs"))
    }
}

struct Ran {
    code: i32,
    out: String,
    err: String,
}

impl Ran {
    fn of(output: Output) -> Ran {
        let text = |bytes| String::from_utf8(bytes).expect("it prints text");
        let code = output.status.code().expect("it ends by itself");
        Ran { code, out: text(output.stdout), err: text(output.stderr) }
    }

    #[track_caller]
    fn ends(&self, code: i32, says: &str) -> &Ran {
        assert_eq!(self.code, code, "out: {}\nerr: {}", self.out, self.err);
        let found = self.out.contains(says) || self.err.contains(says);
        assert!(found, "expected {says:?}\nout: {}\nerr: {}", self.out, self.err);
        self
    }
}

#[test]
fn the_exit_status_says_how_it_came_out() {
    let folder = Folder::with("exit_status", "good.toml", GOOD);
    let otherwise = GOOD.replace("l1 = \"holds\"", "l1 = \"violated\"");
    fs::write(folder.0.join("otherwise.toml"), otherwise).expect("written");
    // Without a semaphore the checker of permits cannot decide.
    let undecided = GOOD.replace("l1 = \"holds\"", "permits = \"holds\"");
    fs::write(folder.0.join("undecided.toml"), undecided).expect("written");
    fs::write(folder.0.join("bad.toml"), GOOD.replace("steps", "stesp")).expect("written");

    folder.run(&["run", "good.toml"]).ends(0, "1 as expected, 0 not, 0 undecided");
    folder.run(&["run", "otherwise.toml"]).ends(1, "expected violated, found holds");
    folder.run(&["run", "undecided.toml"]).ends(2, "No semaphore is on trial");
    folder.run(&["run", "good.toml", "undecided.toml"]).ends(2, "1 as expected, 0 not, 1 undecided");
    folder.run(&["run", "undecided.toml", "otherwise.toml"]).ends(1, "0 as expected, 1 not, 1 undecided");
    folder.run(&["run", "bad.toml"]).ends(64, "did you mean `steps`?").ends(64, "bad.toml:4:1");
    folder.run(&["run", "absent.toml"]).ends(64, "absent.toml");
    folder.run(&["run"]).ends(64, "required arguments");
    folder.run(&["run", "good.toml", "--sede", "3"]).ends(64, "--seed");
    folder.run(&["run", "good.toml", "--seeds", "3"]).ends(64, "such as 0..1000");
    folder.run(&["run", "good.toml", "--seeds", "3..3"]).ends(64, "empty range");
    folder.run(&["run", "good.toml", "--seeds", "0..18446744073709551615"]).ends(64, "more than");
    folder.run(&["run", "good.toml", "--seed", "1", "--seeds", "0..2"]).ends(64, "cannot be used with");
    folder.run(&["claims", "S99"]).ends(64, "there is no claim S99");
    folder.run(&["replay", "good.toml"]).ends(64, "expected file#variant@seed");
    folder.run(&["replay", "good.toml#worse@1"]).ends(64, "no variant \"worse\"");
    folder.run(&["replay", "single/late_write.toml@1"]).ends(64, "say which one: unfenced, fenced");
    folder.run(&["check", "good.toml"]).ends(64, "is no history");
    folder.run(&["wrong"]).ends(64, "unrecognized subcommand");
    folder.run(&["--help"]).ends(0, "Exit status: 0 as expected, 1 not as expected, 2 undecided, 64");
    folder.run(&["--version"]).ends(0, env!("CARGO_PKG_VERSION"));
}

/// A violation that the scenario expects is as expected also when its history is judged later.
#[test]
fn a_history_is_judged_by_what_its_scenario_expects() {
    let folder = Folder::with("check", "good.toml", GOOD);
    let history = |file: &str, text: &str| {
        fs::write(folder.0.join(file), text).expect("written");
        folder.run(&["run", file, "--history", "history.jsonl"]);
        folder.run(&["check", "history.jsonl"])
    };
    let new = folder.run(&["new", "pause"]).code;
    let pause = fs::read_to_string(folder.0.join("pause.toml")).expect("just written");
    assert_eq!(new, 0);
    history("pause.toml", &pause).ends(0, "violated  (as expected)");
    history("other.toml", &pause.replace("l2 = \"holds\"", "l2 = \"violated\""))
        .ends(1, "expected violated, found holds")
        .ends(1, "lockstorm replay 'other.toml@0~");
    history("undecided.toml", &GOOD.replace("l1 = \"holds\"", "permits = \"holds\"")).ends(2, "undecided");

    // Without a word of what is expected, no violation is.
    let file = folder.0.join("history.jsonl");
    let forget = |text: &str| {
        let (head, tail) = text.split_once(",\"expect\":{").expect("it says what is expected");
        let (_, tail) = tail.split_once('}').expect("the end of it");
        format!("{head}{tail}")
    };
    for (scenario, code) in [(GOOD, 0), (&*pause, 1)] {
        history("again.toml", scenario);
        let silent = forget(&fs::read_to_string(&file).expect("just written"));
        fs::write(&file, silent).expect("written");
        folder.run(&["check", "history.jsonl"]).ends(code, "(nothing expected)");
    }
    history("again.toml", GOOD);
    let wrong =
        fs::read_to_string(&file).expect("just written").replace("\"l1\":\"holds\"", "\"l7\":\"holds\"");
    fs::write(&file, wrong).expect("written");
    folder.run(&["check", "history.jsonl"]).ends(64, "something is expected of `l7`");
}

/// What is printed of a claim is what was measured, and not what its file hopes for.
#[test]
fn a_claim_says_what_came_out() {
    let folder = Folder::new("claims");
    let ran = folder.run(&["claims", "s9", "R8"]);
    ran.ends(0, "2 of 2 claims came out as stated").ends(0, "found: ");
    ran.ends(0, "as described: l1 violated (overlap 23.084s").ends(0, "S9   as stated: ");
}

/// An order to a Sentinel is what replaced the master: "No fault was needed" was said of it.
#[test]
fn what_was_done_to_a_sentinel_is_told_as_a_fault() {
    let ran = Folder::new("sentinel").run(&["run", "sentinel/manual_failover.toml#at-once", "-v"]);
    ran.ends(0, "The faults before it: somebody runs SENTINEL FAILOVER");
}

/// Each violated run that is shown says without what it would not have been, in JSON and on its page as well.
#[test]
fn a_violation_is_shown_with_its_causes_where_they_are_asked_for() {
    let folder = Folder::with("causes", "jump.toml", &format!("{JUMP}[expect]\nl1 = \"violated\"\n"));
    let by = |more: &[&str]| folder.run(&[&["run", "jump.toml#fault.jump.clock_step.by=9s"], more].concat());
    by(&["--why"]).ends(0, "  why l1 was violated:\n    without the fault jump: holds");
    by(&["--why", "--json"])
        .ends(0, r#""why":{"checker":"l1","alone":[{"suspects":[{"is":"fault","name":"jump"}]"#);
    by(&["--report", "page.html"]).ends(0, "1 as expected");
    let page = fs::read_to_string(folder.0.join("page.html")).expect("the page was written");
    assert!(page.contains("<li>without the fault jump: <b>holds</b></li>"));
}

/// Two axes are a heat map, one is a curve; each says what it counts. And holds, of which a jump of the clock has lost one of each run.
#[test]
fn runs_are_drawn_as_pictures() {
    let axis = "[sweep]\nfault.jump.clock_step.by = [\"7s\", \"9s\"]\n";
    let (curve, map) =
        (format!("{JUMP}{axis}"), format!("{JUMP}{axis}network.latency = [\"1ms\", \"5ms\"]\n"));
    let folder = Folder::with("pictures", "curve.toml", &curve);
    fs::write(folder.0.join("map.toml"), map).expect("written");
    let drawn = |arguments: &[&str], expected: &[&str]| {
        folder.run(&[&["run"], arguments, &["drawn.svg"]].concat());
        let svg = fs::read_to_string(folder.0.join("drawn.svg")).expect("a picture");
        expected.iter().for_each(|part| assert!(svg.contains(part), "{part:?} is not in {svg}"));
    };
    drawn(&["curve.toml", "--seeds", "0..2", "--plot"], &["l1 violated: curve.toml, 4 runs", "polyline"]);
    drawn(
        &["map.toml", "--seeds", "0..2", "--plot"],
        &["l1 violated: map.toml, 8 runs", "0/2", "2/2", "34 to 100%"],
    );
    drawn(&["curve.toml", "--plot-holds"], &["curve.toml, 2 runs, 3 holds, 1 lost", "polygon"]);
    folder.run(&["run", "jump.toml", "--plot-holds"]).ends(64, "a value is required");
}

#[test]
fn a_list_of_faults_says_how_each_is_written() {
    let folder = Folder::new("list");
    let listed = folder.run(&["list", "faults"]);
    listed.ends(0, "cut = { from, to, one_way? }").ends(0, "pause = \"host\"");
}

#[test]
fn stock_scenarios_are_named_as_if_they_were_files() {
    let folder = Folder::with("stock", "mine.toml", GOOD);
    folder.run(&["run", "wake"]).ends(0, "0 not, 0 undecided");
    folder.run(&["run", "wake/herd.toml"]).ends(0, "1 as expected");
    folder.run(&["run", "wakes"]).ends(64, "did you mean `wake`?");
    folder.run(&["run", "absent"]).ends(64, "`lockstorm list scenarios`");
    // What is on the disk comes first.
    fs::create_dir(folder.0.join("wake")).expect("a folder");
    folder.run(&["run", "wake"]).ends(64, "has no scenario in it");
}

#[test]
fn what_a_red_verdict_ends_in_replays_it() {
    let otherwise = GOOD.replace("l1 = \"holds\"", "l1 = \"violated\"");
    let folder = Folder::with("replay", "otherwise.toml", &otherwise);
    let ran = folder.run(&["run", "otherwise.toml", "--seeds", "3..5"]);
    let line = ran.out.lines().find(|line| line.contains("lockstorm replay")).expect("a line to paste");
    let token = line.split('\'').nth(1).expect("a token in quotes");
    assert!(token.starts_with("otherwise.toml@3"), "{token}");
    let shown = |ran: &Ran| ran.out.matches(token).count();
    assert_eq!(shown(&ran), 1, "one line to paste for each: {}", ran.out);
    let stopped = folder.run(&["run", "otherwise.toml", "--seeds", "3..5", "--until-violation"]);
    assert_eq!(shown(&stopped), 1, "{}", stopped.out);
    let again = folder.run(&["replay", token]);
    again.ends(1, "expected violated, found holds");
    assert_eq!(again.err, "", "the file is the same");

    // Another file under the old name is another experiment.
    fs::write(folder.0.join("otherwise.toml"), GOOD).expect("written");
    folder.run(&["replay", token]).ends(0, "has changed since");
}

#[test]
fn the_environment_says_what_the_options_say() {
    let folder = Folder::with("environment", "good.toml", GOOD);
    let ran = |variable: &str, value: &str| {
        let output = folder.command(&["run", "good.toml"]).env(variable, value).output();
        Ran::of(output.expect("the binary runs"))
    };
    ran("LOCKSTORM_SEED", "7").ends(0, "good.toml@7");
    ran("LOCKSTORM_SEEDS", "0..5").ends(0, "5 as expected");
    ran("LOCKSTORM_SEED", "seven").ends(64, "invalid value 'seven'");
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let folder = Folder::with("closed_pipe", "good.toml", GOOD);
    // The pipe's other end is closed before anything is written, as that of `head -0` is.
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let mut command = folder.command(&["replay", "good.toml@1", "--trace"]);
    let output =
        command.stdout(writer).stderr(Stdio::piped()).spawn().and_then(|child| child.wait_with_output());
    let ran = Ran::of(output.expect("the binary runs"));
    assert_eq!((ran.code, &*ran.err), (0, ""), "it ends with what it found, quietly");
}

#[test]
fn an_error_that_cannot_be_told_has_its_exit_status() {
    let folder = Folder::with("closed_error", "bad.toml", &GOOD.replace("steps", "stesp"));
    fs::write(folder.0.join("good.toml"), GOOD).expect("written");
    // Each writes to standard error: a mistake in a file, a page that was written, what was left out.
    let rows: [(&[&str], i32); 4] = [
        (&["run", "bad.toml"], 64),
        (&["run", "absent.toml"], 64),
        (&["run", "good.toml", "--report", "page.html"], 0),
        (&["check", "good.toml"], 64),
    ];
    for (arguments, code) in rows {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let status = folder.command(arguments).stdout(Stdio::null()).stderr(writer).status();
        assert_eq!(status.expect("the binary runs").code(), Some(code), "{arguments:?}, standard error gone");
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let (both, status) = (writer.try_clone().expect("another"), folder.command(arguments));
        let status = { status }.stdout(both).stderr(writer).status();
        assert_eq!(status.expect("the binary runs").code(), Some(code), "{arguments:?}, both gone");
    }
}

#[test]
fn what_the_seed_has_drawn_is_shown() {
    let drawn =
        "\n[fault.jump]\nclock_step = { host = \"redis\", by = \"+1s..+9s\" }\nat = \"1s..2s\"\n[expect]";
    let clock = "[node.redis]\nclock.offset = \"-500ms..-1ms\"";
    let scenario = GOOD.replace("[expect]", drawn).replace("[node.redis]", clock);
    let folder = Folder::with("drawn", "drawn.toml", &scenario);
    let step = |text: &str| {
        let (_, rest) = text.split_once("the wall clock of redis jumps by +").expect("the step is told");
        rest.split_once('s').expect("its unit").0.to_owned()
    };
    let plan = folder.run(&["replay", "drawn.toml@3", "--plan"]).out;
    let by = step(&plan);
    let size: f64 = by.parse().expect("a number and no range");
    assert!((1.0..=9.0).contains(&size), "{plan}");
    let offset = |text: &str| {
        let (_, rest) = text.split_once("host redis (node), wall clock ").expect("the clock is told");
        rest.split_once(" ahead").expect("how far").0.to_owned()
    };
    let ahead = offset(&plan);
    assert!(ahead.starts_with('-') && ahead.ends_with("ms") && !ahead.contains(".."), "{plan}");
    let json = folder.run(&["run", "drawn.toml", "--seed", "3", "--json"]).out;
    assert_eq!((step(&json), offset(&json)), (by.clone(), ahead.clone()));
    let history = ["run", "drawn.toml", "--seed", "3", "--history", "drawn.jsonl", "--report", "drawn.html"];
    folder.run(&history).ends(0, "drawn.html shows drawn.toml@3");
    for file in ["drawn.html", "drawn.jsonl"] {
        assert_eq!(step(&fs::read_to_string(folder.0.join(file)).expect("just written")), by, "{file}");
    }
    // The page of a run showed what was drawn of its faults alone.
    assert_eq!(offset(&fs::read_to_string(folder.0.join("drawn.html")).expect("just written")), ahead);
}

/// A lock of ten seconds, of which a jump of its server's clock leaves less than the second client's wait, or more.
const JUMP: &str = include_str!("jump.toml");

#[test]
fn a_sweep_counts_violations_at_each_of_its_points() {
    let sweep = "[sweep]\nfault.jump.clock_step.by = { from = \"7s\", to = \"9s\", step = \"1s\", name = \"jump\" }\n\
                 network.latency = [\"1ms\", \"5ms\"]\n[expect]\nowner-safety = \"holds\"\n";
    let folder = Folder::with("sweep", "sweep.toml", &format!("{JUMP}{sweep}"));
    let ran = folder.run(&["run", "sweep.toml", "--seeds", "0..2"]);
    ran.ends(0, "12 as expected, 0 not, 0 undecided");
    let table: Vec<Vec<&str>> =
        ran.out.lines().skip(2).take(6).map(|line| line.split_whitespace().take(10).collect()).collect();
    // Jump and latency, then owner safety and L1: none of two runs is violated, or both are.
    let expected = [
        ["7s", "1ms", "0"],
        ["7s", "5ms", "0"],
        ["8s", "1ms", "0"],
        ["8s", "5ms", "0"],
        ["9s", "1ms", "2"],
        ["9s", "5ms", "2"],
    ];
    for (row, [jump, latency, violated]) in table.iter().zip(expected) {
        assert_eq!(row[..2], [jump, latency], "{}", ran.out);
        assert_eq!(row[2..6], ["0", "of", "2", "(0%..65.8%)"], "{}", ran.out);
        assert_eq!(row[6..9], [violated, "of", "2"], "{}", ran.out);
    }
    assert_eq!(table.len(), 6, "{}", ran.out);
    // A point is a case like any other, and so is one that lies between those of the sweep.
    folder.run(&["replay", "sweep.toml#jump=9s,latency=5ms@1"]).ends(0, "l1            violated");
    let between = "sweep.toml#fault.jump.clock_step.by=7.5s,network.latency=5ms@1";
    folder.run(&["replay", between]).ends(0, "owner-safety  holds");
    folder.run(&["replay", "sweep.toml#jump=8.5s,latency=5ms@1"]).ends(64, "unknown field `jump`");
    folder.run(&["run", "sweep.toml", "--set", "network.latecy=5ms"]).ends(64, "did you mean `latency`?");
    folder.run(&["run", "sweep.toml", "--set", "network.latency"]).ends(64, "expected key=value");
}

#[test]
fn every_run_is_a_row_of_the_results() {
    let drawn = JUMP.replace("+1s", "0s..+10s");
    let folder =
        Folder::with("results", "drawn.toml", &format!("{drawn}[expect]\nowner-safety = \"holds\"\n"));
    let run = |file: &str| folder.run(&["run", "drawn.toml", "--seeds", "5..9", "--results", file]);
    run("runs.csv").ends(0, "runs.csv has 4 runs in ");
    let csv = fs::read_to_string(folder.0.join("runs.csv")).expect("just written");
    let lines: Vec<&str> = csv.lines().collect();
    let head =
        "case,file,variant,seed,verdict,ended_at,fingerprint,drawn.fault.jump.clock_step.by,l1.verdict,";
    assert!(lines[0].starts_with(head), "{}", lines[0]);
    for (line, seed) in lines[1..].iter().zip(5..) {
        assert!(line.starts_with(&format!("drawn.toml@{seed},drawn.toml,,{seed},as-expected,30,")), "{line}");
    }
    assert_eq!(lines.len(), 5);
    run("runs.xls").ends(64, "that ends in .csv or .parquet");
    // What cannot be written is an error before the first of these runs, which would take days.
    let days = ["run", "drawn.toml", "--seeds", "0..1000000", "--results", "absent/runs.csv"];
    folder.run(&days).ends(64, "absent/runs.csv cannot be written");
    // A disk that is full ends them, too.
    if PathBuf::from("/dev/full").exists() {
        std::os::unix::fs::symlink("/dev/full", folder.0.join("full.csv")).expect("a link");
        let days = ["run", "drawn.toml", "--seeds", "0..1000000", "--results", "full.csv"];
        folder.run(&days).ends(64, "full.csv cannot be written");
    }
    if cfg!(feature = "parquet") {
        run("runs.parquet").ends(0, "runs.parquet has 4 runs in ");
        let parquet = fs::read(folder.0.join("runs.parquet")).expect("just written");
        assert!(parquet.starts_with(b"PAR1") && parquet.ends_with(b"PAR1"));
    } else {
        run("runs.parquet").ends(64, "built without Parquet");
    }
}

#[test]
fn a_campaign_comes_to_what_one_process_comes_to() {
    let folder = Folder::with("campaign", "good.toml", GOOD);
    let otherwise = GOOD.replace("l1 = \"holds\"", "l1 = \"violated\"");
    fs::write(folder.0.join("otherwise.toml"), otherwise).expect("written");
    let what = ["good.toml", "otherwise.toml", "--seeds", "0..5"];
    let read = |path: &str| fs::read(folder.0.join(path)).expect("a table");
    folder.run(&[&["run"], &what[..], &["--results", "one.csv"]].concat()).ends(1, "5 as expected, 5 not");
    let plan = [&["campaign", "plan"], &what[..], &["--out", "many", "--shard-runs", "4"]].concat();
    folder.run(&plan).ends(0, "many: 10 runs in 3 shards");
    folder.run(&plan).ends(64, "expected a folder that is new or empty");
    folder.run(&["campaign", "merge", "many"]).ends(64, "3 of 3 shards are missing: 0 to 2");
    folder.run(&["campaign", "work", "many", "--part", "1/2"]).ends(0, "1 shards finished now, 0 before");
    folder.run(&["campaign", "work", "many", "--part", "2/2"]).ends(64, "such as 0/4");
    folder.run(&["campaign", "status", "many"]).ends(2, "1 of 3 shards of 10 runs").ends(2, "missing: 0, 2");
    folder.run(&["campaign", "work", "many", "--shard", "3"]).ends(64, "there is no shard 3");
    folder.run(&["campaign", "run", "many"]).ends(1, "5 as expected, 5 not, 0 undecided");
    folder.run(&["campaign", "status", "many"]).ends(0, "3 of 3 shards");
    assert_eq!(read("many/results.csv"), read("one.csv"));
    // The files are copies, and the runs are called by the names that they had.
    fs::remove_file(folder.0.join("good.toml")).expect("it was there");
    let merged = folder.run(&["campaign", "merge", "many", "--results", "again.csv"]);
    merged.ends(1, "otherwise.toml@0: NOT AS EXPECTED").ends(1, "lockstorm replay 'otherwise.toml@0~");
    assert_eq!(read("again.csv"), read("one.csv"));
    let seeds = ["campaign", "plan", "otherwise.toml", "--seeds", "0..1000000000000", "--out", "more"];
    folder.run(&seeds).ends(64, "more than 1000000 shards");
    folder
        .run(&["campaign", "run", "many", "--engine", "slurm", "--tasks", "2"])
        .ends(0, "sbatch many/slurm.sh");
    folder.run(&["campaign", "run", "many", "--engine", "kubernetes"]).ends(64, "--image");
}

#[test]
fn a_share_of_the_runs_is_judged_by_its_interval() {
    let drawn = JUMP.replace("+1s", "0s..+10s");
    let with =
        |bound: &str| format!("{drawn}[expect]\nl1 = {{ violated = \"{bound}\", confidence = \"99%\" }}\n");
    // A fifth of the jumps is long enough.
    let folder = Folder::with("share", "share.toml", &with("<= 40%"));
    let seeds = ["run", "share.toml", "--seeds", "0..200"];
    folder.run(&seeds).ends(0, "200 as expected");
    for (bound, exit, says) in [
        ("<= 10%", 1, "NOT AS EXPECTED: l1: expected <= 10%, found "),
        ("<= 20%", 2, "more seeds would decide it"),
    ] {
        fs::write(folder.0.join("share.toml"), with(bound)).expect("written");
        let ran = folder.run(&seeds);
        ran.ends(exit, says);
        // One run says nothing of a share, also when it is run again.
        folder.run(&["replay", "share.toml@0"]).ends(0, "share.toml@0: as expected");
        // However many runs there are, the answer is one line.
        assert!(ran.out.lines().count() < 8, "{}", ran.out);
    }
}

/// A point stops where its own seeds decide it, on any number of threads, and another goes on to the end.
#[test]
fn seeds_that_a_decided_share_does_not_need_are_left_out() {
    let sweep =
        "[sweep]\n\"fault.jump.clock_step.by\" = { values = [\"0s..10s\", \"9s\"], name = \"jump\" }\n";
    let text = format!("{JUMP}{sweep}[expect]\nl1 = {{ violated = \"<= 20%\" }}\n");
    let folder = Folder::with("early", "early.toml", &text);
    let seeds = ["run", "early.toml", "--seeds", "0..200", "--stop-early"];
    let ran = |jobs: &str| folder.run(&[&seeds[..], &["--jobs", jobs]].concat());
    let one = ran("1");
    one.ends(1, "jump=9s: decided after 64 of 200 seeds")
        .ends(1, "64 of 64 (94.3%..100%)")
        .ends(1, "264 as expected");
    let table = |ran: &Ran| {
        ran.out
            .lines()
            .skip_while(|line| *line != "early.toml")
            .take(4)
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!(table(&ran("3")), table(&one));
    // What was asked for is run unless it is said otherwise.
    folder.run(&seeds[..4]).ends(1, "400 as expected");
}

#[test]
fn a_boundary_is_found_to_the_millisecond_beside_its_formula() {
    let boundary = "[boundary]\nkey = \"fault.jump.clock_step.by\"\nfrom = \"0s\"\nto = \"12s\"\nwithin = \"1ms\"\n\
                    formula = \"lease - 2s\"\n[expect]\nl1 = \"holds\"\n";
    let folder = Folder::with("boundary", "jump.toml", &format!("{JUMP}{boundary}"));
    let ran = folder.run(&["boundary", "jump.toml"]);
    ran.ends(0, "seed 0: holds up to 8s, violated from 8.001s").ends(0, "formula  lease - 2s = 8s, as found");
    folder
        .run(&["boundary", "jump.toml", "--seeds", "0..6"])
        .ends(0, "median 8.001s (8.001s to 8.001s with 95% confidence)");
    let axis = |range: &str| format!("fault.jump.clock_step.by={range}");
    folder.run(&["boundary", "jump.toml", "--axis", &axis("0s..5s")]).ends(1, "holds all the way");
    folder.run(&["boundary", "jump.toml", "--axis", &axis("5s..0s")]).ends(64, "from a smaller value");
    folder.run(&["boundary", "jump.toml", "--checker", "l5"]).ends(64, "there is no checker l5");
    let wrong = boundary.replace("lease - 2s", "lease - 1s");
    let folder = Folder::with("wrong_boundary", "jump.toml", &format!("{JUMP}{wrong}"));
    folder.run(&["boundary", "jump.toml"]).ends(1, "formula  lease - 1s = 9s, NOT AS FOUND");
    let between = boundary.replace("lease - 2s", "lease - 3s .. lease - 2s");
    let folder = Folder::with("bounds_of_boundary", "jump.toml", &format!("{JUMP}{between}"));
    folder.run(&["boundary", "jump.toml"]).ends(0, "formula  lease - 3s .. lease - 2s = 7s to 8s, as found");
    let beside = boundary.replace("lease - 2s", "lease - 1s .. lease");
    let folder = Folder::with("beside_a_boundary", "jump.toml", &format!("{JUMP}{beside}"));
    folder.run(&["boundary", "jump.toml"]).ends(1, "= 9s to 10s, NOT AS FOUND");
}

/// Each claim with a number has its boundary beside what was found, and the folder has a page for each condition.
#[test]
fn claims_are_a_folder_of_pages() {
    let folder = Folder::new("site");
    let ran = folder.run(&["claims", "R1", "S11", "--report", "site"]);
    ran.ends(0, "holds up to 8.9s, violated from 8.901s").ends(0, "formula  lease - 1.1s = 8.9s, as found");
    let read = |name: &str| fs::read_to_string(folder.0.join("site").join(name)).expect(name);
    let index = read("index.html");
    // Two files decide S11, and neither writes over the other.
    let pages = ["R1/one-try-after-8890ms.html", "S11/nearly.html", "S11-2/forward.html"];
    for name in pages.into_iter().chain(["files/redlock/clock_jump.toml"]) {
        assert!(index.contains(&format!("href=\"{name}\"")), "{name} is not linked in\n{index}");
        assert!(!read(name).is_empty(), "{name}");
    }
    assert!(read("R1/one-try-after-8890ms.html").contains("R1"));
    folder.run(&["claims", "R1", "--report", "site/index.html"]).ends(64, "cannot be written");
}

/// The key is asked for 2 s after the grant of 10 s: of what is drawn only the length of the jump matters.
#[test]
fn the_drawn_value_that_matters_is_named() {
    let text = JUMP.replace("+1s", "0s..+16s").replace("at = \"11s\"", "at = \"10.5s..11.5s\"");
    let folder = Folder::with("sensitivity", "jump.toml", &text);
    let ran = folder.run(&["sensitivity", "jump.toml", "--checker", "l1", "--seeds", "0..60"]);
    ran.ends(0, "jump.toml: l1 violated in")
        .ends(0, "fault.jump.clock_step.by  ")
        .ends(0, " bits  up to +7.");
    assert!(ran.out.contains("of 1 more no better than by chance"), "{}", ran.out);
    folder
        .run(&["sensitivity", "jump.toml", "--seeds", "0..6"])
        .ends(2, "better than chance; more seeds may");
    let json = folder.run(&["sensitivity", "jump.toml", "--checker", "l1", "--seeds", "0..60", "--json"]);
    json.ends(0, "\"separators\":[{\"path\":\"fault.jump.clock_step.by\"");
}

/// A condition that leaves out the fault, and one that makes it worse; each can be run by itself.
#[test]
fn one_variant_of_a_file_runs_alone() {
    let variants = "[variant.quiet]\nwithout = [\"fault.jump\"]\nexpect.l1 = \"holds\"\n\
                    [variant.far]\nfault.jump.clock_step.by = \"+9s\"\nexpect.l1 = \"violated\"\n";
    let text = format!("finding = \"It is as one would think.\"\n{JUMP}{variants}");
    let folder = Folder::with("variants", "jump.toml", &text);
    folder
        .run(&["run", "jump.toml", "-v"])
        .ends(0, "2 as expected")
        .ends(0, "found: It is as one would think.");
    folder.run(&["run", "jump.toml#quiet"]).ends(0, "jump.toml#quiet@0").ends(0, "1 as expected");
    folder.run(&["run", "jump.toml#far", "--set", "network.latency=2ms"]).ends(0, "1 as expected");
    folder.run(&["run", "jump.toml#near"]).ends(64, "there is no variant \"near\", but: quiet, far");
    let replayed = folder.run(&["replay", "jump.toml#far@0", "--json"]);
    replayed.ends(0, "\"case\":\"jump.toml#far@0\"");
    assert!(replayed.out.starts_with('{') && replayed.out.lines().count() == 1, "{}", replayed.out);
}

#[test]
fn the_template_runs_as_it_is_written() {
    let folder = Folder::new("template");
    folder.run(&["new", "mine"]).ends(0, "lockstorm run mine.toml");
    folder.run(&["run", "mine.toml"]).ends(0, "1 as expected, 0 not, 0 undecided");
    folder.run(&["twice", "mine.toml"]).ends(0, "1 runs, each the same twice");
    folder.run(&["new", "mine"]).ends(64, "is there already");
    for name in ["", ".", "..", "../mine", "/mine", "deeper/mine", "mine/", ".hidden", "./mine"] {
        folder.run(&["new", name]).ends(64, "is no name of a scenario");
    }
}

#[test]
fn what_shrinks_still_goes_wrong() {
    let folder = Folder::new("shrink");
    folder.run(&["new", "mine"]).ends(0, "is written");
    folder.run(&["shrink", "mine.toml@0", "--output", "small.toml"]).ends(0, "small.toml is written");
    let text = fs::read_to_string(folder.0.join("small.toml")).expect("a scenario");
    // The release after the late write has no part in it; the pause has.
    assert!(!text.contains("release") && text.contains("pause"), "{text}");
    folder.run(&["run", "small.toml"]).ends(0, "1 as expected");
    folder.run(&["shrink", "mine.toml@0", "--checker", "l1"]).ends(1, "l1 is not violated");
    folder.run(&["shrink", "mine.toml@0", "--checker", "l33"]).ends(64, "did you mean l3?");
}

#[test]
fn a_violation_is_told_its_cause() {
    let folder = Folder::with("why", "jump.toml", &JUMP.replace("+1s", "+9s"));
    folder.run(&["why", "jump.toml@0", "--checker", "l1"]).ends(0, "without the fault jump: holds");
    folder.run(&["why", "jump.toml@0", "--checker", "l1", "--json"]).ends(0, "\"without_all\":\"holds\"");
    folder.run(&["why", "jump.toml@0", "--checker", "l4"]).ends(1, "l4 is not violated");
    folder.run(&["why", "jump.toml@0", "--checker", "l44"]).ends(64, "there is no checker l44");
}

#[test]
fn every_subcommand_explains_itself() {
    let folder = Folder::new("help");
    let help = folder.run(&["--help"]);
    let commands = help.out.lines().skip_while(|line| *line != "Commands:").skip(1);
    let commands: Vec<&str> = commands
        .take_while(|line| !line.is_empty())
        // What is said of a command may go on in a line that begins further to the right.
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert!(commands.contains(&"claims") && commands.contains(&"shrink"), "{commands:?}");
    for command in commands.into_iter().filter(|command| *command != "help") {
        let ran = folder.run(&[command, "--help"]);
        ran.ends(0, "Usage: lockstorm");
        let first = ran.out.lines().next().unwrap_or_default();
        assert!(first.len() > 20, "{command} says what it is for: {first:?}");
        for width in [80, 100] {
            let output = folder.command(&[command, "--help"]).env("COLUMNS", width.to_string()).output();
            let long = Ran::of(output.expect("the binary runs"));
            let long = long.out.lines().find(|line| line.chars().count() > width);
            assert_eq!(long, None, "{command} --help fits into {width} columns");
        }
    }
}
