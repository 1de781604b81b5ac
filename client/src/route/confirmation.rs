//! The commands that follow a change until it counts, and their replies: WAIT for replicas, WAITAOF
//! for append-only files.

use redis::{Cmd, Value};

use super::connection::Connection;
use crate::config::{Config, Durability, millis};
use crate::endpoint::Endpoint;
use crate::error::{Error, ErrorKind, Result};

/// The confirmations that a change needs.
#[derive(Clone)]
pub(crate) struct Confirmation {
    commands: Vec<Cmd>,
    /// The number of replicas that must have the change in memory.
    replicas: usize,
    /// The number of replicas that must have it on disk; `None` if the master need not have it.
    synced: Option<usize>,
}

impl Confirmation {
    /// Returns the confirmations of a change for which `replicas` must confirm, of those that are
    /// `connected`. `None` if it needs none.
    pub(super) fn of(config: &Config, replicas: usize, connected: usize) -> Option<Self> {
        let (replicas, synced) = match config.durability {
            Durability::Memory => (replicas, None),
            Durability::Master => (replicas, Some(0)),
            // A replica that has synced a change also has it in memory.
            Durability::All => (0, Some(replicas)),
        };
        let mut commands = Vec::new();
        if replicas > 0 {
            let mut wait = redis::cmd("WAIT");
            // Wait for all connected replicas: more acknowledgements than needed cost nothing.
            wait.arg(replicas.max(connected)).arg(millis(config.replica_timeout).max(1));
            commands.push(wait);
        }
        if let Some(replicas) = synced {
            let mut wait = redis::cmd("WAITAOF");
            // No more than needed: a replica without an append-only file never confirms. A timeout
            // of 0 would have no end.
            wait.arg(1).arg(replicas).arg(millis(config.durability_timeout).max(1));
            commands.push(wait);
        }
        (!commands.is_empty()).then_some(Self { commands, replicas, synced })
    }

    /// Returns the commands that must follow the change on its connection.
    pub(super) fn commands(&self) -> &[Cmd] {
        &self.commands
    }

    /// Returns the number of replicas that have acknowledged the change, according to `replies`.
    /// `None` if no replica was asked.
    pub(super) fn acked(&self, replies: &[Value]) -> Option<usize> {
        // An error reply counts as no acknowledgements. The change's own reply remains valid.
        (self.replicas > 0).then(|| replies.first().map_or(0, count))
    }

    /// Checks the replies to the commands.
    ///
    /// # Errors
    /// If they confirm less than is needed. The error is indefinite: the change exists.
    pub(super) fn check(&self, replies: &[Value], endpoint: &Endpoint) -> Result<()> {
        let acked = self.acked(replies).unwrap_or(0);
        if acked < self.replicas {
            let needed = self.replicas;
            return Err(Error::indefinite(ErrorKind::NotReplicated { acked, needed }));
        }
        let Some(needed) = self.synced else { return Ok(()) };
        let (is_on_master, replicas) = match replies.get(self.commands.len() - 1) {
            Some(Value::Array(files)) => match files.as_slice() {
                [master, replicas] => (count(master) >= 1, count(replicas)),
                _ => (false, 0),
            },
            Some(Value::ServerError(error)) => {
                let (code, message) =
                    (error.code().to_owned(), error.details().unwrap_or_default().to_owned());
                let server = Error::indefinite(ErrorKind::Server { code, message });
                let error = explain(server, &endpoint.to_string());
                if matches!(error.kind(), ErrorKind::NoAppendOnlyFile { .. }) || error.is_server("NOPERM") {
                    return Err(error.made_indefinite());
                }
                // For example of a server that has become a replica.
                (false, 0)
            }
            _ => (false, 0),
        };
        if is_on_master && replicas >= needed {
            return Ok(());
        }
        Err(Error::indefinite(ErrorKind::NotSynced { master: is_on_master, replicas, needed }))
    }
}

fn count(reply: &Value) -> usize {
    if let Value::Int(count) = reply { usize::try_from(*count).unwrap_or(0) } else { 0 }
}

/// Checks that the server can confirm that a change is on its disk: it has WAITAOF, and an
/// append-only file.
pub(super) async fn can_sync(connection: &Connection) -> Result<()> {
    let reply = connection.call(redis::cmd("WAITAOF").arg(1).arg(0).arg(1)).await;
    reply.map(drop).map_err(|error| explain(error, &connection.endpoint.to_string()))
}

/// Gives the refusal of WAITAOF its meaning.
fn explain(error: Error, endpoint: &str) -> Error {
    let ErrorKind::Server { code, message } = error.kind() else { return error };
    let endpoint = endpoint.to_owned();
    let reason = if code != "ERR" {
        return error;
    } else if message.starts_with("unknown command") {
        "it has no WAITAOF, which Redis has from version 7.2 on, and every Valkey".to_owned()
    } else if message.contains("appendonly is disabled") {
        "its `appendonly` is `no`".to_owned()
    } else if message.contains("replica instances") {
        return Error::definite(ErrorKind::Replaced { endpoint });
    } else {
        message.clone()
    };
    Error::definite(ErrorKind::NoAppendOnlyFile { endpoint, reason })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::config::ReplicaWait;

    fn config(durability: Durability) -> Config {
        let (replica_timeout, durability_timeout) = (Duration::from_millis(700), Duration::ZERO);
        let replica_wait = ReplicaWait::Majority;
        Config { durability, replica_wait, replica_timeout, durability_timeout, ..Config::default() }
    }

    #[test]
    fn the_commands_of_each_durability() {
        for (durability, replicas, connected, expected) in [
            (Durability::Memory, 0, 2, &[][..]),
            (Durability::Memory, 1, 2, &["WAIT 2 700"]),
            (Durability::Master, 0, 2, &["WAITAOF 1 0 1"]),
            (Durability::Master, 2, 1, &["WAIT 2 700", "WAITAOF 1 0 1"]),
            (Durability::All, 1, 2, &["WAITAOF 1 1 1"]),
            (Durability::All, 0, 0, &["WAITAOF 1 0 1"]),
        ] {
            let confirmation = Confirmation::of(&config(durability), replicas, connected);
            let commands = confirmation.map_or(Vec::new(), |confirmation| confirmation.commands);
            let words = |command: &Cmd| {
                let words = command.args_iter().map(|arg| match arg {
                    redis::Arg::Simple(bytes) => String::from_utf8_lossy(bytes).into_owned(),
                    _ => "?".to_owned(),
                });
                words.collect::<Vec<_>>().join(" ")
            };
            assert_eq!(commands.iter().map(words).collect::<Vec<_>>(), expected, "{durability:?} {replicas}");
        }
    }

    #[test]
    fn what_confirms_a_change() {
        let files = |master, replicas| Value::Array(vec![Value::Int(master), Value::Int(replicas)]);
        let both = [Value::Int(1), files(1, 0)];
        let endpoint = Endpoint::parse("redis://h:1").unwrap();
        for (durability, replies, error) in [
            (Durability::Memory, &[Value::Int(1)][..], None),
            (Durability::Memory, &[Value::Int(0)], Some("0 replicas acknowledged")),
            (Durability::Memory, &[Value::Nil], Some("0 replicas acknowledged")),
            (Durability::Master, &both, None),
            (Durability::Master, &[Value::Int(0), files(1, 0)], Some("0 replicas acknowledged")),
            (Durability::Master, &[Value::Int(1), files(0, 2)], Some("is on the disks of 2 replicas; ")),
            (Durability::All, &[files(1, 1)], None),
            (Durability::All, &[files(1, 0)], Some("is on the disks of the master and 0 replicas; ")),
            (Durability::All, &[files(0, 1)], Some("is on the disks of 1 replicas; ")),
            (Durability::All, &[Value::Int(5)], Some("is on the disks of 0 replicas; ")),
            (Durability::All, &[], Some("is on the disks of 0 replicas; ")),
        ] {
            let confirmation = Confirmation::of(&config(durability), 1, 1).unwrap();
            let checked = confirmation.check(replies, &endpoint).map_err(|error| error.to_string());
            match (checked, error) {
                (Ok(()), None) => {}
                (Err(text), Some(error)) if text.contains(error) => {}
                (checked, _) => panic!("{durability:?} {replies:?}: {checked:?}"),
            }
        }
    }

    /// The texts are those of Redis 6.2.5, 7.0.15 and 8.2.3 and of Valkey 8.1.8 and 9.1.2.
    #[test]
    fn refusals_of_the_command_have_their_meaning() {
        let server = |message: &str| {
            let (code, message) = ("ERR".to_owned(), message.to_owned());
            Error::definite(ErrorKind::Server { code, message })
        };
        for (message, kind) in [
            (
                "unknown command `WAITAOF`, with args beginning with: `1`, `0`, `1`, ",
                "h:1 cannot sync changes: it has",
            ),
            (
                "unknown command 'WAITAOF', with args beginning with: '1' '0' '1' ",
                "h:1 cannot sync changes: it has",
            ),
            ("WAITAOF cannot be used when numlocal is set but appendonly is disabled.", "its `appendonly`"),
            (
                "WAITAOF cannot be used with replica instances. Please also note that ..",
                "h:1 is no master any more",
            ),
        ] {
            let error = explain(server(message), "h:1");
            assert!(error.is_definite() && error.to_string().contains(kind), "{error}");
        }
        let (code, message) = ("NOPERM".to_owned(), "User u has no permissions".to_owned());
        let noperm = Error::definite(ErrorKind::Server { code, message });
        assert!(explain(noperm, "h:1").is_server("NOPERM"));
    }
}
