//! The Redis serialization protocol, versions 2 and 3: bytes to commands ([`Decoder`]) and replies
//! to bytes ([`Reply`]). A proxy counts passing replies ([`ReplyCounter`]), and a node that is the
//! client of another reads replies ([`ReplyReader`]).
//!
//! `resp` knows no command and no node, and could serve any server that speaks the protocol.
//! Source: the protocol specification on redis.io, and the error texts of `redis-server` 7.0.

mod reply_reader;
mod decode;
mod reply_counter;
mod reply;

mod outbox;

pub use decode::{Decoder, Limits, ProtocolError, split_words};
pub use outbox::Outbox;
pub use reply::{Protocol, Reply, Sink, format_double, quotable, quoted, short_double};
pub use reply_counter::ReplyCounter;
pub use reply_reader::{NoReply, ReplyReader};
