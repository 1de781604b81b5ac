//! The expirable semaphore: a sorted set with the id and deadline of each permit that is taken, and
//! a key with the number of permits left.

use lockstorm_client::wire;

use super::{Content, Hold, Holding, Keys, Known, Object, Role, Value};
use crate::judge::{
    digest::hex,
    history::{self, Mode},
};

#[derive(Debug)]
pub(super) struct PermitSemaphore {
    /// The total number of permits.
    pub(super) permits: u32,
}

impl Object for PermitSemaphore {
    fn promises(&self) -> history::LockKind {
        history::LockKind::Permits { permits: self.permits }
    }

    fn keys(&self, name: &str) -> Keys {
        // The number of permits left stays in Redis when none is taken.
        Keys::new(name, [(wire::permit_deadlines(name), Role::Holders), (name.to_owned(), Role::Token)])
    }

    /// Each permit is a hold of its own. A key expires after the millisecond that its expiry names.
    /// A permit ends in the millisecond that its deadline names, as in Redisson, so up to a
    /// millisecond before its lease. A permit past its deadline may remain until the next command
    /// takes it back.
    fn holding(&self, values: &[Value], _: &Known, _: Option<&str>) -> Holding {
        let Some(Content::Ranked(deadlines)) = values.first().map(|value| &value.content) else {
            return Holding::default();
        };
        let holds = deadlines.iter().map(|(id, deadline)| {
            ((hex(id), Mode::Exclusive), Hold { count: 1, expires_ms: Some(deadline - 1) })
        });
        Holding { holds: holds.collect(), ..Holding::default() }
    }

    fn leases_are_apart(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::object::Holds;

    #[test]
    fn each_permit_is_a_hold_with_a_deadline_of_its_own() {
        let deadlines = [(vec![0xa0; 16], 1_000), (vec![1; 8], 2_000)];
        let value = Value { content: Content::Ranked(deadlines.into()), ..Value::default() };
        let holding = PermitSemaphore { permits: 3 }.holding(&[value], &Known::default(), None);
        let names = ["a0".repeat(16), "01".repeat(8)];
        let hold =
            |name: &String, at| ((name.clone(), Mode::Exclusive), Hold { count: 1, expires_ms: Some(at) });
        assert_eq!(holding.holds, Holds::from([hold(&names[0], 999), hold(&names[1], 1_999)]));
    }
}
