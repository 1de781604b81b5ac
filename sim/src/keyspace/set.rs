//! A set of byte strings: sorted integers while it is small and all members are integers, a hash
//! table from then on.

use super::{Dict, Encodings, Typed, Value, integer};
use crate::blob::Blob;

/// The members of a set.
#[derive(Debug, Clone)]
pub struct Set(Repr);

#[derive(Debug, Clone)]
enum Repr {
    /// Ascending, which is the order of SMEMBERS.
    Integers(Vec<i64>),
    Table(Box<Dict<()>>),
}

impl Default for Set {
    fn default() -> Set {
        Set(Repr::Integers(Vec::new()))
    }
}

impl Set {
    /// Returns the number of members.
    pub fn len(&self) -> usize {
        match &self.0 {
            Repr::Integers(integers) => integers.len(),
            Repr::Table(table) => table.len(),
        }
    }

    /// Returns true if the set has no members.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds a member; returns true if it is new. Too many integers turn into a hash table, which
    /// never turns back.
    pub fn insert(&mut self, member: impl AsRef<[u8]> + Into<Blob>, encodings: &Encodings) -> bool {
        match &mut self.0 {
            Repr::Table(table) => table.insert(member, ()).is_none(),
            Repr::Integers(integers) => {
                match integer(member.as_ref()).map(|n| (n, integers.binary_search(&n))) {
                    Some((_, Ok(_))) => false,
                    Some((n, Err(at))) => {
                        integers.insert(at, n);
                        if integers.len() > encodings.set_integers_max {
                            self.spread();
                        }
                        true
                    }
                    None => self.spread().insert(member, ()).is_none(),
                }
            }
        }
    }

    fn spread(&mut self) -> &mut Dict<()> {
        if let Repr::Integers(integers) = &self.0 {
            let mut table = Dict::default();
            for &n in integers {
                table.insert(Blob::integer(n), ());
            }
            self.0 = Repr::Table(Box::new(table));
        }
        match &mut self.0 {
            Repr::Table(table) => table,
            Repr::Integers(_) => unreachable!("it was just made a table"),
        }
    }

    /// Removes a member; returns true if it existed.
    pub fn remove(&mut self, member: &[u8]) -> bool {
        match &mut self.0 {
            Repr::Table(table) => table.remove(member).is_some(),
            Repr::Integers(integers) => {
                let at = integer(member).and_then(|n| integers.binary_search(&n).ok());
                at.map(|at| integers.remove(at)).is_some()
            }
        }
    }

    /// Returns true if `member` is in the set.
    pub fn contains(&self, member: &[u8]) -> bool {
        match &self.0 {
            Repr::Table(table) => table.contains(member),
            Repr::Integers(integers) => integer(member).is_some_and(|n| integers.binary_search(&n).is_ok()),
        }
    }

    /// Returns the members in ascending order, while the set is held as integers.
    pub fn integers(&self) -> Option<&[i64]> {
        match &self.0 {
            Repr::Integers(integers) => Some(integers),
            Repr::Table(_) => None,
        }
    }

    /// Returns all members.
    pub fn iter(&self) -> impl Iterator<Item = Blob> {
        let (integers, table) = match &self.0 {
            Repr::Integers(integers) => (Some(integers), None),
            Repr::Table(table) => (None, Some(table)),
        };
        let integers = integers.into_iter().flatten().map(|&n| Blob::integer(n));
        integers.chain(table.into_iter().flat_map(|table| table.iter()).map(|(member, ())| member.apart()))
    }

    /// Returns the bytes per member of a set held as integers. `None` for a table.
    pub fn integer_width(&self) -> Option<usize> {
        let Repr::Integers(integers) = &self.0 else { return None };
        let fits = |min: i64, max: i64| {
            integers.first().is_none_or(|least| *least >= min)
                && integers.last().is_none_or(|most| *most <= max)
        };
        Some(match () {
            () if fits(i16::MIN.into(), i16::MAX.into()) => 2,
            () if fits(i32::MIN.into(), i32::MAX.into()) => 4,
            () => 8,
        })
    }

    /// Returns the lengths of some members, like [`Dict::sample`]. Empty for a set held as
    /// integers.
    pub fn sample_lengths(&self, count: usize) -> impl Iterator<Item = usize> {
        let table = match &self.0 {
            Repr::Integers(_) => None,
            Repr::Table(table) => Some(table),
        };
        table.into_iter().flat_map(move |table| table.sample(count)).map(|(member, ())| member.len())
    }

    /// Returns a member chosen by `draw`, which gets a bound and returns an index below it.
    pub fn random(&self, mut draw: impl FnMut(usize) -> usize) -> Option<Blob> {
        match &self.0 {
            Repr::Integers(integers) if integers.is_empty() => None,
            Repr::Integers(integers) => Some(Blob::integer(integers[draw(integers.len())])),
            Repr::Table(table) => table.random(draw).map(|(member, ())| member.apart()),
        }
    }

    /// Performs one step of an incremental scan, like [`Dict::scan`]. Integers are visited in one
    /// step.
    pub fn scan(&self, cursor: u64, mut visit: impl FnMut(Blob)) -> u64 {
        match &self.0 {
            Repr::Integers(integers) => {
                integers.iter().for_each(|&n| visit(Blob::integer(n)));
                0
            }
            Repr::Table(table) => table.scan(cursor, |member, ()| visit(member.apart())),
        }
    }

    /// Returns the encoding's name in the reply of OBJECT ENCODING.
    pub fn encoding(&self) -> &'static str {
        match &self.0 {
            Repr::Integers(_) => "intset",
            Repr::Table(_) => "hashtable",
        }
    }
}

impl Typed for Set {
    fn of(value: &Value) -> Option<&Set> {
        if let Value::Set(set) = value { Some(set) } else { None }
    }
    fn of_mut(value: &mut Value) -> Option<&mut Set> {
        if let Value::Set(set) = value { Some(set) } else { None }
    }
    fn empty() -> Value {
        Value::Set(Set::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(members: &[&str]) -> Set {
        let encodings = Encodings { set_integers_max: 3, ..Encodings::default() };
        let mut set = Set::default();
        for member in members {
            set.insert(Blob::copy(member.as_bytes()), &encodings);
        }
        set
    }

    #[test]
    fn integers_stay_sorted_until_there_are_too_many_or_something_else_comes() {
        for (members, encoding, len) in [
            (&["3", "-1", "2", "3"][..], "intset", 3),
            (&["3", "1", "2", "4"][..], "hashtable", 4),
            (&["1", "x"][..], "hashtable", 2),
            // Only the canonical form of an integer counts as that integer.
            (&["1", "01"][..], "hashtable", 2),
            (&["0", "-0"][..], "hashtable", 2),
            (&["9223372036854775807", "-9223372036854775808"][..], "intset", 2),
            (&["9223372036854775808"][..], "hashtable", 1),
        ] {
            let set = set(members);
            assert_eq!((set.encoding(), set.len()), (encoding, len), "{members:?}");
            assert!(members.iter().all(|member| set.contains(member.as_bytes())), "{members:?}");
        }
        let sorted: Vec<Blob> = set(&["3", "-1", "2"]).iter().collect();
        assert_eq!(sorted, ["-1", "2", "3"]);
    }

    #[test]
    fn a_table_never_turns_back_into_integers() {
        let mut set = set(&["1", "x"]);
        assert!(set.remove(b"x"));
        assert_eq!(set.encoding(), "hashtable");
        assert!(set.remove(b"1") && set.is_empty());
    }
}
