//! Locks of different kinds under one name. They are one lock: they live in one key, and each
//! excludes the owners of the others.

use std::rc::Rc;

use super::{
    Content, Hold, Holding, Holds, Keys, Known, LockKind, Object, Value, exclusive, fair, read_write,
};
use crate::judge::history::{self, Mode};

/// A kind of lock that cannot share a name with another kind. `why` is the reason, as the end of a
/// sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Apart {
    pub(crate) kind: LockKind,
    pub(crate) other: LockKind,
    pub(crate) why: &'static str,
}

/// Returns the adapter of the single lock that these kinds form together.
///
/// # Errors
/// The reason why these kinds cannot form one lock.
pub(crate) fn object(kinds: &[LockKind]) -> Result<Rc<dyn Object>, Apart> {
    let is_exclusive = |kind: &LockKind| {
        matches!(
            kind,
            LockKind::Plain | LockKind::Spin | LockKind::NonReentrant | LockKind::String | LockKind::Redlock
        )
    };
    let is_fair = |kind: &LockKind| matches!(kind, LockKind::Fair | LockKind::NonReentrantFair);
    for kind in kinds {
        let why = match kind {
            LockKind::Semaphore
            | LockKind::PermitSemaphore
            | LockKind::Latch
            | LockKind::Rate
            | LockKind::FasterMulti => "does not keep what holds it in the form of a lock",
            LockKind::Fenced if kinds.iter().any(|kind| *kind != LockKind::Fenced) => {
                "hands out a token with each grant, which the other does not, so that a resource could not tell which came later"
            }
            LockKind::Fair | LockKind::NonReentrantFair if !kinds.iter().all(is_fair) => {
                "is granted in the order of its queue, past which the other asks"
            }
            _ => continue,
        };
        let other = kinds.iter().find(|other| *other != kind).unwrap_or(kind);
        return Err(Apart { kind: *kind, other: *other, why });
    }
    Ok(if kinds.iter().all(is_fair) {
        Rc::new(fair::Fair)
    } else if kinds.iter().all(|kind| is_exclusive(kind) || *kind == LockKind::Fenced) {
        Rc::new(exclusive::Exclusive)
    } else if kinds.iter().all(|kind| *kind == LockKind::ReadWrite) {
        Rc::new(read_write::ReadWrite)
    } else {
        Rc::new(OneName)
    })
}

/// A read-write lock beside a lock with one owner at a time. Readers share it; writers and the
/// owners of the other lock have it alone.
///
/// A reader and an owner of the other lock may have the same field, whose value counts the levels
/// of both. Each level granted to a reader came with a lease of its own. In a hash without a mode,
/// all levels without a lease belong to the other lock. In a hash with a mode, two sorts of levels
/// belong to the other lock: the levels that a hold had before readers entered beside it, and the
/// levels granted to a reader above its own.
#[derive(Debug)]
struct OneName;

impl Object for OneName {
    fn promises(&self) -> history::LockKind {
        history::LockKind::ReadWrite
    }

    fn keys(&self, name: &str) -> Keys {
        read_write::ReadWrite.keys(name)
    }

    fn leases_are_apart(&self) -> bool {
        true
    }

    fn holding(&self, values: &[Value], before: &Known, by: Option<&str>) -> Holding {
        let Some(value) = values.first() else { return Holding::default() };
        let Content::Fields(fields) = &value.content else { return exclusive::holding(values) };
        let has_mode = fields.contains_key(read_write::MODE);
        let mut holds: Holds = read_write::ReadWrite.holding(values, before, by).holds;
        let levels = levels(fields.iter().filter(|(field, _)| *field != read_write::MODE));
        for (name, &now) in &levels {
            let of_name = (name.clone(), 0)..=(name.clone(), now);
            let leases = u32::try_from(value.leases.range(of_name).count()).unwrap_or(now);
            let was = before.levels.get(name).copied().unwrap_or(0);
            let had = before.alone.get(name).copied().unwrap_or(0);
            let alone = if !has_mode {
                now
            } else if now > was {
                let has_lease = value.leases.contains_key(&(name.clone(), now));
                if was > 0 && !has_lease { had + (now - was) } else { had }
            } else if leases == 0 {
                // The reader's leases are over, so the released levels belong to the other lock.
                had.saturating_sub(was - now)
            } else {
                had
            };
            let alone = alone.min(now.saturating_sub(leases));
            let shared = (name.clone(), Mode::Shared);
            if let Some(hold) = holds.get_mut(&shared) {
                hold.count = hold.count.min(now - alone);
            }
            holds.retain(|_, hold| hold.count > 0);
            if alone > 0 {
                let hold = Hold { count: alone, expires_ms: value.expires_ms };
                holds.insert((name.clone(), Mode::Exclusive), hold);
            }
        }
        Holding { holds, levels, ..Holding::default() }
    }
}

/// Returns the number of levels of each field of a reader or an owner of the other lock.
fn levels<'a>(
    fields: impl Iterator<Item = (&'a String, &'a String)>,
) -> std::collections::BTreeMap<String, u32> {
    let of_others = fields.filter(|(field, _)| history::LockKind::ReadWrite.named(field).1 == Mode::Shared);
    of_others.map(|(field, levels)| (field.clone(), levels.parse().unwrap_or(1))).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    type Fields<'a> = &'a [(&'a str, &'a str)];
    type Leases<'a> = &'a [(&'a str, u32, i64)];

    /// Returns the holds after the last of these states of the hash. The hash expires at 900.
    fn last(states: &[(Fields<'_>, Leases<'_>)]) -> Vec<(String, Mode, u32)> {
        let (mut before, mut found) = (Known::default(), Vec::new());
        for (fields, leases) in states {
            let fields = fields.iter().map(|(name, count)| ((*name).to_owned(), (*count).to_owned()));
            let leases = leases.iter().map(|(name, level, at)| (((*name).to_owned(), *level), Some(*at)));
            let (content, leases) = (Content::Fields(fields.collect()), leases.collect());
            let value = Value { content, expires_ms: Some(900), leases, ..Value::default() };
            let Holding { holds, levels, .. } = OneName.holding(&[value], &before, None);
            let alone = holds.iter().filter(|((_, mode), _)| *mode == Mode::Exclusive);
            let alone: BTreeMap<String, u32> =
                alone.map(|((name, _), hold)| (name.clone(), hold.count)).collect();
            before = Known { levels, alone, ..Known::default() };
            found = holds.into_iter().map(|((name, mode), hold)| (name, mode, hold.count)).collect();
        }
        found
    }

    #[test]
    fn a_field_is_of_a_reader_where_a_lease_says_so_and_else_of_who_has_the_lock_alone() {
        let (alone, shared) = (Mode::Exclusive, Mode::Shared);
        let of = |name: &str, mode, count| (name.to_owned(), mode, count);
        let held: (Fields<'_>, Leases<'_>) = (&[("c1:1", "1")], &[]);
        assert_eq!(last(&[held]), [of("c1:1", alone, 1)]);
        // A reader entered beside the owner.
        let beside: (Fields<'_>, Leases<'_>) =
            (&[("mode", "read"), ("c1:1", "1"), ("c2:1", "1")], &[("c2:1", 1, 800)]);
        assert_eq!(last(&[held, beside]), [of("c1:1", alone, 1), of("c2:1", shared, 1)]);
        // The lease of `c1:1` is over, and `c1:1` never held the other lock.
        assert_eq!(last(&[beside]), [of("c2:1", shared, 1)]);
        // A reader is granted the other lock as a further level, and releases that level.
        let reads: (Fields<'_>, Leases<'_>) =
            (&[("mode", "read"), ("c1:1", "1"), ("c2:1", "1")], &[("c1:1", 1, 800), ("c2:1", 1, 800)]);
        let both: (Fields<'_>, Leases<'_>) =
            (&[("mode", "read"), ("c1:1", "2"), ("c2:1", "1")], &[("c1:1", 1, 800), ("c2:1", 1, 800)]);
        let on_top = [of("c1:1", alone, 1), of("c1:1", shared, 1), of("c2:1", shared, 1)];
        assert_eq!(last(&[reads, both]), on_top);
        assert_eq!(last(&[reads, both, both]), on_top);
        assert_eq!(last(&[reads, both, reads]), [of("c1:1", shared, 1), of("c2:1", shared, 1)]);
        let writes: (Fields<'_>, Leases<'_>) = (&[("mode", "write"), ("c1:1:write", "1")], &[]);
        assert_eq!(last(&[writes]), [of("c1:1", alone, 1)]);
    }

    #[test]
    fn kinds_go_together_or_are_named_with_the_reason() {
        let fits = [
            vec![LockKind::Plain, LockKind::ReadWrite],
            vec![LockKind::Spin, LockKind::Plain, LockKind::NonReentrant, LockKind::Redlock],
            vec![LockKind::String, LockKind::Plain, LockKind::ReadWrite],
            vec![LockKind::Fair, LockKind::NonReentrantFair],
        ];
        fits.iter().for_each(|kinds| assert!(object(kinds).is_ok(), "{kinds:?}"));
        for (kind, other, part) in [
            (LockKind::Fair, LockKind::Plain, "in the order of its queue"),
            (LockKind::Fair, LockKind::String, "in the order of its queue"),
            (LockKind::Fenced, LockKind::Plain, "hands out a token"),
            (LockKind::Semaphore, LockKind::ReadWrite, "in the form of a lock"),
            (LockKind::Latch, LockKind::Latch, "in the form of a lock"),
        ] {
            let apart = object(&[other, kind]).expect_err("they do not go together");
            assert_eq!((apart.kind, apart.other), (kind, other));
            assert!(apart.why.contains(part), "{apart:?}");
        }
    }
}
