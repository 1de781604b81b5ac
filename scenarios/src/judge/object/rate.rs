//! The rate limiter: a sorted set of the window's grants, ordered by time. If each client has its
//! own rate, each client has a set, and a grant belongs to the client whose command it was.

use lockstorm_client::wire;

use super::{Content, Holding, Keys, Known, Object, Passing, Role, Value};
use crate::judge::{digest::hex, history};

#[derive(Debug)]
pub(super) struct Rate {
    pub(super) permits: u32,
    pub(super) window_ms: u64,
    pub(super) per_client: bool,
}

impl Object for Rate {
    fn promises(&self) -> history::LockKind {
        let Rate { permits, window_ms, per_client } = *self;
        history::LockKind::Rate { permits, window_ms, per_client }
    }

    fn keys(&self, name: &str) -> Keys {
        Keys::new(name, [(wire::rate_grants(name), Role::Holders)]).with_those_of_clients()
    }

    /// Grants are not holds: they end with the window.
    fn holding(&self, values: &[Value], _: &Known, _: Option<&str>) -> Holding {
        let sets = values.iter().flat_map(|value| {
            let of_all = match &value.content {
                Content::Ranked(members) => Some((None, members)),
                _ => None,
            };
            let of_clients = value.of_clients.iter().map(|(client, members)| (Some(client), members));
            of_all.into_iter().chain(of_clients)
        });
        let grants = sets.flat_map(|(client, members)| {
            let grant = move |member: &Vec<u8>| {
                (hex(member), Passing { permits: permits(member), client: client.cloned() })
            };
            members.keys().map(grant)
        });
        let grants = grants.collect();
        Holding { grants, ..Holding::default() }
    }
}

/// Returns the number of permits of a grant: the last four bytes of its member, little-endian.
fn permits(member: &[u8]) -> u32 {
    member.last_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grant_says_how_many_permits_it_is_and_its_key_of_whose_rate() {
        let member = |first| [&[16][..], &[first; 16], &[2, 1, 0, 0]].concat();
        let members = [(member(7), 1_000), (b"x".to_vec(), 2_000)];
        let of_clients = [("c1.2".to_owned(), [(member(8), 1_500)].into())].into();
        let value = Value { content: Content::Ranked(members.into()), of_clients, ..Value::default() };
        let rate = Rate { permits: 3, window_ms: 1_000, per_client: false };
        let Holding { grants, .. } = rate.holding(&[value], &Known::default(), None);
        let grant = |member: &[u8], permits, client: Option<&str>| {
            (hex(member), Passing { permits, client: client.map(str::to_owned) })
        };
        let expected =
            [grant(&member(7), 258, None), grant(b"x", 0, None), grant(&member(8), 258, Some("c1.2"))];
        assert_eq!(grants, expected.into());
    }
}
