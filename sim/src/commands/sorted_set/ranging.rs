//! Shared code of the ZRANGE family: a query with bounds, a direction and a limit, whose result is
//! replied or stored.

use std::ops::Range;

use bytes::Bytes;

use super::{answering::members, bounds::Bounds};
use crate::{
    commands::{Ctx, Error, integer},
    keyspace::SortedSet,
    resp::Reply,
};

/// Kind of the bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum By {
    Rank,
    Score,
    Lex,
}

/// Properties that a command's name implies; options give the others.
#[derive(Debug, Clone, Copy)]
pub(super) struct Form {
    pub(super) by: Option<By>,
    pub(super) reversed: Option<bool>,
    /// Set if the command stores the members; it then has no WITHSCORES.
    pub(super) stores: bool,
}

/// The requested range.
#[derive(Debug)]
pub(super) struct Query {
    bounds: Bounds,
    reversed: bool,
    with_scores: bool,
    offset: i64,
    /// Negative for no limit.
    limit: i64,
}

impl Query {
    /// Parses the two ends and the options after them.
    pub(super) fn parse(args: &[Bytes], form: Form) -> Result<Query, Error> {
        let [first, second, options @ ..] = args else { return Err(Error::SYNTAX) };
        let Form { mut by, mut reversed, stores } = form;
        let (mut with_scores, mut offset, mut limit) = (false, 0, -1);
        let mut words = options;
        while let [word, rest @ ..] = words {
            words = rest;
            match (word.to_ascii_lowercase().as_slice(), rest) {
                (b"withscores", _) if !stores => with_scores = true,
                (b"limit", [from, count, rest @ ..]) => {
                    (offset, limit) = (integer(from)?, integer(count)?);
                    words = rest;
                }
                (b"rev", _) if reversed.is_none() => reversed = Some(true),
                (b"bylex", _) if by.is_none() => by = Some(By::Lex),
                (b"byscore", _) if by.is_none() => by = Some(By::Score),
                _ => return Err(Error::SYNTAX),
            }
        }
        let (by, reversed) = (by.unwrap_or(By::Rank), reversed.unwrap_or(false));
        if limit != -1 && by == By::Rank {
            return Err(Error::of(
                "ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX",
            ));
        }
        if by == By::Rank {
            // The only limit allowed here is -1, which selects all and ignores the offset.
            offset = 0;
        }
        if with_scores && by == By::Lex {
            return Err(Error::of("ERR syntax error, WITHSCORES not supported in combination with BYLEX"));
        }
        // In a reversed query the higher end comes first; ranks count from the other end instead.
        let (min, max) = if reversed && by != By::Rank { (second, first) } else { (first, second) };
        let bounds = match by {
            By::Rank => Bounds::Rank(integer(min)?, integer(max)?),
            By::Score => Bounds::scores(min, max)?,
            By::Lex => Bounds::members(min, max)?,
        };
        Ok(Query { bounds, reversed, with_scores, offset, limit })
    }

    /// Returns the ranks of the selected members.
    fn ranks(&self, set: &SortedSet) -> Range<usize> {
        let all = self.bounds.ranks(set, self.reversed);
        // A negative offset skips all members.
        let skipped = usize::try_from(self.offset).unwrap_or(usize::MAX).min(all.len());
        let taken = usize::try_from(self.limit).unwrap_or(usize::MAX).min(all.len() - skipped);
        if self.reversed {
            all.end - skipped - taken..all.end - skipped
        } else {
            all.start + skipped..all.start + skipped + taken
        }
    }

    /// Replies with the selected members of `key`.
    pub(super) fn answer(&self, ctx: &mut Ctx<'_>, key: &Bytes) -> Result<Reply, Error> {
        let Some(set) = ctx.read::<SortedSet>(key)? else { return Ok(Reply::Array(Vec::new())) };
        Ok(members(set.range(self.ranks(set), self.reversed), self.with_scores))
    }

    /// Returns the selected members of `key` as a new set.
    pub(super) fn select(&self, ctx: &mut Ctx<'_>, key: &Bytes) -> Result<SortedSet, Error> {
        let encodings = ctx.node.config.keyspace.encodings;
        let mut selected = SortedSet::default();
        if let Some(set) = ctx.read::<SortedSet>(key)? {
            let ranks = self.ranks(set);
            // The length of a range of ranks is known before the first member is added: a long
            // result is never compact.
            if matches!(self.bounds, Bounds::Rank(..)) && ranks.len() > encodings.sorted_set_entries_max {
                selected.enlarge();
            }
            for (score, member) in set.range(ranks, self.reversed) {
                selected.insert(member.clone(), score, &encodings);
            }
        }
        Ok(selected)
    }
}
