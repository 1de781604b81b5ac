//! The cluster of an experiment: its nodes, their slots, and the initial configuration in which
//! they know each other.

use bytes::Bytes;
use lockstorm_sim::{cluster::SLOTS, commands::find};

use super::{Algorithm, Node, Scenario, error::Mistake, group, places::Places};
use crate::{
    file::{fault::FaultKind, slots::Slots},
    units::Draw,
};

/// A node of a cluster in its initial state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterNode {
    /// The name of its host.
    pub host: String,
    /// The host of its master, if it is a replica.
    pub master: Option<String>,
    /// The slots that it serves from the start; empty for a replica.
    pub slots: Slots,
}

impl Scenario {
    /// Returns true if the nodes are those of a Redis Cluster.
    pub fn is_cluster(&self) -> bool {
        self.node.values().any(|node| node.cluster)
    }

    /// Returns the host that a node follows from the start; `number` is the index of the node in
    /// its group, from 0. Replicas of a group follow one each, in turn.
    pub fn master_of(&self, name: &str, number: usize) -> Option<String> {
        let masters = self.members(self.node.get(name)?.replica_of.as_ref()?.as_str());
        masters.get(number % masters.len().max(1)).cloned()
    }

    /// Returns the nodes of the cluster, in the order of their hosts. Masters without `slots` share
    /// the slots that no other master names.
    pub fn cluster_nodes(&self) -> Vec<ClusterNode> {
        let given: Vec<&Slots> = self.node.values().filter_map(|node| node.slots.as_ref()).collect();
        let rest: Vec<u16> =
            (0..SLOTS).filter(|slot| !given.iter().any(|slots| slots.0.has(*slot))).collect();
        let shares = self.node.values().filter(|node| node.replica_of.is_none() && node.slots.is_none());
        let sharers = shares.map(|node| node.count.unwrap_or(1) as usize).sum();
        let mut rest = Slots::share(&rest, sharers).into_iter();
        let mut nodes = Vec::new();
        for (name, node) in &self.node {
            let hosts = group(name, node.count);
            let own = node.slots.as_ref().map(|slots| slots.0.iter().collect::<Vec<_>>());
            let mut own = own.map(|slots| Slots::share(&slots, hosts.len()).into_iter());
            for (number, host) in hosts.into_iter().enumerate() {
                let master = self.master_of(name, number);
                let slots = match &mut own {
                    _ if master.is_some() => None,
                    Some(own) => own.next(),
                    None => rest.next(),
                };
                nodes.push(ClusterNode { host, master, slots: slots.unwrap_or_default() });
            }
        }
        nodes
    }
}

/// Returns the `nodes.conf` of each of these nodes, in which it knows all the others by these ids,
/// as after `redis-cli --cluster create`.
pub(crate) fn files(nodes: &[ClusterNode], ids: &[String]) -> Vec<String> {
    let masters: Vec<&str> =
        nodes.iter().filter(|node| node.master.is_none()).map(|node| &*node.host).collect();
    let file = |me: usize| {
        let line = |(at, node): (usize, &ClusterNode)| {
            let mine = if at == me { "myself," } else { "" };
            let master = node.master.as_ref().unwrap_or(&node.host);
            // Epochs count from 1 in the order of the masters.
            let epoch = masters.iter().position(|host| host == master).map_or(0, |at| at + 1);
            let of = node.master.as_ref().and_then(|of| nodes.iter().position(|node| node.host == *of));
            let (role, of) = of.map_or(("master", "-"), |of| ("slave", &ids[of]));
            let (id, host, slots) = (&ids[at], &node.host, &node.slots);
            format!("{id} {host}:6379@16379 {mine}{role} {of} 0 0 {epoch} connected {slots}\n")
        };
        let lines: String = nodes.iter().enumerate().map(line).collect();
        format!("{lines}vars currentEpoch {} lastVoteEpoch 0\n", masters.len())
    };
    (0..nodes.len()).map(file).collect()
}

/// Checks that the nodes form a cluster, if any is one of a cluster, and that the rest of the
/// scenario suits it.
pub(super) fn check(scenario: &Scenario, places: &Places<'_, '_>) -> Result<(), Mistake> {
    let of_key = |path: &[&str]| places.of_key(path);
    for (name, node) in &scenario.node {
        if node.slots.is_some() && (node.replica_of.is_some() || !node.cluster) {
            let message = format!("{name} is no master of a cluster, so it has no slots of its own");
            return Err(Mistake::at(of_key(&["node", name, "slots"]), message));
        }
        if node.config.contains_key("cluster-enabled") {
            let message = "a node is one of a cluster by `cluster = true`";
            return Err(Mistake::at(of_key(&["node", name, "config", "cluster-enabled"]), message));
        }
    }
    for (name, fault) in scenario.fault.iter().filter(|(_, fault)| !fault.off) {
        fault.given().iter().try_for_each(|kind| check_fault(scenario, places, name, kind))?;
    }
    if !scenario.is_cluster() {
        return Ok(());
    }
    let mut seen = Slots::default();
    for (name, node) in &scenario.node {
        if let Some(master) = &node.replica_of {
            let above = scenario.node.iter().find(|(other, node)| {
                master.as_str() == *other
                    || group(other, node.count).iter().any(|host| host == master.as_str())
            });
            if above.is_some_and(|(_, above)| above.replica_of.is_some()) {
                let message =
                    format!("in a cluster replicas follow masters, and {} is none", master.as_str());
                return Err(Mistake::at(master.span(), message));
            }
        } else if !node.cluster {
            let message = format!("{name} is outside of the cluster: either all nodes are in it or none is");
            return Err(Mistake::at(of_key(&["node", name]), message));
        }
        for slot in node.slots.iter().flat_map(|slots| slots.0.iter()) {
            if !seen.0.add(slot) {
                let message = format!("slot {slot} is given to two nodes");
                return Err(Mistake::at(places.of_value(&["node", name, "slots"]), message));
            }
        }
    }
    if let Some(name) = scenario.sentinel.keys().next() {
        let message = "a cluster fails over by itself: there are no Sentinels in it";
        return Err(Mistake::at(of_key(&["sentinel", name]), message));
    }
    for (name, lock) in &*scenario.lock {
        if lock.subject.algorithm != Algorithm::Client {
            let message = "only the production client finds keys by their slots, and no model does";
            return Err(Mistake::at(places.of_value(&["lock", name, "subject"]), message));
        }
        if lock.kind.needs_quorum() {
            let message = "it lives on masters that know nothing of each other, and not in a cluster";
            return Err(Mistake::at(places.of_value(&["lock", name, "kind"]), message));
        }
        if lock.nodes.is_some() {
            let message = "in a cluster a lock lives where its slot is";
            return Err(Mistake::at(of_key(&["lock", name, "nodes"]), message));
        }
    }
    Ok(())
}

/// Checks that a fault of a cluster has a cluster, and that it determines the slots to move.
fn check_fault(
    scenario: &Scenario,
    places: &Places<'_, '_>,
    name: &str,
    kind: &FaultKind,
) -> Result<(), Mistake> {
    let at = |key: &str, message: String| Err(Mistake::at(places.of_key(&["fault", name, key]), message));
    let is_of_cluster = match kind {
        FaultKind::Failover(failover) => failover.replica.is_some(),
        FaultKind::Reshard(_) => true,
        _ => false,
    };
    if is_of_cluster && !scenario.is_cluster() {
        return at(kind.name(), format!("fault `{name}` needs a cluster: nodes with `cluster = true`"));
    }
    let FaultKind::Reshard(reshard) = kind else { return Ok(()) };
    if reshard.atomic {
        let command = [Bytes::from_static(b"CLUSTER"), Bytes::from_static(b"MIGRATESLOTS")];
        let lacks = |(_, node): &(&String, &Node)| find(node.generation(), &command).is_err();
        if let Some((node, _)) = scenario.node.iter().find(lacks) {
            let message =
                format!("CLUSTER MIGRATESLOTS is no command of node {node}: give it server = \"valkey-9.1\"");
            return at("reshard", message);
        }
        if reshard.step != Draw::default() {
            return at("reshard", format!("fault `{name}` has both `atomic` and `step`: give one"));
        }
    }
    match (&reshard.slots, &reshard.of) {
        (Some(_), Some(_)) => {
            return at("reshard", format!("fault `{name}` has both `slots` and `of`: give one"));
        }
        (None, None) if scenario.lock.len() > 1 => {
            let message =
                format!("fault `{name}` does not say of which lock the slot is moved: add `of = ..`");
            return at("reshard", message);
        }
        (None, Some(of)) if !scenario.lock.contains_key(of.as_str()) => {
            let known = scenario.lock.keys().map(String::as_str);
            return Err(Mistake::unknown(of.span(), "lock", of.as_str(), known));
        }
        _ => {}
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::scenario::parse;

    #[test]
    fn slots_are_shared_and_replicas_follow_in_turn() {
        let nodes = |text: &str| {
            let text = format!("{text}\n[client.c]\nsteps = [{{ acquire = {{}} }}]\n");
            let source = parse("cluster.toml", &text).unwrap_or_else(|error| panic!("{error}"));
            let nodes = source.variants[0].scenario.cluster_nodes().into_iter();
            let words = nodes.map(|ClusterNode { host, master, slots }| match master {
                Some(master) => format!("{host} follows {master}"),
                None => format!("{host} has {slots}"),
            });
            words.collect::<Vec<_>>().join(", ")
        };
        let rows = [
            ("[node.n]\ncluster = true", "n has 0-16383"),
            (
                "[node.n]\ncluster = true\ncount = 3\n[node.r]\nreplica_of = \"n1\"",
                "n1 has 0-5460, n2 has 5461-10922, n3 has 10923-16383, r follows n1",
            ),
            (
                "[node.n]\ncluster = true\ncount = 2\n[node.r]\ncount = 3\nreplica_of = \"n\"",
                "n1 has 0-8191, n2 has 8192-16383, r1 follows n1, r2 follows n2, r3 follows n1",
            ),
            (
                "[node.a]\ncluster = true\ncount = 2\nslots = \"100-199\"\n[node.b]\ncluster = true\n[node.c0]\ncluster = true\nslots = \"\"",
                "a1 has 100-149, a2 has 150-199, b has 0-99 200-16383, c0 has ",
            ),
        ];
        for (text, expected) in rows {
            assert_eq!(nodes(text), expected, "{text}");
        }
    }

    #[test]
    fn every_node_remembers_all_others() {
        let node = |host: &str, master: Option<&str>, slots: &str| ClusterNode {
            host: host.into(),
            master: master.map(Into::into),
            slots: slots.parse().expect("slots"),
        };
        let nodes = [node("m", None, "0-16383"), node("r", Some("m"), "")];
        let files = files(&nodes, &["1".repeat(40), "2".repeat(40)]);
        let (one, two) = ("1".repeat(40), "2".repeat(40));
        assert_eq!(
            files[1],
            format!(
                "{one} m:6379@16379 master - 0 0 1 connected 0-16383\n\
                 {two} r:6379@16379 myself,slave {one} 0 0 1 connected \n\
                 vars currentEpoch 1 lastVoteEpoch 0\n"
            )
        );
    }
}
