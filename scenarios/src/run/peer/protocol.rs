//! The messages: what a peer is asked, and what it says.

use serde::{Deserialize, Serialize};

use crate::file::peer::Hello;

/// How long a line may be, in bytes.
pub(crate) const LINE_MAX: usize = 64 << 10;

/// The version of the protocol.
const VERSION: u32 = 1;

impl Hello {
    /// Reads the first line of a peer.
    ///
    /// # Errors
    /// What is wrong with it, in words.
    pub(crate) fn parse(line: &str) -> Result<Hello, String> {
        let hello = match serde_json::from_str(line) {
            Ok(Said::Hello(hello)) => hello,
            Ok(_) => return Err("its first line is no hello".to_owned()),
            Err(error) => return Err(format!("its first line is no hello: {error}")),
        };
        match hello {
            Hello { protocol, .. } if protocol != VERSION => {
                Err(format!("it speaks version {protocol} of the protocol, not {VERSION}"))
            }
            Hello { key, .. } if !key.contains("{}") => {
                Err(format!("its key {key:?} has no {{}} for the name of the lock"))
            }
            hello => Ok(hello),
        }
    }
}

/// A lock, as a peer is told of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct InitLock {
    /// What requests call it.
    pub(crate) lock: String,
    /// What the library is to call it.
    pub(crate) name: String,
    /// The addresses of the nodes, `host:port`: one, or those of a quorum.
    pub(crate) nodes: Vec<String>,
}

/// What a peer is asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub(crate) enum Request {
    /// To connect.
    Init {
        host: String,
        locks: Vec<InitLock>,
        /// The lease of a watchdog.
        watchdog_ms: u64,
        /// How long a request to a node may take, if the scenario says so.
        timeout_ms: Option<u64>,
    },
    /// To acquire a lock.
    Acquire {
        lock: String,
        /// Not at all is 0, without a limit is null.
        wait_ms: Option<u64>,
        /// Null: the watchdog renews it.
        lease_ms: Option<u64>,
    },
    /// To release what was granted to this request.
    Release { hold: u64 },
    /// To set a new lease on it.
    Extend { hold: u64, lease_ms: u64 },
}

/// A request with its number.
#[derive(Debug, Serialize)]
pub(super) struct Numbered<'a> {
    pub(super) id: u64,
    #[serde(flatten)]
    pub(super) request: &'a Request,
}

/// What a peer says.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case", deny_unknown_fields)]
pub(super) enum Said {
    /// First of all.
    Hello(Hello),
    /// It has connected.
    Ready { id: u64 },
    /// It has the lock.
    Granted {
        id: u64,
        /// Until when by the library's own account, in milliseconds of Unix time.
        until_ms: Option<i64>,
        /// The fencing token.
        token: Option<u64>,
        /// The name of the owner in Redis.
        owner: Option<String>,
    },
    /// Another owner has the lock.
    Refused { id: u64 },
    /// It has released.
    Released { id: u64 },
    /// It has set a new lease.
    Extended { id: u64, until_ms: Option<i64> },
    /// The library has reported an error.
    Error {
        id: u64,
        text: String,
        /// The lock certainly did not change.
        #[serde(default)]
        definite: bool,
    },
    /// The library reports, unasked, that a lock was lost.
    Lost { hold: u64 },
    /// The library reports, unasked, that a lease is a new one.
    Renewed { hold: u64, until_ms: Option<i64> },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sent() {
        let acquire = Request::Acquire { lock: "stock".into(), wait_ms: Some(0), lease_ms: None };
        let rows = [
            (acquire, r#"{"id":7,"type":"acquire","lock":"stock","wait_ms":0,"lease_ms":null}"#),
            (Request::Release { hold: 6 }, r#"{"id":7,"type":"release","hold":6}"#),
            (
                Request::Extend { hold: 6, lease_ms: 900 },
                r#"{"id":7,"type":"extend","hold":6,"lease_ms":900}"#,
            ),
        ];
        for (request, line) in rows {
            let sent = serde_json::to_string(&Numbered { id: 7, request: &request }).expect("it is JSON");
            assert_eq!(sent, line);
        }
    }

    #[test]
    fn what_is_understood() {
        let granted = Said::Granted { id: 1, until_ms: Some(5), token: None, owner: None };
        let error = Said::Error { id: 1, text: "no".into(), definite: false };
        let rows = [
            (r#"{"type":"granted","id":1,"until_ms":5}"#, Ok(granted)),
            (r#"{"type":"error","id":1,"text":"no"}"#, Ok(error)),
            (r#"{"type":"lost","hold":3}"#, Ok(Said::Lost { hold: 3 })),
            (r#"{"type":"granted","id":1,"util_ms":5}"#, Err("unknown field `util_ms`")),
            (r#"{"type":"taken","id":1}"#, Err("unknown variant `taken`")),
            (r#"{"type":"granted"}"#, Err("missing field `id`")),
            ("granted", Err("expected value")),
        ];
        for (line, expected) in rows {
            match (serde_json::from_str::<Said>(line), expected) {
                (Ok(said), Ok(expected)) => assert_eq!(said, expected),
                (Err(error), Err(part)) => assert!(error.to_string().contains(part), "{line}: {error}"),
                (said, _) => panic!("{line}: {said:?}"),
            }
        }
    }
}
