//! `lockstorm claims --real`: compares the runs of the claims on real servers with the simulated
//! ones.

use std::{ops::ControlFlow, time::Duration};

use indexmap::IndexMap;
use lockstorm_world::TraceRetention;
use miette::{Result, bail};

use super::{
    Exit,
    out::{errln, outln},
    progress::Progress,
};
use lockstorm::{
    file::{
        scenario::{Scenario, Source, Variant},
        server::{Server, Servers},
    },
    judge::{
        history::{Ended, FailedCalls},
        verdict::{Finding, Match},
    },
    report::failed_calls,
    run::real,
    run::{
        runner::{Case, Runner},
        worklist::work_through,
    },
};

/// The default number of runs at a time. A run mostly waits, for a lease to end or for a partition
/// to heal, so the number of processors does not matter.
pub(super) const AT_ONCE: usize = 16;

/// The most attempts at a run. A busy machine misses the times of the real clock, so that less
/// happens than the scenario intends.
const PLAYS: usize = 3;

/// The word for a run that is impossible with real servers.
const REFUSED: &str = "refused";

/// The result of one run.
struct Row {
    /// The index of the server.
    on: usize,
    case: Case,
    came: Came,
    /// The calls that failed.
    failed: Vec<FailedCalls>,
    /// The results of earlier attempts at the run.
    before: Vec<Came>,
}

enum Came {
    /// As with simulated servers, as the file expects.
    Alike,
    /// Different from simulated servers, as the file says of real ones. `by_chance` is set if the
    /// file allows both.
    Explained { because: String, by_chance: bool },
    /// Different from simulated servers, with the difference. The file gives no reason, or a reason
    /// for another result.
    Otherwise(String),
    /// Undecided, with the reason.
    Undecided(String),
    /// Not run, with the parts that are impossible with real servers.
    Refused(String),
}

/// Runs every variant of the claims once on each of the real servers, and prints for each claim if
/// it came out as simulated. With several servers a table of all of them follows.
pub(super) fn run(sources: &[Source], jobs: Option<usize>, servers: &[Servers]) -> Result<Exit> {
    // Real time is expensive: run one seed of each variant.
    let trials: Vec<Runner<'_>> =
        servers.iter().map(|servers| Runner::new(sources).seeds(0..1).servers(servers)).collect();
    let (mut possible, mut rows) = (Vec::new(), Vec::new());
    for (on, trial) in trials.iter().enumerate() {
        for case in trial.cases() {
            // A variant that names its servers is the same on every other one: run it once.
            if names_server(trial.variant(case)) && on > 0 {
                continue;
            }
            let plan = trial.plan(case);
            let mut problems = real::impossible(&plan);
            if !names_server(trial.variant(case)) {
                problems.extend(unstated(&sources[case.source], servers[on].default()));
            }
            match problems.is_empty() {
                true => possible.push((plan.length(), on, case)),
                false => {
                    let came = Came::Refused(problems.join(", "));
                    rows.push(Row { on, case, came, failed: Vec::new(), before: Vec::new() });
                }
            }
        }
    }
    // Begin with the longest, so that no long run is left at the end.
    possible.sort_by_key(|(lasts, ..)| std::cmp::Reverse(*lasts));
    let jobs = jobs.unwrap_or(AT_ONCE).max(1);
    let takes: Duration = possible.iter().map(|(lasts, ..)| *lasts).sum();
    errln!("{} runs last {} s in real time, {jobs} at a time", possible.len(), takes.as_secs());
    let progress = Progress::new(possible.len());
    let ran = work_through(&possible, jobs, |&(_, on, case)| {
        let (mut came, mut failed, simulated) = play(&trials[on], case);
        let mut before = Vec::new();
        while came.may_be_late() && before.len() + 1 < PLAYS && !real::interrupted() {
            before.push(came);
            (came, failed, _) = play(&trials[on], case);
        }
        progress.step(simulated);
        let row = Row { on, case, came, failed, before };
        if real::interrupted() { ControlFlow::Break(row) } else { ControlFlow::Continue(row) }
    });
    let speed = progress.finish();
    if real::interrupted() {
        bail!("interrupted: all servers are stopped");
    }
    rows.extend(ran);
    rows.sort_by_key(|row| (row.on, row.case.source, row.case.variant));
    for of_server in rows.chunk_by(|one, other| one.on == other.on) {
        let on = of_server[0].on;
        outln!("on {}:", servers[on].default());
        for of_claim in of_server.chunk_by(|one, other| one.case.source == other.case.source) {
            print(&trials[on], of_claim);
        }
        outln!("{} ({speed})", summary(of_server));
    }
    if servers.len() > 1 {
        outln!("\n{}", by_server(&trials[0], servers, &rows));
    }
    Ok(rows.iter().map(|row| row.came.exit()).max().unwrap_or(Exit::Expected))
}

/// Returns a reason to refuse a server of a generation that the claim's file does not list.
fn unstated(source: &Source, server: &Server) -> Option<String> {
    let claim = source.claim().filter(|claim| !claim.is_stated_for(server.nearest().name()))?;
    Some(format!("the claim is stated for {}", claim.generations.join(", ")))
}

/// Counts the results on one server.
fn summary(rows: &[Row]) -> String {
    let count = |is: fn(&Row) -> bool| rows.iter().filter(|row| is(row)).count();
    let [alike, explained, otherwise, undecided, refused] = [
        count(|row| matches!(row.came, Came::Alike)),
        count(|row| matches!(row.came, Came::Explained { .. })),
        count(|row| matches!(row.came, Came::Otherwise(_))),
        count(|row| matches!(row.came, Came::Undecided(_))),
        count(|row| matches!(row.came, Came::Refused(_))),
    ];
    let ran = rows.len() - refused;
    let percent = alike as f64 * 100.0 / ran.max(1) as f64;
    let again = count(|row| matches!(row.came, Came::Alike) && !row.before.is_empty());
    format!(
        "{alike} of {ran} runs as simulated ({percent:.1} %), {again} of them only when played again; {explained} differ for a reason \
         in the file; {otherwise} mismatches, {undecided} undecided; {refused} refused"
    )
}

/// Returns a table in Markdown with a row for each claim and a column for each server, and the list
/// of all differences with their reasons.
fn by_server(trial: &Runner<'_>, servers: &[Servers], rows: &[Row]) -> String {
    let names: Vec<String> = servers.iter().map(|servers| servers.default().to_string()).collect();
    let mut table = format!("| claim | {} |\n| --- |{}\n", names.join(" | "), " --- |".repeat(names.len()));
    let mut on_named = Vec::new();
    let mut differences: IndexMap<(String, String), Vec<&str>> = IndexMap::new();
    for (source, of) in trial.sources().iter().enumerate() {
        let Some(claim) = of.claim() else { continue };
        let of_source = || rows.iter().filter(|row| row.case.source == source);
        let is_named = |row: &&Row| names_server(&of.variants[row.case.variant]);
        let cells = (0..servers.len()).map(|on| {
            let of_cell = of_source().filter(|row| row.on == on && !is_named(row));
            cell(&of_cell.collect::<Vec<_>>())
        });
        let cells: Vec<String> = cells.collect();
        table.push_str(&format!("| {} | {} |\n", claim.id, cells.join(" | ")));
        let own: Vec<&Row> = of_source().filter(is_named).collect();
        if !own.is_empty() {
            on_named.push(format!("{}: {}", claim.id, cell(&own)));
        }
        for variant in 0..of.variants.len() {
            let of_variant =
                rows.iter().filter(|row| (row.case.source, row.case.variant) == (source, variant));
            for row in of_variant.filter(|row| !matches!(row.came, Came::Alike)) {
                let name = &of.variants[variant].name;
                let name = if name.is_empty() { claim.id.clone() } else { format!("{} {name}", claim.id) };
                let why = format!("{}: {}", row.came.word(), row.came.because());
                let on = if is_named(&row) { NAMED } else { &names[row.on] };
                differences.entry((name, why)).or_default().push(on);
            }
        }
    }
    if !on_named.is_empty() {
        table.push_str(&format!("\nVariants on {NAMED}: {}.\n", on_named.join(", ")));
    }
    for ((name, why), on) in differences {
        let on = if on.len() == names.len() { "every server".to_owned() } else { on.join(", ") };
        table.push_str(&format!("\n- {name}, on {on}: {why}"));
    }
    table
}

/// The servers of a variant whose nodes name theirs.
const NAMED: &str = "the servers that they name";

/// Returns true if a node of the variant names its server. Then the default server does not matter.
fn names_server(variant: &Variant) -> bool {
    variant.scenario.node.values().any(|node| node.server.is_some())
}

/// Returns a cell of the table: the number of runs as simulated, and the other results.
fn cell(rows: &[&Row]) -> String {
    let mut others: IndexMap<&str, usize> = IndexMap::new();
    for row in rows {
        *others.entry(row.came.word()).or_default() += 1;
    }
    let alike = others.shift_remove(Came::Alike.word()).unwrap_or(0);
    let ran = rows.len() - others.get(REFUSED).copied().unwrap_or(0);
    let others = others.iter().map(|(word, count)| format!("; {count} {word}"));
    format!("{alike} of {ran}{}", others.collect::<String>())
}

/// Executes one run. Returns its result, the failed calls, and its length in seconds.
fn play(trial: &Runner<'_>, case: Case) -> (Came, Vec<FailedCalls>, f64) {
    let outcome = trial.outcome(case, TraceRetention::Nothing);
    let judged = trial.judge(case, &outcome);
    let came = match &outcome.history.header.ended {
        Ended::Early(why) => Came::Undecided(format!("the run was given up: {why}")),
        _ => compared(&trial.variant(case).scenario, |checker| judged.finding(checker)),
    };
    (came, judged.failed, judged.simulated)
}

/// Compares a run with the expectations, checker by checker. One mismatch decides.
fn compared<'a>(scenario: &Scenario, finding: impl Fn(&str) -> Option<&'a Finding>) -> Came {
    let (mut otherwise, mut undecided, mut reasons) = (Vec::new(), Vec::new(), Vec::new());
    let mut by_chance = false;
    for (checker, expected) in &scenario.expect {
        let Some(finding) = finding(checker) else { continue };
        let stated = scenario.real.get(checker);
        let comes = stated.and_then(|stated| stated.comes.as_ref());
        match (comes.unwrap_or(expected).matches(finding), stated) {
            (Match::AsExpected, Some(stated)) if comes.is_some() => {
                reasons.push(format!("{checker}: {}", stated.because.trim()));
            }
            (Match::AsExpected, _) => {}
            (Match::Otherwise(_) | Match::Undecided(_), Some(stated)) if comes.is_none() => {
                by_chance = true;
                reasons.push(format!("{checker}: {}", stated.because.trim()));
            }
            (Match::Otherwise(because), Some(_)) => {
                otherwise.push(format!("{checker}: not as the file says of real servers: {because}"));
            }
            (Match::Otherwise(because), None) => otherwise.push(format!("{checker}: {because}")),
            (Match::Undecided(because), _) => undecided.push(format!("{checker}: {because}")),
        }
    }
    if !otherwise.is_empty() {
        Came::Otherwise(otherwise.join(", "))
    } else if !undecided.is_empty() {
        Came::Undecided(undecided.join(", "))
    } else if !reasons.is_empty() {
        Came::Explained { because: reasons.join(", "), by_chance }
    } else {
        Came::Alike
    }
}

/// Prints a line about one claim, a line about each run that differs from the simulated one, a line
/// about each earlier attempt at a run, and the failed calls of each run.
fn print(trial: &Runner<'_>, of_claim: &[Row]) {
    let source = &trial.sources()[of_claim[0].case.source];
    let Some(claim) = source.claim() else { return };
    let worst = of_claim.iter().max_by_key(|row| row.came.rank()).map_or("", |row| row.came.word());
    let ran = of_claim.iter().filter(|row| !matches!(row.came, Came::Refused(_))).count();
    let alike = of_claim.iter().filter(|row| matches!(row.came, Came::Alike)).count();
    outln!("{:4} {worst}, {alike} of {ran} runs as simulated: {}", claim.id, claim.says);
    for row in of_claim {
        let variant = trial.variant(row.case);
        let name = variant.title();
        for (before, play) in row.before.iter().zip(1..) {
            outln!("       {name}: play {play}: {}: {}", before.word(), before.because());
        }
        if !matches!(row.came, Came::Alike) {
            outln!("       {name}: {}: {}", row.came.word(), row.came.because());
        }
        let failed = failed_calls(&row.failed);
        if matches!(row.came, Came::Alike) && !failed.is_empty() {
            outln!("       {name}: as simulated");
        }
        failed.iter().for_each(|line| outln!("         {line}"));
    }
}

impl Came {
    fn exit(&self) -> Exit {
        match self {
            Came::Otherwise(_) => Exit::Unexpected,
            Came::Undecided(_) => Exit::Undecided,
            Came::Alike | Came::Explained { .. } | Came::Refused(_) => Exit::Expected,
        }
    }

    fn word(&self) -> &'static str {
        match self {
            Came::Alike => "as simulated",
            Came::Explained { .. } => "otherwise",
            Came::Refused(_) => REFUSED,
            Came::Undecided(_) => "UNDECIDED",
            Came::Otherwise(_) => "MISMATCH",
        }
    }

    fn because(&self) -> &str {
        match self {
            Came::Alike => "",
            Came::Explained { because, .. }
            | Came::Refused(because)
            | Came::Undecided(because)
            | Came::Otherwise(because) => because,
        }
    }

    /// Returns true if a late machine may be the reason.
    fn may_be_late(&self) -> bool {
        matches!(self, Came::Undecided(_) | Came::Otherwise(_) | Came::Explained { by_chance: true, .. })
    }

    /// Orders results from good to bad.
    fn rank(&self) -> u8 {
        match self {
            Came::Alike => 0,
            Came::Refused(_) => 1,
            Came::Explained { .. } => 2,
            Came::Undecided(_) => 3,
            Came::Otherwise(_) => 4,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockstorm::{
        file::scenario::parse,
        judge::verdict::{Measure, Verdict},
    };

    /// `[real]` replaces only the expectations that it names.
    #[test]
    fn a_run_is_as_simulated_or_as_the_file_says_of_real_servers() {
        const KILLED: &str =
            "[real.l1]\ncomes = { holds = { times = 0 } }\nbecause = \"a killed process loses nothing\"";
        const CHANCE: &str = "[real.l1]\nbecause = \"a millisecond decides\"";
        for (real, times, word) in [
            ("", 1, "as simulated"),
            ("", 0, "MISMATCH"),
            (KILLED, 0, "otherwise"),
            // The file gives a reason for a difference that no longer exists.
            (KILLED, 1, "MISMATCH"),
            (CHANCE, 0, "otherwise"),
            (CHANCE, 1, "as simulated"),
        ] {
            let text = format!("[node.m]\n[client.c]\n[expect]\nl1 = {{ holds = {{ times = 1 }} }}\n{real}");
            let source = parse("real.toml", &text).expect("it is a scenario");
            let measures = vec![Measure::count("times", times)];
            let (verdict, tolerance) = (Verdict::holds(""), Duration::ZERO);
            let found = Finding { checker: "l1", question: "?", verdict, measures, tolerance };
            let came = compared(&source.variants[0].scenario, |checker| (checker == "l1").then_some(&found));
            assert_eq!(came.word(), word, "{text}");
        }
    }
}
