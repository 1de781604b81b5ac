//! The words of CLUSTER MIGRATESLOTS and CLUSTER SYNCSLOTS ESTABLISH.

use bytes::Bytes;

use crate::cluster::{SLOTS, SlotSet};

/// The error for words of another form.
pub(super) const SYNTAX: &str = "syntax error";

/// Ranges of slots, first and last, and the words after them.
type Ranges<'a> = (Vec<(u16, u16)>, &'a [Bytes]);

/// Reads `SLOTSRANGE first last ..` and returns the words after it.
///
/// # Errors
/// The reason why the words have no such form.
pub(super) fn slots_range(words: &[Bytes]) -> Result<Ranges<'_>, String> {
    match words.split_first() {
        Some((word, rest)) if word.eq_ignore_ascii_case(b"slotsrange") => ranges(rest),
        _ => Err(SYNTAX.into()),
    }
}

/// Reads `NODE id` and returns the words after it.
///
/// # Errors
/// If the words have no such form.
pub(super) fn node(words: &[Bytes]) -> Result<(&Bytes, &[Bytes]), String> {
    match words {
        [word, node, rest @ ..] if word.eq_ignore_ascii_case(b"node") => Ok((node, rest)),
        _ => Err(SYNTAX.into()),
    }
}

/// Reads ranges of slots up to the first word that is no number, and returns the words after them.
///
/// # Errors
/// If there is no range, a range is not one of slots, or two ranges overlap.
pub(super) fn ranges(words: &[Bytes]) -> Result<Ranges<'_>, String> {
    let number = |word: &Bytes| {
        let text = std::str::from_utf8(word).ok()?;
        text.parse::<i64>().ok().filter(|number| number.to_string() == text)
    };
    let slot = |word: &Bytes| {
        let slot = number(word).and_then(|slot| u16::try_from(slot).ok()).filter(|slot| *slot < SLOTS);
        slot.ok_or_else(|| "Invalid or out of range slot".to_owned())
    };
    let (mut found, mut seen): (Vec<(u16, u16)>, SlotSet) = Default::default();
    let mut rest = words;
    while let Some((first, after)) = rest.split_first()
        && number(first).is_some()
    {
        let Some((last, after)) = after.split_first() else {
            return Err("No end slot for final slot range".into());
        };
        let (first, last) = (slot(first)?, slot(last)?);
        if first > last {
            return Err(format!("Start slot number {first} is greater than end slot number {last}."));
        }
        if (first..=last).any(|slot| seen.has(slot)) {
            let other = found.iter().find(|(from, to)| first <= *to && *from <= last);
            let (from, to) = other.copied().unwrap_or_default();
            return Err(format!("Slot range {first}-{last} overlaps with previous range {from}-{to}."));
        }
        for slot in first..=last {
            seen.add(slot);
        }
        found.push((first, last));
        rest = after;
    }
    if found.is_empty() { Err("No slot ranges specified".into()) } else { Ok((found, rest)) }
}

/// The words of ESTABLISH.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Establish {
    /// The name of the source.
    pub(super) source: Vec<u8>,
    /// The name of the job.
    pub(super) name: String,
    /// The slots.
    pub(super) ranges: Vec<(u16, u16)>,
}

/// A part of ESTABLISH, which is checked before the next one is read.
pub(super) enum Part<'a> {
    /// The name of the source.
    Source(&'a [u8]),
    /// The slots.
    Slots(&'a [(u16, u16)]),
}

/// Reads `SOURCE id NAME job SLOTSRANGE first last ..`, in any order. `check` refuses a part as
/// soon as it is read.
///
/// # Errors
/// The reason why the words have no such form, or the error of `check`.
pub(super) fn establish(
    words: &[Bytes],
    check: impl Fn(Part<'_>) -> Result<(), String>,
) -> Result<Establish, String> {
    let is_name = |word: &Bytes| word.len() == 40 && word.iter().all(u8::is_ascii_alphanumeric);
    let (mut source, mut name, mut slots) = (None, None, None);
    let mut rest = words;
    while let Some((word, after)) = rest.split_first() {
        let place = match &word.to_ascii_lowercase()[..] {
            b"slotsrange" => {
                let (found, after) = ranges(after)?;
                check(Part::Slots(&found))?;
                slots = Some(found);
                rest = after;
                continue;
            }
            b"source" => &mut source,
            b"name" => &mut name,
            _ => return Err(SYNTAX.into()),
        };
        let Some((value, after)) = after.split_first().filter(|(value, _)| is_name(value)) else {
            return Err(SYNTAX.into());
        };
        *place = Some(value.to_vec());
        if let Some(source) = source.as_ref().filter(|_| word.eq_ignore_ascii_case(b"source")) {
            check(Part::Source(source))?;
        }
        rest = after;
    }
    let (Some(source), Some(name), Some(ranges)) = (source, name, slots) else { return Err(SYNTAX.into()) };
    Ok(Establish { source, name: String::from_utf8_lossy(&name).into_owned(), ranges })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<Bytes> {
        line.split(' ').map(|word| Bytes::copy_from_slice(word.as_bytes())).collect()
    }

    #[test]
    fn ranges_are_read_as_valkey_reads_them() {
        for (line, expected) in [
            ("SLOTSRANGE 1 2 NODE n", Ok(vec![(1, 2)])),
            ("slotsrange 5 5 1 2 node n", Ok(vec![(5, 5), (1, 2)])),
            ("SLOTSRANGE 1 2", Ok(vec![(1, 2)])),
            ("SLOTSRANGE 1", Err("No end slot for final slot range")),
            ("RANGE 1 2 NODE n", Err("syntax error")),
            ("SLOTSRANGE NODE n", Err("No slot ranges specified")),
            ("SLOTSRANGE x 1 NODE n", Err("No slot ranges specified")),
            ("SLOTSRANGE 01 2 NODE n", Err("No slot ranges specified")),
            ("SLOTSRANGE -1 1 NODE n", Err("Invalid or out of range slot")),
            ("SLOTSRANGE 1 x NODE n", Err("Invalid or out of range slot")),
            ("SLOTSRANGE 1 16384 NODE n", Err("Invalid or out of range slot")),
            ("SLOTSRANGE 1 2 3 NODE n", Err("Invalid or out of range slot")),
            ("SLOTSRANGE 2 1 NODE n", Err("Start slot number 2 is greater than end slot number 1.")),
            ("SLOTSRANGE 1 2 2 4 NODE n", Err("Slot range 2-4 overlaps with previous range 1-2.")),
        ] {
            let read = slots_range(&words(line)).map(|(ranges, _)| ranges);
            assert_eq!(read, expected.map_err(str::to_owned), "{line}");
        }
        for (line, rest) in [("NODE n", Some(0)), ("node n x y", Some(2)), ("NODE", None), ("TO n", None)] {
            assert_eq!(node(&words(line)).ok().map(|(_, rest)| rest.len()), rest, "{line}");
        }
    }

    #[test]
    fn an_establish_names_source_job_and_slots_in_any_order() {
        let (source, name) = ("a".repeat(40), "b".repeat(40));
        let lines = [
            format!("SOURCE {source} NAME {name} SLOTSRANGE 1 2 9 9"),
            format!("slotsrange 1 2 9 9 name {name} source {source}"),
        ];
        for line in lines {
            let read = establish(&words(&line), |_| Ok(())).expect("it has all parts");
            assert_eq!((read.source, read.name), (source.clone().into_bytes(), name.clone()), "{line}");
            assert_eq!(read.ranges, [(1, 2), (9, 9)], "{line}");
        }
        for line in [
            format!("SOURCE {source} NAME {name}"),
            format!("SOURCE {source} SLOTSRANGE 1 2"),
            format!("SOURCE x NAME {name} SLOTSRANGE 1 2"),
            format!("SOURCE {source} NAME abc SLOTSRANGE 1 2"),
        ] {
            assert_eq!(establish(&words(&line), |_| Ok(())), Err("syntax error".into()), "{line}");
        }
        let unknown = format!("SOURCE {source} SLOTSRANGE 1");
        assert_eq!(establish(&words(&unknown), |_| Err("unknown".into())), Err("unknown".into()));
    }
}
