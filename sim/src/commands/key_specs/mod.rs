//! Finds the keys among a command's arguments, and their uses: for access lists, client-side
//! caching and COMMAND.

mod table;

use std::sync::LazyLock;

use bytes::Bytes;

use super::{Keys, Spec, integer};
use crate::keyspace::Dict;

bitflags::bitflags! {
    /// A command's effects on a key, named like in COMMAND INFO.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct KeyFlags: u16 {
        /// Reads the value without changing it.
        const RO = 1;
        /// Changes the value, or part of it.
        const RW = 1 << 1;
        /// Replaces the value without reading it.
        const OW = 1 << 2;
        /// Removes the key without reading it.
        const RM = 1 << 3;
        /// Returns or copies data of the value.
        const ACCESS = 1 << 4;
        /// Changes data of the value.
        const UPDATE = 1 << 5;
        /// Adds data to the value, without changing or removing existing data.
        const INSERT = 1 << 6;
        /// Removes data from the value, or the key.
        const DELETE = 1 << 7;
        /// Looks like a key, but is none (a shard channel).
        const NOT_KEY = 1 << 8;
        /// More keys may exist than the specification finds.
        const INCOMPLETE = 1 << 9;
        /// The options decide which flags apply.
        const VARIABLE_FLAGS = 1 << 10;
    }
}

impl KeyFlags {
    /// Returns the names in COMMAND INFO.
    pub fn names(self) -> impl Iterator<Item = String> {
        self.iter_names().map(
            |(name, _)| {
                if name.len() == 2 { name.to_owned() } else { name.to_ascii_lowercase() }
            },
        )
    }
}

/// Start of the search for keys.
#[derive(Debug, Clone, Copy)]
pub enum Begin {
    /// At the argument with this index; the command's name is 0.
    Index(usize),
    /// After a word. The search begins at this argument; if negative, it goes backwards from the
    /// end.
    Keyword(&'static str, i32),
    /// Only the command itself determines it.
    Unknown,
}

/// Selects the keys from the start on.
#[derive(Debug, Clone, Copy)]
pub enum Find {
    /// Every `step`-th argument.
    Range {
        /// Index of the last key, relative to the first; if negative, from the end of the
        /// arguments.
        last: i32,
        /// Distance between keys.
        step: usize,
        /// If `last` counts from the end, only the first `1/limit` of the arguments are keys. 0 for
        /// all of them.
        limit: usize,
    },
    /// The argument at the start is the number of keys, which follow it.
    Counted {
        /// Distance between keys.
        step: usize,
    },
    /// Only the command itself determines it.
    Unknown,
}

/// One group of keys among the arguments of a command.
#[derive(Debug, Clone, Copy)]
pub struct KeySpec {
    /// Start of the search.
    pub begin: Begin,
    /// The rule that selects the keys from the start on.
    pub find: Find,
    /// The access to the keys, such as read, write or delete.
    pub flags: KeyFlags,
    /// Reason for surprising flags.
    pub notes: &'static str,
}

/// A key among the arguments of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyUse {
    /// Index among the arguments; the command's name is 0.
    pub at: usize,
    /// The access to the key, such as read, write or delete.
    pub flags: KeyFlags,
}

/// Returns the specifications of a command's keys.
pub fn key_specs(spec: &Spec) -> &'static [KeySpec] {
    static BY_NAME: LazyLock<Dict<&'static [KeySpec]>> = LazyLock::new(|| {
        let mut by_name = Dict::default();
        for (names, specs) in table::ROWS {
            for name in names.split_ascii_whitespace() {
                let twice = by_name.insert(Bytes::from_static(name.as_bytes()), *specs);
                assert!(twice.is_none(), "{name} has two rows");
            }
        }
        by_name
    });
    BY_NAME.get(spec.name.as_bytes()).copied().unwrap_or(&[])
}

/// Returns true if a command takes keys.
pub fn has_keys(spec: &Spec) -> bool {
    key_specs(spec).iter().any(|keys| !keys.flags.contains(KeyFlags::NOT_KEY))
}

/// Returns the keys among the arguments, with their uses. Empty if the arguments are malformed: the
/// command reports that itself.
pub fn key_uses(spec: &Spec, args: &[Bytes]) -> Vec<KeyUse> {
    let specs = key_specs(spec);
    let varies = specs.iter().any(|keys| keys.flags.contains(KeyFlags::VARIABLE_FLAGS));
    if !varies && let Some(found) = by_specs(specs, args) {
        return found;
    }
    match spec.name {
        "set" => set(args),
        "bitfield" => bitfield(args),
        "sort" => sort(args),
        "sort_ro" => vec![KeyUse { at: 1, flags: KeyFlags::RO.union(KeyFlags::ACCESS) }],
        "migrate" => migrate(args),
        _ => match (spec.keys, specs) {
            (Keys::Found(find), [first, ..]) => {
                let flags = first.flags - KeyFlags::INCOMPLETE;
                find(args).into_iter().map(|at| KeyUse { at, flags }).collect()
            }
            (Keys::Counted { count }, _) => counted(args, count),
            (Keys::FirstAndCounted { count }, _) => {
                let mut found = counted(args, count);
                if !found.is_empty() {
                    found.push(KeyUse { at: 1, flags: KeyFlags::empty() });
                }
                found
            }
            _ => Vec::new(),
        },
    }
}

/// Finds the keys by the specifications alone; `None` if one does not fit the arguments.
fn by_specs(specs: &[KeySpec], args: &[Bytes]) -> Option<Vec<KeyUse>> {
    let mut found = Vec::new();
    for keys in specs.iter().filter(|keys| !keys.flags.contains(KeyFlags::NOT_KEY)) {
        let first = match keys.begin {
            Begin::Index(at) => at,
            Begin::Keyword(word, from) => match after(args, word, from) {
                Some(at) => at,
                None => continue,
            },
            Begin::Unknown => return None,
        };
        let (first, last, step) = match keys.find {
            Find::Range { last, step, .. } if last >= 0 => (first, first as i64 + i64::from(last), step),
            Find::Range { last, step, limit: 0 } => (first, args.len() as i64 + i64::from(last), step),
            Find::Range { last, step, limit } => {
                let part = args.len().checked_sub(first)? / limit;
                (first, (first + part) as i64 + i64::from(last), step)
            }
            Find::Counted { step } => {
                let count = integer(args.get(first)?).ok().filter(|count| *count >= 0)?;
                // Redis uses the lower 32 bits of the count.
                let last = first as i64 + (i64::from(count as i32) - 1) * step as i64 + 1;
                (first + 1, last, step)
            }
            Find::Unknown => return None,
        };
        if last >= args.len() as i64 || last < first as i64 {
            return None;
        }
        found.extend((first..=last as usize).step_by(step).map(|at| KeyUse { at, flags: keys.flags }));
        if keys.flags.contains(KeyFlags::INCOMPLETE) {
            return None;
        }
    }
    Some(found)
}

/// Finds the keys that follow the argument at `count`, which is not a number: parses it like C's
/// `atoi`. The flags are empty, because the use of the keys is unknown.
fn counted(args: &[Bytes], count: usize) -> Vec<KeyUse> {
    let keys = args.get(count).map_or(0, |word| leading_number(word));
    let first = count + 1;
    match usize::try_from(keys) {
        Ok(keys) if keys <= args.len().saturating_sub(first) => {
            (first..first + keys).map(|at| KeyUse { at, flags: KeyFlags::empty() }).collect()
        }
        _ => Vec::new(),
    }
}

/// Returns the number at the start of a word, after blanks; 0 without a number. A large number
/// keeps its lower 32 bits.
fn leading_number(word: &[u8]) -> i32 {
    let word = word.trim_ascii_start();
    let (is_negative, digits) = match word {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    };
    let digits = digits.iter().take_while(|digit| digit.is_ascii_digit());
    let n = digits.fold(0i64, |n, digit| {
        let digit = i64::from(digit - b'0');
        let n = n.saturating_mul(10);
        if is_negative { n.saturating_sub(digit) } else { n.saturating_add(digit) }
    });
    n as i32
}

/// Returns the index after a word.
fn after(args: &[Bytes], word: &str, from: i32) -> Option<usize> {
    let is = |at: &usize| args[*at].eq_ignore_ascii_case(word.as_bytes());
    if from > 0 {
        // Skip the last argument, because no key can follow it.
        (from as usize..args.len().saturating_sub(1)).find(is).map(|at| at + 1)
    } else {
        let start = args.len().checked_sub(from.unsigned_abs() as usize)?;
        (2..=start).rev().find(is).map(|at| at + 1)
    }
}

/// SET reads the key only if GET asks for the old value.
fn set(args: &[Bytes]) -> Vec<KeyUse> {
    let reads = args.iter().skip(3).any(|word| word.eq_ignore_ascii_case(b"get"));
    let flags = if reads {
        KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::UPDATE)
    } else {
        KeyFlags::OW.union(KeyFlags::UPDATE)
    };
    vec![KeyUse { at: 1, flags }]
}

/// BITFIELD without SET and INCRBY only reads.
fn bitfield(args: &[Bytes]) -> Vec<KeyUse> {
    let mut rest = args.get(2..).unwrap_or_default();
    let reads = loop {
        let [word, after @ ..] = rest else { break true };
        rest = match &word.to_ascii_lowercase()[..] {
            b"get" if after.len() >= 2 => &after[2..],
            b"overflow" if !after.is_empty() => &after[1..],
            _ => break false,
        };
    };
    let flags = if reads { KeyFlags::RO } else { KeyFlags::RW.union(KeyFlags::UPDATE) };
    vec![KeyUse { at: 1, flags: flags.union(KeyFlags::ACCESS) }]
}

/// SORT writes to the key after STORE, at any position; the last STORE counts.
fn sort(args: &[Bytes]) -> Vec<KeyUse> {
    let mut found = vec![KeyUse { at: 1, flags: KeyFlags::RO.union(KeyFlags::ACCESS) }];
    let mut at = 2;
    while let Some(word) = args.get(at) {
        at += match &word.to_ascii_lowercase()[..] {
            b"limit" => 3,
            b"get" | b"by" => 2,
            b"store" if at + 1 < args.len() => {
                found.truncate(1);
                found.push(KeyUse { at: at + 1, flags: KeyFlags::OW.union(KeyFlags::UPDATE) });
                1
            }
            _ => 1,
        };
    }
    found
}

/// MIGRATE takes one key, or several after KEYS if the single key is empty.
fn migrate(args: &[Bytes]) -> Vec<KeyUse> {
    let flags = KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::DELETE);
    let mut at = 6;
    while let Some(word) = args.get(at) {
        at += match &word.to_ascii_lowercase()[..] {
            b"keys" if !args[3].is_empty() => return Vec::new(),
            b"keys" => return (at + 1..args.len()).map(|at| KeyUse { at, flags }).collect(),
            b"auth" => 2,
            b"auth2" => 3,
            _ => 1,
        };
    }
    if args.len() > 3 { vec![KeyUse { at: 3, flags }] } else { Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::ALL;

    /// Without a row, no rule of a user would apply to the keys, and no node of a cluster would
    /// redirect the command.
    #[test]
    fn every_command_with_keys_has_specifications() {
        for spec in ALL.iter().copied().flatten() {
            let has_keys = !matches!(spec.keys, Keys::None);
            assert!(!has_keys || !key_specs(spec).is_empty(), "{}", spec.name);
        }
    }
}
