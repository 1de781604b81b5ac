//! The names of keys and channels. They are Redisson's, so that both kinds of clients can share a lock.

/// `prefix:name`, with the name made a hash tag unless it holds a brace already, so that the companion keys of a lock
/// live in its slot.
pub(crate) fn prefixed(prefix: &str, name: &str) -> String {
    if name.contains('{') { format!("{prefix}:{name}") } else { format!("{prefix}:{{{name}}}") }
}

/// Where an unlock is announced.
pub(crate) fn lock_channel(name: &str) -> String {
    prefixed("redisson_lock__channel", name)
}

/// Where a queued waiter of a fair lock is told that it is its turn.
pub(crate) fn waiter_channel(name: &str, owner: &str) -> String {
    format!("{}:{owner}", lock_channel(name))
}

/// Where the result of one unlock request is remembered for its repeats.
pub(crate) fn unlock_latch(name: &str, request: &str) -> String {
    format!("{}:{request}", prefixed("redisson_unlock_latch", name))
}

/// The counter of fencing tokens.
pub(crate) fn fencing_token(name: &str) -> String {
    prefixed("redisson_lock_token", name)
}

/// The queue of a fair lock.
pub(crate) fn fair_queue(name: &str) -> String {
    prefixed("redisson_lock_queue", name)
}

/// Until when each queued waiter of a fair lock counts as alive.
pub(crate) fn fair_deadlines(name: &str) -> String {
    prefixed("redisson_lock_timeout", name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn companion_names_share_the_slot_of_the_lock() {
        for (name, channel) in [
            ("lk", "redisson_lock__channel:{lk}"),
            ("a{tag}b", "redisson_lock__channel:a{tag}b"),
            // Not a valid hash tag, but Redisson only looks for the brace.
            ("a{b", "redisson_lock__channel:a{b"),
        ] {
            assert_eq!(lock_channel(name), channel);
        }
        assert_eq!(waiter_channel("fl", "c:1"), "redisson_lock__channel:{fl}:c:1");
        assert_eq!(unlock_latch("lk", "q1"), "redisson_unlock_latch:{lk}:q1");
        assert_eq!(fencing_token("f"), "redisson_lock_token:{f}");
        assert_eq!(fair_queue("fl"), "redisson_lock_queue:{fl}");
        assert_eq!(fair_deadlines("fl"), "redisson_lock_timeout:{fl}");
    }
}
