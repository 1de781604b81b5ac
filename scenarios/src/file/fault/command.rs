//! `command = { node, run }`: an operator runs a command at a node's console.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, de};

use super::{Effect, FaultAction, Targets, list};
use crate::file::selector::Hosts;

pub(super) const ABOUT: &str = "Gives a node any command at its console, such as CONFIG SET or DEBUG SLEEP.";

/// Gives a node any command at its console, such as CONFIG SET, FLUSHALL or DEBUG SLEEP.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Command {
    /// The node whose console runs the command; of several nodes, each runs it.
    pub node: Hosts,
    /// The name and the arguments.
    pub run: Vec<String>,
    /// The number of repetitions. `%` in an argument is replaced by the number of the repetition,
    /// from 1.
    #[serde(default = "once")]
    #[serde(deserialize_with = "few")]
    pub times: u32,
}

/// The commands after which a node may answer differently, until another command changes it back.
pub(super) const RECONFIGURING: &[&str] =
    &["ACL", "CLIENT", "CLUSTER", "CONFIG", "DEBUG", "FAILOVER", "REPLICAOF", "SLAVEOF"];

fn once() -> u32 {
    1
}

/// The most repetitions: more would keep a node busy for too long.
const TIMES_MAX: u32 = 100_000;

fn few<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    let times = u32::deserialize(deserializer)?;
    if times > TIMES_MAX {
        return Err(de::Error::custom(format!(
            "{times} times is more than the {TIMES_MAX} that are allowed"
        )));
    }
    Ok(times)
}

impl Effect for Command {
    fn hosts(&self) -> Vec<&Hosts> {
        vec![&self.node]
    }

    fn actions(&self, targets: Targets<'_>) -> Vec<FaultAction> {
        let repetitions =
            (1..=self.times).flat_map(|number| targets[0].iter().map(move |node| (number, node)));
        repetitions
            .map(|(number, node)| {
                let command = self.run.iter().map(|word| word.replace('%', &number.to_string())).collect();
                FaultAction::Console { node: node.clone(), command }
            })
            .collect()
    }

    fn words(&self, targets: Targets<'_>) -> String {
        let times = if self.times > 1 { format!(" {} times", self.times) } else { String::new() };
        format!("somebody runs {} on {}{times}", self.run.join(" "), list(&targets[0]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_repeated_at_most_a_hundred_thousand_times() {
        let times = |written: &str| {
            let command = toml::from_str::<Command>(&format!("node = \"m\"\nrun = [\"PING\"]\n{written}"));
            command.map(|command| command.times).map_err(|error| error.message().to_owned())
        };
        assert_eq!(times(""), Ok(1));
        assert_eq!(times("times = 100000"), Ok(100_000));
        let refused = "100001 times is more than the 100000 that are allowed";
        assert_eq!(times("times = 100001"), Err(refused.to_owned()));
    }
}
