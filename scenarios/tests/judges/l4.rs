//! The definition of L4. Of the writes that the rule in force accepted, one is stale iff an earlier
//! accepted write of another owner belongs to a newer hold, or carried the same token. The layer is
//! violated iff a write is stale; without a rule nothing is judged. Several permits of a semaphore
//! may be out, so none of its writes is stale.

use lockstorm::judge::history::{Fence, History};

use crate::{
    Answer,
    past::{excludes, fence, given_up},
    section::{Write, tested, writes},
};

pub(crate) fn judge(history: &History) -> Answer {
    let fence = fence(&history.header);
    let writes = writes(history);
    let passes = |write: &&Write| match fence {
        Fence::None => true,
        Fence::Greater => write.accepted.greater,
        Fence::AtLeast => write.accepted.at_least,
    };
    let accepted: Vec<&Write> = writes.iter().filter(passes).collect();
    let stale = |number: usize| {
        let write = accepted[number];
        let shows = |before: &&Write| {
            let newer = before.hold > write.hold;
            let twin = write.token.is_some() && before.token == write.token;
            before.lock == write.lock && before.owner != write.owner && (newer || twin)
        };
        excludes(history, write.lock) && accepted[..number].iter().any(shows)
    };
    let stale = (0..accepted.len()).filter(|number| stale(*number)).count();
    let word = match fence {
        Fence::None => "undecided",
        _ if stale > 0 => "violated",
        _ if given_up(history) || !tested(history, &writes) => "undecided",
        _ => "holds",
    };
    Answer::of(word)
        .count("stale", stale)
        .count("accepted", accepted.len())
        .count("rejected", writes.len() - accepted.len())
}
