//! Calls for a lock that returned without it.

use crate::judge::{
    checker::evidence::{Asked, Evidence, words},
    history::{History, Outcome},
};

impl Evidence<'_> {
    /// Returns the sentence `said`, that no owner was given anything, with the results of the calls
    /// for it.
    pub(super) fn no_owner(&self, said: &str) -> String {
        let turned_away = turned_away(self.history, self.calls.iter().filter(|call| call.asks()));
        turned_away.map_or_else(|| said.to_owned(), |calls| format!("{said} {calls}"))
    }

    /// Returns the sentence `said`, that something was not seen, with the acquisitions that failed,
    /// which may be the reason.
    pub(super) fn unless_failed(&self, said: &str) -> String {
        let failed = self.calls.iter().filter(|call| call.is_failed_acquire());
        turned_away(self.history, failed).map_or_else(|| said.to_owned(), |calls| format!("{said} {calls}"))
    }
}

/// Describes how many of some calls for a lock returned without it, with the text of the earliest
/// error. `None` if no call did.
pub(super) fn turned_away<'a>(
    history: &History,
    calls: impl IntoIterator<Item = &'a Asked<'a>>,
) -> Option<String> {
    let (mut failed, mut refused) = (Vec::new(), 0);
    for call in calls {
        match call.returned {
            Some((at, Outcome::Failed { message, .. })) => failed.push((at, call.owner, message)),
            Some((_, Outcome::Refused)) => refused += 1,
            _ => {}
        }
    }
    let refusals = || match refused {
        1 => "1 call for it came back without it.".to_owned(),
        count => format!("{count} calls for it came back without it."),
    };
    let Some((at, owner, message)) = failed.iter().min_by_key(|(at, ..)| *at) else {
        return (refused > 0).then(refusals);
    };
    let of = format!("of {} at {}: `{message}`.", history.owner_name(*owner), words::instant(*at));
    let errors = match failed.len() {
        1 => format!("1 call for it ended with an error, {of}"),
        count => format!("{count} calls for it ended with an error, the first {of}"),
    };
    Some(if refused == 0 { errors } else { format!("{} {errors}", refusals()) })
}
