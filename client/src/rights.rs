//! The rights that the user of the server needs for each object: keys, channels and commands. This
//! is the only table of them. The crate documentation prints it, and errors name the missing right
//! from it.

use crate::wire::{
    fair_alive, fair_deadlines, fair_queue, fencing_token, latch_channel, lock_channel, permit_deadlines,
    rate_grants, rate_permits, rw_channel, semaphore_channel, suffix_tag, unlock_latches,
};

/// Makes the pattern of keys or channels that belong to an object of this name.
type Pattern = fn(&str) -> String;

/// The rights that one object needs.
#[derive(Debug)]
pub(crate) struct Rights {
    /// The object with its article, for use in a sentence.
    pub(crate) object: &'static str,
    keys: &'static [Pattern],
    channels: &'static [Pattern],
    /// The commands in addition to [`EVERY`] and, if the object has channels, [`LISTENING`].
    commands: &'static str,
}

/// The commands that every object needs. Without the last two the outcome of a request with a lost
/// reply may stay unknown.
const EVERY: &str = "eval evalsha client|info client|kill";

/// The commands that waiting for messages needs.
const LISTENING: &str = "publish subscribe unsubscribe ping";

fn own(name: &str) -> String {
    name.to_owned()
}

fn latches(name: &str) -> String {
    format!("{}*", unlock_latches(name))
}

fn companions(name: &str) -> String {
    format!("{}:*", suffix_tag(name))
}

fn waiters(name: &str) -> String {
    format!("{}:*", lock_channel(name))
}

fn permits_of_clients(name: &str) -> String {
    format!("{}*", rate_permits(name))
}

fn grants_of_clients(name: &str) -> String {
    format!("{}*", rate_grants(name))
}

// The scripts declare channels as keys, so that a cluster finds the slot.

pub(crate) static LOCK: Rights = Rights {
    object: "a lock",
    keys: &[own, lock_channel, latches],
    channels: &[lock_channel],
    commands: "pttl hexists hincrby hget pexpire get set del exists",
};

pub(crate) static FAIR: Rights = Rights {
    object: "a fair lock",
    keys: &[own, fair_queue, fair_deadlines, fair_alive, lock_channel, latches],
    channels: &[waiters],
    commands: "pttl hexists hincrby hset hget pexpire get set del exists lindex lpop lrange lrem rpush zadd zrange zrem zscore",
};

pub(crate) static FENCED: Rights = Rights {
    object: "a fenced lock",
    keys: &[own, fencing_token, lock_channel, latches],
    channels: &[lock_channel],
    commands: "pttl hexists hincrby hget incr pexpire get set del exists",
};

pub(crate) static SPIN: Rights = Rights {
    object: "a spin lock",
    keys: &[own, latches],
    channels: &[],
    commands: "pttl hexists hincrby hget pexpire get set del exists",
};

pub(crate) static STRING: Rights = Rights {
    object: "a string lock",
    keys: &[own],
    channels: &[],
    commands: "set get del pttl pexpire exists",
};

pub(crate) static READ_WRITE: Rights = Rights {
    object: "a read-write lock",
    keys: &[own, suffix_tag, companions, rw_channel, latches],
    channels: &[rw_channel],
    commands: "pttl hexists hincrby hset hget hdel hgetall hlen pexpire get set del exists",
};

pub(crate) static FASTER_MULTI: Rights = Rights {
    object: "a faster multi-lock",
    keys: &[own, lock_channel, latches],
    channels: &[lock_channel],
    commands: "pttl hset hget hdel hincrby pexpire time get set del",
};

pub(crate) static SEMAPHORE: Rights = Rights {
    object: "a semaphore",
    keys: &[own, semaphore_channel, latches],
    channels: &[semaphore_channel],
    commands: "get set del exists incrby decrby",
};

pub(crate) static PERMIT_SEMAPHORE: Rights = Rights {
    object: "an expirable semaphore",
    keys: &[own, permit_deadlines, semaphore_channel, latches],
    channels: &[semaphore_channel],
    commands: "get set del exists incrby decrby pttl pexpire time zadd zrem zrange zscore zcount zremrangebyscore",
};

pub(crate) static LATCH: Rights = Rights {
    object: "a count-down latch",
    keys: &[own, latches],
    channels: &[latch_channel],
    commands: "get set del exists decr",
};

pub(crate) static RATE_LIMITER: Rights = Rights {
    object: "a rate limiter",
    keys: &[own, permits_of_clients, grants_of_clients, latches],
    channels: &[],
    commands: "get set del exists decrby hmget hset persist pexpire pttl time zadd zcard zrange zrangebyscore zremrangebyscore zscore",
};

pub(crate) static REDLOCK: Rights =
    Rights { object: "a Redlock", keys: &[own], channels: &[], commands: "get set del pttl pexpire" };

impl Rights {
    /// Returns the pattern that allows `key` for the object `name`, or the key itself if none does.
    pub(crate) fn key(&self, name: &str, key: &str) -> String {
        let patterns = self.keys.iter().map(|pattern| pattern(name));
        let mut allowing = patterns.filter(|pattern| match pattern.strip_suffix('*') {
            Some(prefix) => key.starts_with(prefix),
            None => key == pattern,
        });
        allowing.next().unwrap_or_else(|| key.to_owned())
    }

    /// Returns the patterns of all keys of the object `name`.
    pub(crate) fn all_keys(&self, name: &str) -> String {
        words(self.keys.iter().map(|pattern| format!("~{}", pattern(name))))
    }

    /// Returns the patterns of the channels of the object `name`.
    pub(crate) fn all_channels(&self, name: &str) -> String {
        words(self.channels.iter().map(|pattern| format!("&{}", pattern(name))))
    }

    pub(crate) fn all_commands(&self) -> String {
        let listening = if self.channels.is_empty() { "" } else { LISTENING };
        allowed(&[EVERY, listening, self.commands].join(" "))
    }
}

fn allowed(commands: &str) -> String {
    words(commands.split_whitespace().map(|command| format!("+{command}")))
}

fn words(words: impl Iterator<Item = String>) -> String {
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The objects by the constructors of their handles.
    const OBJECTS: [(&str, &Rights); 14] = [
        ("Client::lock", &LOCK),
        ("Client::non_reentrant_lock", &LOCK),
        ("Client::fair_lock", &FAIR),
        ("Client::non_reentrant_fair_lock", &FAIR),
        ("Client::fenced_lock", &FENCED),
        ("Client::spin_lock", &SPIN),
        ("Client::string_lock", &STRING),
        ("Client::rw_lock", &READ_WRITE),
        ("Client::faster_multi_lock", &FASTER_MULTI),
        ("Client::semaphore", &SEMAPHORE),
        ("Client::permit_semaphore", &PERMIT_SEMAPHORE),
        ("Client::latch", &LATCH),
        ("Client::rate_limiter", &RATE_LIMITER),
        ("Redlock", &REDLOCK),
    ];

    /// Returns the rows of `rights.md`.
    fn printed() -> String {
        let row = |(constructor, rights): &(&str, &Rights)| {
            let (keys, channels) = (rights.all_keys("stock"), rights.all_channels("stock"));
            let channels = if channels.is_empty() { channels } else { format!(" {channels}") };
            format!("| [`{constructor}`] | `{keys}{channels} {}` |\n", allowed(rights.commands))
        };
        "| object | rights |\n| --- | --- |\n".to_owned() + &OBJECTS.iter().map(row).collect::<String>()
    }

    #[test]
    fn each_object_needs_its_own_commands_and_those_of_every_client() {
        for (constructor, rights) in OBJECTS {
            let all = rights.all_commands();
            let listens = !rights.channels.is_empty();
            assert!(all.contains(&allowed(EVERY)), "{constructor}: {all}");
            assert!(all.contains(&allowed(rights.commands)), "{constructor}: {all}");
            assert_eq!(all.contains(&allowed(LISTENING)), listens, "{constructor}: {all}");
        }
    }

    #[test]
    fn the_documentation_has_the_table() {
        let documented = include_str!("rights.md");
        for text in [&printed(), &allowed(EVERY), &allowed(LISTENING)] {
            // Line breaks may be anywhere in the text.
            assert!(
                documented.replace('\n', " ").contains(&text.replace('\n', " ")),
                "it should have\n{text}"
            );
        }
    }

    #[test]
    fn the_pattern_that_allows_a_key_is_found() {
        for (rights, key, pattern) in [
            (&LOCK, "stock", "stock"),
            (&LOCK, "redisson_unlock_latch:{stock}:1f", "redisson_unlock_latch:{stock}:*"),
            (&LOCK, "redisson_lock__channel:{stock}", "redisson_lock__channel:{stock}"),
            (&READ_WRITE, "{stock}:c:1:rwlock_timeout", "{stock}:*"),
            (&READ_WRITE, "{stock}", "{stock}"),
            (&RATE_LIMITER, "{stock}:permits:c", "{stock}:permits*"),
            (&SPIN, "other", "other"),
        ] {
            assert_eq!(rights.key("stock", key), pattern);
        }
    }
}
