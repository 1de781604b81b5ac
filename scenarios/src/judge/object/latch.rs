//! The count-down latch: a string with the number of count-downs until it opens. An open latch has
//! no key.

use super::{Holding, Known, Object, Value};
use crate::judge::history;

#[derive(Debug)]
pub(super) struct Latch {
    /// The count to which the latch is set.
    pub(super) count: u32,
}

impl Object for Latch {
    fn promises(&self) -> history::LockKind {
        history::LockKind::Latch { count: self.count }
    }

    /// No owner holds a latch.
    fn holding(&self, values: &[Value], _: &Known, _: Option<&str>) -> Holding {
        let count = values.first().and_then(Value::number::<i64>).unwrap_or(0);
        // A negative count means that the latch is open, too.
        Holding { count: Some(u64::try_from(count).unwrap_or(0)), ..Holding::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::object::Content;

    #[test]
    fn a_latch_without_a_count_is_open() {
        let count = |content| {
            let value = Value { content, ..Value::default() };
            Latch { count: 3 }.holding(&[value], &Known::default(), Some("c1:1"))
        };
        for (content, left) in [
            (Content::Text("2".to_owned()), 2),
            (Content::Text("-1".to_owned()), 0),
            (Content::Text("token".to_owned()), 0),
            (Content::Nothing, 0),
        ] {
            assert_eq!(count(content), Holding { count: Some(left), ..Holding::default() });
        }
    }
}
