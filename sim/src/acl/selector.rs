//! One set of permissions: commands, keys and channels.

use std::collections::BTreeMap;

use bytes::Bytes;

use crate::glob::matches;

/// The number of a command or subcommand.
pub type CommandId = usize;

/// Number of bits in a set of commands. The last one belongs to no command: it stands for future
/// commands.
const IDS: usize = 1024;

/// A set of commands, one bit for each id. Subcommands have ids of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Commands([u64; IDS / 64]);

impl Commands {
    /// No command.
    pub const NONE: Commands = Commands([0; IDS / 64]);
    /// All commands, future ones included.
    pub const ALL: Commands = Commands([u64::MAX; IDS / 64]);

    /// Returns true if the set contains a command; false for an id out of range.
    pub fn contains(&self, id: CommandId) -> bool {
        self.0.get(id / 64).is_some_and(|word| word & 1 << (id % 64) != 0)
    }

    /// Adds a command to the set, or removes it.
    pub fn set(&mut self, id: CommandId, is: bool) {
        if let Some(word) = self.0.get_mut(id / 64) {
            *word = if is { *word | 1 << (id % 64) } else { *word & !(1 << (id % 64)) };
        }
    }

    /// Returns true if the set began with all commands, so that it contains future ones.
    pub fn has_those_to_come(&self) -> bool {
        self.contains(IDS - 1)
    }
}

/// A pattern for keys, and the allowed accesses to keys that match it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyPattern {
    /// A glob pattern, as in `~stock:*`.
    pub pattern: Bytes,
    /// Reading is allowed (`%R`).
    pub read: bool,
    /// Writing is allowed (`%W`).
    pub write: bool,
}

/// A set of permissions.
#[derive(Debug, Clone)]
pub struct Selector {
    /// True if every command is allowed, with every first argument.
    pub all_commands: bool,
    /// True if every key is allowed.
    pub all_keys: bool,
    /// True if every channel is allowed.
    pub all_channels: bool,
    /// The commands allowed with every first argument.
    pub commands: Commands,
    /// Commands that are allowed only with some first arguments.
    pub first_args: BTreeMap<CommandId, Vec<Bytes>>,
    /// The allowed keys, unless all are allowed.
    pub keys: Vec<KeyPattern>,
    /// The allowed channels, unless all are allowed.
    pub channels: Vec<Bytes>,
}

impl Selector {
    /// Creates a set that allows nothing, except every channel if `all_channels` is set.
    pub fn new(all_channels: bool) -> Selector {
        Selector {
            all_commands: false,
            all_keys: false,
            all_channels,
            commands: Commands::NONE,
            first_args: BTreeMap::new(),
            keys: Vec::new(),
            channels: Vec::new(),
        }
    }

    /// Creates a set that allows everything.
    pub fn open() -> Selector {
        let mut open = Selector::new(true);
        open.set_all_commands(true);
        open.all_keys = true;
        open
    }

    /// Returns true if the set allows everything.
    pub fn is_open(&self) -> bool {
        self.all_commands && self.all_keys && self.all_channels
    }

    /// Allows all commands, or none.
    pub fn set_all_commands(&mut self, is: bool) {
        self.all_commands = is;
        self.commands = if is { Commands::ALL } else { Commands::NONE };
        self.first_args.clear();
    }

    /// Allows a command with any first argument, or forbids it.
    pub fn set_command(&mut self, id: CommandId, is: bool) {
        self.commands.set(id, is);
        self.all_commands &= is;
        self.first_args.remove(&id);
    }

    /// Allows a command with one first argument. A command that is allowed as a whole stays so.
    pub fn add_first_arg(&mut self, id: CommandId, arg: Bytes) {
        let args = self.first_args.entry(id).or_default();
        if !args.iter().any(|known| known.eq_ignore_ascii_case(&arg)) {
            args.push(arg);
        }
    }

    /// Returns true if one pattern that matches the key allows all of the requested accesses.
    pub fn allows_key(&self, key: &[u8], reads: bool, writes: bool) -> bool {
        self.all_keys
            || self.keys.iter().any(|pattern| {
                (pattern.read || !reads) && (pattern.write || !writes) && matches(&pattern.pattern, key)
            })
    }

    /// Returns true if this access is allowed to every possible key.
    pub fn allows_any_key(&self, reads: bool, writes: bool) -> bool {
        let any = |pattern: &KeyPattern| &pattern.pattern[..] == b"*";
        self.all_keys
            || self.keys.iter().any(|keys| any(keys) && (keys.read || !reads) && (keys.write || !writes))
    }

    /// Returns true if a channel may be used, or, with `is_pattern`, if a pattern may be subscribed
    /// to.
    pub fn allows_channel(&self, channel: &[u8], is_pattern: bool) -> bool {
        // A subscribed pattern must itself be one of the allowed patterns.
        let fits =
            |pattern: &Bytes| if is_pattern { &pattern[..] == channel } else { matches(pattern, channel) };
        self.all_channels || self.channels.iter().any(fits)
    }
}
