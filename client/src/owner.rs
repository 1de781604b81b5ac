//! The owners of locks, and their fields in Redis.

use std::fmt;

use crate::env::Env;

/// Identifies a holder among all users of one client.
///
/// Acquisitions by the same owner nest. An acquisition without an owner gets a new one, so it never
/// nests by accident: unlike Redisson's threads, tasks have no identity.
///
/// ```
/// use lockstorm_client::OwnerId;
/// let owner = OwnerId::new(52);
/// assert_eq!((owner.get(), owner.to_string().as_str()), (52, "52"));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OwnerId(i64);

impl OwnerId {
    /// Makes an owner with a number chosen by the application. In Redisson this is the thread id.
    pub fn new(id: i64) -> Self {
        Self(id)
    }

    /// Returns the number given to [`OwnerId::new`]; it is negative for an owner that the client
    /// made.
    pub fn get(self) -> i64 {
        self.0
    }

    /// Makes an owner that no other acquisition has. Its number is negative, which an application's
    /// own numbers rarely are.
    pub(crate) fn fresh(env: &dyn Env) -> Self {
        Self((env.random() | 1 << 63).cast_signed())
    }
}

impl From<i64> for OwnerId {
    fn from(id: i64) -> Self {
        Self::new(id)
    }
}

impl fmt::Display for OwnerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Makes the default id of a client: a random version 4 UUID.
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

/// Returns the field of an owner in a lock's hash: `<client id>:<owner id>`.
pub(crate) fn field(client_id: &str, owner: OwnerId) -> String {
    format!("{client_id}:{owner}")
}

/// Makes the id of one unlock request: 16 random bytes as 32 hexadecimal digits.
pub(crate) fn request_id(env: &dyn Env) -> String {
    format!("{:016x}{:016x}", env.random(), env.random())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::env::TokioEnv;

    #[tokio::test]
    async fn fresh_owners_are_negative_and_differ() {
        let env = TokioEnv::current().unwrap();
        let owners: BTreeSet<OwnerId> = (0..100).map(|_| OwnerId::fresh(&env)).collect();
        assert_eq!(owners.len(), 100);
        assert!(owners.iter().all(|owner| owner.get() < 0), "{owners:?}");
        assert_eq!(OwnerId::new(52).get(), 52);
    }

    /// RFC 9562: the version is in the third group, and the variant begins the fourth with the bits
    /// 10.
    #[tokio::test]
    async fn a_client_is_called_by_a_uuid_of_version_4() {
        let env = TokioEnv::current().unwrap();
        for id in (0..100).map(|_| client_id(&env)) {
            let groups: Vec<&str> = id.split('-').collect();
            assert_eq!(groups.iter().map(|group| group.len()).collect::<Vec<_>>(), [8, 4, 4, 4, 12], "{id}");
            let of_hex = |text: &&str| text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
            assert!(groups.iter().all(of_hex), "{id}");
            assert!(groups[2].starts_with('4') && groups[3].starts_with(['8', '9', 'a', 'b']), "{id}");
        }
    }
}
