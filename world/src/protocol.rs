//! The protocol of server processes in real time, through which message rules see single requests.

use bytes::Bytes;

/// Splits the bytes of one connection to a server process into requests and replies, so that
/// message rules apply to these; the bytes themselves pass unchanged.
///
/// [`Builder::protocol`](crate::Builder::protocol) sets it. Only
/// [`Engine::Real`](crate::Engine::Real) uses it. In virtual time the code of a node reads the
/// requests, and asks [`HostCtx::judge`](crate::HostCtx::judge) for the fate of each.
pub trait Protocol: Send {
    /// Adds bytes that the client sent. [`next_request`](Protocol::next_request) is called after
    /// it.
    fn feed(&mut self, bytes: &[u8]);

    /// Takes the next complete request; `None` if there is none yet.
    ///
    /// # Errors
    /// With all bytes that are not taken yet, if they begin with no request. These and all later
    /// bytes of the client are passed to the server as they are, and this method is not called
    /// again.
    fn next_request(&mut self) -> Result<Option<Request>, Bytes>;

    /// Reads bytes of the server; returns the number of replies that they complete.
    fn count_replies(&mut self, bytes: &[u8]) -> u64;
}

/// A request of a client to a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Its bytes, which are passed to the server.
    pub raw: Bytes,
    /// Its words, the name of the command first: rules select by these.
    pub arguments: Vec<Bytes>,
    /// True if the server answers it with exactly one reply, which
    /// [`count_replies`](Protocol::count_replies) counts.
    pub has_reply: bool,
}

/// Makes the protocol of a new connection.
pub(crate) type NewProtocol = Box<dyn Fn() -> Box<dyn Protocol> + Send + Sync>;
