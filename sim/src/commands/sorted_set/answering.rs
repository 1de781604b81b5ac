//! Replies of members with scores, which the two protocols nest differently.

use crate::{blob::Blob, resp::Reply};

/// Replies with members, or if `with_scores` with pairs of members and scores.
pub(super) fn members<'a>(members: impl Iterator<Item = (f64, &'a Blob)>, with_scores: bool) -> Reply {
    if with_scores {
        return Reply::Pairs(members.map(scored).collect());
    }
    Reply::Array(members.map(|(_, member)| Reply::from(member)).collect())
}

/// Replies with members and scores, each pair in its own array in both protocols.
pub(super) fn nested<'a>(members: impl Iterator<Item = (f64, &'a Blob)>) -> Reply {
    Reply::Array(members.map(scored).map(|(member, score)| Reply::Array(vec![member, score])).collect())
}

fn scored((score, member): (f64, &Blob)) -> (Reply, Reply) {
    (Reply::from(member), Reply::Double(score))
}
