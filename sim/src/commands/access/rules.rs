//! The rules of ACL SETUSER, and their effects.

use bytes::Bytes;

use super::{Known, Table, id};
use crate::{
    acl::{KeyPattern, Selector, User, hash, is_hash},
    commands::{Categories, Spec},
    generation::{Feature, Generation},
};

const SYNTAX: &str = "Syntax error";
pub(super) const UNKNOWN: &str = "Unknown command or category name in ACL";
const KEYS_AFTER_ALL: &str = "Adding a pattern after the * pattern (or the 'allkeys' flag) is not valid and does not have any \
                              effect. Try 'resetkeys' to start with an empty list of patterns";
const CHANNELS_AFTER_ALL: &str = "Adding a pattern after the * pattern (or the 'allchannels' flag) is not valid and does not have \
                                  any effect. Try 'resetchannels' to start with an empty list of channels";
const BAD_HASH: &str =
    "The password hash must be exactly 64 characters and contain only lowercase hexadecimal characters";
const NO_PASSWORD: &str = "The password you are trying to remove from the user does not exist";
const FIRST_ARG_OF_SUBCOMMAND: &str = "Allowing first-arg of a subcommand is not supported";

/// Joins the words of a selector that contains spaces: `(~a` and `+get)` are one rule, in
/// generations that have selectors.
///
/// # Errors
/// The word that opens an unclosed selector.
pub(in crate::commands) fn merge_selectors(words: &[Bytes], table: Table) -> Result<Vec<Bytes>, Bytes> {
    if !table.generation().has(Feature::Selectors) {
        return Ok(words.to_vec());
    }
    let mut merged = Vec::new();
    let mut open: Option<(Bytes, Vec<u8>)> = None;
    for word in words {
        match &mut open {
            None if word.starts_with(b"(") && !word.ends_with(b")") => {
                open = Some((word.clone(), word.to_vec()));
            }
            None => merged.push(word.clone()),
            Some((_, selector)) => {
                selector.push(b' ');
                selector.extend_from_slice(word);
                if word.ends_with(b")")
                    && let Some((_, selector)) = open.take()
                {
                    merged.push(selector.into());
                }
            }
        }
    }
    match open {
        Some((first, _)) => Err(first),
        None => Ok(merged),
    }
}

/// Applies a rule to a user, with the commands of `table`. `all_channels` is the
/// `acl-pubsub-default` for new selectors.
///
/// # Errors
/// The text of the rule's error.
pub(in crate::commands) fn apply(
    user: &mut User,
    rule: &[u8],
    table: Table,
    all_channels: bool,
) -> Result<(), &'static str> {
    let has_selectors = table.generation().has(Feature::Selectors);
    match &rule.to_ascii_lowercase()[..] {
        b"" => {}
        b"clearselectors" if !has_selectors => return Err(SYNTAX),
        b"on" => user.enabled = true,
        b"off" => user.enabled = false,
        b"nopass" => {
            user.nopass = true;
            user.passwords.clear();
        }
        b"resetpass" => {
            user.nopass = false;
            user.passwords.clear();
        }
        b"sanitize-payload" => user.sanitizes = Some(true),
        b"skip-sanitize-payload" => user.sanitizes = Some(false),
        b"clearselectors" => user.selectors.clear(),
        b"reset" => {
            *user = User { sanitizes: Some(true), ..User::new(user.name.clone(), all_channels) };
        }
        _ => match rule {
            [b'>' | b'#' | b'<' | b'!', ..] => return password(user, rule),
            [b'(' | b'%', ..] if !has_selectors => return Err(SYNTAX),
            [b'(', .., b')'] => {
                let selector = selector(&rule[1..rule.len() - 1], table, all_channels)?;
                user.selectors.push(selector);
            }
            _ => return permission(&mut user.root, rule, table),
        },
    }
    Ok(())
}

fn password(user: &mut User, rule: &[u8]) -> Result<(), &'static str> {
    let digest = match rule {
        [b'>' | b'<', password @ ..] => hash(password),
        [_, digest @ ..] if is_hash(digest) => String::from_utf8_lossy(digest).into_owned(),
        _ => return Err(BAD_HASH),
    };
    let known = user.passwords.iter().position(|password| *password == digest);
    if let b'>' | b'#' = rule[0] {
        if known.is_none() {
            user.passwords.push(digest);
        }
        user.nopass = false;
    } else {
        user.passwords.remove(known.ok_or(NO_PASSWORD)?);
    }
    Ok(())
}

/// Makes a selector from the rules between its parentheses.
fn selector(words: &[u8], table: Table, all_channels: bool) -> Result<Selector, &'static str> {
    let mut selector = Selector::new(all_channels);
    for word in words.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()) {
        permission(&mut selector, word, table)?;
    }
    Ok(selector)
}

/// Returns true if a text contains spaces or zero bytes. No name and no pattern may.
pub(in crate::commands) fn has_spaces(text: &[u8]) -> bool {
    text.iter().any(|byte| matches!(byte, b' ' | 9..=13 | 0))
}

/// Applies a rule about commands, keys or channels.
fn permission(selector: &mut Selector, rule: &[u8], table: Table) -> Result<(), &'static str> {
    let is_old = table.generation() == Generation::Redis62;
    match &rule.to_ascii_lowercase()[..] {
        b"allkeys" | b"~*" => {
            selector.all_keys = true;
            selector.keys.clear();
        }
        b"resetkeys" => {
            selector.all_keys = false;
            selector.keys.clear();
        }
        b"allchannels" | b"&*" => {
            selector.all_channels = true;
            selector.channels.clear();
        }
        b"resetchannels" => {
            selector.all_channels = false;
            selector.channels.clear();
        }
        b"allcommands" | b"+@all" => selector.set_all_commands(true),
        b"nocommands" | b"-@all" => selector.set_all_commands(false),
        _ => match rule {
            [b'~', pattern @ ..] => return keys(selector, pattern, true, true),
            [b'%', ..] if selector.all_keys => return Err(KEYS_AFTER_ALL),
            [b'%', rest @ ..] => {
                let (letters, pattern) = rest
                    .iter()
                    .position(|byte| *byte == b'~')
                    .map(|at| (&rest[..at], &rest[at + 1..]))
                    .unwrap_or((rest, &[]));
                let (mut read, mut write) = (false, false);
                for letter in letters {
                    let flag = match letter.to_ascii_lowercase() {
                        b'r' => &mut read,
                        b'w' => &mut write,
                        _ => return Err(SYNTAX),
                    };
                    if std::mem::replace(flag, true) {
                        return Err(SYNTAX);
                    }
                }
                return if read || write { keys(selector, pattern, read, write) } else { Err(SYNTAX) };
            }
            [b'&', pattern @ ..] => {
                if selector.all_channels {
                    return Err(CHANNELS_AFTER_ALL);
                }
                if has_spaces(pattern) {
                    return Err(SYNTAX);
                }
                if selector.channels.iter().all(|known| known != pattern) {
                    selector.channels.push(Bytes::copy_from_slice(pattern));
                }
            }
            [sign @ (b'+' | b'-'), b'@', category @ ..] => {
                let category = Categories::named(category).ok_or(UNKNOWN)?;
                set_category(selector, category, *sign == b'+', table);
            }
            [b'+', command @ ..] => return allow(selector, command, table),
            // Redis 6.2 takes a container as a whole away.
            [b'-', command @ ..] if is_old && command.contains(&b'|') => return Err(UNKNOWN),
            [b'-', command @ ..] => set_command(selector, lookup(command, table).ok_or(UNKNOWN)?, false),
            _ => return Err(SYNTAX),
        },
    }
    Ok(())
}

fn keys(selector: &mut Selector, pattern: &[u8], read: bool, write: bool) -> Result<(), &'static str> {
    if selector.all_keys {
        return Err(KEYS_AFTER_ALL);
    }
    if has_spaces(pattern) {
        return Err(SYNTAX);
    }
    match selector.keys.iter_mut().find(|known| known.pattern == pattern) {
        Some(known) => (known.read, known.write) = (known.read || read, known.write || write),
        None => {
            let pattern = Bytes::copy_from_slice(pattern);
            selector.keys.push(KeyPattern { pattern, read, write });
        }
    }
    Ok(())
}

/// Finds a command, or a subcommand written as `config|get`.
fn lookup(name: &[u8], table: Table) -> Option<&'static Spec> {
    let is_named = |known: &&Known| known.spec.name.as_bytes().eq_ignore_ascii_case(name);
    table.known().iter().find(is_named).map(|known| known.spec)
}

/// Allows or forbids a command with all its subcommands.
pub(super) fn set_command(selector: &mut Selector, spec: &Spec, is: bool) {
    selector.set_command(id(spec), is);
    for subcommand in spec.subcommands {
        selector.commands.set(id(subcommand), is);
    }
}

/// Allows or forbids the commands of a category. A container in the category includes all its
/// subcommands.
pub(super) fn set_category(selector: &mut Selector, category: Categories, is: bool, table: Table) {
    for spec in table.of_category(category) {
        set_command(selector, spec, is);
    }
}

/// Applies `+command`, `+container|subcommand`, or `+command|first-argument` for a command without
/// subcommands.
///
/// Redis 6.2 compares what follows the first bar with the first argument, whatever it is.
fn allow(selector: &mut Selector, name: &[u8], table: Table) -> Result<(), &'static str> {
    let is_old = table.generation() == Generation::Redis62;
    let is_bar = |byte: &u8| *byte == b'|';
    let at = if is_old { name.iter().position(is_bar) } else { name.iter().rposition(is_bar) };
    let Some(at) = at else {
        set_command(selector, lookup(name, table).ok_or(UNKNOWN)?, true);
        return Ok(());
    };
    let (container, word) = (lookup(&name[..at], table).ok_or(UNKNOWN)?, &name[at + 1..]);
    if container.name.contains('|') {
        return Err(FIRST_ARG_OF_SUBCOMMAND);
    }
    if word.is_empty() {
        return Err(SYNTAX);
    }
    if container.subcommands.is_empty() {
        selector.add_first_arg(id(container), Bytes::copy_from_slice(word));
    } else {
        match lookup(name, table) {
            Some(subcommand) => set_command(selector, subcommand, true),
            None if is_old => {}
            None => return Err(UNKNOWN),
        }
    }
    Ok(())
}
