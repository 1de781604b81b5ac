//! Reads values from bytes, in every encoding that `redis-server` 7.0 reads, and hashes whose
//! fields have a time to live in those of later servers.

use bytes::Bytes;

use super::{Input, Item, PACKED_SETS, RdbError, intset, kind, listpack, stream, ziplist};
use crate::{
    config::Config,
    generation::Generation,
    keyspace::{Encodings, Hash, List, Set, SortedSet, Str, Value},
};

const TIME: &str = "the time of a field";
const TWICE: RdbError = RdbError::Damaged("an element that is there twice");
/// The numbers that mark a node of a list as one element, or as many.
const PLAIN: usize = 1;
const PACKED: usize = 2;

/// Reads the value of a type byte.
///
/// # Errors
/// If the bytes are not a valid value, or are an empty collection, which cannot be a value.
pub(super) fn value(input: &mut Input<'_>, kind: u8, config: &Config) -> Result<Value, RdbError> {
    let (encodings, generation) = (&config.keyspace.encodings, config.generation);
    // A value in a compact encoding keeps it, however long its elements are.
    let compact = Encodings { hash_value_max: usize::MAX, sorted_set_value_max: usize::MAX, ..*encodings };
    let value = match kind {
        kind::STRING => Value::String(Str::new(input.string()?)),
        kind::LIST => {
            let len = input.length()?;
            Value::List((0..len).map(|_| input.string()).collect::<Result<List, _>>()?)
        }
        kind::LIST_ZIPLIST => Value::List(ziplist::ziplist(&input.string()?)?.into_iter().collect()),
        kind::LIST_QUICKLIST | kind::LIST_QUICKLIST2 => Value::List(list(input, kind)?),
        kind::SET => {
            let len = input.length()?;
            set((0..len).map(|_| input.string()), encodings)?
        }
        kind::SET_INTSET => {
            let integers = intset::read(&input.string()?)?.into_iter();
            set(integers.map(|n| Ok(Bytes::from(n.to_string()))), encodings)?
        }
        kind::SET_LISTPACK if generation.rdb_version() >= PACKED_SETS => {
            let pack = input.string()?;
            set(listpack(&pack)?.into_iter().map(|item| Ok(item.bytes())), encodings)?
        }
        kind::HASH => {
            let len = input.length()?;
            hash((0..len).map(|_| Ok((input.string()?, input.string()?))), encodings)?
        }
        kind::HASH_ZIPMAP => {
            let elements = ziplist::zipmap(&input.string()?)?;
            hash(pairs(elements)?.into_iter().map(Ok), encodings)?
        }
        kind::HASH_ZIPLIST => {
            let elements = ziplist::ziplist(&input.string()?)?;
            hash(pairs(elements)?.into_iter().map(Ok), &compact)?
        }
        kind::HASH_LISTPACK => {
            let pack = input.string()?;
            let elements = listpack(&pack)?.into_iter().map(Item::bytes).collect();
            hash(pairs(elements)?.into_iter().map(Ok), &compact)?
        }
        kind::HASH_2 if generation == Generation::Valkey91 => {
            let len = input.length()?;
            let fields = (0..len).map(|_| {
                let (field, value) = (input.string()?, input.string()?);
                let when_ms = i64::from_le_bytes(input.array(TIME)?);
                Ok((field, value, (when_ms != -1).then_some(when_ms)))
            });
            timed_hash(fields, encodings, true)?
        }
        kind::HASH_METADATA if generation == Generation::Redis82 => {
            let first_ms = i64::from_le_bytes(input.array(TIME)?);
            let len = input.length()?;
            let fields = (0..len).map(|_| {
                let distance = input.number()?;
                let when_ms = first_ms.wrapping_add_unsigned(distance).wrapping_sub(1);
                Ok((input.string()?, input.string()?, (distance != 0).then_some(when_ms)))
            });
            timed_hash(fields, encodings, false)?
        }
        kind::HASH_LISTPACK_EX if generation == Generation::Redis82 => {
            input.take(8, TIME)?;
            let pack = input.string()?;
            let items = listpack(&pack)?;
            let (triples, []) = items.as_chunks::<3>() else {
                return Err(RdbError::Damaged("the parts of fields with a time"));
            };
            let fields = triples.iter().map(|[field, value, time]| {
                let when_ms = time.integer().ok_or(RdbError::Damaged(TIME))?;
                Ok((field.bytes(), value.bytes(), (when_ms != 0).then_some(when_ms)))
            });
            timed_hash(fields, &compact, false)?
        }
        kind::ZSET => {
            let len = input.length()?;
            let members = (0..len).map(|_| {
                let member = input.string()?;
                Ok((member, f64::from_le_bytes(input.array("a score")?)))
            });
            unordered_set(members, encodings)?
        }
        kind::ZSET_TEXT => {
            let len = input.length()?;
            unordered_set((0..len).map(|_| Ok((input.string()?, text_score(input)?))), encodings)?
        }
        kind::ZSET_ZIPLIST => {
            let elements = pairs(ziplist::ziplist(&input.string()?)?)?.into_iter();
            let members = elements.map(|(member, text)| Ok((member, score(&text)?)));
            sorted_set(members, &compact)?
        }
        kind::ZSET_LISTPACK => {
            let pack = input.string()?;
            let elements = pairs(listpack(&pack)?)?.into_iter();
            let members = elements.map(|(member, score)| Ok((member.bytes(), packed_score(score)?)));
            sorted_set(members, &compact)?
        }
        kind::STREAM_LISTPACKS_3 if generation.rdb_version() < PACKED_SETS => {
            return Err(RdbError::Unsupported(format!("a value of type {kind}")));
        }
        kind::STREAM_LISTPACKS | kind::STREAM_LISTPACKS_2 | kind::STREAM_LISTPACKS_3 => {
            Value::Stream(Box::new(stream::read(input, kind)?))
        }
        other => return Err(RdbError::Unsupported(format!("a value of type {other}"))),
    };
    if value.is_empty_collection() { Err(RdbError::Empty) } else { Ok(value) }
}

fn list(input: &mut Input<'_>, kind: u8) -> Result<List, RdbError> {
    let mut elements = Vec::new();
    for _ in 0..input.length()? {
        let container = if kind == kind::LIST_QUICKLIST2 { input.length()? } else { PACKED };
        let node = input.string()?;
        match container {
            _ if node.is_empty() => return Err(RdbError::Damaged("an empty node of a list")),
            PLAIN => elements.push(node),
            PACKED if kind == kind::LIST_QUICKLIST => elements.extend(ziplist::ziplist(&node)?),
            PACKED => elements.extend(listpack(&node)?.into_iter().map(Item::bytes)),
            _ => return Err(RdbError::Damaged("a list")),
        }
    }
    Ok(elements.into_iter().collect())
}

fn set(
    members: impl Iterator<Item = Result<Bytes, RdbError>>,
    encodings: &Encodings,
) -> Result<Value, RdbError> {
    let mut set = Set::default();
    for member in members {
        if !set.insert(member?, encodings) {
            return Err(TWICE);
        }
    }
    Ok(Value::Set(set))
}

fn hash(
    pairs: impl Iterator<Item = Result<(Bytes, Bytes), RdbError>>,
    encodings: &Encodings,
) -> Result<Value, RdbError> {
    let mut hash = Hash::default();
    for pair in pairs {
        let (field, value) = pair?;
        if !hash.set(&field, value, encodings) {
            return Err(TWICE);
        }
    }
    Ok(Value::Hash(hash))
}

/// Makes a hash of fields with their values and times. In a listpack the fields are in order.
fn timed_hash(
    fields: impl Iterator<Item = Result<(Bytes, Bytes, Option<i64>), RdbError>>,
    encodings: &Encodings,
    as_table: bool,
) -> Result<Value, RdbError> {
    let mut hash = Hash::default();
    let mut times = Vec::new();
    for field in fields {
        let (field, value, time_ms) = field?;
        if !hash.set(&field, value, encodings) {
            return Err(TWICE);
        }
        times.extend(time_ms.map(|when_ms| (field, when_ms)));
    }
    // Of fields with the same time, the last one set comes first.
    for (field, when_ms) in times.into_iter().rev() {
        if when_ms < 0 {
            return Err(RdbError::Damaged(TIME));
        }
        hash.set_time(&field, when_ms, as_table);
    }
    Ok(Value::Hash(hash))
}

/// Reads a sorted set that was saved in any order, not in a compact encoding. Makes it compact once
/// it is complete, if it fits.
fn unordered_set(
    members: impl Iterator<Item = Result<(Bytes, f64), RdbError>>,
    encodings: &Encodings,
) -> Result<Value, RdbError> {
    let mut set = SortedSet::default();
    set.enlarge();
    set = add(set, members, encodings)?;
    set.compact(encodings);
    Ok(Value::SortedSet(Box::new(set)))
}

fn sorted_set(
    members: impl Iterator<Item = Result<(Bytes, f64), RdbError>>,
    encodings: &Encodings,
) -> Result<Value, RdbError> {
    Ok(Value::SortedSet(Box::new(add(SortedSet::default(), members, encodings)?)))
}

fn add(
    mut set: SortedSet,
    members: impl Iterator<Item = Result<(Bytes, f64), RdbError>>,
    encodings: &Encodings,
) -> Result<SortedSet, RdbError> {
    for member in members {
        let (member, score) = member?;
        if score.is_nan() {
            return Err(RdbError::Damaged("a score that is not a number"));
        }
        if set.insert(member, score, encodings).is_some() {
            return Err(TWICE);
        }
    }
    Ok(set)
}

/// Reads a score as the oldest snapshots write it: text after its length, or a special length for
/// NaN and infinities.
fn text_score(input: &mut Input<'_>) -> Result<f64, RdbError> {
    match input.byte("a score")? {
        253 => Ok(f64::NAN),
        254 => Ok(f64::INFINITY),
        255 => Ok(f64::NEG_INFINITY),
        len => score(input.take(usize::from(len), "a score")?),
    }
}

fn packed_score(item: Item<'_>) -> Result<f64, RdbError> {
    match item {
        Item::Integer(n) => Ok(n as f64),
        Item::Text(text) => score(text),
    }
}

fn score(text: &[u8]) -> Result<f64, RdbError> {
    const DAMAGED: RdbError = RdbError::Damaged("a score");
    std::str::from_utf8(text).ok().and_then(|text| text.parse().ok()).ok_or(DAMAGED)
}

/// Pairs up the elements: a member with its score, or a field with its value.
fn pairs<T: Clone>(elements: Vec<T>) -> Result<Vec<(T, T)>, RdbError> {
    let (pairs, []) = elements.as_chunks::<2>() else {
        return Err(RdbError::Damaged("an odd number of parts of pairs"));
    };
    Ok(pairs.iter().map(|[first, second]| (first.clone(), second.clone())).collect())
}

#[cfg(test)]
mod tests;
