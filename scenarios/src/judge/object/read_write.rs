//! The read-write lock: a hash with the number of levels of each owner, and a key for the lease of
//! each level of a reader.
//!
//! A writer has a field of its own, so that an owner that reads and writes has two holds. A
//! reader's field may remain after its leases have ended, while others keep the hash alive; such a
//! field is no hold.

use lockstorm_world::time::Wall;

use super::{Content, Hold, Holding, Holds, Keys, Known, Object, Value, exclusive};
use crate::judge::history::{self, Mode, SAME_END};

#[derive(Debug)]
pub(super) struct ReadWrite;

/// The field that contains the mode of the lock.
pub(super) const MODE: &str = "mode";

/// Splits the name of a field into its owner and mode.
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

/// Returns the hold of a reader: the levels from the lowest that has not ended upwards. It expires
/// with the last of their leases, or with the hash if that is earlier.
fn read(value: &Value, field: &str, levels: u32) -> Option<Hold> {
    let leases = value.leases.range((field.to_owned(), 0)..=(field.to_owned(), levels));
    let leases: Vec<(u32, Option<i64>)> = leases.map(|((_, level), ends)| (*level, *ends)).collect();
    let (lowest, _) = *leases.first()?;
    let last = |one: Option<i64>, other: Option<i64>| Some(one?.max(other?));
    let longest = leases.into_iter().map(|(_, ends)| ends).reduce(last).flatten();
    // The clock of a real server advances within a script. So the reader's lease key and the hash
    // may have got ends up to `SAME_END` apart. The lease key's counts, because the hash's changes
    // when another reader comes in.
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

    /// Rows: the fields of the hash, which expires at 900, the leases of levels, and the expected
    /// holds.
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
            // The leases of one reader are over while another keeps the hash alive.
            (
                &[("mode", "read"), ("c1:1", "1"), ("c2:1", "1")],
                &[("c2:1", 1, 900)],
                &[("c2:1", reads, 1, 900)],
            ),
            // A level that has ended counts as long as a lower one has not.
            (&[("mode", "read"), ("c1:1", "3")], &[("c1:1", 2, 800)], &[("c1:1", reads, 2, 800)]),
            // The hash ends first.
            (&[("mode", "read"), ("c1:1", "1")], &[("c1:1", 1, 5_000)], &[("c1:1", reads, 1, 900)]),
            // The hash and the lease got the same end, but the clock advanced by a millisecond in
            // between.
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
