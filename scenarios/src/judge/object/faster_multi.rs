//! The faster multi-lock: a hash with the owner of each locked value of a group, and with a
//! deadline and a number of levels for each owner and value.
//!
//! Each client locks two of three values, so that any two clients share a value, and different
//! pairs of clients share different values. An owner of any value therefore excludes all other
//! clients.

use lockstorm_client::wire;

use super::{Content, Hold, Holding, Holds, Keys, Known, Object, Role, Value};
use crate::judge::history::{self, Mode};

#[derive(Debug)]
pub(super) struct FasterMulti;

/// Returns the values that the client on this host locks together.
pub(crate) fn values_of(host: &str) -> [&'static str; 2] {
    const ALL: [&str; 3] = ["a", "b", "c"];
    let first = host.bytes().map(usize::from).sum::<usize>();
    [0, 1].map(|next| ALL[(first + next) % ALL.len()])
}

impl Object for FasterMulti {
    fn promises(&self) -> history::LockKind {
        history::LockKind::Exclusive
    }

    fn keys(&self, name: &str) -> Keys {
        Keys::new(name, [(name.to_owned(), Role::Holders)])
    }

    /// A key expires after the millisecond that its expiry names. A value ends in the millisecond
    /// that its deadline names, as in Redisson, so up to a millisecond before its lease. A value
    /// past its deadline may remain until the next command takes it.
    fn holding(&self, values: &[Value], _: &Known, _: Option<&str>) -> Holding {
        let Some(Content::Fields(fields)) = values.first().map(|value| &value.content) else {
            return Holding::default();
        };
        let mut holds = Holds::new();
        for (value, owner) in fields.iter().filter(|(field, _)| !field.contains(':')) {
            let number = |what: &str| fields.get(&format!("{value}:{owner}:{what}"))?.parse::<i64>().ok();
            let (deadline, levels) = (number(DEADLINE), number(LEVELS).unwrap_or(1));
            let Some(deadline) = deadline else { continue };
            let count = u32::try_from(levels).unwrap_or(0).max(1);
            let hold = Hold { count, expires_ms: Some(deadline - 1) };
            let entry = holds.entry((owner.clone(), Mode::Exclusive)).or_insert(hold);
            // The hold lasts until its last value ends.
            entry.count = entry.count.max(hold.count);
            entry.expires_ms = entry.expires_ms.max(hold.expires_ms);
        }
        Holding { holds, ..Holding::default() }
    }

    fn leases_are_apart(&self) -> bool {
        true
    }
}

/// Suffixes of the fields of an owner at a value.
const DEADLINE: &str = "expire_time";
const LEVELS: &str = "lock_count";

/// Returns the fields of these values.
pub(crate) fn fields_of(values: [&str; 2]) -> [String; 2] {
    values.map(|value| wire::group_field(value.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows: the fields, and per owner the levels and the millisecond before its last deadline.
    #[test]
    fn an_owner_holds_until_the_last_of_its_values_is_over() {
        type Row<'a> = (&'a [(&'a str, &'a str)], &'a [(&'a str, u32, i64)]);
        let rows: [Row<'_>; 4] = [
            (&[], &[]),
            (
                &[
                    ("a", "c1:1"),
                    ("a:c1:1:expire_time", "900"),
                    ("a:c1:1:lock_count", "1"),
                    ("b", "c1:1"),
                    ("b:c1:1:expire_time", "700"),
                    ("b:c1:1:lock_count", "2"),
                ],
                &[("c1:1", 2, 899)],
            ),
            // One of its values belongs to another owner; the former owner's fields remain without
            // effect.
            (
                &[
                    ("a", "c1:1"),
                    ("a:c1:1:expire_time", "900"),
                    ("b", "c2:1"),
                    ("b:c1:1:expire_time", "900"),
                    ("b:c2:1:expire_time", "500"),
                    ("b:c2:1:lock_count", "1"),
                ],
                &[("c1:1", 1, 899), ("c2:1", 1, 499)],
            ),
            // A value without a deadline is free.
            (&[("a", "c1:1"), ("a:c1:1:lock_count", "1")], &[]),
        ];
        for (fields, expected) in rows {
            let fields = fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
            let value = Value { content: Content::Fields(fields.collect()), ..Value::default() };
            let holding = FasterMulti.holding(&[value], &Known::default(), None);
            let hold = |(owner, count, at): &(&str, u32, i64)| {
                (((*owner).to_owned(), Mode::Exclusive), Hold { count: *count, expires_ms: Some(*at) })
            };
            assert_eq!(holding.holds, expected.iter().map(hold).collect());
        }
    }

    #[test]
    fn any_two_clients_have_a_value_in_common() {
        let pairs: Vec<_> = ["c1", "c2", "c3", "c4"].map(values_of).to_vec();
        assert_eq!(pairs, [["b", "c"], ["c", "a"], ["a", "b"], ["b", "c"]]);
    }
}
