//! From an episode with a difference to the fewest steps and the fewest words that show one.

use std::time::Duration;

use crate::{
    duel::{Difference, Duel},
    record::Record,
    steps::Step,
};

/// How often steps may be played anew before what there is has to do.
const ATTEMPTS: usize = 1500;

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
}

/// Makes steps that differ as small as possible; `None` when they do not differ a second time.
pub(crate) fn shrink(duel: &mut Duel, steps: &[Step], difference: Difference) -> Option<Smallest> {
    let patience = std::mem::replace(&mut duel.patience, Duration::from_millis(1500));
    let mut shrinker = Shrinker { duel, best: steps.to_vec(), difference, attempts: 0 };
    let found =
        shrinker.try_steps(cut(steps, &shrinker.difference.clone())) || shrinker.try_steps(steps.to_vec());
    if found {
        shrinker.duel.patience = Duration::from_millis(500);
        shrinker.drop_steps();
        shrinker.drop_words();
        shrinker.drop_steps();
        shrinker.shorten_words();
        shrinker.duel.patience = Duration::from_millis(1500);
    }
    let Shrinker { best, difference, .. } = shrinker;
    let smallest = found.then(|| {
        duel.record = Some(Record::default());
        let difference = duel.play(&best).unwrap_or(difference);
        let transcript = duel.record.take().map(Record::finish).unwrap_or_default();
        Smallest { steps: best, difference, transcript }
    });
    duel.patience = patience;
    smallest
}

/// The steps up to the difference, and those that show it when it was seen in the keys.
fn cut(steps: &[Step], difference: &Difference) -> Vec<Step> {
    let mut cut = steps[..steps.len().min(difference.at + 1)].to_vec();
    cut.extend(difference.show.iter().cloned());
    cut
}

impl Shrinker<'_> {
    fn try_steps(&mut self, steps: Vec<Step>) -> bool {
        if self.attempts >= ATTEMPTS {
            return false;
        }
        self.attempts += 1;
        let Some(difference) = self.duel.play(&steps) else { return false };
        self.best = cut(&steps, &difference);
        self.difference = difference;
        true
    }

    /// Leaves out steps: halves first, then less and less.
    fn drop_steps(&mut self) {
        let mut size = self.best.len() / 2;
        while size > 0 {
            let mut dropped = false;
            // From the end: what comes last depends on what came before it.
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

    fn drop_words(&mut self) {
        let mut at = 0;
        while at < self.best.len() {
            for size in [8, 4, 2, 1] {
                let mut from = 1;
                while let Some(Step::Send(conn, words)) = self.best.get(at)
                    && from < words.len()
                {
                    let end = (from + size).min(words.len());
                    let mut words = words.clone();
                    words.drain(from..end);
                    let mut steps = self.best.clone();
                    steps[at] = Step::Send(*conn, words);
                    if !self.try_steps(steps) {
                        from += size;
                    }
                }
            }
            at += 1;
        }
    }

    /// Short words for long ones.
    fn shorten_words(&mut self) {
        for at in 0..self.best.len() {
            let mut word = 1;
            while let Some(Step::Send(conn, words)) = self.best.get(at).cloned()
                && word < words.len()
            {
                for short in [&b"a"[..], b"1", b"0"] {
                    if words[word].len() > short.len() {
                        let mut words = words.clone();
                        words[word] = short.to_vec();
                        let mut steps = self.best.clone();
                        steps[at] = Step::Send(conn, words);
                        if self.try_steps(steps) {
                            break;
                        }
                    }
                }
                word += 1;
            }
        }
    }
}
