//! The binary from the outside: its output, and its exit codes.

use std::{
    fs,
    path::PathBuf,
    process::{Command, Output, Stdio},
};

mod audit;
mod reports;
mod research;

/// Two clients acquire and release a lock; nothing goes wrong.
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

/// A separate folder for one test.
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
    folder.run(&["check", "good.toml"]).ends(64, "is not a history");
    folder.run(&["wrong"]).ends(64, "unrecognized subcommand");
    folder.run(&["--help"]).ends(0, "Exit status: 0 as expected, 1 not as expected, 2 undecided, 64");
    folder.run(&["--version"]).ends(0, env!("CARGO_PKG_VERSION"));
}

/// A violation that the scenario expects is also as expected when its history is judged later.
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

    // Without any stated expectation, no violation is expected.
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

/// A claim's output is the measurement, not the hope of its file.
#[test]
fn a_claim_says_what_came_out() {
    let folder = Folder::new("claims");
    let ran = folder.run(&["claims", "s9", "R8"]);
    ran.ends(0, "2 of 2 claims came out as stated").ends(0, "found: ");
    ran.ends(0, "as described: l1 violated (overlap 23.084s").ends(0, "S9   as stated: ");
}

/// A command to a Sentinel replaced the master. Regression: the report said "No fault was needed".
#[test]
fn what_was_done_to_a_sentinel_is_told_as_a_fault() {
    let ran = Folder::new("sentinel").run(&["run", "sentinel/manual_failover.toml#at-once", "-v"]);
    ran.ends(0, "The faults in its chain of events: somebody runs SENTINEL FAILOVER");
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
    // A file on the disk takes precedence over a stock scenario.
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
    // The other end of the pipe is closed before any output, as with `head -0`.
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
    // Each of these writes to standard error: a mistake in a file, a written page, or a list of
    // omissions.
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
    // The same values by the paths of their keys, as a program reads them: in the JSON, in the
    // header of the history, in the columns.
    let values = |text: &str, at: &str| {
        let line = text.lines().next().expect("a line");
        let line: serde_json::Value = serde_json::from_str(line).expect("a line of JSON");
        let drawn = line.pointer(at).and_then(|drawn| drawn.as_array()).expect("what was drawn").clone();
        drawn.into_iter().map(|one| [one["key"].clone(), one["value"].clone(), one["number"].clone()])
    };
    let values = |text: &str, at: &str| values(text, at).collect::<Vec<_>>();
    let drawn = values(&json, "/drawn");
    let keys: Vec<_> = drawn.iter().map(|[key, ..]| key.as_str().expect("a path")).collect();
    assert_eq!(keys, ["node.redis.clock.offset", "fault.jump.at", "fault.jump.clock_step.by"]);
    assert_eq!(drawn[2][1], format!("+{by}s"));
    let recorded = fs::read_to_string(folder.0.join("drawn.jsonl")).expect("just written");
    assert_eq!(values(&recorded, "/header/drawn"), drawn);
    folder.run(&["run", "drawn.toml", "--seed", "3", "--results", "drawn.csv"]);
    let table = fs::read_to_string(folder.0.join("drawn.csv")).expect("just written");
    let rows: Vec<Vec<&str>> = table.lines().map(|line| line.split(',').collect()).collect();
    for [key, _, number] in &drawn {
        let name = format!("drawn.{}", key.as_str().expect("a path"));
        let column = rows[0].iter().position(|column| *column == name).expect("its column");
        assert_eq!(rows[1][column].parse::<f64>().ok(), number.as_f64(), "{name}");
    }
    // Without drawn values a header does not mention them.
    let fixed = Folder::with("fixed", "fixed.toml", GOOD);
    fixed.run(&["run", "fixed.toml", "--history", "fixed.jsonl"]);
    let recorded = fs::read_to_string(fixed.0.join("fixed.jsonl")).expect("just written");
    assert!(!recorded.contains("\"drawn\""), "{recorded}");
    // Regression: the page of a run showed only the drawn values of its faults.
    assert_eq!(offset(&fs::read_to_string(folder.0.join("drawn.html")).expect("just written")), ahead);
}

#[test]
fn the_template_runs_as_it_is_written() {
    let folder = Folder::new("template");
    folder.run(&["new", "mine"]).ends(0, "lockstorm run mine.toml");
    folder.run(&["run", "mine.toml"]).ends(0, "1 as expected, 0 not, 0 undecided");
    folder.run(&["twice", "mine.toml"]).ends(0, "1 runs, each the same twice");
    folder.run(&["new", "mine"]).ends(64, "already exists");
    for name in ["", ".", "..", "../mine", "/mine", "deeper/mine", "mine/", ".hidden", "./mine"] {
        folder.run(&["new", name]).ends(64, "is not a scenario name");
    }
}

#[test]
fn what_shrinks_still_goes_wrong() {
    let folder = Folder::new("shrink");
    folder.run(&["new", "mine"]).ends(0, "is written");
    folder.run(&["shrink", "mine.toml@0", "--output", "small.toml"]).ends(0, "small.toml is written");
    let text = fs::read_to_string(folder.0.join("small.toml")).expect("a scenario");
    // The release after the late write is not part of the cause; the pause is.
    assert!(!text.contains("release") && text.contains("pause"), "{text}");
    folder.run(&["run", "small.toml"]).ends(0, "1 as expected");
    // Regression: an existing file was overwritten.
    let again = ["shrink", "mine.toml@0", "--output", "small.toml"];
    folder.run(&again).ends(64, "small.toml already exists");
    folder.run(&[&again[..], &["--force"]].concat()).ends(0, "small.toml is written");
    // Regression: the seeds of the file were kept, although other seeds need not violate.
    let mine = fs::read_to_string(folder.0.join("mine.toml")).expect("a scenario");
    let many = mine.replace("storm = \"10s\"", "storm = \"10s\"\nseeds = 50");
    fs::write(folder.0.join("many.toml"), many).expect("written");
    folder.run(&["shrink", "many.toml@0", "--output", "few.toml"]).ends(0, "few.toml is written");
    let text = fs::read_to_string(folder.0.join("few.toml")).expect("a scenario");
    assert!(!text.contains("seeds"), "{text}");
    folder.run(&["shrink", "mine.toml@0", "--checker", "l1"]).ends(1, "l1 is not violated");
    folder.run(&["shrink", "mine.toml@0", "--checker", "l33"]).ends(64, "did you mean l3?");
}

#[test]
fn every_subcommand_explains_itself() {
    let folder = Folder::new("help");
    let help = folder.run(&["--help"]);
    let commands = help.out.lines().skip_while(|line| *line != "Commands:").skip(1);
    let commands: Vec<&str> = commands
        .take_while(|line| !line.is_empty())
        // A command's description may continue in a line with deeper indentation.
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
