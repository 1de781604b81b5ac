//! The words of `progress`: stalls, and locks that no owner was seen to get.

use std::time::Duration;

use super::calls::turned_away;
use crate::judge::{
    checker::{
        decision::Case,
        evidence::{Evidence, words},
        questions::progress::{Because, Stall, TooLong, acquisitions, is_within},
        wording::{Explain, Reason},
    },
    history::{Lock, Probe},
};

/// The most owners that a story names.
const NAMED_MAX: usize = 4;

impl Reason for Because {
    fn sentence(&self, evidence: &Evidence<'_>) -> String {
        match self {
            Self::NoCalm => "The storm never ended.".to_owned(),
            Self::SetUp(lock) => set_up(evidence, *lock),
            Self::NotWanted => no_owner_wanted(evidence),
            Self::Open(stall, length) => not_granted(evidence, stall, *length),
            Self::Served(stalled) => format!(
                "No waiter waited longer than {} for a free lock.{}",
                words::length(*stalled),
                asked_by_probe(evidence)
            ),
        }
    }
}

impl Explain for Case<TooLong<'_>> {
    fn summary(&self, evidence: &Evidence<'_>) -> String {
        format!(
            "`{}` was wanted, and no owner believed it held the lock, for {}, from {} to {}.",
            evidence.history.lock(self.wrong.stall.lock).name,
            words::length(self.until.since(self.from)),
            words::instant(self.from),
            words::instant(self.until)
        )
    }

    fn story(&self, evidence: &Evidence<'_>) -> Vec<String> {
        let TooLong { stall, last } = &self.wrong;
        let (history, owners) = (evidence.history, &self.owners);
        let names: Vec<String> =
            owners.iter().take(NAMED_MAX).map(|owner| history.owner_name(*owner)).collect();
        let others = if owners.len() > NAMED_MAX { " and more" } else { "" };
        let mut story = vec![format!("Who wanted it: {}{others}.", names.join(", "))];
        if owners.iter().any(|owner| Some(history.client_of(*owner)) == history.probe()) {
            story.push(asked_by_probe(evidence).trim_start().to_owned());
        }
        let asked = acquisitions(evidence, stall.lock).filter(|call| is_within(call, stall));
        story.extend(turned_away(history, asked));
        story.extend(last.map(|promise| words::promise(history, promise)));
        story
    }
}

/// Returns a sentence saying that lockstorm itself asked, if it did; otherwise an empty text.
fn asked_by_probe(evidence: &Evidence<'_>) -> String {
    let history = evidence.history;
    let Some(probe) = history.probe() else { return String::new() };
    let name = history.host_name(probe);
    format!(
        " {name} is lockstorm's own client, which asked as no other owner was granted it after the storm."
    )
}

/// Returns a sentence saying that the setup of the run prevented the lock from working.
fn set_up(evidence: &Evidence<'_>, lock: Lock) -> String {
    let history = evidence.history;
    let first = acquisitions(evidence, lock).filter_map(|call| call.returned).map(|(at, _)| at).min();
    let is_first = first.is_some_and(|first| history.faults.iter().all(|fault| fault.from > first));
    format!(
        "`{}` never worked, whatever the storm did: no acquisition succeeded, and {}. {}",
        history.lock(lock).name,
        if is_first {
            "the first one failed before any fault"
        } else {
            "one failed before any fault that could concern it"
        },
        turned_away(history, acquisitions(evidence, lock)).unwrap_or_default()
    )
}

/// Returns sentences saying that no owner asked, why lockstorm did not either, and which calls had
/// failed before.
fn no_owner_wanted(evidence: &Evidence<'_>) -> String {
    let history = evidence.history;
    let header = &history.header;
    let wanted = "No owner wanted the lock after the storm";
    let said = match header.probe {
        None => format!("{wanted}."),
        Some(Probe::Off) => format!("{wanted}, and by `run.probe = false` lockstorm asks for none itself."),
        Some(Probe::TooShort { needs }) => format!(
            "{wanted}, and its calm of {} is too short for lockstorm to ask for it: set `run.calm` to {} or more.",
            words::length(header.end.since(header.calm.unwrap_or(header.end))),
            words::length(needs)
        ),
        Some(Probe::NotOurs) => format!(
            "{wanted}, and lockstorm does not ask for it itself where the clients are a library on trial or code of their own."
        ),
        Some(Probe::From { .. }) => {
            format!("{wanted}, and lockstorm asks for none that an owner still has.")
        }
    };
    evidence.unless_failed(&said)
}

/// Returns sentences saying that a lock was free and wanted, but not for long enough to decide.
fn not_granted(evidence: &Evidence<'_>, stall: &Stall, length: Duration) -> String {
    let history = evidence.history;
    let (length, bound) = (words::length(length), words::length(history.header.bounds.progress));
    let said = if stall.until >= history.header.end {
        format!(
            "When the run ended the lock had been free and wanted for {length}, less than the bound of {bound}."
        )
    } else {
        format!(
            "After the storm `{}` was free and wanted for {length}, less than the bound of {bound}: from {} on no owner asked for it any more, and \
             no owner has had it since.",
            history.lock(stall.lock).name,
            words::instant(stall.until)
        )
    };
    let asked = acquisitions(evidence, stall.lock).filter(|call| is_within(call, stall));
    turned_away(history, asked).map_or_else(|| said.clone(), |failed| format!("{said} {failed}"))
}
