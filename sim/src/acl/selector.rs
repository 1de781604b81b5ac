//! One set of permissions: commands, keys and channels.

use std::collections::BTreeMap;

use bytes::Bytes;

use crate::glob::matches;

/// The number of a command or subcommand.
pub type CommandId = usize;

/// How many numbers there are. The last one is no command's: it stands for commands that are yet to
/// come.
const IDS: usize = 1024;

/// A set of commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Commands([u64; IDS / 64]);

impl Commands {
    /// No command.
    pub const NONE: Commands = Commands([0; IDS / 64]);
    /// All commands.
    pub const ALL: Commands = Commands([u64::MAX; IDS / 64]);

    /// Whether a command is in the set.
    pub fn contains(&self, id: CommandId) -> bool {
        self.0.get(id / 64).is_some_and(|word| word & 1 << (id % 64) != 0)
    }

    /// Adds a command, or takes it out.
    pub fn set(&mut self, id: CommandId, is: bool) {
        if let Some(word) = self.0.get_mut(id / 64) {
            *word = if is { *word | 1 << (id % 64) } else { *word & !(1 << (id % 64)) };
        }
    }

    /// Whether it began with all commands, so that those yet to come are in it.
    pub fn has_those_to_come(&self) -> bool {
        self.contains(IDS - 1)
    }
}

/// A pattern for keys, and what may be done to those that match.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyPattern {
    /// The pattern.
    pub pattern: Bytes,
    /// Reading (`%R`).
    pub read: bool,
    /// Writing (`%W`).
    pub write: bool,
}

/// A set of permissions.
#[derive(Debug, Clone)]
pub struct Selector {
    /// Every command, and every first argument.
    pub all_commands: bool,
    /// Every key.
    pub all_keys: bool,
    /// Every channel.
    pub all_channels: bool,
    /// The commands.
    pub commands: Commands,
    /// Commands that are allowed with some first arguments only.
    pub first_args: BTreeMap<CommandId, Vec<Bytes>>,
    /// The keys, unless it is all of them.
    pub keys: Vec<KeyPattern>,
    /// The channels, unless it is all of them.
    pub channels: Vec<Bytes>,
}

impl Selector {
    /// A set that allows nothing, but perhaps every channel.
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

    /// A set that allows everything.
    pub fn open() -> Selector {
        let mut open = Selector::new(true);
        open.set_all_commands(true);
        open.all_keys = true;
        open
    }

    /// Whether it allows everything.
    pub fn is_open(&self) -> bool {
        self.all_commands && self.all_keys && self.all_channels
    }

    /// Allows all commands, or none.
    pub fn set_all_commands(&mut self, is: bool) {
        self.all_commands = is;
        self.commands = if is { Commands::ALL } else { Commands::NONE };
        self.first_args.clear();
    }

    /// Allows a command, or forbids it, with whatever first argument.
    pub fn set_command(&mut self, id: CommandId, is: bool) {
        self.commands.set(id, is);
        self.all_commands &= is;
        self.first_args.remove(&id);
    }

    /// Allows a command with one first argument. What is allowed whole stays so.
    pub fn add_first_arg(&mut self, id: CommandId, arg: Bytes) {
        let args = self.first_args.entry(id).or_default();
        if !args.iter().any(|known| known.eq_ignore_ascii_case(&arg)) {
            args.push(arg);
        }
    }

    /// Whether a key may be touched so.
    pub fn allows_key(&self, key: &[u8], reads: bool, writes: bool) -> bool {
        self.all_keys
            || self.keys.iter().any(|pattern| {
                (pattern.read || !reads) && (pattern.write || !writes) && matches(&pattern.pattern, key)
            })
    }

    /// Whether every key there could be may be touched so.
    pub fn allows_any_key(&self, reads: bool, writes: bool) -> bool {
        let any = |pattern: &KeyPattern| &pattern.pattern[..] == b"*";
        self.all_keys
            || self.keys.iter().any(|keys| any(keys) && (keys.read || !reads) && (keys.write || !writes))
    }

    /// Whether a channel may be used, or a pattern for channels listened to.
    pub fn allows_channel(&self, channel: &[u8], is_pattern: bool) -> bool {
        // A pattern to listen to must itself be one of those that are allowed.
        let fits =
            |pattern: &Bytes| if is_pattern { &pattern[..] == channel } else { matches(pattern, channel) };
        self.all_channels || self.channels.iter().any(fits)
    }
}
