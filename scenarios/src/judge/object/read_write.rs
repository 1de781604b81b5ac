//! The read-write lock: a hash that counts the levels of each owner, and a key for the lease of
//! each level of a reader.
//!
//! An owner that writes has a field of its own, so that one that does both has two holds. A
//! reader's field may stay when its leases have ended, while others keep the hash: it holds nothing
//! then.

use lockstorm_sim::time::Wall;

use super::{Content, Hold, Holding, Holds, Keys, Known, Object, Value, exclusive};
use crate::judge::history::{self, Mode, SAME_END};

#[derive(Debug)]
pub(super) struct ReadWrite;

/// The field that says whether the lock is shared.
pub(super) const MODE: &str = "mode";

/// The owner that a field is of, and whether it shares the lock.
fn named(field: &str) -> (&str, Mode) {
    history::LockKind::ReadWrite.named(field)
}

impl Object for ReadWrite {
    fn promises(&self) -> history::LockKind {
        history::LockKind::ReadWrite
    }

    fn keys(&self, name: &str) -> Keys {
        exclusive::keys(name).with_leases(name)
    }

    fn holding(&self, values: &[Value], _: &Known, _: Option<&str>) -> Holding {
        let Some(value) = values.first() else { return Holding::default() };
        let Content::Fields(fields) = &value.content else { return Holding::default() };
        let mut holds = Holds::new();
        for (field, levels) in fields.iter().filter(|(field, _)| *field != MODE) {
            let levels = levels.parse().unwrap_or(1);
            let hold = match named(field).1 {
                Mode::Exclusive => Some(Hold { count: levels, expires_ms: value.expires_ms }),
                Mode::Shared => read(value, field, levels),
            };
            let (owner, mode) = named(field);
            holds.extend(hold.map(|hold| ((owner.to_owned(), mode), hold)));
        }
        Holding { holds, ..Holding::default() }
    }

    fn leases_are_apart(&self) -> bool {
        true
    }
}

/// What a reader has: the levels from the lowest that has not ended, until the last of them ends,
/// or the hash.
fn read(value: &Value, field: &str, levels: u32) -> Option<Hold> {
    let leases = value.leases.range((field.to_owned(), 0)..=(field.to_owned(), levels));
    let leases: Vec<(u32, Option<i64>)> = leases.map(|((_, level), ends)| (*level, *ends)).collect();
    let (lowest, _) = *leases.first()?;
    let last = |one: Option<i64>, other: Option<i64>| Some(one?.max(other?));
    let longest = leases.into_iter().map(|(_, ends)| ends).reduce(last).flatten();
    // The clock of a real server goes on within a script: the two ends that a reader was given may
    // be apart, and the hash's is not what becomes later when another one comes in.
    let expires_ms = match (longest, value.expires_ms) {
        (Some(lease), Some(hash)) if Wall::from_millis(hash) + SAME_END < Wall::from_millis(lease) => {
            Some(hash)
        }
        (lease, hash) => lease.or(hash),
    };
    Some(Hold { count: levels - lowest + 1, expires_ms })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Who holds the lock, how often and until when, by the fields of the hash, which expires at
    /// 900, and the leases of levels.
    #[test]
    fn an_owner_holds_what_its_fields_and_leases_say() {
        type Row<'a> = (&'a [(&'a str, &'a str)], &'a [(&'a str, u32, i64)], &'a [(&'a str, Mode, u32, i64)]);
        let (writes, reads) = (Mode::Exclusive, Mode::Shared);
        let rows: [Row<'_>; 7] = [
            (&[("mode", "write"), ("c1:1:write", "2")], &[], &[("c1:1", writes, 2, 900)]),
            // The writer reads as well.
            (
                &[("mode", "write"), ("c1:1:write", "1"), ("c1:1", "1")],
                &[("c1:1", 1, 500)],
                &[("c1:1", writes, 1, 900), ("c1:1", reads, 1, 500)],
            ),
            (
                &[("mode", "read"), ("c1:1", "1"), ("c2:1", "2")],
                &[("c1:1", 1, 400), ("c2:1", 1, 900), ("c2:1", 2, 300)],
                &[("c1:1", reads, 1, 400), ("c2:1", reads, 2, 900)],
            ),
            // The leases of one reader are over while another keeps the hash.
            (
                &[("mode", "read"), ("c1:1", "1"), ("c2:1", "1")],
                &[("c2:1", 1, 900)],
                &[("c2:1", reads, 1, 900)],
            ),
            // A level that has ended counts as long as one below it has not.
            (&[("mode", "read"), ("c1:1", "3")], &[("c1:1", 2, 800)], &[("c1:1", reads, 2, 800)]),
            // The hash ends first.
            (&[("mode", "read"), ("c1:1", "1")], &[("c1:1", 1, 5_000)], &[("c1:1", reads, 1, 900)]),
            // It was given the same end, in the next millisecond.
            (&[("mode", "read"), ("c1:1", "1")], &[("c1:1", 1, 901)], &[("c1:1", reads, 1, 901)]),
        ];
        for (fields, leases, expected) in rows {
            let fields = fields.iter().map(|(name, count)| ((*name).to_owned(), (*count).to_owned()));
            let leases = leases.iter().map(|(owner, level, at)| (((*owner).to_owned(), *level), Some(*at)));
            let content = Content::Fields(fields.collect());
            let value =
                Value { content, expires_ms: Some(900), leases: leases.collect(), ..Value::default() };
            let holding = ReadWrite.holding(&[value], &Known::default(), None);
            let hold = |count, at| Hold { count, expires_ms: Some(at) };
            let expected = expected
                .iter()
                .map(|(owner, mode, count, at)| (((*owner).to_owned(), *mode), hold(*count, *at)));
            assert_eq!(holding.holds, expected.collect());
        }
    }
}
