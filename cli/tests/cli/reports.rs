//! The reports of a run for a person: failed calls, the actions with their times, and a chain that
//! fits on a screen.

use super::*;

/// The file of a defect, in a folder of its own.
macro_rules! defect {
    ($test:literal, $name:literal) => {
        Folder::with(
            $test,
            concat!($name, ".toml"),
            include_str!(concat!("../../../scenarios/tests/defects/", $name, ".toml")),
        )
    };
}

/// Regression: no report showed that the clients' user has no right to channels: a lock that is
/// hardly ever held is never held by two.
#[test]
fn calls_that_failed_are_shown_whatever_the_verdicts() {
    let folder = defect!("refusals", "refusals_are_not_shown");
    let file = "refusals_are_not_shown.toml";
    let acquisition = "  c2: 1 acquisition failed, at ";
    let release = "  c1: 1 release failed, at ";
    let why = "NOPERM";
    let token = format!("{file}@0");
    for arguments in [vec!["run", file], vec!["run", file, "-v"], vec!["replay", &token]] {
        let ran = folder.run(&arguments);
        assert_eq!(ran.code, 0, "{}", ran.err);
        for line in [acquisition, release] {
            let shown = ran
                .out
                .lines()
                .find(|shown| shown.starts_with(line))
                .unwrap_or_else(|| panic!("{}", ran.out));
            assert!(shown.contains(why) || shown.contains("could not be notified"), "{shown}");
        }
    }
    let json = folder.run(&["run", file, "--json"]);
    let line: serde_json::Value = serde_json::from_str(json.out.trim()).expect("a line of JSON");
    let failed = line["failed_calls"].as_array().expect("they are there");
    let told: Vec<_> = failed.iter().map(|one| (&one["client"], &one["call"], &one["count"])).collect();
    assert_eq!(format!("{told:?}").matches("String(\"acquire\")").count(), 1, "{told:?}");
    assert_eq!(told.len(), 2, "{told:?}");
    let runs =
        folder.run(&["run", file, "--results", "runs.csv", "--report", "page.html", "--history", "h.jsonl"]);
    assert_eq!(runs.code, 0);
    let csv = fs::read_to_string(folder.0.join("runs.csv")).expect("just written");
    let mut rows = csv::Reader::from_reader(csv.as_bytes());
    let head: Vec<String> = rows.headers().expect("a head").iter().map(str::to_owned).collect();
    let row = rows.records().next().expect("a row").expect("of CSV");
    let cell = |name: &str| &row[head.iter().position(|column| column == name).expect(name)];
    assert_eq!(cell("failed_calls"), "2");
    assert!(cell("first_failed").starts_with("acquisition by c2: "), "{}", cell("first_failed"));
    assert!(cell("first_failed_at").starts_with("6."), "{}", cell("first_failed_at"));
    let page = fs::read_to_string(folder.0.join("page.html")).expect("just written");
    assert!(page.contains("<h2>Calls that failed</h2>") && page.contains("1 acquisition"));
    folder.run(&["check", "h.jsonl"]).ends(0, acquisition).ends(0, release);
}

/// For many runs that ended as expected, one line reports that calls failed; a run without failures
/// reports nothing.
#[test]
fn of_runs_as_expected_one_line_tells_of_calls_that_failed() {
    let cut = "[node.m]\n[lock]\nresponse_timeout = \"100ms\"\n[client.c1]\n\
               steps = [{ at = \"1s\", try_acquire = {} }, { at = \"20s\", try_acquire = {} }, { release = {} }]\n\
               [client.c2]\nsteps = [{ at = \"22s\", try_acquire = {} }, { release = {} }]\n\
               [fault.cut]\ncut = { from = \"c1\", to = \"m\" }\nat = \"500ms\"\nfor = \"15s\"\n[run]\nstorm = \"30s\"\n\
               [expect]\nl1 = \"holds\"\n";
    let folder = Folder::with("failed", "cut.toml", cut);
    let all = folder.run(&["run", "cut.toml", "--seeds", "0..3"]);
    all.ends(0, "3 calls failed in 3 of 3 runs that came out as expected: -v shows them");
    assert_eq!(all.out.lines().count(), 2, "{}", all.out);
    let each = folder.run(&["run", "cut.toml", "--seeds", "0..3", "-v"]);
    assert_eq!(each.out.matches("c1: 1 acquisition failed, at ").count(), 3, "{}", each.out);
    fs::write(folder.0.join("good.toml"), GOOD).expect("written");
    let good = folder.run(&["run", "good.toml", "--seeds", "0..3"]);
    assert!(!good.out.contains("failed"), "{}", good.out);
    assert!(!folder.run(&["run", "good.toml", "--json"]).out.contains("failed_calls"));
}

/// Regression: the client takes no lease of more than ten years, and refused each call of a run
/// that the file began.
#[test]
fn a_lease_that_the_client_refuses_is_a_mistake_of_the_file() {
    let folder = defect!("lease_of_the_client", "lease_that_the_client_refuses");
    let ran = folder.run(&["run", "lease_that_the_client_refuses.toml"]);
    ran.ends(64, "lease_that_the_client_refuses.toml:6:9").ends(64, "give at most 87600h");
}

/// Regression: a fault's command was reported as the node's own: "m deleted it on m".
#[test]
fn what_an_operator_does_is_not_done_by_the_node() {
    let folder = defect!("operator", "operator_is_called_by_the_nodes_name");
    let ran =
        folder.run(&["run", "operator_is_called_by_the_nodes_name.toml", "-v", "--report", "page.html"]);
    for says in [
        "At 10.000 s somebody deleted it on m.",
        "`lock` of c1 is gone: deleted by somebody",
        "somebody deleted what c1 held, at 10.000 s on m.",
    ] {
        ran.ends(0, says);
    }
    assert!(!ran.out.contains("m deleted") && !ran.out.contains("deleted by m"), "{}", ran.out);
    let page = fs::read_to_string(folder.0.join("page.html")).expect("just written");
    assert!(page.contains("deleted by somebody") && !page.contains("deleted by m"));
}

/// Regression: "At 11.200 s c crashed" was reported of a node that had crashed at 11.000 s and was
/// back by then.
#[test]
fn a_crash_has_the_time_of_the_crash() {
    let ran = Folder::new("crash_time").run(&["run", "redlock/restart.toml", "-v"]);
    let says = "c crashed at 11.000 s and came back without it at 11.200 s.";
    assert!(ran.out.contains(says), "{}", ran.out);
    assert!(!ran.out.contains("At 11.200 s c crashed"), "{}", ran.out);
}

/// Regression: the forty lines of a storm helped a reader less than the few that matter.
#[test]
fn a_long_chain_is_short_on_a_terminal_and_whole_where_it_is_asked_for() {
    let storm = include_str!("../../../scenarios/files/storm/fenced_failover.toml");
    let (storm, _) = storm.split_once("[expect]").expect("it expects something");
    let folder = Folder::with("chain", "storm.toml", &format!("{storm}[expect]\nlease = \"holds\"\n"));
    let chain = |arguments: &[&str]| {
        let ran = folder.run(arguments);
        ran.ends(1, "lease was violated by this chain of events:");
        let lines = ran.out.lines().skip_while(|line| !line.contains("this chain of events"));
        let lines = lines.skip(1).take_while(|line| !line.trim_start().starts_with("fingerprint"));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    let whole = chain(&["run", "storm.toml", "--seed", "2", "-v"]);
    assert!(whole.len() > 15, "{whole:#?}");
    assert_eq!(chain(&["replay", "storm.toml@2"]), whole);
    let short = chain(&["run", "storm.toml", "--seed", "2"]);
    let (last, shown) = short.split_last().expect("a chain");
    assert!(
        shown.len() <= 12 && shown.iter().filter(|line| line.contains("  ~  ")).count() <= 6,
        "{short:#?}"
    );
    let left_out = whole.len() - shown.len();
    assert_eq!(last.trim(), format!("...  and {left_out} more: -v shows them"));
    let words = |line: &str| line.split_whitespace().skip(3).collect::<Vec<_>>().join(" ");
    assert!(shown.iter().all(|line| whole.iter().any(|of| words(of) == words(line))), "{short:#?}");
    assert_eq!(words(&shown[shown.len() - 1]), words(&whole[whole.len() - 1]), "it ends where it ends");
}
