//! Shared parts of SORT and SORT_RO: the options, the weights, and the order.

use std::{cmp::Ordering, ops::Range};

use bytes::Bytes;

use crate::{
    blob::Blob,
    cluster::{key_slot, pattern_slot},
    commands::{Ctx, Error, Origin, double::sortable, integer, partial_sort::partial_sort_by},
    generation::Feature,
    keyspace::{SortedSet, Value},
};

#[derive(Debug)]
pub(super) struct SortOptions {
    by: Option<Bytes>,
    /// The pattern of BY has no star, which turns sorting off.
    unsorted: bool,
    get: Vec<Bytes>,
    offset: i64,
    count: i64,
    descending: bool,
    alphabetical: bool,
    /// STORE
    pub(super) store: Option<Bytes>,
}

/// The sort key of an element.
enum Weight {
    Number(f64),
    Text(Option<Blob>),
}

impl SortOptions {
    /// Parses the options. STORE needs `may_store`. Patterns that build names from the elements
    /// need `may_follow`, the permission to read any key. In a cluster such a key may be on another
    /// node; older servers refuse every pattern there.
    pub(super) fn parse(
        ctx: &Ctx<'_>,
        args: &[Bytes],
        may_store: bool,
        may_follow: bool,
    ) -> Result<SortOptions, Error> {
        let (key, options) = (&args[1], &args[2..]);
        let has_slots = ctx.node.config.generation.has(Feature::PatternSlots);
        let may_be_elsewhere = |pattern: &[u8]| {
            ctx.node.cluster.is_some() && !(has_slots && pattern_slot(pattern) == Some(key_slot(key)))
        };
        let elsewhere = |option: &str| {
            let when =
                if has_slots { " when keys formed by the pattern may be in different slots" } else { "" };
            Error(format!("ERR {option} option of SORT denied in Cluster mode{when}.").into())
        };
        let mut parsed = SortOptions {
            by: None,
            unsorted: false,
            get: Vec::new(),
            offset: 0,
            count: -1,
            descending: false,
            alphabetical: false,
            store: None,
        };
        let mut rest = options.iter();
        let next = |rest: &mut std::slice::Iter<'_, Bytes>| rest.next().cloned().ok_or(Error::SYNTAX);
        while let Some(option) = rest.next() {
            match option.to_ascii_lowercase().as_slice() {
                b"asc" => parsed.descending = false,
                b"desc" => parsed.descending = true,
                b"alpha" => parsed.alphabetical = true,
                b"limit" => {
                    let (offset, count) = (next(&mut rest)?, next(&mut rest)?);
                    (parsed.offset, parsed.count) = (integer(&offset)?, integer(&count)?);
                }
                b"by" => {
                    let by = next(&mut rest)?;
                    parsed.unsorted |= star(&by).is_none();
                    if star(&by).is_some() && may_be_elsewhere(&by) {
                        return Err(elsewhere("BY"));
                    }
                    if star(&by).is_some() && !may_follow {
                        return Err(Error::of(
                            "ERR BY option of SORT denied due to insufficient ACL permissions.",
                        ));
                    }
                    parsed.by = Some(by);
                }
                b"get" => {
                    let get = next(&mut rest)?;
                    if may_be_elsewhere(&get) && !(has_slots && *get == *b"#") {
                        return Err(elsewhere("GET"));
                    }
                    parsed.get.push(get);
                    if !may_follow {
                        return Err(Error::of(
                            "ERR GET option of SORT denied due to insufficient ACL permissions.",
                        ));
                    }
                }
                b"store" if may_store => parsed.store = Some(next(&mut rest)?),
                _ => return Err(Error::SYNTAX),
            }
        }
        Ok(parsed)
    }

    /// Returns the elements of `key` as the options select them; `None` for a missing value of GET.
    pub(super) fn sorted(&self, ctx: &mut Ctx<'_>, key: &[u8]) -> Result<Vec<Option<Blob>>, Error> {
        let mut unsorted = self.unsorted;
        let mut alphabetical = self.alphabetical;
        let mut taken = None;
        let elements: Vec<Blob> = match ctx.lookup_read(key).map(|entry| &entry.value) {
            None => Vec::new(),
            // Read a collection with its own order only as far as needed.
            Some(Value::List(list)) if unsorted => {
                let Range { start, end } = self.wanted(list.len());
                taken = Some(end - start);
                if self.descending {
                    list.iter().rev().skip(start).take(end - start).map(Blob::apart).collect()
                } else {
                    list.iter_from(start).take(end - start).map(Blob::apart).collect()
                }
            }
            Some(Value::SortedSet(set)) if unsorted => {
                let Range { start, end } = self.wanted(set.len());
                taken = Some(end - start);
                let ranks = if self.descending { set.len() - end..set.len() - start } else { start..end };
                set.range(ranks, self.descending).map(|(_, member)| member.apart()).collect()
            }
            Some(Value::List(list)) => list.iter().map(Blob::apart).collect(),
            Some(Value::Set(set)) => {
                let elements = set.iter().collect();
                // A set has no order. Sort it, so that stored results and scripts are the same
                // everywhere.
                if unsorted && (self.store.is_some() || ctx.origin == Origin::Script) {
                    (unsorted, alphabetical) = (false, true);
                }
                elements
            }
            Some(Value::SortedSet(set)) => set.iter().map(|(_, member)| member.apart()).collect(),
            Some(_) => return Err(Error::WRONG_TYPE),
        };
        // Sorting a sorted set needs its general encoding, which it then keeps.
        if let Ok(Some(set)) = ctx.modify_no_touch::<SortedSet>(key) {
            set.enlarge();
        }
        let elements = if unsorted { elements } else { self.order(ctx, elements, alphabetical)? };
        let wanted = taken.map_or_else(|| self.wanted(elements.len()), |taken| 0..taken);
        let mut found = Vec::new();
        for element in elements.into_iter().skip(wanted.start).take(wanted.len()) {
            if self.get.is_empty() {
                found.push(Some(element));
                continue;
            }
            for pattern in &self.get {
                found.push(look_up(ctx, pattern, &element));
            }
        }
        Ok(found)
    }

    /// Returns the range that LIMIT selects from `len` elements.
    fn wanted(&self, len: usize) -> Range<usize> {
        let start = usize::try_from(self.offset.max(0)).unwrap_or(usize::MAX).min(len);
        // A negative count means no limit.
        let count = usize::try_from(self.count).unwrap_or(usize::MAX);
        start..start.saturating_add(count).min(len)
    }

    fn order(&self, ctx: &mut Ctx<'_>, elements: Vec<Blob>, alphabetical: bool) -> Result<Vec<Blob>, Error> {
        let by = self.by.as_ref().filter(|by| star(by).is_some());
        let mut weighed = Vec::with_capacity(elements.len());
        // Look up every key, also after the first element that is not a number, because each
        // missing key emits a `keymiss` event.
        let mut all_are_numbers = true;
        for element in elements {
            let text = match by {
                Some(pattern) => look_up(ctx, pattern, &element),
                None => Some(element.clone()),
            };
            let weight = if alphabetical {
                Weight::Text(text)
            } else {
                let number = text.map_or(Some(0.0), |text| sortable(&text));
                all_are_numbers &= number.is_some();
                Weight::Number(number.unwrap_or_default())
            };
            weighed.push((weight, element));
        }
        if !all_are_numbers {
            return Err(Error::of("ERR One or more scores can't be converted into double"));
        }
        let compare = |(a, of_a): &(Weight, Blob), (b, of_b): &(Weight, Blob)| {
            let order = match (a, b) {
                (Weight::Number(a), Weight::Number(b)) => {
                    // Elements with equal numbers are ordered by themselves.
                    a.partial_cmp(b).unwrap_or(Ordering::Equal).then_with(|| of_a.cmp(of_b))
                }
                (Weight::Text(a), Weight::Text(b)) => a.cmp(b),
                _ => Ordering::Equal,
            };
            if self.descending { order.reverse() } else { order }
        };
        let wanted = self.wanted(weighed.len());
        if by.is_some() && wanted.len() < weighed.len() {
            // Different elements may have equal weights: their order then depends on the server's
            // partial sort.
            partial_sort_by(&mut weighed, wanted, compare);
        } else {
            weighed.sort_by(compare);
        }
        Ok(weighed.into_iter().map(|(_, element)| element).collect())
    }
}

/// Returns the position of the star in a pattern. A zero byte ends the search.
fn star(pattern: &[u8]) -> Option<usize> {
    pattern.iter().take_while(|byte| **byte != 0).position(|byte| *byte == b'*')
}

/// Returns the value that `pattern` names for `element`: `#` is the element itself, the element
/// replaces `*` in a name, `->` precedes a field.
fn look_up(ctx: &mut Ctx<'_>, pattern: &[u8], element: &Blob) -> Option<Blob> {
    if pattern == b"#" {
        return Some(element.clone());
    }
    let star = star(pattern)?;
    let (before, after) = (&pattern[..star], &pattern[star + 1..]);
    let arrow = after.windows(2).position(|two| two == b"->").filter(|at| at + 2 < after.len());
    let (after, field) = match arrow {
        Some(at) => (&after[..at], Some(&after[at + 2..])),
        None => (after, None),
    };
    let key = [before, element, after].concat();
    let rule = ctx.field_rule();
    match (&ctx.lookup_read(&key)?.value, field) {
        (Value::Hash(hash), Some(field)) => hash.get_by(field, rule).map(Blob::apart),
        (Value::String(string), None) => Some(string.bytes().apart()),
        _ => None,
    }
}
