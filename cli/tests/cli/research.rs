//! Questions about many runs: sweeps, shares, boundaries, causes, pictures, campaigns.

use std::{fs, path::PathBuf};

use crate::{Folder, GOOD, Ran};

/// A lock of ten seconds. A jump of its server's clock leaves more or less of it than the second
/// client's wait.
const JUMP: &str = include_str!("../jump.toml");

/// Each shown violation lists the causes without which it would not have happened, in JSON and on
/// its page as well.
#[test]
fn a_violation_is_shown_with_its_causes_where_they_are_asked_for() {
    let folder = Folder::with("causes", "jump.toml", &format!("{JUMP}[expect]\nl1 = \"violated\"\n"));
    let by = |more: &[&str]| folder.run(&[&["run", "jump.toml#fault.jump.clock_step.by=9s"], more].concat());
    by(&["--why"]).ends(0, "  why l1 was violated:\n    without the fault jump: holds");
    by(&["--why", "--json"]).ends(
        0,
        r#""why":{"checker":"l1","alone":[{"suspects":[{"is":"fault","name":"jump"}],"verdict":"holds"}"#,
    );
    by(&["--report", "page.html"]).ends(0, "1 as expected");
    let page = fs::read_to_string(folder.0.join("page.html")).expect("the page was written");
    assert!(page.contains("<li>without the fault jump: <b>holds</b></li>"));
}

/// Two axes give a heat map, one gives a curve; each names its counts. The jump of the clock also
/// ends one hold in each run, which the picture of holds shows.
#[test]
fn runs_are_drawn_as_pictures() {
    let axis = "[sweep]\nfault.jump.clock_step.by = [\"7s\", \"9s\"]\n";
    let (curve, map) = (
        format!("{JUMP}{axis}"),
        format!("plot = \"l1\"\n{JUMP}{axis}network.latency = [\"1ms\", \"5ms\"]\n"),
    );
    let folder = Folder::with("pictures", "curve.toml", &curve);
    fs::write(folder.0.join("jump.toml"), JUMP).expect("written");
    fs::write(folder.0.join("map.toml"), map).expect("written");
    let drawn = |arguments: &[&str], expected: &[&str]| {
        folder.run(&[&["run"], arguments, &["drawn.svg"]].concat());
        let svg = fs::read_to_string(folder.0.join("drawn.svg")).expect("a picture");
        expected.iter().for_each(|part| assert!(svg.contains(part), "{part:?} is not in {svg}"));
    };
    drawn(
        &["curve.toml", "--seeds", "0..2", "--plot-checker", "l1", "--plot"],
        &["l1 violated: curve.toml, 4 runs", "polyline"],
    );
    drawn(
        &["map.toml", "--seeds", "0..2", "--plot"],
        &["l1 violated: map.toml, 8 runs", "0/2", "2/2", "34 to 100%"],
    );
    drawn(&["map.toml", "--seeds", "0..2", "--plot-checker", "l2", "--plot"], &["l2 violated: map.toml"]);
    // Regression: every run was done before the unknown checker was noticed.
    folder
        .run(&["run", "map.toml", "--plot-checker", "l9", "--plot", "drawn.svg"])
        .ends(64, "there is no checker l9");
    // A picture that cannot be drawn loses no results.
    let ran = folder.run(&["run", "jump.toml", "--plot", "drawn.svg", "--plot-checker", "l1"]);
    assert!(ran.out.contains("1 undecided") && ran.err.contains("one or two axes"), "{}{}", ran.out, ran.err);
    drawn(&["curve.toml", "--plot-holds"], &["curve.toml, 2 runs, 3 holds, 2 lost", "polygon"]);
    // The page of a run has the pictures that the run is part of: its sweep if there is one, and
    // the holds if they are enough.
    let pictured = |file: &str, seeds: &str| {
        folder.run(&["run", file, "--seeds", seeds, "--report", "page.html"]);
        let page = fs::read_to_string(folder.0.join("page.html")).expect("the page was written");
        [
            "The sweep that this run is a point of",
            "How long holds survived in all runs",
            "lease violated: curve.toml, 8 runs",
            "curve.toml, 8 runs, 12 holds, 8 lost",
        ]
        .map(|part| page.matches(part).count() > 0)
    };
    assert_eq!(pictured("curve.toml", "0..4"), [true; 4]);
    assert_eq!(pictured("jump.toml", "0..1"), [false; 4]);
    folder.run(&["run", "jump.toml", "--plot-holds"]).ends(64, "a value is required");
    folder
        .run(&["run", "jump.toml", "--plot-holds", "drawn.png"])
        .ends(64, "expected a name that ends in .svg");
}

#[test]
fn a_file_that_is_named_twice_runs_once() {
    let folder = Folder::with("twice", "jump.toml", &format!("{JUMP}[expect]\nl1 = \"holds\"\n"));
    for twice in [["jump.toml", "jump.toml"], ["./jump.toml", "jump.toml"], [".", "jump.toml"]] {
        let ran = folder.run(&[&["run", "--seed", "0"], &twice[..]].concat());
        ran.ends(0, "1 as expected, 0 not");
    }
    let two = "[variant.one]\nexpect.l1 = \"holds\"\n[variant.other]\nexpect.l2 = \"holds\"\n";
    let folder = Folder::with("twice_a_variant", "jump.toml", &format!("{JUMP}{two}"));
    folder.run(&["run", "jump.toml#one", "jump.toml", "--seed", "0"]).ends(0, "2 as expected, 0 not");
}

/// Each form of JSON about a run contains the chain of a violation. Regression: `replay` lacked it.
#[test]
fn the_json_of_a_violation_has_its_chain() {
    let jumps = JUMP.replace("+1s", "+9s");
    let folder = Folder::with("chain", "jump.toml", &format!("{jumps}[expect]\nl1 = \"violated\"\n"));
    let history = ["run", "jump.toml", "--seed", "0", "--history", "history.jsonl"];
    folder.run(&history).ends(0, "1 as expected");
    for form in
        [&["run", "jump.toml", "--seed", "0"][..], &["replay", "jump.toml@0"], &["check", "history.jsonl"]]
    {
        let ran = folder.run(&[form, &["--json"]].concat());
        let json: serde_json::Value = serde_json::from_str(&ran.out).expect("one object");
        let findings = json["findings"].as_array().expect("all findings");
        let of =
            |checker: &str| findings.iter().find(|found| found["checker"] == checker).expect("a finding");
        let chain = of("l1")["chain"].as_array().expect("a chain");
        let fault = chain.iter().find(|link| link["fault"] == 0).expect("the jump");
        assert_eq!(fault["words"], "the wall clock of m jumps by +9s at 11.000 s", "{form:?}");
        assert!(of("latch")["chain"].is_null(), "{form:?}: nothing was violated");
    }
}

#[test]
fn a_boundary_is_sought_at_the_points_that_a_name_gives() {
    let axes = "[sweep]\nnetwork.latency = [\"1ms\", \"5ms\"]\n[expect]\nl1 = \"violated\"\n\
                [boundary]\nkey = \"fault.jump.clock_step.by\"\nfrom = \"0s\"\nto = \"12s\"\nwithin = \"1s\"\n";
    let folder = Folder::with("boundary_at_points", "jump.toml", &format!("{JUMP}{axes}"));
    for (name, points) in [("jump.toml", 2), ("jump.toml#latency=5ms", 1)] {
        let ran = folder.run(&["boundary", name, "--seed", "0"]);
        assert_eq!(ran.out.matches("l1 while").count(), points, "{name}: {}", ran.out);
        assert_eq!(ran.out.matches("#latency=1ms").count(), points - 1, "{name}: {}", ran.out);
    }
    let axis = "an axis of a sweep";
    folder.run(&["run", "jump.toml", "--set", "sweep.network.latency=1ms"]).ends(64, axis);
    folder
        .run(&["run", "jump.toml", "--set", "variant.one.lock.lease=1s"])
        .ends(64, "a variant is chosen by");
}

#[test]
fn a_sweep_counts_violations_at_each_of_its_points() {
    let sweep = "[sweep]\nfault.jump.clock_step.by = { from = \"7s\", to = \"9s\", step = \"1s\", name = \"jump\" }\n\
                 network.latency = [\"1ms\", \"5ms\"]\n[expect]\nowner-safety = \"holds\"\n";
    let folder = Folder::with("sweep", "sweep.toml", &format!("{JUMP}{sweep}"));
    let ran = folder.run(&["run", "sweep.toml", "--seeds", "0..2"]);
    ran.ends(0, "12 as expected, 0 not, 0 undecided");
    let table: Vec<Vec<&str>> =
        ran.out.lines().skip(2).take(6).map(|line| line.split_whitespace().take(10).collect()).collect();
    // Each row: the jump, the latency, and the number of violated runs of two.
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
    // A point is a case like any other, and so is a point between those of the sweep.
    folder.run(&["replay", "sweep.toml#jump=9s,latency=5ms@1"]).ends(0, "l1            violated");
    let between = "sweep.toml#fault.jump.clock_step.by=7.5s,network.latency=5ms@1";
    folder.run(&["replay", between]).ends(0, "owner-safety  holds");
    // Axes in any order, or only some of them: all points with these values.
    folder.run(&["replay", "sweep.toml#latency=5ms,jump=9s@1"]).ends(0, "l1            violated");
    folder.run(&["run", "sweep.toml#latency=5ms"]).ends(0, "3 as expected");
    for none in ["#jump=8.5s,latency=5ms@1", "#latency=5ms@1", "@1"] {
        let ran = folder.run(&["replay", &format!("sweep.toml{none}")]);
        // The lines of an error are as long as the terminal is wide.
        let said = ran.err.replace('│', "").split_whitespace().collect::<Vec<_>>().join(" ");
        let axes =
            "in the sweep: jump is one of 7s 8s 9s, latency is one of 1ms 5ms; as in \"jump=7s,latency=1ms\"";
        assert!(ran.code == 64 && said.contains(axes), "{none}: {said}");
    }
    folder.run(&["run", "sweep.toml", "--set", "network.latecy=5ms"]).ends(64, "did you mean `latency`?");
    folder.run(&["run", "sweep.toml", "--set", "network.latency"]).ends(64, "expected key=value");
}

/// The holder crashes, and its lease ends at 11 s: 8 s after the storm, plus a millisecond and two
/// round trips.
#[test]
fn a_file_says_how_long_a_free_lock_may_keep_its_waiters_waiting() {
    let text = "[node.m]\n[lock]\nlease = \"10s\"\n[client.c1]\nsteps = [{ at = \"1s\", try_acquire = {} }]\n\
                [client.c2]\nsteps = [{ at = \"2s\", acquire = { wait = \"30s\" } }, { release = {} }]\n\
                [fault.death]\ncrash = \"c1\"\nat = \"2s\"\nfor = \"1h\"\n[run]\nstorm = \"3s\"\ncalm = \"20s\"\n\
                [expect]\nprogress = \"holds\"\n";
    let folder = Folder::with("patience", "patience.toml", text);
    for (bound, exit, says) in [
        (&["--set", "run.progress=8s"][..], 1, "expected holds, found violated"),
        (&["--set", "run.progress=9s"], 0, "1 as expected"),
        (&["--set", "run.progress=1"], 64, "expected a string"),
        (&[], 0, "1 as expected"),
    ] {
        folder.run(&[&["run", "patience.toml"], bound].concat()).ends(exit, says);
    }
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
    // An output that cannot be written is an error before the first of these runs, which would take
    // days.
    let days = ["run", "drawn.toml", "--seeds", "0..1000000", "--results", "absent/runs.csv"];
    folder.run(&days).ends(64, "absent/runs.csv cannot be written");
    // A full disk ends them, too.
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
    folder.run(&plan).ends(64, "is a campaign already, or has other files");
    folder.run(&["campaign", "merge", "many"]).ends(64, "3 of 3 shards are missing: 0 to 2");
    folder.run(&["campaign", "work", "many", "--part", "1/2"]).ends(0, "1 shard finished now, 0 before");
    folder.run(&["campaign", "work", "many", "--part", "2/2"]).ends(64, "such as 0/4");
    folder.run(&["campaign", "status", "many"]).ends(2, "1 of 3 shards of 10 runs").ends(2, "missing: 0, 2");
    folder.run(&["campaign", "work", "many", "--shard", "3"]).ends(64, "there is no shard 3");
    folder.run(&["campaign", "run", "many"]).ends(1, "5 as expected, 5 not, 0 undecided");
    folder.run(&["campaign", "status", "many"]).ends(0, "3 of 3 shards");
    assert_eq!(read("many/results.csv"), read("one.csv"));
    // One command plans, runs and merges a campaign. Given again, it continues.
    let seeds = |seeds: &'static str| {
        [&["campaign", "run", "at-once"], &what[..2], &["--seeds", seeds, "--shard-runs", "4"]].concat()
    };
    folder.run(&seeds("0..5")).ends(1, "3 shards finished now, 0 before").ends(1, "5 as expected, 5 not");
    folder.run(&seeds("0..5")).ends(1, "0 shards finished now, 3 before").ends(1, "5 as expected, 5 not");
    assert_eq!(read("at-once/results.csv"), read("one.csv"));
    folder.run(&seeds("0..6")).ends(64, "at-once is a campaign of other files, seeds or shards");
    folder.run(&["campaign", "run", "at-once", "good.toml"]).ends(64, "--seeds <A..B>");
    // The folder with the files is not a campaign.
    let here = ["campaign", "run", ".", "good.toml", "--seeds", "0..5"];
    folder.run(&here).ends(64, "is a campaign already, or has other files");
    folder.run(&["campaign", "run", "at-once", "--seeds", "0..5"]).ends(64, "<PATH>");
    // The files are copies, and the runs keep their original names.
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
    folder
        .run(&seeds)
        .ends(0, "200 as expected, 0 not, 0 undecided; of 1 share 1 as expected, 0 not, 0 undecided (");
    // Regression: the last line did not mention the share, which was the only failure, and neither
    // did the JSON.
    for (bound, exit, says, shares, verdict) in [
        (
            "<= 10%",
            1,
            "NOT AS EXPECTED: l1: expected <= 10%, found ",
            "0 as expected, 1 not, 0 undecided",
            "otherwise",
        ),
        ("<= 20%", 2, "more seeds would decide it", "0 as expected, 0 not, 1 undecided", "undecided"),
    ] {
        fs::write(folder.0.join("share.toml"), with(bound)).expect("written");
        let ran = folder.run(&seeds);
        ran.ends(exit, says).ends(exit, &format!("; of 1 share {shares} ("));
        let json = folder.run(&[&seeds[..], &["--json"]].concat());
        let lines =
            json.out.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).expect("JSON"));
        let (runs, rows): (Vec<_>, Vec<_>) = lines.partition(|line| line.get("case").is_some());
        assert_eq!((json.code, runs.len()), (exit, 200));
        let last = rows.iter().find(|row| row["checker"] == "l1").expect("a line for the share");
        assert_eq!((&last["condition"], &last["runs"]), (&"share.toml".into(), &200.into()));
        assert_eq!(last["share"]["match"], verdict, "{last}");
        assert!(last["interval"]["low"].is_number() && last["violated"]["yes"].is_number(), "{last}");
        // One run proves nothing about a share, even when it is repeated.
        folder.run(&["replay", "share.toml@0"]).ends(0, "share.toml@0: as expected");
        // For any number of runs the output is short.
        assert!(ran.out.lines().count() < 8, "{}", ran.out);
    }
}

/// A point stops once its own seeds decide it, on any number of threads, and another continues to
/// the end.
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
    // Every requested run is done unless an option says otherwise.
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
    let many = folder.run(&["boundary", "jump.toml", "--seeds", "0..6", "--json"]);
    let found: serde_json::Value = serde_json::from_str(&many.out).expect("one line");
    let median = serde_json::json!(
        { "middle": "8.001s", "low": "8.001s", "high": "8.001s", "confidence": 0.95, "seeds": 6 }
    );
    assert_eq!(found["median"], median);
    let json = folder.run(&["boundary", "jump.toml", "--json"]);
    let found: serde_json::Value = serde_json::from_str(&json.out).expect("one line");
    let change = &found["seeds"][0]["changes"][0];
    assert_eq!(
        (&change["last"], &change["first"], &found["as_claimed"]),
        (&"8s".into(), &"8.001s".into(), &true.into())
    );
    let axis = |range: &str| format!("fault.jump.clock_step.by={range}");
    // Regression: a misspelt key was reported at the first line of the file, which does not contain
    // it.
    folder
        .run(&["boundary", "jump.toml", "--axis", "fault.jumpp.clock_step.by=0s..5s"])
        .ends(64, "with fault.jumpp.clock_step.by=0ms: there is no fault")
        .ends(64, "did you mean `jump`?");
    folder
        .run(&["run", "jump.toml", "--set", "lock.leese=1s"])
        .ends(64, "jump.toml: with lock.leese=1s: unknown field `leese`")
        .ends(64, "did you mean `lease`?");
    folder.run(&["boundary", "jump.toml", "--axis", &axis("0s..5s")]).ends(1, "holds all the way");
    // Without a formula nothing is claimed.
    let json = folder.run(&["boundary", "jump.toml", "--axis", &axis("0s..9s"), "--json"]);
    let found: serde_json::Value = serde_json::from_str(&json.out).expect("one line");
    assert_eq!((json.code, found["as_claimed"].is_null()), (0, true), "{}", json.out);
    folder.run(&["boundary", "jump.toml", "--checker", "latch"]).ends(2, "undecided all the way");
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

/// The jump frees the key for c2 immediately, and the promise to c1 lasts as long as its lease: 10
/// s + 10 s - 12 s.
#[test]
fn a_measure_is_judged_by_the_formula_of_its_file() {
    // A holder that never releases the lock: its promise lasts as long as its lease.
    let jump = JUMP.replace("+1s", "+9s").replace(", { at = \"15s\", release = {} }", "");
    let overlap = "client.c1.steps.0.at + lease - client.c2.steps.0.at";
    for (measure, exit, says) in [
        (
            format!("l1.overlap = {{ formula = \"{overlap}\" }}"),
            0,
            format!("l1.overlap is 8s: formula  {overlap} = 8s (within 1ms), as found"),
        ),
        // Off by more than the tolerance, by exactly the tolerance, and to the other side.
        (
            "l1.overlap = { formula = \"lease - 1.9s\", within = \"99ms\" }".to_owned(),
            1,
            "expected overlap lease - 1.9s = 8.1s (within 99ms), found 8s".to_owned(),
        ),
        (
            "l1.overlap = { formula = \"lease - 1.9s\", within = \"100ms\" }".to_owned(),
            0,
            "8.1s (within 100ms), as found".to_owned(),
        ),
        ("l1.overlap = { formula = \"lease - 2.002s\" }".to_owned(), 1, "found 8s".to_owned()),
        // Between two sums.
        (
            "l1.overlap = { formula = \"lease - 3s .. lease - latency\" }".to_owned(),
            0,
            "7s to 9.999s".to_owned(),
        ),
        ("l1.overlap = { formula = \"lease - 3s .. lease - 2.5s\" }".to_owned(), 1, "found 8s".to_owned()),
        // A number, exact or approximate; a time is not a number.
        (
            "l1.times = { formula = \"1\" }".to_owned(),
            0,
            "l1.times is 1: formula  1 = 1, as found".to_owned(),
        ),
        ("l1.times = { formula = \"2\" }".to_owned(), 1, "expected times 2 = 2, found 1".to_owned()),
        ("l1.times = { formula = \"2\", within = 1 }".to_owned(), 0, "2 = 2 (within 1), as found".to_owned()),
        ("l1.times = { formula = \"1s\" }".to_owned(), 1, "found 1".to_owned()),
        // The second of two measures of one checker.
        (
            "l1.times = { formula = \"1\" }\nl1.overlap = { formula = \"lease\" }".to_owned(),
            1,
            "found 8s".to_owned(),
        ),
    ] {
        let text = format!("{jump}[expect]\nl1 = \"violated\"\n[measure]\n{measure}\n");
        let folder = Folder::with("measure", "jump.toml", &text);
        folder.run(&["run", "jump.toml"]).ends(exit, &says);
        let json = folder.run(&["run", "jump.toml", "--json"]);
        json.ends(exit, "\"measures\":[{\"checker\":\"l1\",\"measure\":");
        json.ends(exit, if exit == 0 { "\"as_claimed\":true" } else { "\"as_claimed\":false" });
        folder.run(&["run", "jump.toml", "--report", "page.html"]);
        let page = fs::read_to_string(folder.0.join("page.html")).expect("the page was written");
        let word = if exit == 0 { ", as found<" } else { ", NOT AS FOUND<" };
        assert!(page.contains(word), "{measure} is on the page");
    }
    // A formula may name a key that a counterfactual or a shrunk file removes; neither is judged by
    // it.
    let text = format!(
        "{jump}[expect]\nl1 = \"violated\"\n[measure]\nl1.overlap.formula = \"fault.jump.at - 3s\"\n"
    );
    let folder = Folder::with("measure_of_fault", "jump.toml", &text);
    folder.run(&["why", "jump.toml@0", "--checker", "l1"]).ends(0, "without the fault jump: holds");
    folder.run(&["shrink", "jump.toml@0", "--output", "small.toml"]).ends(0, "small.toml is written");
}

/// Each claim with a number has its boundary beside the measurement, and the folder has a page for
/// each condition.
#[test]
fn claims_are_a_folder_of_pages() {
    let folder = Folder::new("site");
    let ran = folder.run(&["claims", "R1", "S11", "--report", "site"]);
    ran.ends(0, "holds up to 8.9s, violated from 8.901s")
        .ends(0, "formula  client.c1.steps.0.at + lease - client.c2.steps.0.at = 8.9s, as found");
    let read = |name: &str| fs::read_to_string(folder.0.join("site").join(name)).expect(name);
    let index = read("index.html");
    // Two files decide S11, and neither overwrites the other.
    let pages = ["R1/one-try-after-8890ms.html", "S11/nearly.html", "S11-2/forward.html"];
    for name in pages.into_iter().chain(["files/redlock/clock_jump.toml"]) {
        assert!(index.contains(&format!("href=\"{name}\"")), "{name} is not linked in\n{index}");
        assert!(!read(name).is_empty(), "{name}");
    }
    assert!(read("R1/one-try-after-8890ms.html").contains("R1"));
    // A number that a run measures has its formula as well, for each condition, on the terminal and
    // on the page.
    let measured = "measure#new-token: progress.stalled is ";
    let ran = folder.run(&["claims", "S12", "--report", "measured"]);
    ran.ends(0, measured).ends(0, "formula  lease + ");
    let index = fs::read_to_string(folder.0.join("measured/index.html")).expect("the page was written");
    assert!(index.contains(measured) && index.contains(", as found</div>"), "{index}");
    folder.run(&["claims", "R1", "--report", "site/index.html"]).ends(64, "cannot be written");
    let json = folder.run(&["claims", "R1", "--json"]);
    json.ends(0, "1 of 1 claims came out as stated");
    let claim: serde_json::Value = serde_json::from_str(&json.out).expect("one line");
    assert_eq!((&claim["id"], &claim["as_stated"]), (&"R1".into(), &true.into()));
    assert!(claim["runs"][0]["found"][0]["verdict"].is_string(), "{claim}");
    assert_eq!(claim["boundaries"][0]["seeds"][0]["changes"][0]["last"], "8.9s", "{claim}");
}

/// The second client asks 2 s after the grant of 10 s: of the drawn values only the length of the
/// jump matters.
#[test]
fn the_drawn_value_that_matters_is_named() {
    let text = JUMP.replace("+1s", "0s..+16s").replace("at = \"11s\"", "at = \"10.5s..11.5s\"");
    let folder = Folder::with("sensitivity", "jump.toml", &text);
    let ran = folder.run(&["sensitivity", "jump.toml", "--checker", "l1", "--seeds", "0..60"]);
    ran.ends(0, "jump.toml: l1 violated in")
        .ends(0, "fault.jump.clock_step.by  ")
        .ends(0, " bits  up to +7.");
    assert!(ran.out.contains("no better than chance: 1 more"), "{}", ran.out);
    folder
        .run(&["sensitivity", "jump.toml", "--seeds", "0..6"])
        .ends(2, "better than chance; more seeds may");
    // Regression: nothing was printed.
    folder.run(&["sensitivity", "jump.toml", "--seeds", "0..1"]).ends(
        2,
        "jump.toml: nothing to separate, no checker was violated in some of 1 run and held in others; violated: ",
    );
    let json = folder.run(&["sensitivity", "jump.toml", "--checker", "l1", "--seeds", "0..60", "--json"]);
    json.ends(0, "\"separators\":[{\"path\":\"fault.jump.clock_step.by\"");
}

#[test]
fn a_violation_is_told_its_cause() {
    let folder = Folder::with("why", "jump.toml", &JUMP.replace("+1s", "+9s"));
    folder.run(&["why", "jump.toml@0", "--checker", "l1"]).ends(0, "without the fault jump: holds");
    folder.run(&["why", "jump.toml@0", "--checker", "l1", "--json"]).ends(0, "\"without_all\":\"holds\"");
    folder.run(&["why", "jump.toml@0", "--checker", "l4"]).ends(1, "l4 is not violated");
    folder.run(&["why", "jump.toml@0", "--checker", "l44"]).ends(64, "there is no checker l44");
}

/// One condition without the fault, and one that makes it worse; each can run by itself.
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
    // A run in the output of `run` has one seed in its name.
    folder
        .run(&["run", "jump.toml#quiet@7"])
        .ends(64, "`lockstorm replay jump.toml#quiet@7`")
        .ends(64, "--seed 7");
    folder.run(&["run", "jump.toml#far", "--set", "network.latency=2ms"]).ends(0, "1 as expected");
    folder.run(&["run", "jump.toml#near"]).ends(64, "there is no variant \"near\", but: quiet, far");
    let replayed = folder.run(&["replay", "jump.toml#far@0", "--json"]);
    replayed.ends(0, "\"case\":\"jump.toml#far@0\"");
    assert!(replayed.out.starts_with('{') && replayed.out.lines().count() == 1, "{}", replayed.out);
}

/// A hunt writes a file that violates the same checker, and states what it excluded if there is
/// none.
#[test]
fn a_hunt_finds_the_jump_that_the_file_does_not_have() {
    let hunt = "[hunt]\nkinds = [\"clock_step\"]\nof = \"m\"\nclock_step = \"..20s\"\n";
    let text = format!("{JUMP}{hunt}[expect]\nl1 = \"holds\"\n");
    let folder = Folder::with("hunt", "jump.toml", &text);
    let one = ["hunt", "jump.toml", "--jobs", "1"];
    folder.run(&[&one[..], &["--out", "found.toml"]].concat()).ends(1, "replay: lockstorm run found.toml");
    folder.run(&["run", "found.toml", "--seed", "0"]).ends(0, "1 as expected");
    folder.run(&[&one[..], &["--out", "found.toml"]].concat()).ends(64, "already exists");
    let json = |jobs| folder.run(&["hunt", "jump.toml", "--json", "--jobs", jobs]).out;
    assert_eq!(json("1"), json("3"));
    let found: serde_json::Value = serde_json::from_str(&json("2")).expect("one object");
    assert_eq!((&found["verdict"], &found["checker"]), (&"violated".into(), &"l1".into()));
    let held = ["hunt", "jump.toml", "--json", "--checker", "permits"];
    folder.run(&held).ends(2, "\"verdict\":\"holds-within\"");
    folder.run(&["hunt", "jump.toml", "--budget", "1"]).ends(2, "the budget is used up");
}

/// The node has no memory for a key, with or without a fault.
#[test]
fn a_hunt_blames_no_fault_for_a_lock_that_never_works() {
    let text = "[node.m]\nconfig = { maxmemory = \"1\", maxmemory-policy = \"noeviction\" }\n\
                [network]\nlatency = \"1ms\"\n[lock]\nsubject = \"token-lock\"\nlease = \"1s\"\n\
                [client.c]\nsteps = [{ at = \"1s\", try_acquire = {} }, { at = \"5s\", acquire = { wait = \"20s\" } }]\n\
                [run]\nstorm = \"4s\"\ncalm = \"30s\"\nprogress = \"2s\"\n[expect]\nprogress = \"holds\"\n\
                [hunt]\nof = \"m\"\nkinds = [\"pause\"]\nlatest = \"2s\"\n";
    let folder = Folder::with("broken", "broken.toml", text);
    folder.run(&["hunt", "broken.toml", "--jobs", "1"]).ends(2, "untested    progress");
}
