//! Replies of members with scores, which the two protocols nest differently.

use bytes::Bytes;

use crate::{
    blob::Blob,
    commands::{Ctx, Error},
    keyspace::SortedSet,
    resp::Reply,
};

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

/// Runs ZRANK and ZREVRANK: replies with the rank of the member `args[2]`, and with WITHSCORE with
/// its score, too.
pub(super) fn ranked(
    ctx: &mut Ctx<'_>,
    args: &[Bytes],
    rank: impl Fn(&SortedSet) -> Option<usize>,
    command: &str,
) -> Result<Reply, Error> {
    let with_score = match &args[3..] {
        [] => false,
        [word] if word.eq_ignore_ascii_case(b"withscore") => true,
        [_] => return Err(Error::SYNTAX),
        _ => return Err(Error::arity(command)),
    };
    let set = ctx.read::<SortedSet>(&args[1])?;
    let rank = set.and_then(rank).map(Reply::from);
    let score = set.and_then(|set| set.score(&args[2])).map(Reply::Double);
    Ok(match (rank, score) {
        (Some(rank), Some(score)) if with_score => Reply::Array(vec![rank, score]),
        (Some(rank), _) => rank,
        (None, _) if with_score => Reply::NullArray,
        (None, _) => Reply::Null,
    })
}
