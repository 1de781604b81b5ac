//! Reads from an error where requests should go instead.

use crate::error::{Error, ErrorKind};
use crate::refusal::{self, Next};
use crate::wire::Slot;

/// The consequences of an error for its connection and for the route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Remedy {
    /// The error does not concern the route.
    None,
    /// Retire the connection: it is broken, silent, or leads to a server that is no master.
    Retire,
    /// Wait: some keys of a slot that is being moved are on one node and some on another. The
    /// request was refused and may be sent again.
    Wait,
    /// Refresh the route: the server lacks something it needs, and the state of the deployment may
    /// explain that.
    Look,
    /// Send the request to another node, which has the slot.
    Redirect(Redirect),
}

/// A reply of a Redis Cluster node that names the node to ask instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Redirect {
    pub(crate) slot: Slot,
    pub(crate) host: String,
    pub(crate) port: u16,
    /// True for `ASK`: the redirection holds for this request only, while the slot is being moved.
    pub(crate) once: bool,
}

/// The master that a replica names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MasterAddress {
    pub(crate) host: String,
    pub(crate) port: u16,
}

/// Reads the master from the refusal of a replica: `REDIRECT <host>:<port>`. An IPv6 address has no
/// brackets.
pub(super) fn master(error: &Error) -> Option<MasterAddress> {
    let ErrorKind::Server { code, message } = error.kind() else { return None };
    let (host, port) = message.trim_end().rsplit_once(':').filter(|_| code == "REDIRECT")?;
    let port = port.parse().ok().filter(|port| *port != 0)?;
    (!host.is_empty()).then(|| MasterAddress { host: host.to_owned(), port })
}

/// Returns the remedy for the error of a request.
pub(super) fn remedy(error: &Error) -> Remedy {
    match error.kind() {
        ErrorKind::Disconnected(_) | ErrorKind::ResponseTimeout(_) | ErrorKind::Replaced { .. } => {
            Remedy::Retire
        }
        ErrorKind::Server { code, message } => match refusal::of(code).map(|refusal| refusal.next) {
            Some(Next::Another) => Remedy::Retire,
            Some(Next::Moving) => Remedy::Wait,
            Some(Next::Look) => Remedy::Look,
            Some(Next::Named) => redirect(message, code == "ASK").map_or(Remedy::None, Remedy::Redirect),
            Some(Next::Same | Next::Spelled) | None => Remedy::None,
        },
        _ => Remedy::None,
    }
}

/// Reads `<slot> <host>:<port>`; an IPv6 address has no brackets. An empty host means the host of
/// the server that sent the reply, which does not know its own address.
fn redirect(message: &str, once: bool) -> Option<Redirect> {
    let (slot, address) = message.split_once(' ')?;
    let (host, port) = address.trim_end().rsplit_once(':')?;
    let slot = slot.parse().ok().filter(|slot| *slot < Slot::COUNT).map(Slot)?;
    Some(Redirect { slot, host: host.to_owned(), port: port.parse().ok()?, once })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remedies() {
        let server = |code: &str, message: &str| {
            Error::definite(ErrorKind::Server { code: code.to_owned(), message: message.to_owned() })
        };
        let to = |slot, host: &str, port, once| {
            Remedy::Redirect(Redirect { slot: Slot(slot), host: host.to_owned(), port, once })
        };
        for (error, expected) in [
            (Error::indefinite(ErrorKind::Disconnected("reset".to_owned())), Remedy::Retire),
            (server("READONLY", "You can't write against a read only replica."), Remedy::Retire),
            (server("REDIRECT", "127.0.0.1:6381"), Remedy::Retire),
            (server("MASTERDOWN", "Link with MASTER is down"), Remedy::Retire),
            (server("MOVED", "3999 127.0.0.1:6381"), to(3999, "127.0.0.1", 6381, false)),
            (server("ASK", "3999 ::1:6381"), to(3999, "::1", 6381, true)),
            (server("MOVED", "3999 :6381"), to(3999, "", 6381, false)),
            (server("TRYAGAIN", "Multiple keys request during rehashing of slot"), Remedy::Wait),
            (server("CLUSTERDOWN", "Hash slot not served"), Remedy::Look),
            (server("MOVED", "16384 127.0.0.1:6381"), Remedy::None),
            (server("MOVED", "nonsense"), Remedy::None),
            (server("NOPERM", "this user has no permissions"), Remedy::None),
        ] {
            assert_eq!(remedy(&error), expected, "{error}");
        }
    }
    /// The first text is that of Valkey 8.1.8 and 9.1.2.
    #[test]
    fn a_replica_names_its_master() {
        let read = |code: &str, message: &str| {
            let (code, message) = (code.to_owned(), message.to_owned());
            let named = master(&Error::definite(ErrorKind::Server { code, message }));
            named.map(|MasterAddress { host, port }| (host, port))
        };
        assert_eq!(read("REDIRECT", "127.0.0.1:27604"), Some(("127.0.0.1".to_owned(), 27604)));
        assert_eq!(read("REDIRECT", "fd00::1:6379"), Some(("fd00::1".to_owned(), 6379)));
        for message in ["", ":6379", "10.0.0.1:", "10.0.0.1:0", "10.0.0.1:65536", "10.0.0.1"] {
            assert_eq!(read("REDIRECT", message), None, "{message}");
        }
        assert_eq!(read("READONLY", "10.0.0.1:6379"), None);
    }
}
