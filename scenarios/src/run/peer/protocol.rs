//! The messages: requests to a peer, and its answers and reports.

use serde::{Deserialize, Serialize};

use crate::file::peer::Hello;

/// The longest line, in bytes.
pub(crate) const LINE_MAX: usize = 64 << 10;

const VERSION: u32 = 1;

impl Hello {
    /// Parses the first line of a peer.
    ///
    /// # Errors
    /// A message about the first problem.
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

/// The description of a lock in a peer's first request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct InitLock {
    /// The lock's name in later requests.
    pub(crate) lock: String,
    /// The name that the library should use.
    pub(crate) name: String,
    /// The addresses of the nodes, `host:port`: one, or those of a quorum.
    pub(crate) nodes: Vec<String>,
}

/// A request to a peer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub(crate) enum Request {
    /// Connect.
    Init {
        host: String,
        locks: Vec<InitLock>,
        /// The lease of a watchdog, in milliseconds.
        watchdog_ms: u64,
        /// The timeout of a request to a node in milliseconds, if the scenario has one.
        timeout_ms: Option<u64>,
    },
    /// Acquire a lock.
    Acquire {
        lock: String,
        /// The longest wait in milliseconds. 0 is no wait, null is without a limit.
        wait_ms: Option<u64>,
        /// The lease in milliseconds. With null the watchdog renews the hold.
        lease_ms: Option<u64>,
    },
    /// Release the hold that the request with this number acquired.
    Release { hold: u64 },
    /// Set a new lease on the hold.
    Extend { hold: u64, lease_ms: u64 },
}

/// A request with its number.
#[derive(Debug, Serialize)]
pub(super) struct Numbered<'a> {
    pub(super) id: u64,
    #[serde(flatten)]
    pub(super) request: &'a Request,
}

/// A message of a peer.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case", deny_unknown_fields)]
pub(super) enum Said {
    /// The first message.
    Hello(Hello),
    /// It has connected.
    Ready { id: u64 },
    /// It has the lock.
    Granted {
        id: u64,
        /// The end of the hold according to the library, in milliseconds of Unix time.
        until_ms: Option<i64>,
        /// The fencing token.
        token: Option<u64>,
        /// The name of the owner in Redis.
        owner: Option<String>,
    },
    /// Another owner has the lock.
    Refused { id: u64 },
    /// It has released the lock.
    Released { id: u64 },
    /// It has set a new lease.
    Extended { id: u64, until_ms: Option<i64> },
    /// The library has reported an error.
    Error {
        id: u64,
        text: String,
        /// True if the lock certainly did not change.
        #[serde(default)]
        definite: bool,
    },
    /// The library reports without a request that a lock was lost.
    Lost { hold: u64 },
    /// The library reports without a request that a lease was renewed.
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
        let hello = Hello {
            protocol: 1,
            library: "x".into(),
            version: String::new(),
            driver: "y 2".into(),
            key: "{}".into(),
            can: Vec::new(),
        };
        let rows = [
            (r#"{"type":"hello","protocol":1,"library":"x","driver":"y 2"}"#, Ok(Said::Hello(hello))),
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
