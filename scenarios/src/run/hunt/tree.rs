//! The tree of the runs of a batch: runs share everything up to the first fault, or the first end
//! of a fault, that is not in all of them.
//!
//! One process plays the run without faults. Where a fault of some runs begins, it forks, and the
//! child plays those runs. Where the child's runs differ again, because the fault ends earlier in
//! some or because a second one begins, it forks in turn. At last each run has a process of its
//! own, which plays the rest of it alone.

use std::{collections::BTreeMap, io::PipeWriter, rc::Rc};

use fork::{Fork, fork};
use lockstorm_world::time::True;
use rustix::{
    io::Errno,
    process::{Pid, WaitOptions, WaitStatus, wait, waitpid},
};

use super::{
    frame::{Frame, send},
    place::{Placement, What, names},
};
use crate::{
    file::plan::{Occurrence, Plan},
    run::late::{Change, Late},
};

/// The exit status of a process whose failure is reported already.
pub(super) const REPORTED: i32 = 3;

/// The most runs that one message about a dead process names. The message must fit into
/// [`send`]'s limit.
const NAMED_MAX: usize = 30;

/// The begin or the end of a fault. Runs with the same steps so far are in the same state.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Step {
    at: True,
    is_end: bool,
    /// The index of the fault in its run.
    fault: usize,
    /// The fault that begins.
    what: Option<What>,
}

/// The runs that one process plays, as long as they are one run.
pub(super) struct Walker {
    plan: Rc<Plan>,
    /// The names of the faults, by their index in a run.
    names: Vec<String>,
    runs: Rc<[Vec<Placement>]>,
    /// The runs, by their next step.
    pending: BTreeMap<Step, Vec<usize>>,
    /// The runs without a further step.
    own: Vec<usize>,
    /// The number of steps that all runs of this process have taken.
    taken: usize,
    /// For the process that plays the run without faults: the most children at a time.
    jobs: Option<usize>,
    /// The children that have not ended, with their runs.
    children: BTreeMap<i32, Vec<usize>>,
    answers: Rc<PipeWriter>,
}

/// Returns the steps of a run in order.
fn steps(run: &[Placement]) -> Vec<Step> {
    let mut all = Vec::new();
    for (fault, placement) in run.iter().enumerate() {
        let what = Some(placement.what.clone());
        all.push(Step { at: placement.at, is_end: false, fault, what });
        if !placement.what.is_of_a_moment() {
            all.push(Step { at: placement.ends, is_end: true, fault, what: None });
        }
    }
    all.sort();
    all
}

impl Walker {
    pub(super) fn new(
        plan: Rc<Plan>,
        runs: Rc<[Vec<Placement>]>,
        jobs: usize,
        answers: Rc<PipeWriter>,
    ) -> Walker {
        let most = runs.iter().map(Vec::len).max().unwrap_or(0);
        let names = names(&plan.scenario.fault).take(most).collect();
        let (pending, own, children) = Default::default();
        let jobs = Some(jobs.max(1));
        let all = 0..runs.len();
        let mut walker = Walker { plan, names, runs, pending, own, taken: 0, jobs, children, answers };
        walker.sort(all);
        walker
    }

    /// Puts runs under their next step.
    fn sort(&mut self, runs: impl IntoIterator<Item = usize>) {
        for run in runs {
            match steps(&self.runs[run]).into_iter().nth(self.taken) {
                Some(step) => self.pending.entry(step).or_default().push(run),
                None => self.own.push(run),
            }
        }
    }

    /// Takes the steps until the next event. Forks at each step that not all runs of this process
    /// have. The process that plays the run without faults ends after the last step.
    pub(super) fn lull(&mut self, next: True, late: &Late) {
        while let Some(entry) = self.pending.first_entry().filter(|entry| entry.key().at <= next) {
            let (step, runs) = entry.remove_entry();
            let is_shared = !self.pending.is_empty() || !self.own.is_empty();
            if self.jobs.is_some() || is_shared {
                match self.fork(&runs) {
                    Fork::Parent(child) => {
                        self.wait_after(child, runs);
                        continue;
                    }
                    Fork::Child => {
                        (self.jobs, self.pending, self.own, self.children) = Default::default();
                    }
                }
            }
            late.add(step.at, self.change(&step, &runs));
            self.taken += 1;
            self.sort(runs);
        }
        if self.jobs.is_some() && self.pending.is_empty() {
            self.wait_for_all();
            std::process::exit(0);
        }
    }

    /// Returns the runs that this process plays to the end.
    pub(super) fn remaining(&self) -> Vec<usize> {
        // If the run ends before a step, it ends in the same way with and without it.
        self.own.iter().chain(self.pending.values().flatten()).copied().collect()
    }

    fn change(&self, step: &Step, runs: &[usize]) -> Change {
        if step.is_end {
            return Change::End(step.fault);
        }
        // The runs differ at most in the length of this fault, which the director does not use.
        let name = self.names[step.fault].clone();
        let fault = self.runs[runs[0]][step.fault].fault();
        let occurrence: Option<Occurrence> = self.plan.occurrences(&[(name, fault)].into()).pop();
        Change::Begin(Box::new(occurrence.expect("a fault that is not repeated occurs once")))
    }

    /// Forks. If there are too many processes, waits until a child ends.
    fn fork(&mut self, runs: &[usize]) -> Fork {
        loop {
            match fork() {
                Ok(side) => return side,
                Err(_) if !self.children.is_empty() => self.wait_for_one(),
                Err(error) => self.fail(runs, &format!("no process could be started for it: {error}")),
            }
        }
    }

    /// Waits for a child that has begun. Only the process without faults has several at a time.
    fn wait_after(&mut self, child: i32, runs: Vec<usize>) {
        self.children.insert(child, runs);
        let Some(jobs) = self.jobs else { return self.wait_for_all() };
        while self.children.len() >= jobs {
            self.wait_for_one();
        }
    }

    /// Waits until all children have ended.
    pub(super) fn wait_for_all(&mut self) {
        while !self.children.is_empty() {
            self.wait_for_one();
        }
    }

    fn wait_for_one(&mut self) {
        match wait(WaitOptions::empty()) {
            Ok(Some((child, status))) => {
                let runs = self.children.remove(&child.as_raw_nonzero().get()).unwrap_or_default();
                match status.exit_status() {
                    Some(0) => {}
                    Some(REPORTED) => self.leave(),
                    _ => self.fail(&runs, &words(status)),
                }
            }
            Ok(None) | Err(Errno::INTR) => {}
            Err(error) => self.fail(&[], &format!("its process could not be awaited: {error}")),
        }
    }

    /// Reports that runs are lost, and ends this process.
    fn fail(&mut self, runs: &[usize], why: &str) -> ! {
        let chunks = runs.chunks(NAMED_MAX).map(<[usize]>::to_vec);
        let chunks: Vec<Vec<usize>> = if runs.is_empty() { vec![Vec::new()] } else { chunks.collect() };
        for runs in chunks {
            let _ = send(&self.answers, &Frame::Died { runs, why: why.to_owned() });
        }
        self.leave()
    }

    /// Ends this process after a failure, once its children have ended.
    fn leave(&mut self) -> ! {
        while !self.children.is_empty() {
            match wait(WaitOptions::empty()) {
                Ok(Some((child, _))) => drop(self.children.remove(&child.as_raw_nonzero().get())),
                Ok(None) | Err(Errno::INTR) => {}
                Err(_) => break,
            }
        }
        std::process::exit(REPORTED)
    }
}

/// Waits for a child, and returns true if it ended well.
pub(super) fn ended_well(child: i32) -> bool {
    loop {
        match waitpid(Pid::from_raw(child), WaitOptions::empty()) {
            Ok(Some((_, status))) => return status.exit_status() == Some(0),
            Ok(None) | Err(Errno::INTR) => {}
            Err(_) => return false,
        }
    }
}

/// Describes the end of a process.
fn words(status: WaitStatus) -> String {
    match (status.terminating_signal(), status.exit_status()) {
        (Some(signal), _) => format!("signal {signal} ended its process"),
        (None, Some(code)) => format!("its process ended with status {code}"),
        (None, None) => "its process ended".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_steps_of_a_run_are_the_begins_and_ends_of_its_faults() {
        let at = |seconds| True::ZERO + std::time::Duration::from_secs(seconds);
        let placement =
            |from, what, to| Placement { at: at(from), what, ends: at(to), cost: Default::default() };
        let pause = || What::Pause { host: "m".into() };
        let run = [
            placement(1, pause(), 3),
            placement(2, What::ClockStep { host: "m".into(), by: 1 }, 2),
            placement(3, pause(), 4),
        ];
        let steps = steps(&run);
        let brief: Vec<_> = steps.iter().map(|step| (step.at, step.is_end, step.fault)).collect();
        let first = [(at(1), false, 0), (at(2), false, 1), (at(3), false, 2)];
        assert_eq!(brief, [&first[..], &[(at(3), true, 0), (at(4), true, 2)]].concat());
    }
}
