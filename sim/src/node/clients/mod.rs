//! The connections of a node: what each is and has asked for, what it is sent, and who is to be sent what.

mod invalidation;
mod output;
mod pubsub;
mod reply_buffer;
mod session;
mod sessions;
mod tracking;
mod waiting;
mod watching;

pub use pubsub::{Names, PubSub};
pub use reply_buffer::{ReplyBuffer, ReplyBufferChanges, ReplyBufferRules};
pub use session::{
    Blocked, BlockedOn, Memory, Queued, Replies, Role, Session, Transaction, Watched, is_file, is_local,
};
pub use sessions::Sessions;
pub use tracking::{Notice, TrackingTable};
pub use waiting::Waiting;
