//! The appearance of reports on a story that has everything.

use super::*;
use crate::judge::{
    checker,
    history::{
        Claim, ClockId, Fence, Life, LockKind, LossCause, Outcome as Returned, Reason, Role, Wake,
        story::Story,
    },
    verdict::Counterfactual,
};

/// A failover that loses the lock while its holder is suspended: two promises, two beliefs, a stale
/// write that the fence refuses, a clock that jumps.
fn story() -> History {
    let mut history = Story::failover(LockKind::Exclusive)
        .became("r", Role::Replica)
        .fenced(Fence::Greater)
        .at(2)
        .asks("c1")
        .granted("m", "c1", 10_000)
        .at(3)
        .returns("c1", Returned::Ok)
        .believes_by("c1", ClockId::Monotonic, 9_900)
        .at(400)
        .asks("c2")
        .waiting("c2")
        .at(900)
        .wrote("c1", Some(33), 899)
        .at(1_000)
        .fault_until(8_000, "c1 was suspended", &["c1"])
        .life("c1", Life::Suspended)
        .clocks("c1", [1_000, 1_000, 1_000], [0, -1_000_000, 0])
        .at(2_000)
        .fault("m crashed", &["m"])
        .life("m", Life::Crashed)
        .at(2_500)
        .fault("the wall clock of r stepped +3 s", &["r"])
        .clocks("r", [5_500, 2_500, 2_500], [0; 3])
        .at(3_000)
        .fault("r was promoted", &["r"])
        .vanished("r", "c1", LossCause::Failover)
        .at(3_400)
        .woken("c2", Wake::Timer)
        .granted("r", "c2", 10_000)
        .at(3_401)
        .returns("c2", Returned::Ok)
        .believes("c2", 9_900)
        .at(4_000)
        .wrote("c2", Some(34), 3_999)
        .at(8_000)
        .life("c1", Life::Resumed)
        .clocks("c1", [8_000, 1_000, 8_000], [0; 3])
        .calm()
        .at(8_002)
        .wrote("c1", Some(33), 8_001)
        .at(9_000)
        .wrote("c2", Some(34), 8_999)
        .at(11_000)
        .disbelieves("c2", Reason::Released)
        .released("r", "c2")
        .ends(16_000);
    history.header.scenario = "failover <loses> a lock".into();
    history.header.seed = 7;
    history.header.fingerprint = "5f8d0c1e".repeat(8).into();
    history.header.replay = "lockstorm replay failover:7".into();
    history
}

fn entries(history: &History) -> Vec<Entry> {
    super::entries(checker::check(history), |checker| match checker {
        "l1" => Some(Expectation::violated().with("overlap", "5s..".parse().expect("a range"))),
        "l2" | "owner-safety" => Some(Expectation::violated()),
        "l4" | "progress" => Some(Expectation::holds()),
        _ => None,
    })
}

#[test]
fn the_verdicts_in_words() {
    let history = story();
    let entries = entries(&history);
    insta::assert_snapshot!(
        Report { history: &history, entries: &entries, records: &[] }.text(false, ChainShown::Whole)
    );
}

#[test]
fn the_timeline_in_words() {
    insta::assert_snapshot!(timeline(&story(), 100));
}

#[test]
fn a_long_timeline_says_what_it_leaves_out() {
    let text = timeline(&story(), 3);
    assert_eq!(text.lines().count(), 4);
    assert!(text.ends_with("more\n"), "{text}");
}

#[test]
fn colour_is_for_terminals_only() {
    let history = story();
    let entries = entries(&history);
    let report = Report { history: &history, entries: &entries, records: &[] };
    assert!(report.text(true, ChainShown::Whole).contains("\x1b[32m"));
    assert!(!report.text(false, ChainShown::Whole).contains('\x1b'));
}

#[test]
fn the_json_has_every_finding_and_its_match() {
    let history = story();
    let entries = entries(&history);
    let json = Report { history: &history, entries: &entries, records: &[] }.json();
    let l1 = &json["findings"][0];
    assert_eq!((l1["checker"].as_str(), l1["match"].as_str()), (Some("l1"), Some("as-expected")));
    assert_eq!(l1["verdict"]["verdict"], "violated");
    assert_eq!(l1["measures"][0]["quantity"]["ms"], 6_602.0);
    assert_eq!(json["findings"].as_array().map(Vec::len), Some(checker::LIST.len()));
}

/// Set `LOCKSTORM_PAGE` to a file to look at the page in a browser.
#[test]
fn the_page_is_self_contained_and_escaped() {
    let mut history = story();
    let claim = Claim { id: "S0".into(), says: "a lock <is> lost".into(), ..Claim::default() };
    history.header.claim = Some(claim);
    let entries = entries(&history);
    let plan = "  host <m> (node), wall clock +1s ahead";
    let causes =
        Causes { checker: "l1", lines: vec![Counterfactual::new("without the fault <pause>", "holds")] };
    let pictures = [Picture { title: "How <often>".into(), svg: "<svg></svg>".into() }];
    let page = Report { history: &history, entries: &entries, records: &[] }.html(Besides {
        plan,
        causes: Some(&causes),
        pictures: &pictures,
    });
    assert!(page.contains("failover &lt;loses&gt; a lock") && !page.contains("<loses>"));
    for outside in ["http://", "https://", "src=", "@import", "url("] {
        let there = page.matches(outside).count();
        // The name of a namespace is not an address, and a clip path is in the page itself.
        let own = page.matches("http://www.w3.org/2000/svg").count() * usize::from(outside == "http://")
            + page.matches("url(#").count() * usize::from(outside == "url(");
        assert_eq!(there, own, "{outside}");
    }
    for part in [
        "class=\"over\"",
        "class=\"band\"",
        // A bar for the belief of the owner.
        "<title>c1 believed it held the lock",
        "5f8d0c1e",
        "lockstorm replay",
        "c1 was suspended",
        "data-show",
        "host &lt;m&gt;",
        "<li>without the fault &lt;pause&gt;: <b>holds</b></li>",
    ] {
        assert!(page.contains(part), "{part}");
    }
    for part in
        ["class=\"legend\"", "class=\"copy\"", "\"focus\":[", "<p>a lock &lt;is&gt; lost</p>", "claim S0 · "]
    {
        assert!(page.contains(part), "{part}");
    }
    if let Some(file) = std::env::var_os("LOCKSTORM_PAGE") {
        std::fs::write(file, page).expect("the page can be written");
    }
}

/// The headings of a page's timeline, each with the names of its rows.
fn rows(page: &str) -> Vec<(&str, Vec<String>)> {
    let mut all: Vec<(&str, Vec<String>)> = Vec::new();
    for line in page.lines() {
        let text = |after: &str| line.split_once(after).and_then(|(_, rest)| Some(rest.split_once('>')?.1));
        if let Some(heading) = text("<text class=\"head\"") {
            all.push((heading.split(" <tspan").next().unwrap_or_default(), Vec::new()));
        } else if let (Some(row), Some((_, of))) = (text("<text class=\"name\""), all.last_mut()) {
            let (name, rest) = row.split_once(" <tspan class=\"sub\">").unwrap_or((row, ""));
            let sub = rest.split('<').next().unwrap_or_default();
            of.push([name, sub].join(" ").trim().to_owned());
        }
    }
    all
}

#[test]
fn each_part_of_the_timeline_has_its_heading_and_a_row_for_each_of_its_hosts_or_owners() {
    let history = story();
    let page =
        Report { history: &history, entries: &entries(&history), records: &[] }.html(Besides::default());
    let expected: [(&str, &[&str]); 7] = [
        ("faults", &["c1", "m", "r", "r"]),
        ("nodes", &["m", "r"]),
        // This story has no event in which r becomes a master.
        ("masters", &["m"]),
        ("promised by the servers", &["c1", "c2"]),
        ("believed by the clients", &["c1", "c2"]),
        ("writes", &["shop"]),
        // A client is shown by the clock on which its leases count; c3 and c4 believe nothing.
        ("clocks", &["m wall", "r wall", "c1 monotonic", "c2 boottime", "c3 boottime", "c4 boottime"]),
    ];
    let expected: Vec<(&str, Vec<String>)> = expected
        .into_iter()
        .map(|(heading, rows)| (heading, rows.iter().map(|row| (*row).to_owned()).collect()))
        .collect();
    assert_eq!(rows(&page), expected);
    // The pieces of each clock: c1 stands still from 1 s to 8 s, and r jumps at 2.5 s.
    let data =
        page.split_once("id=\"run\">").and_then(|(_, rest)| rest.split_once("</script>")).expect("data").0;
    let data: serde_json::Value = serde_json::from_str(data).expect("JSON");
    let pieces = |at: usize| data["clocks"][at]["pieces"].as_array().map_or(0, Vec::len);
    assert_eq!([0, 1, 2, 3].map(pieces), [1, 2, 3, 1]);
}

/// The entries of a page's legend.
fn legend(page: &str) -> Vec<String> {
    let line = page.lines().find(|line| line.starts_with("<div class=\"legend\">")).expect("a legend");
    let words = |entry: &str| entry.split_once("</i>").map(|(_, words)| words.to_owned());
    line.split("</span>").filter_map(words).collect()
}

/// The legend was once the same for every run, whatever its timeline had.
#[test]
fn the_legend_explains_each_shape_that_is_drawn_and_no_other() {
    let page = |history: &History| Report { history, entries: &[], records: &[] }.html(Besides::default());
    let holds = "has the lock (a colour for each owner)";
    let all = page(&story());
    let expected = [
        holds,
        "asks for it",
        "two at once",
        "fault",
        "down or suspended",
        "master",
        "write",
        "rejected write",
        "a clock that jumps",
        "a clock that stands still",
        "end of the storm",
    ];
    assert_eq!(legend(&all), expected);
    let line = all.lines().find(|line| line.starts_with("<div class=\"legend\">")).expect("a legend");
    let samples = line.split("<i class=\"").skip(1).filter_map(|rest| Some(rest.split_once('"')?.0));
    for class in samples {
        let style = class.split(' ').next_back().unwrap_or_default();
        assert!(style == "holder" || all.contains(&format!(".swatch.{style}")), "{class} has no style");
    }
    let plain = Story::one_node().at(0).granted("m", "c1", 1_000).ends(2_000);
    assert_eq!(legend(&page(&plain)), [holds]);
    let paused = Story::one_node().at(100).life("m", Life::Paused).at(200).life("m", Life::Resumed);
    assert_eq!(legend(&page(&paused.life("m", Life::Crashed).ends(2_000))), ["down or paused"]);
}

/// Such a run has no records, and nothing once explained why its page has no messages.
#[test]
fn the_page_of_a_run_in_real_time_says_that_its_messages_are_not_recorded() {
    let mut history = story();
    for (engine, times) in [("event", 0), ("real", 1)] {
        history.header.engine = engine.into();
        let page = Report { history: &history, entries: &[], records: &[] }.html(Besides::default());
        assert_eq!(page.matches("messages between hosts are not recorded").count(), times, "{engine}");
    }
}

/// The timeline was once below every verdict, with its story and its causes.
#[test]
fn the_verdicts_are_named_before_the_timeline_and_told_after_it() {
    let history = story();
    let entries = entries(&history);
    let page = Report { history: &history, entries: &entries, records: &[] }.html(Besides::default());
    let at = |part: &str| page.find(part).unwrap_or_else(|| panic!("{part} is not there"));
    let parts = ["class=\"glance", "id=\"plot\"", "class=\"again\"", "class=\"verdicts\"", "What happened"];
    assert!(parts.map(at).is_sorted());
    let glance = &page[at("class=\"glance")..at("id=\"plot\"")];
    let named: Vec<&str> = glance
        .split("href=\"#verdict-")
        .skip(1)
        .filter_map(|rest| rest.split_once('"'))
        .map(|(name, _)| name)
        .collect();
    // The verdicts with an expectation and the violated ones; those that are not as expected come
    // first.
    let shown: Vec<&Entry> = entries
        .iter()
        .filter(|entry| entry.expected.is_some() || entry.finding.verdict.witness().is_some())
        .collect();
    let (off, rest): (Vec<&Entry>, Vec<&Entry>) =
        shown.into_iter().partition(|entry| matches!(entry.matched(), Some(Match::Otherwise(_))));
    let expected: Vec<&str> = off.iter().chain(&rest).map(|entry| entry.finding.checker).collect();
    assert!(!off.is_empty() && rest.len() > 2, "{expected:?}");
    assert_eq!(named, expected);
    for name in named {
        assert_eq!(page.matches(&format!("<tr id=\"verdict-{name}\">")).count(), 1, "{name}");
    }
}

/// A cut that never heals is a band to the end of the page; a step of a clock is a line.
#[test]
fn a_fault_that_lasts_is_drawn_for_as_long() {
    let with = |how: fn(Story) -> Story| {
        let story = Story::failover(LockKind::Exclusive).at(2_000);
        let history = how(story).ends(16_000);
        Report { history: &history, entries: &[], records: &[] }.html(Besides::default())
    };
    for (how, until, words) in [
        (
            (|story| story.fault_for_good("nothing gets from m to r", &["m", "r"])) as fn(Story) -> Story,
            16_000_000,
            "from 2.000 s on",
        ),
        (|story| story.fault_until(9_000, "c1 stands still", &["c1"]), 9_000_000, "from 2.000 s to 9.000 s"),
        (|story| story.fault("the wall clock of r stepped", &["r"]), 2_000_000, "at 2.000 s"),
    ] {
        let page = with(how);
        let band = format!("class=\"band\" data-a=\"2000000\" data-b=\"{until}\"");
        assert!(page.contains(&band) && page.contains(words), "{words}");
    }
}

#[test]
fn a_whole_is_as_expected_only_if_all_of_it_is() {
    let history = story();
    let all = entries(&history);
    let only = |names: &[&str]| {
        let some: Vec<Entry> =
            all.iter().filter(|entry| names.contains(&entry.finding.checker)).cloned().collect();
        Report { history: &history, entries: &some, records: &[] }.standing()
    };
    for (names, outcome) in [
        (&["l1", "l2", "l4"][..], Standing::AsExpected),
        (&["l1", "owner-safety"], Standing::Otherwise),
        (&["fairness"], Standing::NothingExpected),
        (&[], Standing::NothingExpected),
    ] {
        assert_eq!(only(names), outcome, "{names:?}");
    }
}

/// The occurrences of a fault that repeats are in one row. If the seed draws a size or a host, each
/// once had its own row.
#[test]
fn a_fault_that_repeats_has_one_row() {
    let begin = || Story::failover(LockKind::Exclusive);
    let alike =
        |story: Story, at: i64| story.fault(&format!("the wall clock of r stepped {}", at / 9), &["r"]);
    let drawn = |story: Story, at: i64| {
        let host = if at % 2 == 0 { "m" } else { "r" };
        story.occurs("steps", &format!("the wall clock of {host} stepped {at} s"), &[host])
    };
    type Occurs<'a> = &'a dyn Fn(Story, i64) -> Story;
    let rows: [(Occurs<'_>, &str); 2] = [(&alike, ">r <"), (&drawn, ">steps <tspan class=\"sub\">×5<")];
    for (occurs, label) in rows {
        let history = (0..5).fold(begin(), |story, at| occurs(story.at(2_000 + at * 1_000), at)).ends(16_000);
        let page = Report { history: &history, entries: &[], records: &[] }.html(Besides::default());
        assert_eq!(page.matches("class=\"out\"").count(), 1, "the fault is named once");
        assert_eq!(page.matches("class=\"fault\"").count(), 5);
        assert!(page.contains(label), "{label}");
    }
}

/// The faults of a storm once had more rows than a screen has room for, and their consequences were
/// below.
#[test]
fn many_faults_have_their_rows_below_what_came_of_them() {
    let with = |count: i64| {
        let name = |at: i64| format!("fault-{at}");
        let occurs = |story: Story, at: i64| story.at(2_000 + at).occurs(&name(at), "m stands still", &["m"]);
        let history = (0..count).fold(Story::failover(LockKind::Exclusive), occurs).ends(16_000);
        Report { history: &history, entries: &[], records: &[] }.html(Besides::default())
    };
    for (count, at, bands) in [(8, 0, 0), (9, 4, 9)] {
        let page = with(count);
        let rows = rows(&page);
        assert_eq!(rows.iter().position(|(heading, _)| *heading == "faults"), Some(at), "{rows:?}");
        assert_eq!(rows[at].1.len(), count as usize);
        // In that case the bands begin above all rows.
        let above = page.lines().filter(|line| line.contains("\"band\"") && line.contains("y=\"26\""));
        assert_eq!(above.count(), bands, "{count}");
    }
}
