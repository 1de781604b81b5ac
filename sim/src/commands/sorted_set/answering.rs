//! Members with their scores as replies, which the two protocols nest differently.

use crate::{blob::Blob, resp::Reply};

/// Members, with their scores if wanted, as pairs.
pub(super) fn members<'a>(members: impl Iterator<Item = (f64, &'a Blob)>, with_scores: bool) -> Reply {
    if with_scores {
        return Reply::Pairs(members.map(scored).collect());
    }
    Reply::Array(members.map(|(_, member)| Reply::from(member)).collect())
}

/// Members with their scores, each pair in an array of its own in either protocol.
pub(super) fn nested<'a>(members: impl Iterator<Item = (f64, &'a Blob)>) -> Reply {
    Reply::Array(members.map(scored).map(|(member, score)| Reply::Array(vec![member, score])).collect())
}

fn scored((score, member): (f64, &Blob)) -> (Reply, Reply) {
    (Reply::from(member), Reply::Double(score))
}
