//! The rate limiter of all clients together: a sorted set of the window's grants, in the order of their time.

use lockstorm_client::wire;

use super::{Content, Counts, Holding, Keys, Known, Object, Role, Value, hex};
use crate::history;

#[derive(Debug)]
pub(super) struct Rate {
    pub(super) permits: u32,
    pub(super) window_ms: u64,
}

impl Object for Rate {
    fn promises(&self) -> history::LockKind {
        history::LockKind::Rate { permits: self.permits, window_ms: self.window_ms }
    }

    fn keys(&self, name: &str) -> Keys {
        Keys::new(name, [(wire::rate_grants(name), Role::Holders)])
    }

    /// What is granted is not held: it ends with the window.
    fn holding(&self, values: &[Value], _: &Known, _: Option<&str>) -> Holding {
        let grants = match values.first().map(|value| &value.content) {
            Some(Content::Ranked(members)) => {
                members.keys().map(|member| (hex(member), permits(member))).collect()
            }
            _ => Counts::new(),
        };
        Holding { grants, ..Holding::default() }
    }
}

/// How many permits a grant is: the last four bytes of its member, the lowest first.
fn permits(member: &[u8]) -> u32 {
    member.last_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grant_says_how_many_permits_it_is() {
        let members = [([&[16][..], &[7; 16], &[2, 1, 0, 0]].concat(), 1_000), (b"x".to_vec(), 2_000)];
        let value = Value { content: Content::Ranked(members.into()), ..Value::default() };
        let rate = Rate { permits: 3, window_ms: 1_000 };
        let Holding { grants, .. } = rate.holding(&[value], &Known::default(), None);
        let grant = format!("10{}02010000", "07".repeat(16));
        assert_eq!(grants, Counts::from([(grant, 258), ("78".to_owned(), 0)]));
    }
}
