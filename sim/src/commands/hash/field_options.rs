//! Options of HSETEX and HGETEX: the new time of the fields, and conditions.

use bytes::Bytes;

use super::fields::{
    NO_FIELDS, Unit, is, is_valkey, redis_fields, valkey_fields, valkey_place, when_ms, word_fields,
};
use crate::commands::{Ctx, Error, integer};

const ONE_TIME: Error = Error::of("ERR Only one of EX, PX, EXAT, PXAT or KEEPTTL arguments can be specified");
const ONE_CONDITION: Error = Error::of("ERR Only one of FXX or FNX arguments can be specified");

/// A change of the expiry time of fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Change {
    /// EX, PX, EXAT or PXAT with its number.
    At { number: Bytes, unit: Unit, is_absolute: bool },
    /// KEEPTTL or PERSIST.
    Word,
}

impl Change {
    /// Reads an option with a number.
    fn with_number(option: &[u8], number: &Bytes) -> Option<Change> {
        let (unit, is_absolute) = match option.to_ascii_lowercase().as_slice() {
            b"ex" => (Unit::Seconds, false),
            b"px" => (Unit::Milliseconds, false),
            b"exat" => (Unit::Seconds, true),
            b"pxat" => (Unit::Milliseconds, true),
            _ => return None,
        };
        Some(Change::At { number: number.clone(), unit, is_absolute })
    }

    /// Returns the new time in milliseconds; `None` for KEEPTTL and PERSIST.
    pub(super) fn when_ms(&self, ctx: &Ctx<'_>, command: &str) -> Result<Option<i64>, Error> {
        match self {
            Change::Word => Ok(None),
            Change::At { number, unit, is_absolute } => {
                let origin_ms = if *is_absolute { 0 } else { ctx.wall_ms() };
                when_ms(ctx, number, *unit, origin_ms, command).map(Some)
            }
        }
    }
}

/// The parsed arguments of HSETEX or HGETEX.
#[derive(Debug, Default)]
pub(super) struct Options<'a> {
    /// The change of the times, with the index of its option.
    pub(super) change: Option<(usize, Change)>,
    /// True for FXX, false for FNX.
    pub(super) only_if_fields: Option<bool>,
    /// True for XX, false for NX: the key must exist, or must not. Only Valkey has them.
    pub(super) only_if_key: Option<bool>,
    /// The arguments behind the number of fields.
    pub(super) fields: &'a [Bytes],
}

impl<'a> Options<'a> {
    /// Parses the arguments of HSETEX behind the key.
    pub(super) fn of_hsetex(ctx: &Ctx<'_>, args: &'a [Bytes]) -> Result<Options<'a>, Error> {
        if is_valkey(ctx) {
            return Options::of_valkey(args, 2, true);
        }
        let mut parsed = Options::default();
        let mut at = 2;
        while let Some(word) = args.get(at) {
            if is(word, "fields") {
                let Some([count, fields @ ..]) = args.get(at + 1..) else { break };
                let count = integer(count).ok().filter(|count| (1..=i64::from(i32::MAX)).contains(count));
                let count = count.ok_or(Error::of("ERR invalid number of fields"))?;
                if fields.len() as i64 != count * 2 {
                    break;
                }
                parsed.fields = fields;
                return Ok(parsed);
            }
            if is(word, "fxx") || is(word, "fnx") {
                if parsed.only_if_fields.is_some() {
                    return Err(ONE_CONDITION);
                }
                parsed.only_if_fields = Some(is(word, "fxx"));
                at += 1;
                continue;
            }
            let next = args.get(at + 1);
            let timed = next.and_then(|number| Change::with_number(word, number));
            let Some(change) = timed.or_else(|| is(word, "keepttl").then_some(Change::Word)) else {
                let word = String::from_utf8_lossy(word);
                return Err(Error(format!("ERR unknown argument: {word}").into()));
            };
            if parsed.change.is_some() {
                return Err(ONE_TIME);
            }
            let width = if change == Change::Word { 1 } else { 2 };
            // The number is checked before the next option.
            change.when_ms(ctx, "hsetex")?;
            parsed.change = Some((at, change));
            at += width;
        }
        Err(Error::arity("hsetex"))
    }

    /// Parses the arguments of HGETEX behind the key.
    pub(super) fn of_hgetex(ctx: &Ctx<'_>, args: &'a [Bytes]) -> Result<Options<'a>, Error> {
        if is_valkey(ctx) {
            return Options::of_valkey(args, 1, false);
        }
        let mut parsed = Options::default();
        let mut at = 2;
        let (word, next) = (&args[2], &args[3]);
        if let Some(change) = Change::with_number(word, next) {
            change.when_ms(ctx, "hgetex")?;
            parsed.change = Some((2, change));
            at = 4;
        } else if is(word, "persist") {
            parsed.change = Some((2, Change::Word));
            at = 3;
        }
        match args.get(at..) {
            Some([_]) => Err(Error::arity("hgetex")),
            Some(_) => {
                parsed.fields = redis_fields(args, at)?;
                Ok(parsed)
            }
            None => Err(NO_FIELDS),
        }
    }

    /// Parses the options as Valkey does: an option may be repeated, but not be followed by one
    /// that excludes it. The numbers are checked later.
    fn of_valkey(args: &'a [Bytes], width: usize, sets: bool) -> Result<Options<'a>, Error> {
        // An unknown option counts more than missing fields, but not more than a missing FIELDS.
        let place = valkey_place(args, 2, width);
        let end = place.clone().or_else(|_| word_fields(args, 2))?;
        let mut parsed = Options::default();
        let mut way: Option<Vec<u8>> = None;
        let mut at = 2;
        while at < end {
            let word = args[at].to_ascii_lowercase();
            let is_free = way.as_ref().is_none_or(|way| *way == word);
            let number = args[..end].get(at + 1);
            match word.as_slice() {
                b"fnx" if sets && parsed.only_if_fields != Some(true) => parsed.only_if_fields = Some(false),
                b"fxx" if sets && parsed.only_if_fields != Some(false) => parsed.only_if_fields = Some(true),
                b"nx" if sets && parsed.only_if_key != Some(true) => parsed.only_if_key = Some(false),
                b"xx" if sets && parsed.only_if_key != Some(false) => parsed.only_if_key = Some(true),
                b"keepttl" if sets && is_free => {
                    parsed.change = Some((at, Change::Word));
                    way = Some(word);
                }
                b"persist" if !sets && is_free => {
                    parsed.change = Some((at, Change::Word));
                    way = Some(word);
                }
                _ if is_free => {
                    let change = number.and_then(|number| Change::with_number(&word, number));
                    parsed.change = Some((at, change.ok_or(Error::SYNTAX)?));
                    way = Some(word);
                    at += 1;
                }
                _ => return Err(Error::SYNTAX),
            }
            at += 1;
        }
        parsed.fields = valkey_fields(args, place?, width)?;
        Ok(parsed)
    }
}
