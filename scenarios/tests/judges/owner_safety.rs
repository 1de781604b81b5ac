//! Owner safety, as it is defined: an owner's hold may be given back, deleted, written over or extended on behalf of that
//! owner only. `seen` counts how often one of these took effect, `times` how often it was for another owner, `refused` how
//! many releases and extensions came back as refused. Readers share one key, which lives as long as any of them may read: an
//! extension counts for neither if its owner and one of whom it was sent for share the lock on that node at that instant, the
//! instant included at which one came or went. A forced release in the lock's own way is no violation. The
//! question arose if anything of that kind took effect, or if a release or an extension came back.

use lockstorm::history::{
    Call, Event, EventKind, History, Host, Lock, LossCause, Mode, Outcome, Owner, Party,
};
use lockstorm_sim::time::True;

use crate::{
    Answer,
    past::{calls, given_up, own},
};

/// Whether an owner shares a lock on a node at an instant: it was granted it to read by then, and had not lost it, given it back
/// or been granted it alone before.
fn shares(history: &History, lock: Lock, node: Host, owner: Owner, at: True) -> bool {
    let mut since = None;
    let about = |event: &&Event| {
        event.host == node && event.kind.lock() == Some(lock) && event.kind.owner() == Some(owner)
    };
    let mut shared = false;
    for event in history.events.iter().filter(about).take_while(|event| event.at <= at) {
        match &event.kind {
            EventKind::Granted { mode: Mode::Shared, .. } => since = since.or(Some(event.at)),
            EventKind::Granted { .. } | EventKind::Released { left: 0, .. } | EventKind::Vanished { .. } => {
                shared |= since.is_some() && event.at == at;
                since = None;
            }
            _ => {}
        }
    }
    shared || since.is_some()
}

/// Whether one reader extended the key that it shares with another.
fn among_readers(history: &History, event: &Event, by: Party) -> bool {
    let EventKind::Extended { lock, owner, .. } = event.kind else { return false };
    let shares = |owner: Owner| shares(history, lock, event.host, owner, event.at);
    let owners = (0..history.owners.len() as u32).map(Owner);
    shares(owner) && owners.filter(|other| own(history, *other, by)).any(shares)
}

pub(crate) fn judge(history: &History) -> Answer {
    let done = history.events.iter().filter_map(|event| match &event.kind {
        EventKind::Released { owner, by, .. }
        | EventKind::Extended { owner, by, .. }
        | EventKind::Vanished { owner, how: LossCause::Deleted(by) | LossCause::Overwritten(by), .. } => {
            Some((event, *owner, *by))
        }
        _ => None,
    });
    let done =
        done.filter(|(event, owner, by)| own(history, *owner, *by) || !among_readers(history, event, *by));
    let done: Vec<bool> = done.map(|(_, owner, by)| own(history, owner, by)).collect();
    let times = done.iter().filter(|own| !**own).count();
    let outcomes: Vec<&Outcome> = calls(history)
        .iter()
        .filter(|call| matches!(call.call, Call::Release | Call::Extend { .. }))
        .filter_map(|call| call.outcome)
        .collect();
    let word = match times {
        1.. => "violated",
        0 if given_up(history) || (done.is_empty() && outcomes.is_empty()) => "undecided",
        0 => "holds",
    };
    let refused = outcomes.iter().filter(|outcome| ***outcome == Outcome::Refused).count();
    Answer::of(word).count("times", times).count("seen", done.len()).count("refused", refused)
}
