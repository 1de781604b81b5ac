//! Ranges of a sorted set by score or by member, and the ranks they cover.

use std::ops::Range;

use bytes::Bytes;

use crate::{
    blob::Blob,
    commands::{Error, double_prefix, index_range},
    keyspace::SortedSet,
};

/// A range of members.
#[derive(Debug, Clone)]
pub(super) enum Bounds {
    /// By rank, both included; negative ranks count from the end.
    Rank(i64, i64),
    /// By score.
    Score(ScoreBound, ScoreBound),
    /// By member; defined if all scores are equal.
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

impl LexBound {
    /// Returns true if a range that begins here excludes `member`.
    fn is_after(&self, member: &[u8]) -> bool {
        match self {
            LexBound::Lowest => false,
            LexBound::Highest => true,
            LexBound::Included(bound) => *member < **bound,
            LexBound::Excluded(bound) => *member <= **bound,
        }
    }

    /// Returns true if a range that ends here includes `member`.
    fn is_not_before(&self, member: &[u8]) -> bool {
        match self {
            LexBound::Lowest => false,
            LexBound::Highest => true,
            LexBound::Included(bound) => *member <= **bound,
            LexBound::Excluded(bound) => *member < **bound,
        }
    }
}

/// Returns the ranks from `min` to `max`. They are defined only if all scores are equal. Otherwise
/// a server checks the two ends first, and walks through a small set until a member is outside;
/// this function does the same.
fn lex_ranks(set: &SortedSet, min: &LexBound, max: &LexBound, reversed: bool) -> Range<usize> {
    let ends = set.get(0).zip(set.len().checked_sub(1).and_then(|last| set.get(last)));
    if !ends.is_some_and(|((_, first), (_, last))| max.is_not_before(first) && !min.is_after(last)) {
        return 0..0;
    }
    if !set.is_compact() {
        let start = set.partition(|_, member| min.is_after(member));
        let end = set.partition(|_, member| max.is_not_before(member));
        return start..end.max(start);
    }
    let members: Vec<&Blob> = set.iter().map(|(_, member)| member).collect();
    if reversed {
        let end = members.iter().rposition(|member| max.is_not_before(member)).map_or(0, |at| at + 1);
        // A backward walk ends at a member that is too low, not at one that is too high.
        let taken = members[..end].iter().rev().take_while(|member| !min.is_after(member)).count();
        end - taken..end
    } else {
        let start = members.iter().position(|member| !min.is_after(member)).unwrap_or(members.len());
        let taken = members[start..].iter().take_while(|member| max.is_not_before(member)).count();
        start..start + taken
    }
}

impl Bounds {
    /// Parses the ends of a range of scores, such as `1.5` and `(3`.
    pub(super) fn scores(min: &[u8], max: &[u8]) -> Result<Bounds, Error> {
        Ok(Bounds::Score(ScoreBound::parse(min)?, ScoreBound::parse(max)?))
    }

    /// Parses the ends of a range of members, such as `[a` and `+`.
    pub(super) fn members(min: &Bytes, max: &Bytes) -> Result<Bounds, Error> {
        Ok(Bounds::Lex(LexBound::parse(min)?, LexBound::parse(max)?))
    }

    /// Returns the ranks in the range. If `reversed`, those of [`Bounds::Rank`] count from the
    /// other end.
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
            Bounds::Lex(min, max) => return lex_ranks(set, min, max, reversed),
        };
        start..end.max(start)
    }
}
