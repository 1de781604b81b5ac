//! Passwords, users, and the commands that clients may use.

/// Passwords, users and guarded commands (`SECURITY` in `redis.conf`).
#[derive(Debug, Clone)]
pub struct SecurityOptions {
    /// `requirepass`; empty for none.
    pub requirepass: String,
    /// `acl-pubsub-default`: set if new users may access all channels instead of none.
    pub acl_pubsub_default: bool,
    /// `acllog-max-len`: the number of entries kept for ACL LOG. Default 128.
    pub acllog_max_len: usize,
    /// `user`: the words of each line that defines a user at the start.
    pub users: Vec<Vec<String>>,
    /// `rename-command`: command names in lower case, each with its new name; an empty name
    /// disables the command.
    pub renames: Vec<(String, String)>,
    /// `aclfile`; empty for none.
    pub aclfile: String,
    /// `enable-debug-command`. It is on by default, unlike in `redis-server`, because a laboratory
    /// needs DEBUG.
    pub enable_debug_command: Allowed,
    /// `enable-module-command`: the clients that may run MODULE. Default: none.
    pub enable_module_command: Allowed,
    /// `enable-protected-configs`: the clients whose CONFIG SET may change where data is stored.
    pub enable_protected_configs: Allowed,
}

impl Default for SecurityOptions {
    fn default() -> SecurityOptions {
        SecurityOptions {
            requirepass: String::new(),
            acl_pubsub_default: false,
            acllog_max_len: 128,
            users: Vec::new(),
            renames: Vec::new(),
            aclfile: String::new(),
            enable_debug_command: Allowed::Yes,
            enable_module_command: Allowed::No,
            enable_protected_configs: Allowed::No,
        }
    }
}

/// The clients that may use a command guarded by an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Allowed {
    /// No client.
    No,
    /// Every client.
    Yes,
    /// Clients on the node's own host.
    Local,
}

impl Allowed {
    /// Returns the option's word for it.
    pub fn name(self) -> &'static str {
        match self {
            Allowed::No => "no",
            Allowed::Yes => "yes",
            Allowed::Local => "local",
        }
    }

    /// Returns the meaning of the option's word; [`Allowed::No`] for any other text.
    pub fn named(name: &str) -> Allowed {
        [Allowed::Yes, Allowed::Local]
            .into_iter()
            .find(|allowed| allowed.name() == name)
            .unwrap_or(Allowed::No)
    }

    /// Returns true if a client may use the command; `is_local` says that it is on the node's own
    /// host.
    pub fn allows(self, is_local: bool) -> bool {
        self == Allowed::Yes || self == Allowed::Local && is_local
    }
}
