//! The rule by which two replies to a command are compared: exactly, unless Redis itself promises
//! less.

use std::collections::BTreeMap;

use crate::wire::{Kind, Wire, permits_in_order};

/// The property that two replies must share.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Rule {
    Exact,
    /// The same elements in any order, as of a hash table; `width` of them belong together.
    Unordered {
        width: usize,
    },
    /// Elements in the order of C strings: elements that differ only after a zero byte come in any
    /// order.
    Alphabet,
    /// The inner rule if the first key is a hash table; compact encodings have an exact order.
    IfTable(Box<Rule>),
    /// Non-negative integers that differ by at most this: times.
    Near(u64),
    /// The same kinds and lengths: random replies.
    Shape,
    /// A random reply whose possible values are not known yet; becomes `Among`.
    Drawn,
    /// Random elements of these, each with the value that belongs to it.
    Among {
        all: BTreeMap<Vec<u8>, Vec<u8>>,
        /// The reply has the values and they must be right (`valued`), or it has them and they are
        /// compared elsewhere (`skip`).
        valued: bool,
        skip: bool,
        /// No element comes twice.
        distinct: bool,
    },
    /// A cursor and elements; if both cursors are 0, the same elements in any order.
    Scan,
    /// An array with an element per queued command.
    Exec(Vec<Rule>),
    /// The rule for each element of an array.
    Each(Box<Rule>),
    /// Idle times and times of last activity may differ by `SLACK_MS`.
    Idle,
    /// Entries of ACL LOG, without their age and client.
    Refused,
    /// Rules of a user; rules for single commands come in the order of a hash table.
    Permits,
    /// The same parts in any order at each depth: libraries and their functions.
    Lines,
    /// One reply for each channel.
    Channels,
    /// Only that neither is an error, or both are the same error.
    Kind,
}

/// Tolerated difference of times in milliseconds, for a busy machine.
const SLACK_MS: u64 = 20_000;

pub(crate) fn of(words: &[Vec<u8>]) -> Rule {
    let upper = |at: usize| words.get(at).map(|word| word.to_ascii_uppercase()).unwrap_or_default();
    let has = |wanted: &str| words.iter().any(|word| word.eq_ignore_ascii_case(wanted.as_bytes()));
    match &upper(0)[..] {
        b"SMEMBERS" | b"HKEYS" | b"HVALS" => if_table(Rule::Unordered { width: 1 }),
        b"HGETALL" => if_table(Rule::Unordered { width: 2 }),
        b"SINTER" | b"SUNION" | b"SDIFF" | b"KEYS" => Rule::Unordered { width: 1 },
        b"PUBSUB" if matches!(&upper(1)[..], b"CHANNELS" | b"SHARDCHANNELS") => Rule::Unordered { width: 1 },
        b"FUNCTION" if upper(1) == b"LIST" => Rule::Lines,
        b"CONFIG" if upper(1) == b"GET" => Rule::Unordered { width: 2 },
        b"COMMAND" if upper(1) == b"LIST" => Rule::Unordered { width: 1 },
        b"SORT" | b"SORT_RO" => {
            // With `BY nosort` the elements come in the order of the set, and so do elements of
            // equal weight.
            let by = words.windows(2).find(|two| two[0].eq_ignore_ascii_case(b"BY")).map(|two| &two[1]);
            // A zero byte ends the search for a star.
            let star = |by: &Vec<u8>| by.iter().take_while(|byte| **byte != 0).any(|byte| *byte == b'*');
            let unsorted = by.is_some_and(|by| !star(by));
            let equals = by.is_some() && has("ALPHA");
            match (unsorted || equals, has("LIMIT") || has("GET")) {
                (false, false) if has("ALPHA") => if_table(Rule::Alphabet),
                (false, _) => Rule::Exact,
                // GET may find nothing for other elements.
                (true, true) if has("GET") => if_table(Rule::Kind),
                (true, true) => if_table(Rule::Shape),
                (true, false) => if_table(Rule::Unordered { width: 1 }),
            }
        }
        b"TTL" | b"EXPIRETIME" => Rule::Near(SLACK_MS / 1000),
        b"PTTL" | b"PEXPIRETIME" => Rule::Near(SLACK_MS),
        b"SRANDMEMBER" | b"HRANDFIELD" | b"ZRANDMEMBER" | b"RANDOMKEY" | b"SPOP" => Rule::Drawn,
        // The payload depends on the order of hash tables, also of values that once were one.
        b"DUMP" => if_table(Rule::Kind),
        b"ACL" => match &upper(1)[..] {
            b"LOG" => Rule::Refused,
            b"GETUSER" | b"LIST" => Rule::Permits,
            b"CAT" => Rule::Unordered { width: 1 },
            b"GENPASS" => Rule::Shape,
            _ => Rule::Exact,
        },
        // Each server chooses the meaning of its cursors.
        b"SCAN" if upper(1) != b"0" => Rule::Kind,
        b"HSCAN" | b"SSCAN" | b"ZSCAN" if upper(2) != b"0" => if_table(Rule::Kind),
        b"SCAN" => Rule::Scan,
        b"HSCAN" | b"SSCAN" | b"ZSCAN" => if_table(Rule::Scan),
        // These texts for people are worded differently here.
        b"COMMAND" if words.len() == 1 || matches!(&upper(1)[..], b"COUNT" | b"DOCS" | b"INFO") => Rule::Kind,
        _ if words.len() == 2 && upper(1) == b"HELP" => Rule::Kind,
        b"TIME" | b"INFO" | b"LASTSAVE" | b"LOLWUT" | b"ROLE" => Rule::Kind,
        b"SUBSCRIBE" | b"PSUBSCRIBE" | b"SSUBSCRIBE" => Rule::Channels,
        b"UNSUBSCRIBE" | b"PUNSUBSCRIBE" | b"SUNSUBSCRIBE" => Rule::Channels,
        b"HELLO" => Rule::Shape,
        b"CLIENT" if matches!(&upper(1)[..], b"LIST" | b"INFO") => Rule::Kind,
        b"OBJECT" if upper(1) == b"FREQ" => Rule::Near(SLACK_MS / 1000),
        // A server shares one object per small integer among all keys that hold it, and with it the
        // last use of any of them.
        b"OBJECT" if upper(1) == b"IDLETIME" => Rule::Kind,
        // Each server has its own additional references to a value, such as from a transaction's
        // queue.
        b"OBJECT" if upper(1) == b"REFCOUNT" => Rule::Kind,
        b"MEMORY" | b"DEBUG" | b"LATENCY" | b"SLOWLOG" => Rule::Kind,
        // Idle times and the ID that a star stands for depend on the clock.
        b"XINFO" | b"XPENDING" => Rule::Idle,
        b"XADD" if words[1..].iter().take(8).any(|word| word.starts_with(b"*")) => Rule::Shape,
        b"FUNCTION" if matches!(&upper(1)[..], b"STATS" | b"DUMP") => Rule::Kind,
        b"EVAL" | b"EVAL_RO" if upper(1).ends_with(b"UNPACK(ARGV))") => {
            let keys = words.get(2).and_then(|word| std::str::from_utf8(word).ok()?.parse::<usize>().ok());
            let inner = words.get(keys.unwrap_or(0).saturating_add(3)..).unwrap_or_default();
            // XINFO's maps become Lua tables, which have their own order.
            let maps = inner.first().is_some_and(|word| word.to_ascii_uppercase().starts_with(b"XINFO"));
            if maps { Rule::Kind } else { of(inner) }
        }
        _ => Rule::Exact,
    }
}

fn if_table(rule: Rule) -> Rule {
    Rule::IfTable(Box::new(rule))
}

impl Rule {
    /// Returns true if the two servers agree by this rule.
    pub(crate) fn agree(&self, one: &Wire, other: &Wire) -> bool {
        if one == other {
            return true;
        }
        match (self, one, other) {
            (Rule::IfTable(rule), _, _) => rule.agree(one, other),
            (Rule::Unordered { width }, Wire::Items(a, xs), Wire::Items(b, ys)) => {
                let width = if *a == Kind::Map { 2 } else { *width };
                a == b && xs.len() == ys.len() && same_elements(xs, ys, width)
            }
            (Rule::Alphabet, Wire::Items(a, xs), Wire::Items(b, ys)) => {
                let in_order = xs.iter().map(up_to_zero).eq(ys.iter().map(up_to_zero));
                a == b && in_order && same_elements(xs, ys, 1)
            }
            // Lua quotes bytes that are not text, and they get lost on the way.
            (_, Wire::Error(x), Wire::Error(y)) if x.starts_with(b"ERR Error compiling") => {
                String::from_utf8_lossy(x) == String::from_utf8_lossy(y)
            }
            // The real server keeps an error number (errno) that an earlier command left behind.
            (_, _, Wire::Error(y)) if y.starts_with(b"ERR One or more scores can't") => true,
            // If several exist already, the error names the first in the order of a hash table.
            (_, Wire::Error(x), Wire::Error(y))
                if x.starts_with(b"ERR Function ") || x.starts_with(b"ERR Library ") =>
            {
                x[..11] == y[..y.len().min(11)]
                    && x.ends_with(b" already exists")
                    && y.ends_with(b" already exists")
            }
            (Rule::Near(by), Wire::Integer(x), Wire::Integer(y)) => {
                *x >= 0 && *y >= 0 && x.abs_diff(*y) <= *by
            }
            (Rule::Each(rule), Wire::Items(a, xs), Wire::Items(b, ys)) => {
                a == b && xs.len() == ys.len() && xs.iter().zip(ys).all(|(x, y)| rule.agree(x, y))
            }
            (Rule::Lines, Wire::Items(_, xs), Wire::Items(_, ys)) => lines(xs) == lines(ys),
            (Rule::Idle, Wire::Items(a, xs), Wire::Items(b, ys)) => {
                a == b
                    && xs.len() == ys.len()
                    && (0..xs.len()).all(|at| match (&xs[at], &ys[at]) {
                        (Wire::Integer(x), Wire::Integer(y)) if is_time(xs, at) => x.abs_diff(*y) <= SLACK_MS,
                        (x, y) => self.agree(x, y),
                    })
            }
            (Rule::Refused, Wire::Items(_, xs), Wire::Items(_, ys)) => {
                xs.len() == ys.len() && xs.iter().zip(ys).all(|(x, y)| without_who(x) == without_who(y))
            }
            (Rule::Permits, _, _) => permits(one) == permits(other),
            (Rule::Shape | Rule::Drawn, _, _) => same_shape(one, other),
            (Rule::Among { all, valued, skip, distinct }, _, _) => {
                let possible = |wire| is_drawn(wire, all, *valued, *skip, *distinct);
                same_shape(one, other) && possible(one) && possible(other)
            }
            (Rule::Kind, Wire::Error(_), Wire::Error(_)) => false,
            (Rule::Kind, _, _) => !matches!(one, Wire::Error(_)) && !matches!(other, Wire::Error(_)),
            (Rule::Scan, Wire::Items(Kind::Array, xs), Wire::Items(Kind::Array, ys)) => {
                match (&xs[..], &ys[..]) {
                    ([Wire::Bulk(x), Wire::Items(_, xs)], [Wire::Bulk(y), Wire::Items(_, ys)]) => {
                        // Each server decides how far one call goes.
                        x != b"0" || y != b"0" || same_elements(xs, ys, 1)
                    }
                    _ => false,
                }
            }
            (Rule::Exec(rules), Wire::Items(Kind::Array, xs), Wire::Items(Kind::Array, ys)) => {
                xs.len() == ys.len()
                    && xs
                        .iter()
                        .zip(ys)
                        .enumerate()
                        .all(|(at, (x, y))| rules.get(at).unwrap_or(&Rule::Exact).agree(x, y))
            }
            _ => false,
        }
    }
}

fn up_to_zero(item: &Wire) -> Option<&[u8]> {
    let Wire::Bulk(bytes) = item else { return None };
    bytes.split(|byte| *byte == 0).next()
}

fn same_elements(one: &[Wire], other: &[Wire], width: usize) -> bool {
    let sorted = |items: &[Wire]| {
        let mut lines: Vec<Vec<String>> = items
            .chunks(width)
            .map(|items| {
                let mut lines = Vec::new();
                items.iter().for_each(|item| item.lines(0, &mut lines));
                lines
            })
            .collect();
        lines.sort();
        lines
    };
    sorted(one) == sorted(other)
}

fn lines(items: &[Wire]) -> Vec<String> {
    let mut lines = Vec::new();
    items.iter().for_each(|item| item.lines(0, &mut lines));
    lines.sort();
    lines
}

fn same_shape(one: &Wire, other: &Wire) -> bool {
    match (one, other) {
        (Wire::Items(a, xs), Wire::Items(b, ys)) => {
            a == b && xs.len() == ys.len() && xs.iter().zip(ys).all(|(x, y)| same_shape(x, y))
        }
        (Wire::Error(x), Wire::Error(y)) => x == y,
        // A value on one server and none on the other differ: SORT BY nosort GET.
        (Wire::NullBulk, Wire::Bulk(_)) | (Wire::Bulk(_), Wire::NullBulk) => false,
        _ => std::mem::discriminant(one) == std::mem::discriminant(other),
    }
}

/// Returns true for an integer that is a time: by the name before it, or by its place in a pending
/// entry.
fn is_time(items: &[Wire], at: usize) -> bool {
    let named = at.checked_sub(1).and_then(|before| items.get(before));
    let names: [&[u8]; 3] = [b"idle", b"seen-time", b"inactive"];
    let by_name = matches!(named, Some(Wire::Bulk(name)) if names.contains(&&name[..]));
    by_name || items.len() == 4 && at == 2 || items.len() == 3 && at == 1
}

/// An entry of ACL LOG without the values of its age and client.
fn without_who(entry: &Wire) -> Vec<String> {
    let Wire::Items(_, items) = entry else { return Vec::new() };
    let mut lines = Vec::new();
    for pair in items.chunks(2) {
        let told: [&[u8]; 2] = [b"age-seconds", b"client-info"];
        let hidden = matches!(&pair[0], Wire::Bulk(name) if told.contains(&&name[..]));
        pair.iter().take(if hidden { 1 } else { 2 }).for_each(|item| item.lines(0, &mut lines));
    }
    lines
}

/// A reply that holds rules of users, with the rules for single commands sorted.
fn permits(reply: &Wire) -> Vec<String> {
    let mut lines = Vec::new();
    reply.lines(0, &mut lines);
    lines.iter().map(|line| permits_in_order(line)).collect()
}

fn is_drawn(wire: &Wire, all: &BTreeMap<Vec<u8>, Vec<u8>>, valued: bool, skip: bool, distinct: bool) -> bool {
    let mut leaves = Vec::new();
    flatten(wire, &mut leaves);
    let width = if valued || skip { 2 } else { 1 };
    let mut seen = std::collections::BTreeSet::new();
    leaves.chunks(width).all(|chunk| match chunk {
        [Wire::Bulk(one), rest @ ..] => {
            let value = match rest {
                [Wire::Bulk(value)] if valued => Some(value),
                _ => None,
            };
            let known = all.get(one);
            known.is_some() && (value.is_none() || known == value) && (seen.insert(one.clone()) || !distinct)
        }
        // Any other reply is null or an error, and has no elements to compare.
        _ => true,
    })
}

fn flatten<'a>(wire: &'a Wire, leaves: &mut Vec<&'a Wire>) {
    match wire {
        Wire::Items(_, items) => items.iter().for_each(|item| flatten(item, leaves)),
        leaf => leaves.push(leaf),
    }
}
