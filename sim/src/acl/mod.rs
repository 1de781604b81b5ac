//! Access lists: the users of a node, their permissions, and the log of denials.
//!
//! This module knows commands only by number; `commands/access/` reads and writes rules in words,
//! and decides.

mod log;
mod selector;
mod user;

use std::collections::BTreeMap;

use bytes::Bytes;

pub use log::{Entry, Log, Reason};
pub use selector::{CommandId, Commands, KeyPattern, Selector};
pub use user::{User, hash, is_hash};

/// The user of connections that name no other.
pub const DEFAULT: Bytes = Bytes::from_static(b"default");

/// The users of a node.
#[derive(Debug)]
pub struct Acl {
    /// The users by name. The default user always exists.
    users: BTreeMap<Bytes, User>,
    /// True if every user may do everything, so that permissions need no check.
    open: bool,
    /// The latest denials and failed authentications, for ACL LOG.
    pub log: Log,
}

impl Acl {
    /// Creates the users of a node that has just started: the default user, with this password, or
    /// none if it is empty.
    pub fn new(requirepass: &str) -> Acl {
        let mut acl = Acl { users: BTreeMap::new(), open: true, log: Log::default() };
        acl.put(User::default_user());
        acl.set_default_password(requirepass);
        acl
    }

    /// Finds a user by its exact name; `None` if it does not exist.
    pub fn user(&self, name: &[u8]) -> Option<&User> {
        self.users.get(name)
    }

    /// All users, in the order of their names.
    pub fn users(&self) -> impl Iterator<Item = &User> {
        self.users.values()
    }

    /// Adds a user, or replaces the one with the same name.
    pub fn put(&mut self, user: User) {
        self.users.insert(user.name.clone(), user);
        self.look();
    }

    /// Removes a user; returns false if it does not exist. Never removes the default user.
    pub fn remove(&mut self, name: &[u8]) -> bool {
        let removed = name != DEFAULT && self.users.remove(name).is_some();
        self.look();
        removed
    }

    /// Replaces all users. Adds the initial default user if it is not among them.
    pub fn replace(&mut self, users: Vec<User>) {
        self.users = users.into_iter().map(|user| (user.name.clone(), user)).collect();
        self.users.entry(DEFAULT).or_insert_with(User::default_user);
        self.look();
    }

    fn look(&mut self) {
        self.open = self.users.values().all(|user| user.root.is_open());
    }

    /// Returns true if every user may do everything.
    pub fn is_open(&self) -> bool {
        self.open
    }

    /// Returns true if connections that did not authenticate may do anything.
    pub fn admits_strangers(&self) -> bool {
        self.users.get(&DEFAULT).is_some_and(|user| user.nopass && user.enabled)
    }

    /// Returns true if the default user, enabled or not, needs no password.
    pub fn default_needs_no_password(&self) -> bool {
        self.users.get(&DEFAULT).is_some_and(|user| user.nopass)
    }

    /// Applies `requirepass`: the default user has only this password, or needs none if it is
    /// empty.
    pub fn set_default_password(&mut self, password: &str) {
        if let Some(user) = self.users.get_mut(&DEFAULT) {
            user.passwords.clear();
            user.nopass = password.is_empty();
            if !user.nopass {
                user.passwords.push(hash(password.as_bytes()));
            }
        }
    }

    /// Returns true if a user exists, is enabled, and has this password.
    pub fn authenticates(&self, name: &[u8], password: &[u8]) -> bool {
        self.users
            .get(name)
            .is_some_and(|user| user.enabled && (user.nopass || user.passwords.contains(&hash(password))))
    }
}
