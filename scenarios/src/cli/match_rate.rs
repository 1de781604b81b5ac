//! `lockstorm claims --real`: which runs of the claims come out on real servers as they do on simulated ones.

use std::{ops::ControlFlow, time::Duration};

use lockstorm_sim::{time::True, world::TraceRetention};
use miette::{Result, bail, miette};

use super::{
    Exit,
    out::{errln, outln},
    progress::Progress,
};
use crate::{
    history::Ended,
    plan::Plan,
    run::{Engine, real},
    runner::{Case, Judged, Runner, judge},
    scenario::Source,
    verdict::Match,
    worklist::work_through,
};

/// How many runs take place at a time if nothing else is asked for. Nearly all of a run is waiting, for a lease to end or for a
/// partition to heal, so that this is no matter of processors.
const AT_ONCE: usize = 16;

/// What came of one run.
struct Row {
    case: Case,
    came: Came,
}

enum Came {
    /// It took place, and this is how it compares with what the simulated servers do, which is what the file expects.
    Out(Match),
    /// It did not take place: what of it cannot be done to real servers.
    Refused(String),
}

/// Runs every variant of the claims once on real servers, and prints for each claim whether it came out as simulated.
pub(super) fn run(sources: &[Source], jobs: Option<usize>) -> Result<Exit> {
    real::available().map_err(|why| miette!("--real starts servers of its own: {why}"))?;
    // Real time is dear: one seed of each.
    let trial = Runner::new(sources).seeds(0..1).engine(Engine::Real);
    let (mut possible, mut rows) = (Vec::new(), Vec::new());
    for case in trial.cases() {
        let plan = Plan::draw(&trial.variant(case).scenario, case.seed);
        let problems = real::impossible(&plan);
        match problems.is_empty() {
            true => possible.push((plan.phases.ends.since(True::ZERO), case)),
            false => rows.push(Row { case, came: Came::Refused(problems.join(", ")) }),
        }
    }
    // The longest first: the last ones to end are then short.
    possible.sort_by_key(|(lasts, _)| std::cmp::Reverse(*lasts));
    let jobs = jobs.unwrap_or(AT_ONCE).max(1);
    let takes: Duration = possible.iter().map(|(lasts, _)| *lasts).sum();
    errln!("{} runs last {} s in real time, {jobs} at a time", possible.len(), takes.as_secs());
    let progress = Progress::new(possible.len());
    let ran = work_through(&possible, jobs, |&(_, case)| {
        let (came, simulated) = play(&trial, case);
        progress.step(simulated);
        let row = Row { case, came: Came::Out(came) };
        if real::interrupted() { ControlFlow::Break(row) } else { ControlFlow::Continue(row) }
    });
    let speed = progress.finish();
    if real::interrupted() {
        bail!("interrupted; the servers are gone");
    }
    rows.extend(ran);
    rows.sort_by_key(|row| (row.case.source, row.case.variant));
    for of_claim in rows.chunk_by(|one, other| one.case.source == other.case.source) {
        print(&trial, of_claim);
    }
    let count = |is: fn(&Came) -> bool| rows.iter().filter(|row| is(&row.came)).count();
    let [alike, otherwise, undecided, refused] = [
        count(|came| matches!(came, Came::Out(Match::AsExpected))),
        count(|came| matches!(came, Came::Out(Match::Otherwise(_)))),
        count(|came| matches!(came, Came::Out(Match::Undecided(_)))),
        count(|came| matches!(came, Came::Refused(_))),
    ];
    outln!(
        "{alike} of {} runs as simulated, {otherwise} mismatches, {undecided} undecided; {refused} refused ({speed})",
        rows.len() - refused
    );
    Ok(match (otherwise, undecided) {
        (0, 0) => Exit::Expected,
        (0, _) => Exit::Undecided,
        _ => Exit::Unexpected,
    })
}

/// Plays one run; returns how it came out, and how many seconds it lasted.
fn play(trial: &Runner<'_>, case: Case) -> (Match, f64) {
    let outcome = trial.outcome(case, TraceRetention::Nothing);
    let judged = judge(trial.variant(case), case, &outcome);
    let came = match &outcome.history.header.ended {
        Ended::Early(why) => Match::Undecided(format!("the run was given up: {why}")),
        _ => compared(trial, &judged),
    };
    (came, judged.simulated)
}

/// How a run compares with what is expected, checker by checker: a mismatch if one is.
fn compared(trial: &Runner<'_>, judged: &Judged) -> Match {
    let expect = &trial.variant(judged.case).scenario.expect;
    let (mut otherwise, mut undecided) = (Vec::new(), Vec::new());
    for (checker, expected) in expect {
        let Some(finding) = judged.finding(checker) else { continue };
        match expected.matches_in_real_time(finding) {
            Match::AsExpected => {}
            Match::Otherwise(because) => otherwise.push(format!("{checker}: {because}")),
            Match::Undecided(because) => undecided.push(format!("{checker}: {because}")),
        }
    }
    if !otherwise.is_empty() {
        Match::Otherwise(otherwise.join(", "))
    } else if !undecided.is_empty() {
        Match::Undecided(undecided.join(", "))
    } else {
        Match::AsExpected
    }
}

/// Prints the line of one claim, and one for each of its runs that did not come out as simulated.
fn print(trial: &Runner<'_>, of_claim: &[Row]) {
    let source = &trial.sources()[of_claim[0].case.source];
    let Some(claim) = source.claim() else { return };
    let worst = of_claim.iter().max_by_key(|row| row.came.rank()).map_or("", |row| row.came.word());
    let ran = of_claim.iter().filter(|row| matches!(row.came, Came::Out(_))).count();
    let alike = of_claim.iter().filter(|row| matches!(row.came, Came::Out(Match::AsExpected))).count();
    outln!("{:4} {worst}, {alike} of {ran} runs as simulated: {}", claim.id, claim.says);
    for row in of_claim {
        let because = match &row.came {
            Came::Out(Match::AsExpected) => continue,
            Came::Out(Match::Otherwise(because) | Match::Undecided(because)) | Came::Refused(because) => {
                because
            }
        };
        let variant = trial.variant(row.case);
        let name = if variant.name.is_empty() { "as described" } else { &variant.name };
        outln!("       {name}: {}: {because}", row.came.word());
    }
}

impl Came {
    fn word(&self) -> &'static str {
        match self {
            Came::Out(Match::AsExpected) => "as simulated",
            Came::Refused(_) => "refused",
            Came::Out(Match::Undecided(_)) => "UNDECIDED",
            Came::Out(Match::Otherwise(_)) => "MISMATCH",
        }
    }

    /// The worse, the higher.
    fn rank(&self) -> u8 {
        match self {
            Came::Out(Match::AsExpected) => 0,
            Came::Refused(_) => 1,
            Came::Out(Match::Undecided(_)) => 2,
            Came::Out(Match::Otherwise(_)) => 3,
        }
    }
}
