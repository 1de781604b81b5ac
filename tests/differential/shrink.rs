//! Shrinks an episode with a difference to the fewest steps and words that still show one.

use std::time::{Duration, Instant};

use crate::{
    duel::{Difference, Duel},
    record::Record,
    steps::{Command, Step},
};

/// Limit of replays; after it the smallest steps found so far are the result.
const ATTEMPTS: usize = 1500;

/// Limit of time. A reply that one side does not give costs each replay the whole patience.
const LONGEST: Duration = Duration::from_secs(60);

/// The smallest steps found, their difference, and the transcript.
pub(crate) struct Smallest {
    pub(crate) steps: Vec<Step>,
    pub(crate) difference: Difference,
    pub(crate) transcript: String,
}

struct Shrinker<'a> {
    duel: &'a mut Duel,
    best: Vec<Step>,
    difference: Difference,
    attempts: usize,
    begun: Instant,
}

/// Makes differing steps as small as possible; `None` when a replay shows no difference.
pub(crate) fn shrink(duel: &mut Duel, steps: &[Step], difference: Difference) -> Option<Smallest> {
    let patience = std::mem::replace(&mut duel.patience, Duration::from_millis(1500));
    #[expect(clippy::disallowed_methods, reason = "real servers answer in real time")]
    let (best, begun) = (steps.to_vec(), Instant::now());
    let mut shrinker = Shrinker { duel, best, difference, attempts: 0, begun };
    let found =
        shrinker.try_steps(cut(steps, &shrinker.difference.clone())) || shrinker.try_steps(steps.to_vec());
    if found {
        shrinker.duel.patience = Duration::from_millis(500);
        shrinker.drop_steps();
        shrinker.unfold();
        shrinker.drop_words();
        shrinker.drop_steps();
        shrinker.shorten_words();
    }
    let steps = shrinker.best;
    duel.patience = patience;
    if !found {
        return None;
    }
    // On a busy machine the short patience may have missed a reply: replay with the full patience.
    duel.record = Some(Record::default());
    let difference = duel.play(&steps);
    let transcript = duel.record.take().map(Record::finish).unwrap_or_default();
    Some(Smallest { steps, difference: difference?, transcript })
}

/// The steps up to the difference, followed by the steps that show it if it was found in the keys.
fn cut(steps: &[Step], difference: &Difference) -> Vec<Step> {
    let mut cut = steps[..steps.len().min(difference.at + 1)].to_vec();
    cut.extend(difference.show.iter().cloned());
    cut
}

impl Shrinker<'_> {
    fn try_steps(&mut self, steps: Vec<Step>) -> bool {
        if self.attempts >= ATTEMPTS || self.begun.elapsed() > LONGEST {
            return false;
        }
        self.attempts += 1;
        let Some(difference) = self.duel.play(&steps) else { return false };
        self.best = cut(&steps, &difference);
        self.difference = difference;
        true
    }

    /// Leaves out runs of steps: half of all first, then shorter and shorter runs.
    fn drop_steps(&mut self) {
        let mut size = self.best.len() / 2;
        while size > 0 {
            let mut dropped = false;
            // From the end: later steps depend on earlier ones.
            let mut end = self.best.len();
            while end > 0 {
                let start = end.saturating_sub(size);
                let mut steps = self.best.clone();
                steps.drain(start..end);
                if !steps.is_empty() && self.try_steps(steps) {
                    dropped = true;
                }
                end = start.min(self.best.len());
            }
            if size > 1 || !dropped {
                size /= 2;
            }
        }
    }

    /// Replaces a pipeline by its single commands, or shortens it.
    fn unfold(&mut self) {
        let mut at = 0;
        while at < self.best.len() {
            if let Step::Pipeline(conn, commands, _) = self.best[at].clone() {
                let alone = commands.into_iter().map(|words| Step::Send(conn, words));
                let mut steps = self.best.clone();
                steps.splice(at..=at, alone);
                self.try_steps(steps);
            }
            let mut command = 0;
            while let Some(Step::Pipeline(_, commands, _)) = self.best.get(at)
                && command < commands.len()
            {
                let mut commands = commands.clone();
                commands.remove(command);
                if !self.try_with(at, commands) {
                    command += 1;
                }
            }
            at += 1;
        }
    }

    /// Tries other commands in place of those of a step.
    fn try_with(&mut self, at: usize, commands: Vec<Command>) -> bool {
        // With other words the payloads that go across would mean something else on each server.
        if matches!(self.best[at], Step::Cross(..)) {
            return false;
        }
        let Some(step) = self.best[at].with(commands) else { return false };
        let mut steps = self.best.clone();
        steps[at] = step;
        self.try_steps(steps)
    }

    fn command(&self, at: usize, command: usize) -> Option<&Command> {
        self.best.get(at)?.commands().get(command)
    }

    fn drop_words(&mut self) {
        let mut at = 0;
        while at < self.best.len() {
            let mut command = 0;
            while self.command(at, command).is_some() {
                for size in [8, 4, 2, 1] {
                    let mut from = 1;
                    while let Some(words) = self.command(at, command)
                        && from < words.len()
                    {
                        let end = (from + size).min(words.len());
                        let mut commands = self.best[at].commands().to_vec();
                        commands[command].drain(from..end);
                        if !self.try_with(at, commands) {
                            from += size;
                        }
                    }
                }
                command += 1;
            }
            at += 1;
        }
    }

    /// Replaces long words by short ones.
    fn shorten_words(&mut self) {
        for at in 0..self.best.len() {
            let mut command = 0;
            while self.command(at, command).is_some() {
                let mut word = 1;
                while let Some(words) = self.command(at, command).cloned()
                    && word < words.len()
                {
                    for short in [&b"a"[..], b"1", b"0"] {
                        // A short time to live might end at any moment.
                        let long = words[word].len() > 4 && words[word].iter().all(u8::is_ascii_digit);
                        if words[word].len() > short.len() && !long {
                            let mut commands = self.best[at].commands().to_vec();
                            commands[command][word] = short.to_vec();
                            if self.try_with(at, commands) {
                                break;
                            }
                        }
                    }
                    word += 1;
                }
                command += 1;
            }
        }
    }
}
