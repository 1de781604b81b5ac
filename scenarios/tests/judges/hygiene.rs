//! Hygiene, as it is defined: a key that is there when the run ends was left behind, unless it is one of
//! those that its lock declares as lasting, or belongs to a lock that is in use. A lock is in use when the run ends if an owner believes it holds it then, or has an
//! acquisition under way. There is nothing to judge if no lock was ever granted, or all are in use.

use lockstorm::history::{History, Lock};

use crate::{
    Answer,
    past::{believes_at_the_end, calls, given_up, of_all, pairs, promised},
};

pub(crate) fn judge(history: &History) -> Answer {
    let calls = calls(history);
    let in_use = |lock: Lock| {
        let waits = calls.iter().any(|call| call.lock == lock && call.acquires() && call.ended.is_none());
        waits
            || pairs(history)
                .iter()
                .any(|(of, owner)| *of == lock && believes_at_the_end(history, lock, *owner))
    };
    let left: Vec<Option<u64>> = history
        .keys_left
        .iter()
        .filter_map(|left| {
            let lock = left.lock;
            let lasting = history.lock(lock).lasting_keys.contains(&left.key);
            let begins_so = history.lock(lock).passing_keys.iter().any(|part| left.key.starts_with(&**part));
            let passing = begins_so && left.ttl_ms.is_some();
            (!lasting && !passing && !in_use(lock)).then_some(left.ttl_ms)
        })
        .collect();
    let nothing = of_all(history, promised).is_empty() || history.header.locks().all(in_use);
    let word = match left.len() {
        1.. => "violated",
        0 if given_up(history) || nothing => "undecided",
        0 => "holds",
    };
    let for_ever = left.iter().filter(|ttl_ms| ttl_ms.is_none()).count();
    Answer::of(word).count("left", left.len()).count("for_ever", for_ever)
}
