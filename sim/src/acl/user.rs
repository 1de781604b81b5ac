//! One user: whether it may come in, and by which passwords.

use bytes::Bytes;
use sha2::{Digest, Sha256};

use super::{DEFAULT, Selector};

/// A user.
#[derive(Debug, Clone)]
pub struct User {
    /// The name.
    pub name: Bytes,
    /// Whether a client can authenticate as this user (`on`).
    pub enabled: bool,
    /// Any password will do (`nopass`).
    pub nopass: bool,
    /// Whether what it restores is checked (`sanitize-payload`), if its rules say.
    pub sanitizes: Option<bool>,
    /// The digests of its passwords, in the order in which they were set.
    pub passwords: Vec<String>,
    /// What it may do.
    pub root: Selector,
    /// Each is another way in: what one of them allows is allowed.
    pub selectors: Vec<Selector>,
}

impl User {
    /// A user that may not even come in.
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

    /// The default user as it is at first: it may do everything, and needs no password.
    pub fn default_user() -> User {
        let root = Selector::open();
        User { enabled: true, nopass: true, root, ..User::new(DEFAULT, true) }
    }

    /// The channel patterns that are left, where `before` had any. Redis 7.0 means to pass over
    /// changes that take none away, but compares them with copies of themselves.
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

/// The digest that stands for a password: SHA-256 in lower-case hex.
pub fn hash(password: &[u8]) -> String {
    Sha256::digest(password).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Whether a text can be such a digest.
pub fn is_hash(text: &[u8]) -> bool {
    text.len() == 64 && text.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}
