//! Who holds a lock.

use std::fmt;

use crate::env::Env;

/// Identifies a holder among all users of one client.
///
/// Acquisitions by the same owner nest. An acquisition that names no owner gets a new one, so that it never nests by
/// accident: tasks, unlike the threads of Redisson, have no identity of their own.
///
/// ```
/// use lockstorm_client::OwnerId;
/// assert_eq!(OwnerId::new(52).to_string(), "52");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OwnerId(i64);

impl OwnerId {
    /// An owner with a number of the application's choice; in Redisson this is the thread id.
    pub fn new(id: i64) -> Self {
        Self(id)
    }

    /// An owner that nobody else has. It is negative, where an application's own numbers rarely are.
    pub(crate) fn fresh(env: &dyn Env) -> Self {
        Self((env.random() | 1 << 63).cast_signed())
    }
}

impl fmt::Display for OwnerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A random version 4 UUID: the default id of a client.
pub(crate) fn client_id(env: &dyn Env) -> String {
    let (high, low) = (env.random() & !0xf000 | 0x4000, env.random() & !(0b11 << 62) | 0b10 << 62);
    format!(
        "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
        high >> 32,
        high >> 16 & 0xffff,
        high & 0xffff,
        low >> 48,
        low & 0xffff_ffff_ffff
    )
}

/// The field that stands for an owner in a lock's hash: `<client id>:<owner id>`.
pub(crate) fn field(client_id: &str, owner: OwnerId) -> String {
    format!("{client_id}:{owner}")
}

/// One per unlock: 16 random bytes as 32 hexadecimal digits.
pub(crate) fn request_id(env: &dyn Env) -> String {
    format!("{:016x}{:016x}", env.random(), env.random())
}
