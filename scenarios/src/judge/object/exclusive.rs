//! The reentrant lock, with or without fencing tokens, and every lock stored like it: a hash with
//! the number of levels of its owner, a string with the owner's token, or a hash with the token in
//! one field.

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

/// The field with the owner's token, of a lock that is a hash with one field.
pub(crate) const HOLDER_FIELD: &str = "holder";

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

/// Reads every field of the hash as a holder, except the field that holds a token.
pub(super) fn holding(values: &[Value]) -> Holding {
    let counts: Counts = match values.get(HOLDERS).map(|value| &value.content) {
        Some(Content::Text(token)) => Counts::from([(token.clone(), 1)]),
        Some(Content::Fields(fields)) => {
            let hold = |(name, value): (&String, &String)| match name.as_str() {
                HOLDER_FIELD => (value.clone(), 1),
                _ => (name.clone(), value.parse().unwrap_or(1)),
            };
            fields.iter().map(hold).collect()
        }
        _ => Counts::new(),
    };
    let expires_ms = values.get(HOLDERS).and_then(|value| value.expires_ms);
    let token = values.get(TOKEN).and_then(Value::number);
    Holding { holds: alone(counts, expires_ms), token, ..Holding::default() }
}
