//! The end of an owner's hold.

use lockstorm_world::time::True;

use crate::judge::{
    checker::evidence::{
        Evidence,
        ending::{self, EndedBy},
        words,
    },
    history::{Event, History, Lock, Owner},
};

/// Describes the end of the hold that the first of these owners had of a lock, within `since` and
/// `by`, one sentence for each event. Empty if it did not end.
pub(super) fn ending(
    evidence: &Evidence<'_>,
    lock: Lock,
    owners: &[Owner],
    since: True,
    by: True,
) -> Vec<String> {
    let history = evidence.history;
    let ends = ending::ending(history, lock, owners, since, by);
    ends.into_iter().map(|(event, ended)| sentence(history, owners[0], event, ended)).collect()
}

fn sentence(history: &History, owner: Owner, event: &Event, ended: EndedBy) -> String {
    let (at, node) = (words::instant(event.at), history.host_name(event.host));
    match ended {
        EndedBy::Lost(how) => words::vanished(history, event, how),
        EndedBy::ReleasedBy(by) => format!("At {at} {} released it on {node}.", history.party_name(by)),
        EndedBy::Released(asked) => {
            let asked = asked.map(|at| format!(" that it had asked for at {}", words::instant(at)));
            let asked = asked.unwrap_or_default();
            format!("At {at} {node} executed a release by {} itself{asked}.", history.owner_name(owner))
        }
        EndedBy::Promoted => format!("At {at} {node} was promoted."),
    }
}
