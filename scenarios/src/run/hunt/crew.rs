//! The processes of a search whose runs share their beginnings.
//!
//! Only a process with one thread can be forked in the middle of its work. So the search forks once
//! before it does anything else. The child, the *root*, waits for batches of runs. For each batch
//! it forks a process that plays the run without faults, and forks where faults begin (see
//! [`Walker`]). All of them write results into one pipe, as lines of JSON.
//!
//! No process outlives the search: without its reader the pipe cannot be written to, and without
//! its writer the root has no more to read.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    io::{self, BufRead, BufReader, PipeReader, PipeWriter, Write},
    ops::ControlFlow,
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
    rc::Rc,
};

use fork::{Fork, fork};
use lockstorm_world::TraceRetention;
use serde::{Deserialize, Serialize};

use super::{
    Search, Tried,
    frame::{Frame, send},
    place::{Placement, Sent, placed},
    tree::{REPORTED, Walker, ended_well},
};
use crate::{file::plan::Plan, judge::history::Lock, run::run_with_late_faults};

/// The longest piece of a result in one line. Lines of several processes must not mix, so a line
/// has at most the 512 bytes that every Unix writes into a pipe in one piece.
const PIECE: usize = 200;

/// The flag of Linux's `/proc/self/task/*/stat` for a thread that is in its exit (`PF_EXITING`).
const EXITING: u64 = 4;

/// The exit status of a process with a panic, as of any Rust program.
const PANICKED: i32 = 101;

/// A run of a search was lost with its process.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the run with {placement} is lost: {why}")]
pub struct Lost {
    /// The faults of the run.
    pub placement: String,
    /// The reason, such as the signal that ended its process.
    pub why: String,
}

/// The search's end of the pipes.
#[derive(Debug)]
pub(super) struct Crew {
    requests: Option<PipeWriter>,
    results: Option<BufReader<PipeReader>>,
    root: i32,
}

/// A batch of runs.
#[derive(Debug, Serialize, Deserialize)]
struct Request {
    /// True if the results need digests of states, for which all records are kept.
    needs_states: bool,
    runs: Vec<Vec<Sent>>,
    /// The locks that never worked in the run without faults, which the root has not seen.
    broken: Vec<Lock>,
}

impl Crew {
    /// Starts the root of a search. Returns `None` if this process has several threads, or cannot
    /// fork.
    pub(super) fn start(search: &Search<'_>) -> Option<Crew> {
        if has_threads() {
            return None;
        }
        let (asked, requests) = io::pipe().ok()?;
        let (results, answers) = io::pipe().ok()?;
        match fork().ok()? {
            Fork::Child => {
                drop((requests, results));
                serve(search, asked, answers)
            }
            Fork::Parent(root) => {
                Some(Crew { requests: Some(requests), results: Some(BufReader::new(results)), root })
            }
        }
    }

    /// Plays a batch of runs, and passes each result with the index of its run, in no particular
    /// order. After a `Break` the crew is of no more use.
    pub(super) fn play(
        &mut self,
        runs: &[Vec<Placement>],
        keep: TraceRetention,
        broken: &[Lock],
        mut take: impl FnMut(usize, Tried) -> ControlFlow<()>,
    ) -> Result<(), Lost> {
        let sent = |run: &Vec<Placement>| run.iter().map(Sent::of).collect();
        let needs_states = keep == TraceRetention::All;
        let request =
            Request { needs_states, runs: runs.iter().map(sent).collect(), broken: broken.to_vec() };
        let mut missing: BTreeSet<usize> = (0..runs.len()).collect();
        let lost = |run: Option<&usize>, why: &str| {
            let faults = run.and_then(|run| runs.get(*run)).into_iter().flatten();
            let placement = faults.map(ToString::to_string).collect::<Vec<_>>().join(" and ");
            Lost { placement, why: why.to_owned() }
        };
        let (Some(requests), Some(results)) = (&mut self.requests, &mut self.results) else {
            return Err(lost(missing.first(), "the search is over"));
        };
        let mut line = serde_json::to_vec(&request).expect("it is JSON");
        line.push(b'\n');
        let asked = requests.write_all(&line);
        asked.map_err(|error| lost(missing.first(), &error.to_string()))?;
        let mut pieces: BTreeMap<usize, String> = BTreeMap::new();
        loop {
            let mut line = String::new();
            match results.read_line(&mut line).and_then(|_| Ok(serde_json::from_str(&line)?)) {
                // The root has ended. The process that plays the batch may have outlived it.
                Err(_) if line.is_empty() => {
                    return match missing.first() {
                        None => Ok(()),
                        run => Err(lost(run, "its process ended")),
                    };
                }
                Ok(Frame::Piece { run, text, is_last }) => {
                    let whole = pieces.entry(run).or_default();
                    whole.push_str(&text);
                    if !is_last {
                        continue;
                    }
                    let tried = serde_json::from_str(whole);
                    let tried = tried.map_err(|error| lost(Some(&run), &error.to_string()))?;
                    pieces.remove(&run);
                    missing.remove(&run);
                    if take(run, tried).is_break() {
                        self.end();
                        return Ok(());
                    }
                }
                Ok(Frame::Died { runs, why }) => {
                    let run = runs.iter().find(|run| missing.contains(run));
                    return Err(lost(run.or(missing.first()), &why));
                }
                Ok(Frame::Done) => {
                    return match missing.first() {
                        None => Ok(()),
                        run => Err(lost(run, "its process sent no result")),
                    };
                }
                Err(error) => return Err(lost(missing.first(), &error.to_string())),
            }
        }
    }

    /// Ends the processes, which notice that their results are not read.
    fn end(&mut self) {
        (self.requests, self.results) = (None, None);
        if self.root > 0 {
            ended_well(self.root);
            self.root = 0;
        }
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        self.end();
    }
}

/// Returns true if this process has several threads. Elsewhere than on Linux the caller alone is
/// responsible, see [`Search::run_shared`].
fn has_threads() -> bool {
    let Ok(threads) = std::fs::read_dir("/proc/self/task") else { return false };
    threads.flatten().filter(|thread| runs(&thread.path().join("stat"))).count() > 1
}

/// Returns true unless a thread has run its last instruction. The kernel lists a thread that was
/// joined for another moment.
fn runs(stat: &Path) -> bool {
    let Ok(stat) = std::fs::read_to_string(stat) else { return false };
    // After the name in brackets: the state, five numbers, and the flags.
    let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
    let flags = fields.split_whitespace().nth(6).and_then(|flags| flags.parse::<u64>().ok());
    flags.is_none_or(|flags| flags & EXITING == 0)
}

/// Plays batches until there are no more.
fn serve(search: &Search<'_>, asked: PipeReader, answers: PipeWriter) -> ! {
    let plan = Rc::new(Plan::draw(&placed(search.scenario, &[]), search.seed));
    let answers = Rc::new(answers);
    for line in BufReader::new(asked).lines() {
        let request = line.and_then(|line| Ok(serde_json::from_str(&line)?));
        let Ok(request) = request else { break };
        match fork() {
            Ok(Fork::Child) => play(search, &plan, request, &answers),
            Ok(Fork::Parent(child)) if ended_well(child) => {}
            _ => break,
        }
        if send(&answers, &Frame::Done).is_err() {
            break;
        }
    }
    std::process::exit(0)
}

/// Plays one batch. Each of the processes into which this one forks returns from the run, sends its
/// result and ends.
fn play(search: &Search<'_>, plan: &Rc<Plan>, request: Request, answers: &Rc<PipeWriter>) -> ! {
    let search = Search { broken: request.broken, ..search.clone() };
    let keep = if request.needs_states { TraceRetention::All } else { TraceRetention::Nothing };
    let received = |run: Vec<Sent>| run.into_iter().map(Placement::from).collect();
    let runs: Rc<[Vec<Placement>]> = request.runs.into_iter().map(received).collect();
    let walker = Walker::new(plan.clone(), runs.clone(), search.jobs, answers.clone());
    let walker = Rc::new(RefCell::new(walker));
    let lulls = walker.clone();
    let played = catch_unwind(AssertUnwindSafe(|| {
        let outcome =
            run_with_late_faults(plan, "hunt", keep, move |next, late| lulls.borrow_mut().lull(next, late));
        for run in walker.borrow().remaining() {
            answer(answers, run, &search.judge(&outcome, &runs[run], keep))?;
        }
        walker.borrow_mut().wait_for_all();
        io::Result::Ok(())
    }));
    std::process::exit(match played {
        Ok(Ok(())) => 0,
        // The search reads no more results.
        Ok(Err(_)) => REPORTED,
        Err(_) => PANICKED,
    })
}

/// Sends the result of a run in pieces.
fn answer(answers: &PipeWriter, run: usize, tried: &Tried) -> io::Result<()> {
    let text = serde_json::to_string(tried)?;
    let mut rest = &*text;
    loop {
        let end = if rest.len() > PIECE { rest.floor_char_boundary(PIECE) } else { rest.len() };
        let (piece, more) = rest.split_at(end);
        let is_last = more.is_empty();
        send(answers, &Frame::Piece { run, text: piece.to_owned(), is_last })?;
        if is_last {
            return Ok(());
        }
        rest = more;
    }
}

#[cfg(test)]
mod tests {
    #[cfg(target_os = "linux")]
    #[test]
    fn the_own_thread_runs_and_one_that_is_gone_does_not() {
        use super::*;
        assert!(runs(Path::new("/proc/thread-self/stat")));
        assert!(!runs(Path::new("/proc/thread-self/task/0/stat")));
    }
}
