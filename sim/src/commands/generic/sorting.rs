//! What SORT and SORT_RO share: the options, the weights, and the order.

use std::cmp::Ordering;

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Origin, double::double_prefix, integer},
    keyspace::Value,
};

/// The options.
#[derive(Debug)]
pub(super) struct SortOptions {
    by: Option<Bytes>,
    get: Vec<Bytes>,
    offset: i64,
    count: i64,
    descending: bool,
    alphabetical: bool,
    /// STORE
    pub(super) store: Option<Bytes>,
}

/// What an element is sorted by.
enum Weight {
    Number(f64),
    Text(Option<Bytes>),
}

impl SortOptions {
    /// Reads the options, STORE only where it is allowed.
    pub(super) fn parse(options: &[Bytes], may_store: bool) -> Result<SortOptions, Error> {
        let mut parsed = SortOptions {
            by: None,
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
                b"by" => parsed.by = Some(next(&mut rest)?),
                b"get" => parsed.get.push(next(&mut rest)?),
                b"store" if may_store => parsed.store = Some(next(&mut rest)?),
                _ => return Err(Error::SYNTAX),
            }
        }
        Ok(parsed)
    }

    /// The elements of `key` as the options ask for them; `None` where GET finds nothing.
    pub(super) fn sorted(&self, ctx: &mut Ctx<'_>, key: &[u8]) -> Result<Vec<Option<Bytes>>, Error> {
        // A pattern without a star is the same key for all: it asks for no order at all.
        let mut unsorted = self.by.as_ref().is_some_and(|by| !by.contains(&b'*'));
        let mut alphabetical = self.alphabetical;
        let elements: Vec<Bytes> = match ctx.entry(key).map(|entry| &entry.value) {
            None => Vec::new(),
            Some(Value::List(list)) if unsorted && self.descending => list.iter().rev().cloned().collect(),
            Some(Value::List(list)) => list.iter().cloned().collect(),
            Some(Value::Set(set)) => {
                let elements = set.iter().collect();
                // A set has no order of its own, and what is stored or seen by a script must be the same everywhere.
                if unsorted && (self.store.is_some() || ctx.origin == Origin::Script) {
                    (unsorted, alphabetical) = (false, true);
                }
                elements
            }
            Some(Value::SortedSet(set)) => set
                .range(0..set.len(), unsorted && self.descending)
                .map(|(_, member)| member.clone())
                .collect(),
            Some(_) => return Err(Error::WRONG_TYPE),
        };
        let elements = if unsorted { elements } else { self.order(ctx, elements, alphabetical)? };
        let len = elements.len();
        let offset = usize::try_from(self.offset.max(0)).unwrap_or(usize::MAX).min(len);
        let count = usize::try_from(self.count).unwrap_or(usize::MAX);
        let mut found = Vec::new();
        for element in elements.into_iter().skip(offset).take(count) {
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

    fn order(
        &self,
        ctx: &mut Ctx<'_>,
        elements: Vec<Bytes>,
        alphabetical: bool,
    ) -> Result<Vec<Bytes>, Error> {
        let by = self.by.as_ref().filter(|by| by.contains(&b'*'));
        let mut weighed = Vec::with_capacity(elements.len());
        for element in elements {
            let text = match by {
                Some(pattern) => look_up(ctx, pattern, &element),
                None => Some(element.clone()),
            };
            let weight = if alphabetical {
                Weight::Text(text)
            } else {
                let number = text.map_or(Some(0.0), |text| double_prefix(&text));
                Weight::Number(
                    number.ok_or(Error::of("ERR One or more scores can't be converted into double"))?,
                )
            };
            weighed.push((weight, element));
        }
        weighed.sort_by(|(a, of_a), (b, of_b)| {
            let order = match (a, b) {
                (Weight::Number(a), Weight::Number(b)) => {
                    // Equal numbers leave the order to the elements themselves.
                    a.partial_cmp(b).unwrap_or(Ordering::Equal).then_with(|| of_a.cmp(of_b))
                }
                (Weight::Text(a), Weight::Text(b)) => a.cmp(b),
                _ => Ordering::Equal,
            };
            if self.descending { order.reverse() } else { order }
        });
        Ok(weighed.into_iter().map(|(_, element)| element).collect())
    }
}

/// The value that `pattern` names for `element`: `#` is the element, `*` in a name is replaced by it, `->` names a field.
fn look_up(ctx: &mut Ctx<'_>, pattern: &[u8], element: &Bytes) -> Option<Bytes> {
    if pattern == b"#" {
        return Some(element.clone());
    }
    let star = pattern.iter().position(|byte| *byte == b'*')?;
    let (before, after) = (&pattern[..star], &pattern[star + 1..]);
    let arrow = after.windows(2).position(|two| two == b"->").filter(|at| at + 2 < after.len());
    let (after, field) = match arrow {
        Some(at) => (&after[..at], Some(&after[at + 2..])),
        None => (after, None),
    };
    let key = [before, element, after].concat();
    match (&ctx.entry(&key)?.value, field) {
        (Value::Hash(hash), Some(field)) => hash.get(field).cloned(),
        (Value::String(string), None) => Some(string.bytes().clone()),
        _ => None,
    }
}
