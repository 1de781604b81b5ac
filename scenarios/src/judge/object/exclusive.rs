//! The reentrant lock, with or without fencing tokens, and every lock stored like it: a hash with
//! the number of levels of its owner, or a string with the owner's token.

use lockstorm_client::wire;

use super::{Content, Counts, Holding, Keys, Object, Role, Value, alone};
use crate::judge::history;

#[derive(Debug)]
pub(super) struct Exclusive;

impl Object for Exclusive {
    fn promises(&self) -> history::LockKind {
        history::LockKind::Exclusive
    }
}

/// Indexes of the keys.
const HOLDERS: usize = 0;
const TOKEN: usize = 2;

pub(super) fn keys(name: &str) -> Keys {
    let keys = [
        (name.to_owned(), Role::Holders),
        (wire::fair_queue(name), Role::Queue),
        (wire::fencing_token(name), Role::Token),
    ];
    Keys::new(name, keys)
}

/// Reads every field of the hash as a holder.
pub(super) fn holding(values: &[Value]) -> Holding {
    let counts: Counts = match values.get(HOLDERS).map(|value| &value.content) {
        Some(Content::Text(token)) => Counts::from([(token.clone(), 1)]),
        Some(Content::Fields(fields)) => {
            fields.iter().map(|(name, count)| (name.clone(), count.parse().unwrap_or(1))).collect()
        }
        _ => Counts::new(),
    };
    let expires_ms = values.get(HOLDERS).and_then(|value| value.expires_ms);
    let token = values.get(TOKEN).and_then(Value::number);
    Holding { holds: alone(counts, expires_ms), token, ..Holding::default() }
}
