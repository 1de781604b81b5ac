//! The Redis serialization protocol, versions 2 and 3: bytes to commands ([`Decoder`]) and replies
//! to bytes ([`Reply`]). A proxy counts passing replies ([`Replies`]), and a node that is the
//! client of another reads replies ([`Answers`]).
//!
//! `resp` knows no command and no node, and could serve any server that speaks the protocol.
//! Source: the protocol specification on redis.io, and the error texts of `redis-server` 7.0.

mod answers;
mod decode;
mod replies;
mod reply;

mod outbox;

pub use answers::{Answers, NoReply};
pub use decode::{Decoder, Limits, ProtocolError, split_words};
pub use outbox::Outbox;
pub use replies::Replies;
pub use reply::{Protocol, Reply, Sink, format_double, quotable, quoted};
