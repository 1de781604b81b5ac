//! Compares the frames of a connection on both servers, as far as Redis promises them.

use crate::{
    duel::connections::is_message,
    rule::{self, Rule},
    servers::Received,
    wire::{Kind, Wire},
};

/// Returns true if a frame answers a command rather than being pushed.
pub(super) fn is_answer(received: &Received) -> bool {
    let Received::Reply(reply) = received else { return false };
    let by_itself = match reply {
        Wire::Items(Kind::Push, items) => {
            matches!(items.first(), Some(Wire::Bulk(kind)) if kind == b"invalidate" || kind == b"tracking-redir-broken")
        }
        _ => false,
    };
    !by_itself && !is_message(received)
}

/// Returns true if both servers sent the same frames by `rules`, the simulator's.
pub(super) fn agree(rules: &[Rule], words: &[Vec<u8>], ours: &[Received], theirs: &[Received]) -> bool {
    if misses_by_chance(words) && ours.iter().chain(theirs).all(is_message) {
        return true;
    }
    if ours.len() != theirs.len() {
        return false;
    }
    let name = words.first().map(|name| name.to_ascii_uppercase()).unwrap_or_default();
    let bare_unsubscribe = words.len() == 1 && name.ends_with(b"UNSUBSCRIBE") && ours.len() > 1;
    if bare_unsubscribe {
        return without_counts(ours) == without_counts(theirs);
    }
    if name == b"EXEC" {
        // An unsubscription without channels in a transaction: its first reply is among the replies
        // of the commands, the others follow.
        let [(mine, others_of_mine), (yours, others_of_yours)] = [ours, theirs].map(goodbyes);
        if mine.len() > 1 && others_of_mine == others_of_yours {
            return without_counts(&mine) == without_counts(&yours);
        }
        if let Some(Rule::Exec(queued)) = rules.first()
            && let (Some(mine), Some(yours)) = (spilled(ours), spilled(theirs))
        {
            return mine.0 == yours.0 && Rule::Exec(others(queued)).agree(&mine.1, &yours.1);
        }
    }
    let in_order = |all: &[Received]| -> Vec<Received> {
        all.iter().filter(|received| !is_message(received)).cloned().collect()
    };
    // The patterns that match one message come in the order of a table.
    let messages = |all: &[Received]| {
        let mut messages: Vec<String> = all
            .iter()
            .filter(|received| is_message(received))
            .map(|one| shown(std::slice::from_ref(one)))
            .collect();
        let by_pattern = |message: &String| message.contains("pmessage");
        messages.chunk_by_mut(|one, other| by_pattern(one) && by_pattern(other)).for_each(<[String]>::sort);
        messages
    };
    let (one, other) = (in_order(ours), in_order(theirs));
    let rules = ours.iter().zip(rules).filter(|(received, _)| !is_message(received)).map(|(_, rule)| rule);
    ours.iter().map(is_message).eq(theirs.iter().map(is_message))
        && messages(ours) == messages(theirs)
        && one.iter().zip(&other).zip(rules).all(|((one, other), rule)| match (one, other) {
            (Received::Reply(Wire::Items(Kind::Push, _)), _) => one == other,
            (Received::Reply(one), Received::Reply(other)) => rule.agree(one, other),
            (one, other) => one == other,
        })
}

/// Returns true if the keys that a command misses, and so the `keymiss` events, may differ: the
/// order of a hash table decides which of equal elements are within the LIMIT of SORT, and GET
/// looks up the keys of these.
fn misses_by_chance(words: &[Vec<u8>]) -> bool {
    let sorts = words.first().is_some_and(|name| name.to_ascii_uppercase().starts_with(b"SORT"));
    let has = |wanted: &str| words.iter().any(|word| word.eq_ignore_ascii_case(wanted.as_bytes()));
    sorts && has("LIMIT") && has("GET") && rule::of(words) != Rule::Exact
}

/// Splits the replies of a transaction that subscribed to several channels, which is one reply per
/// channel: the array of EXEC has no room for them, so the last ones follow it. Returns
/// subscription replies and all other replies, each in order.
fn spilled(all: &[Received]) -> Option<(Vec<Wire>, Wire)> {
    let replies: Option<Vec<&Wire>> = all
        .iter()
        .map(|received| match received {
            Received::Reply(reply) if !is_message(received) => Some(reply),
            _ => None,
        })
        .collect();
    let replies = replies?;
    let (Wire::Items(Kind::Array, items), rest) = replies.split_first()? else { return None };
    if rest.is_empty() {
        return None;
    }
    let all = items.iter().chain(rest.iter().copied()).cloned();
    let (channels, others) = all.partition(|reply| tells_of_channel(reply, b"subscribe"));
    Some((channels, Wire::Items(Kind::Array, others)))
}

/// Returns true for a subscription reply whose kind ends in `ending`.
fn tells_of_channel(reply: &Wire, ending: &[u8]) -> bool {
    matches!(reply, Wire::Items(_, items)
        if matches!(items.first(), Some(Wire::Bulk(kind)) if kind.ends_with(ending)))
}

/// The rules of replies that are not about subscriptions.
fn others(queued: &[Rule]) -> Vec<Rule> {
    queued.iter().filter(|rule| **rule != Rule::Channels).cloned().collect()
}

/// The unsubscription replies, in EXEC or after it, and everything else.
fn goodbyes(all: &[Received]) -> (Vec<Received>, Vec<Received>) {
    let flat = all.iter().flat_map(|received| match received {
        Received::Reply(Wire::Items(Kind::Array, items)) => {
            items.iter().cloned().map(Received::Reply).collect()
        }
        other => vec![other.clone()],
    });
    flat.partition(
        |received| matches!(received, Received::Reply(reply) if tells_of_channel(reply, b"unsubscribe")),
    )
}

/// The unsubscribed channels, sorted, and the counts of remaining ones.
fn without_counts(all: &[Received]) -> (Vec<String>, Vec<Wire>) {
    let (mut channels, mut counts) = (Vec::new(), Vec::new());
    for received in all {
        if let Received::Reply(Wire::Items(kind, items)) = received {
            let mut items = items.clone();
            counts.extend(items.pop());
            channels.push(shown(&[Received::Reply(Wire::Items(*kind, items))]));
        }
    }
    channels.sort();
    (channels, counts)
}

pub(super) fn shown(all: &[Received]) -> String {
    let mut lines = Vec::new();
    for received in all {
        match received {
            Received::Reply(reply) => reply.lines(4, &mut lines),
            Received::Nothing => lines.push("    nothing".into()),
            Received::Closed => lines.push("    closed".into()),
        }
    }
    const MOST: usize = 60;
    if lines.len() > MOST {
        let more = lines.len() - MOST;
        lines.truncate(MOST);
        lines.push(format!("    and {more} lines more"));
    }
    lines.join("\n")
}
