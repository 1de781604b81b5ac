//! A client's steps with their times drawn.

use std::fmt;

use lockstorm_sim::world::{Entropy, Stream};

use crate::{
    scenario::{Acquire, Attempt, Extend, Poll, Release, StepEntry, Write},
    units::{Draw, Span},
};

/// One step of a script.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedStep {
    /// Not before this time after the start, in true time.
    pub at: Option<Span>,
    /// What is done.
    pub action: Action,
}

/// What a step does.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Wait for the lock.
    Acquire(Acquire),
    /// Ask once.
    TryAcquire(Attempt),
    /// Ask again and again.
    Poll(Poll),
    /// Give it back.
    Release(Release),
    /// Hold it for longer.
    Extend(Extend),
    /// Work inside the critical section.
    Work {
        /// How long, if it is given so.
        length: Option<Span>,
        /// Until when after the start, if it is given so.
        until: Option<Span>,
        /// How often to write meanwhile.
        write_every: Option<Span>,
        /// Stop when the lock is known to be lost.
        until_lost: bool,
    },
    /// Write to the resource.
    Write(Write),
    /// End the script unless the lock is still held.
    Check,
    /// Do nothing.
    Sleep(Span),
    /// Let no other task of the client run.
    Block(Span),
    /// Run the script so many times more.
    Repeat(u32),
}

impl fmt::Display for PlannedStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(at) = self.at {
            write!(f, "at {at}: ")?;
        }
        match &self.action {
            Action::Acquire(_) => f.write_str("acquire"),
            Action::TryAcquire(_) => f.write_str("try to acquire"),
            Action::Poll(poll) => write!(f, "try to acquire every {}", poll.every),
            Action::Release(_) => f.write_str("release"),
            Action::Extend(extend) => write!(f, "extend to {}", extend.lease),
            Action::Work { length: Some(length), .. } => write!(f, "work for {length}"),
            Action::Work { until: Some(until), .. } => write!(f, "work until {until}"),
            Action::Work { .. } => f.write_str("work"),
            Action::Write(_) => f.write_str("write"),
            Action::Check => f.write_str("check"),
            Action::Sleep(length) => write!(f, "sleep {length}"),
            Action::Block(length) => write!(f, "block for {length}"),
            Action::Repeat(times) => write!(f, "repeat {times} times"),
        }
    }
}

pub(super) fn draw(steps: &[StepEntry], client: &str, entropy: &Entropy) -> Vec<PlannedStep> {
    let mut stream = entropy.stream(&format!("plan/script/{client}"));
    let mut planned = Vec::with_capacity(steps.len());
    for step in steps {
        let at = step.at.map(|at| at.at(stream.unit()));
        planned.push(PlannedStep { at, action: action(step, &mut stream) });
    }
    planned
}

fn action(step: &StepEntry, stream: &mut Stream) -> Action {
    let mut fixed = |draw: Draw<Span>| draw.at(stream.unit());
    if let Some(acquire) = &step.acquire {
        Action::Acquire(acquire.clone())
    } else if let Some(attempt) = &step.try_acquire {
        Action::TryAcquire(attempt.clone())
    } else if let Some(poll) = &step.poll {
        Action::Poll(poll.clone())
    } else if let Some(release) = &step.release {
        Action::Release(release.clone())
    } else if let Some(extend) = &step.extend {
        Action::Extend(extend.clone())
    } else if let Some(work) = &step.work {
        Action::Work {
            length: work.length.map(&mut fixed),
            until: work.until,
            write_every: work.write_every,
            until_lost: work.until_lost,
        }
    } else if let Some(write) = &step.write {
        Action::Write(write.clone())
    } else if step.check.is_some() {
        Action::Check
    } else if let Some(block) = step.block {
        Action::Block(block)
    } else if let Some(times) = step.repeat {
        Action::Repeat(times)
    } else {
        Action::Sleep(step.sleep.map_or(Span::default(), fixed))
    }
}
