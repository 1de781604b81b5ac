//! A user, with its passwords and permissions.

use bytes::Bytes;
use sha2::{Digest, Sha256};

use super::{DEFAULT, Selector};

/// A user of a node.
#[derive(Debug, Clone)]
pub struct User {
    /// The name that AUTH and ACL SETUSER use; `default` for the user of new connections.
    pub name: Bytes,
    /// True if clients can authenticate as this user (`on`).
    pub enabled: bool,
    /// True if any password is accepted (`nopass`).
    pub nopass: bool,
    /// True if the values that it restores are checked (`sanitize-payload`); `None` if its rules do
    /// not say.
    pub sanitizes: Option<bool>,
    /// The digests of its passwords, in the order in which they were set.
    pub passwords: Vec<String>,
    /// Its first set of permissions.
    pub root: Selector,
    /// Further sets of permissions: an access is allowed if one set allows it.
    pub selectors: Vec<Selector>,
}

impl User {
    /// Creates a user that cannot authenticate.
    pub fn new(name: Bytes, all_channels: bool) -> User {
        User {
            name,
            enabled: false,
            nopass: false,
            sanitizes: None,
            passwords: Vec::new(),
            root: Selector::new(all_channels),
            selectors: Vec::new(),
        }
    }

    /// Creates the initial default user: it may do everything, and needs no password.
    pub fn default_user() -> User {
        let root = Selector::open();
        User { enabled: true, nopass: true, root, ..User::new(DEFAULT, true) }
    }

    /// Returns the remaining channel patterns; `None` if all channels are allowed, or `before` had
    /// no pattern. Redis 7.0 means to skip changes that take no pattern away, but compares the
    /// patterns with copies of themselves.
    pub fn channels_left(&self, before: &User) -> Option<Vec<&Bytes>> {
        if self.all_selectors().any(|selector| selector.all_channels) {
            return None;
        }
        let had_any = |selector: &Selector| selector.all_channels || !selector.channels.is_empty();
        let left = || self.all_selectors().flat_map(|selector| &selector.channels).collect();
        before.all_selectors().any(had_any).then(left)
    }

    /// All of its selectors, the root first.
    pub fn all_selectors(&self) -> impl Iterator<Item = &Selector> {
        std::iter::once(&self.root).chain(&self.selectors)
    }
}

/// Returns the stored digest of a password: SHA-256 in lower-case hex.
pub fn hash(password: &[u8]) -> String {
    Sha256::digest(password).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns true if a text can be such a digest.
pub fn is_hash(text: &[u8]) -> bool {
    text.len() == 64 && text.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}
