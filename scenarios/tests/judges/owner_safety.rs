//! The definition of `owner_safety`. Only an owner itself may have its hold given back, deleted,
//! overwritten or extended. `seen` counts these effects, `times` those on behalf of another owner,
//! `refused` the releases and extensions that came back as refused. A forced release in the lock's
//! own way is no violation. The question arose if such an effect occurred, or if a release or an
//! extension came back.

use lockstorm::judge::history::{Call, EventKind, History, LossCause, Outcome};

use crate::{
    Answer,
    past::{calls, given_up, own},
};

pub(crate) fn judge(history: &History) -> Answer {
    let done = history.events.iter().filter_map(|event| match &event.kind {
        EventKind::Released { owner, by, .. }
        | EventKind::Extended { owner, by, .. }
        | EventKind::Vanished { owner, how: LossCause::Deleted(by) | LossCause::Overwritten(by), .. } => {
            Some((*owner, *by))
        }
        _ => None,
    });
    let done: Vec<bool> = done.map(|(owner, by)| own(history, owner, by)).collect();
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
