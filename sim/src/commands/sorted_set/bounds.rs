//! Ranges of a sorted set by score or by member, and the ranks they cover.

use std::ops::Range;

use bytes::Bytes;

use crate::{
    commands::{Error, double_prefix, index_range},
    keyspace::SortedSet,
};

/// Which members a range covers, and from where to where.
#[derive(Debug, Clone)]
pub(super) enum Bounds {
    /// By rank, both included; negative ranks count from the end.
    Rank(i64, i64),
    /// By score.
    Score(ScoreBound, ScoreBound),
    /// By member, where all have the same score.
    Lex(LexBound, LexBound),
}

/// One end of a range of scores.
#[derive(Debug, Clone, Copy)]
pub(super) struct ScoreBound {
    score: f64,
    excluded: bool,
}

/// One end of a range of members.
#[derive(Debug, Clone)]
pub(super) enum LexBound {
    /// `-`: before all.
    Lowest,
    /// `+`: after all.
    Highest,
    /// `[member`
    Included(Bytes),
    /// `(member`
    Excluded(Bytes),
}

impl ScoreBound {
    fn parse(text: &[u8]) -> Result<ScoreBound, Error> {
        let excluded = text.first() == Some(&b'(');
        let number = if excluded { &text[1..] } else { text };
        let score = double_prefix(number).ok_or(Error::of("ERR min or max is not a float"))?;
        Ok(ScoreBound { score, excluded })
    }
}

impl LexBound {
    fn parse(text: &Bytes) -> Result<LexBound, Error> {
        match text.as_ref() {
            b"-" => Ok(LexBound::Lowest),
            b"+" => Ok(LexBound::Highest),
            [b'[', ..] => Ok(LexBound::Included(text.slice(1..))),
            [b'(', ..] => Ok(LexBound::Excluded(text.slice(1..))),
            _ => Err(Error::of("ERR min or max not valid string range item")),
        }
    }
}

impl Bounds {
    /// Reads the ends of a range of scores, such as `1.5` and `(3`.
    pub(super) fn scores(min: &[u8], max: &[u8]) -> Result<Bounds, Error> {
        Ok(Bounds::Score(ScoreBound::parse(min)?, ScoreBound::parse(max)?))
    }

    /// Reads the ends of a range of members, such as `[a` and `+`.
    pub(super) fn members(min: &Bytes, max: &Bytes) -> Result<Bounds, Error> {
        Ok(Bounds::Lex(LexBound::parse(min)?, LexBound::parse(max)?))
    }

    /// The ranks that the range covers. Those of [`Bounds::Rank`] are counted from the other end if `reversed`.
    pub(super) fn ranks(&self, set: &SortedSet, reversed: bool) -> Range<usize> {
        let (start, end) = match self {
            Bounds::Rank(start, stop) => {
                let range = index_range(*start, *stop, set.len());
                return if reversed { set.len() - range.end..set.len() - range.start } else { range };
            }
            Bounds::Score(min, max) => (
                set.partition(|score, _| score < min.score || (min.excluded && score == min.score)),
                set.partition(|score, _| score < max.score || (!max.excluded && score == max.score)),
            ),
            Bounds::Lex(min, max) => (
                set.partition(|_, member| match min {
                    LexBound::Lowest => false,
                    LexBound::Highest => true,
                    LexBound::Included(bound) => member < bound,
                    LexBound::Excluded(bound) => member <= bound,
                }),
                set.partition(|_, member| match max {
                    LexBound::Lowest => false,
                    LexBound::Highest => true,
                    LexBound::Included(bound) => member <= bound,
                    LexBound::Excluded(bound) => member < bound,
                }),
            ),
        };
        start..end.max(start)
    }
}
