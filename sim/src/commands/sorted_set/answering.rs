//! Members with their scores as replies, which the two protocols nest differently.

use bytes::Bytes;

use crate::resp::{Protocol, Reply};

/// Members, with their scores if wanted: in RESP3 as pairs, in RESP2 one after the other.
pub(super) fn members<'a>(
    members: impl Iterator<Item = (f64, &'a Bytes)>,
    with_scores: bool,
    protocol: Protocol,
) -> Reply {
    let mut replies = Vec::with_capacity(members.size_hint().0);
    for (score, member) in members {
        let (member, score) = (Reply::Bulk(member.clone()), Reply::Double(score));
        match (with_scores, protocol) {
            (false, _) => replies.push(member),
            (true, Protocol::Resp2) => replies.extend([member, score]),
            (true, Protocol::Resp3) => replies.push(Reply::Array(vec![member, score])),
        }
    }
    Reply::Array(replies)
}
