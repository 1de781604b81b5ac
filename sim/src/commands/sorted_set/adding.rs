//! Shared code of ZADD and ZINCRBY: sets scores of members, under conditions.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error},
    effect::Class,
    keyspace::SortedSet,
    resp::Reply,
};

/// The options of ZADD.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::commands) struct Options {
    /// NX: only new members.
    pub(in crate::commands) new_only: bool,
    /// XX: only existing members.
    pub(in crate::commands) present_only: bool,
    /// GT: only higher scores.
    pub(in crate::commands) higher_only: bool,
    /// LT: only lower scores.
    pub(in crate::commands) lower_only: bool,
    /// CH: replies with the number of added and changed members, not only of added ones.
    pub(in crate::commands) count_changed: bool,
    /// INCR: adds the number to the score, and replies with the new score.
    pub(in crate::commands) increments: bool,
}

impl Options {
    /// Returns true if a member with score `old` may get score `new`.
    fn allow(&self, old: Option<f64>, new: f64) -> bool {
        match old {
            None => !self.present_only,
            Some(old) => {
                !self.new_only && (!self.higher_only || new > old) && (!self.lower_only || new < old)
            }
        }
    }
}

/// Sets the scores of members, or adds to them.
pub(in crate::commands) fn add(
    ctx: &mut Ctx<'_>,
    key: &Bytes,
    pairs: &[(f64, Bytes)],
    options: Options,
) -> Result<Reply, Error> {
    let encodings = ctx.node.config.keyspace.encodings;
    if options.present_only && ctx.modify::<SortedSet>(key)?.is_none() {
        return Ok(if options.increments { Reply::Null } else { Reply::Integer(0) });
    }
    let is_old = ctx.node.config.generation.is_before_7_2();
    let set = ctx.modify_or_create::<SortedSet>(key)?;
    if !is_old {
        set.expect(pairs.len(), &encodings);
    }
    let (mut added, mut updated, mut result) = (0, 0, None);
    for (number, member) in pairs {
        let old = set.score(member);
        let score = match old {
            // A new member gets the number itself: -0.0 stays negative in the reply.
            Some(old) if options.increments => old + number,
            _ => *number,
        };
        if options.new_only && old.is_some() {
            continue;
        }
        // The set existed before: only the sum with an old score can be NaN.
        if score.is_nan() {
            return Err(Error::of("ERR resulting score is not a number (NaN)"));
        }
        if !options.allow(old, score) {
            continue;
        }
        set.insert(member, score, &encodings);
        result = Some(score);
        match old {
            None => added += 1,
            Some(old) if old != score => updated += 1,
            Some(_) => {}
        }
    }
    if added + updated > 0 {
        let event = if options.increments { "zincr" } else { "zadd" };
        ctx.replied();
        ctx.changed_by(added + updated, key, Class::SortedSet, event);
    }
    Ok(match (options.increments, result) {
        (true, score) => score.map_or(Reply::Null, Reply::Double),
        (false, _) if options.count_changed => (added + updated).into(),
        (false, _) => added.into(),
    })
}
