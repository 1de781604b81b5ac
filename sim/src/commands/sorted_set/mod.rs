//! Commands on sorted sets.

pub(super) mod adding;
mod answering;
mod bounds;
mod bzmpop;
mod bzpopmax;
mod bzpopmin;
mod combining;
mod popping;
mod ranging;
mod removing;
pub(super) mod storing;
mod zadd;
mod zcard;
mod zcount;
mod zdiff;
mod zdiffstore;
mod zincrby;
mod zinter;
mod zintercard;
mod zinterstore;
mod zlexcount;
mod zmpop;
mod zmscore;
mod zpopmax;
mod zpopmin;
mod zrandmember;
mod zrange;
mod zrangebylex;
mod zrangebyscore;
mod zrangestore;
mod zrank;
mod zrem;
mod zremrangebylex;
mod zremrangebyrank;
mod zremrangebyscore;
mod zrevrange;
mod zrevrangebylex;
mod zrevrangebyscore;
mod zrevrank;
mod zscan;
mod zscore;
mod zunion;
mod zunionstore;

use super::Spec;

/// The commands of the group, sorted by name.
pub(super) const ALL: &[&Spec] = &[
    &bzmpop::SPEC,
    &bzpopmax::SPEC,
    &bzpopmin::SPEC,
    &zadd::SPEC,
    &zcard::SPEC,
    &zcount::SPEC,
    &zdiff::SPEC,
    &zdiffstore::SPEC,
    &zincrby::SPEC,
    &zinter::SPEC,
    &zintercard::SPEC,
    &zinterstore::SPEC,
    &zlexcount::SPEC,
    &zmpop::SPEC,
    &zmscore::SPEC,
    &zpopmax::SPEC,
    &zpopmin::SPEC,
    &zrandmember::SPEC,
    &zrange::SPEC,
    &zrangebylex::SPEC,
    &zrangebyscore::SPEC,
    &zrangestore::SPEC,
    &zrank::SPEC,
    &zrem::SPEC,
    &zremrangebylex::SPEC,
    &zremrangebyrank::SPEC,
    &zremrangebyscore::SPEC,
    &zrevrange::SPEC,
    &zrevrangebylex::SPEC,
    &zrevrangebyscore::SPEC,
    &zrevrank::SPEC,
    &zscan::SPEC,
    &zscore::SPEC,
    &zunion::SPEC,
    &zunionstore::SPEC,
];
