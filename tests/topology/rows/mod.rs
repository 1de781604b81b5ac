//! The rows of Sentinel, and those of Cluster.

mod cluster_changes;
mod cluster_failures;
mod masters;
mod sentinel_paths;
mod sentinels;

use crate::row::{Row, Sight, see};

pub(super) const MASTER_DOWN: Sight = see("+sdown").about("master main");
pub(super) const TRIED: Sight = see("+try-failover");
pub(super) const PROMOTED: Sight = see("+promoted-slave");
pub(super) const SWITCHED: Sight = see("+switch-master");
pub(super) const CONVERTED: Sight = see("+convert-to-slave");
pub(super) const ACCEPTED: Sight = see("accepted");
pub(super) const REFUSED: Sight = see("refused");
pub(super) const LOST: Sight = see("lost");

/// The events of a candidate that gets too few votes.
pub(super) const NOT_ELECTED: &[&str] =
    &["+sdown", "+odown", "+new-epoch", "+try-failover", "+vote-for-leader", "-failover-abort-not-elected"];

pub(super) const CKQUORUM: &str = "SENTINEL CKQUORUM main";
pub(super) const FAIL_OVER: &str = "SENTINEL FAILOVER main";
pub(super) const NO_FAILURE: &str = "SENTINEL SIMULATE-FAILURE help";
pub(super) const ALL_SENTINELS: &str = "s1 s2 s3";
pub(super) const ALL_BUT_M: &str = "r1 r2 s1 s2 s3";

/// Asks for a vote in the name of an ID that no Sentinel has.
pub(super) const VOTE_ONE: &str =
    "SENTINEL IS-MASTER-DOWN-BY-ADDR {m} 6379 9 aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
pub(super) const VOTE_TWO: &str =
    "SENTINEL IS-MASTER-DOWN-BY-ADDR {m} 6379 9 bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";

/// All rows of the table.
pub(crate) fn all() -> impl Iterator<Item = &'static Row> {
    let of_sentinel = masters::ROWS.iter().chain(sentinels::ROWS).chain(sentinel_paths::ROWS);
    of_sentinel.chain(cluster_failures::ROWS).chain(cluster_changes::ROWS)
}
