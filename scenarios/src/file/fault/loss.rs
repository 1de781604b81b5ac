//! `loss = { from, to, share }`: some packets must be retransmitted. Over TCP this delays data and
//! never leaves a gap.

use lockstorm_world::Condition;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Effect, FaultAction, Targets, each_way, list};
use crate::{file::selector::Hosts, units::Rate};

pub(super) const ABOUT: &str = "Loses a share of the packets; over TCP they come late.";

/// Loses a share of the packets in both directions. Over TCP a lost packet arrives one
/// retransmission later.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Loss {
    /// The hosts on one side; packets are lost in both directions.
    pub from: Hosts,
    /// The hosts on the other side.
    pub to: Hosts,
    /// The share of the packets that are lost and sent again, such as `"5%"`.
    pub share: Rate,
}

impl Effect for Loss {
    fn hosts(&self) -> Vec<&Hosts> {
        vec![&self.from, &self.to]
    }

    fn actions(&self, targets: Targets<'_>) -> Vec<FaultAction> {
        let per_million = (self.share.0.clamp(0.0, 1.0) * 1e6) as u32;
        each_way(&targets[0], &targets[1], true, |from, to| Condition::Lossy { from, to, per_million })
    }

    fn lasts(&self) -> bool {
        true
    }

    fn words(&self, targets: Targets<'_>) -> String {
        format!(
            "{} of the packets between {} and {} are lost",
            self.share.to_string().trim_start_matches('+'),
            list(&targets[0]),
            list(&targets[1])
        )
    }
}
