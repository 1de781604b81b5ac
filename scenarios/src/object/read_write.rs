//! The read-write lock: a hash that counts the holds of each owner, with a field that says in which mode they are held.

use super::{Holding, Known, Object, Value, exclusive};
use crate::history::{self, Mode};

#[derive(Debug)]
pub(super) struct ReadWrite;

/// The field of the mode, and what it says when the lock is shared.
const MODE: &str = "mode";
const READ: &str = "read";

impl Object for ReadWrite {
    fn promises(&self) -> history::LockKind {
        history::LockKind::ReadWrite
    }

    fn holding(&self, values: &[Value], _: &Known, _: Option<&str>) -> Holding {
        let mut holding = exclusive::holding(values);
        holding.counts.remove(MODE);
        if let Some(super::Content::Fields(fields)) = values.first().map(|value| &value.content)
            && fields.get(MODE).is_some_and(|mode| mode == READ)
        {
            holding.mode = Mode::Shared;
        }
        holding
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::{Content, Counts};

    #[test]
    fn the_mode_of_a_read_write_lock_is_no_holder() {
        let holding = |object: &dyn Object, mode: &str| {
            let fields =
                [("mode", mode), ("c1:1", "2")].map(|(name, value)| (name.to_owned(), value.to_owned()));
            let value = Value { content: Content::Fields(fields.into()), expires_ms: None };
            object.holding(&[value], &Known::default(), None)
        };
        let counts = Counts::from([("c1:1".to_owned(), 2)]);
        let read = holding(&ReadWrite, "read");
        assert_eq!((read.mode, &read.counts), (Mode::Shared, &counts));
        let write = holding(&ReadWrite, "write");
        assert_eq!((write.mode, &write.counts), (Mode::Exclusive, &counts));
        assert_eq!(holding(&exclusive::Exclusive, "read").counts.len(), 2);
    }
}
