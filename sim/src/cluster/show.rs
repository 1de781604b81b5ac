//! The replies of CLUSTER's subcommands that show the state.

use super::{
    Around, Cluster,
    id::NodeId,
    message::Kind,
    node::{Flags, Key, Known},
    slot::SLOTS,
};
use crate::{
    generation::{Feature, Generation},
    resp::Reply,
};

impl Cluster {
    /// Returns a node's line of CLUSTER NODES, or of `nodes.conf`, without the line end.
    pub(super) fn line(&self, key: Key, in_file: bool) -> String {
        let node = self.known(key);
        let address = &node.address;
        let ip = if in_file { &address.ip[..] } else { client_ip(node) };
        let hostname = match node.hostname.is_empty() {
            _ if in_file && self.generation.has(Feature::ShardIds) => self.names(key),
            true => String::new(),
            false => format!(",{}", node.hostname),
        };
        let master = node.master.map(|master| self.known(master));
        let epoch = master.filter(|_| node.is_replica()).unwrap_or(node).config_epoch;
        let linked = node.link.is_some() || key == self.me;
        let mut line = format!(
            "{} {}:{}@{}{hostname} {} {} {} {} {epoch} {}",
            node.id,
            ip,
            address.port,
            address.bus_port,
            node.flags.names(),
            master.map_or("-".to_owned(), |master| master.id.to_string()),
            node.ping_sent,
            node.pong_received,
            if linked { "connected" } else { "disconnected" },
        );
        if !node.slots.is_empty() {
            line.push(' ');
            line.push_str(&node.slots.words());
        }
        if key == self.me {
            let out = self.migrating.iter().map(|(slot, target)| (*slot, '>', *target));
            let here = self.importing.iter().map(|(slot, source)| (*slot, '<', *source));
            let mut open: Vec<(u16, char, Key)> = out.chain(here).collect();
            open.sort_unstable();
            for (slot, direction, other) in open {
                line.push_str(&format!(" [{slot}-{direction}-{}]", self.known(other).id));
            }
        }
        line
    }

    /// Returns the names of a node in `nodes.conf`, after its address.
    fn names(&self, key: Key) -> String {
        let node = self.known(key);
        let mut names = format!(",{}", node.hostname);
        if !node.client_ip.is_empty() {
            names.push_str(&format!(",client-ipv4={}", node.client_ip));
        }
        names.push_str(",tls-port=0");
        if !node.human_name.is_empty() {
            names.push_str(&format!(",nodename={}", node.human_name));
        }
        names.push_str(&format!(",shard-id={}", self.shard_id(key)));
        names
    }

    /// Returns the reply of CLUSTER NODES: a line for each known node.
    pub fn show_nodes(&self) -> Reply {
        let text: String = self.nodes.keys().map(|key| self.line(*key, false) + "\n").collect();
        Reply::Verbatim(*b"txt", text.into())
    }

    /// Returns the reply of CLUSTER REPLICAS: a line for each replica of the master with this id.
    ///
    /// # Errors
    /// If the node is unknown, or is not a master.
    pub fn show_replicas(&self, id: &[u8]) -> Result<Reply, String> {
        let master = self.named(id)?;
        if !self.known(master).is_master() {
            return Err("The specified node is not a master".into());
        }
        Ok(Reply::Array(self.replicas_of(master).map(|key| Reply::bulk(self.line(key, false))).collect()))
    }

    /// Returns the reply of CLUSTER SLOTS: the ranges of slots, each with its master and replicas.
    pub fn show_slots(&self, around: &Around<'_>) -> Reply {
        let mut ranges = Vec::new();
        let mut end = 0;
        for same in self.owners().chunk_by(|one, other| one == other) {
            let (first, count) = (end, same.len() as i64);
            end += count;
            let Some(owner) = same[0] else { continue };
            let mut range = vec![Reply::Integer(first), Reply::Integer(end - 1)];
            range.push(self.endpoint(around, owner));
            let replicas = self.replicas_of(owner).filter(|key| {
                let node = self.known(*key);
                !node.has_failed() && self.offset_of(around, *key) != 0
            });
            range.extend(replicas.map(|key| self.endpoint(around, key)));
            ranges.push(Reply::Array(range));
        }
        Reply::Array(ranges)
    }

    fn offset_of(&self, around: &Around<'_>, key: Key) -> u64 {
        if key == self.me { around.offset() } else { self.known(key).offset }
    }

    /// Returns the endpoint that clients use for a node, as `cluster-preferred-endpoint-type`
    /// selects it; `None` for `unknown-endpoint`.
    fn preferred(&self, around: &Around<'_>, node: &Known) -> Option<String> {
        match around.config.cluster.preferred_endpoint.as_str() {
            "hostname" if node.hostname.is_empty() => Some("?".into()),
            "hostname" => Some(node.hostname.clone()),
            "unknown-endpoint" => None,
            _ => Some(client_ip(node).to_owned()),
        }
    }

    fn endpoint(&self, around: &Around<'_>, key: Key) -> Reply {
        let node = self.known(key);
        let by_ip = around.config.cluster.preferred_endpoint == "ip";
        let mut more = Vec::new();
        if !by_ip {
            more.push((Reply::bulk("ip"), Reply::bulk(client_ip(node))));
        }
        if around.config.cluster.preferred_endpoint != "hostname" && !node.hostname.is_empty() {
            more.push((Reply::bulk("hostname"), Reply::bulk(&node.hostname)));
        }
        Reply::Array(vec![
            self.preferred(around, node).map_or(Reply::Null, Reply::bulk),
            Reply::Integer(node.address.port.into()),
            Reply::bulk(node.id.as_str()),
            Reply::Map(more),
        ])
    }

    /// Returns the `host:port` of a node for MOVED and ASK; the host is empty for
    /// `unknown-endpoint`.
    pub fn redirection(&self, around: &Around<'_>, key: Key) -> String {
        let node = self.known(key);
        let host = self.preferred(around, node).unwrap_or_default();
        format!("{host}:{}", node.address.port)
    }

    /// Returns the reply of CLUSTER SHARDS: a map of slots and nodes for each master.
    pub fn show_shards(&self, around: &Around<'_>) -> Reply {
        let masters = self.nodes.iter().filter(|(_, node)| node.is_master());
        let shards = masters.map(|(key, node)| {
            let slots = node.slots.ranges().into_iter();
            let slots = slots.flat_map(|(first, last)| [first, last]).map(|slot| Reply::Integer(slot.into()));
            let nodes = [*key].into_iter().chain(self.replicas_of(*key));
            let nodes = nodes.map(|key| self.show_shard_node(around, key)).collect();
            let mut shown = vec![
                (Reply::bulk("slots"), Reply::Array(slots.collect())),
                (Reply::bulk("nodes"), Reply::Array(nodes)),
            ];
            if self.generation == Generation::Valkey91 {
                shown.push((Reply::bulk("id"), Reply::bulk(self.shard_id(*key).as_str())));
            }
            Reply::Map(shown)
        });
        Reply::Array(shards.collect())
    }

    fn show_shard_node(&self, around: &Around<'_>, key: Key) -> Reply {
        let node = self.known(key);
        let offset = self.offset_of(around, key);
        let health = match node.has_failed() {
            true => "fail",
            false if node.is_replica() && offset == 0 => "loading",
            false => "online",
        };
        let text = |name: &str, value: &str| (Reply::bulk(name), Reply::bulk(value));
        let mut shown = vec![
            text("id", node.id.as_str()),
            (Reply::bulk("port"), Reply::Integer(node.address.port.into())),
            text("ip", client_ip(node)),
            (Reply::bulk("endpoint"), self.preferred(around, node).map_or(Reply::Null, Reply::bulk)),
        ];
        if !node.hostname.is_empty() {
            shown.push(text("hostname", &node.hostname));
        }
        shown.extend([
            text("role", if node.is_replica() { "replica" } else { "master" }),
            (Reply::bulk("replication-offset"), Reply::Integer(i64::try_from(offset).unwrap_or(i64::MAX))),
            text("health", health),
        ]);
        Reply::Map(shown)
    }

    /// Returns the reply of CLUSTER LINKS: the open links of the bus, to and from other nodes.
    pub fn show_links(&self) -> Reply {
        let mut links = Vec::new();
        for node in self.nodes.values() {
            if let Some(link) = &node.link {
                links.push(shown_link("to", node, link.created, link.unsent));
            }
            if let Some(inbound) = node.inbound.and_then(|conn| self.inbound.get(&conn)) {
                links.push(shown_link("from", node, inbound.created, inbound.unsent));
            }
        }
        Reply::Array(links)
    }

    /// Returns the reply of CLUSTER INFO: lines of `name:value`, such as `cluster_state:ok`.
    pub fn show_info(&self) -> Reply {
        let mut text = String::new();
        let mut line = |name: &str, value: &dyn std::fmt::Display| {
            text.push_str(&format!("{name}:{value}\r\n"));
        };
        let owners: Vec<&Known> =
            (0..SLOTS).filter_map(|slot| self.owner(slot)).map(|key| self.known(key)).collect();
        let failed = owners.iter().filter(|node| node.has_failed()).count();
        let down = owners.iter().filter(|node| node.is(Flags::PFAIL) && !node.has_failed()).count();
        line("cluster_state", &if self.is_ok { "ok" } else { "fail" });
        line("cluster_slots_assigned", &owners.len());
        line("cluster_slots_ok", &(owners.len() - failed - down));
        line("cluster_slots_pfail", &down);
        line("cluster_slots_fail", &failed);
        line("cluster_known_nodes", &self.nodes.len());
        line("cluster_size", &self.size);
        line("cluster_current_epoch", &self.current_epoch);
        line("cluster_my_epoch", &self.my_master().map_or(0, |master| self.known(master).config_epoch));
        for (counts, way) in [(&self.sent, "sent"), (&self.received, "received")] {
            for kind in Kind::ALL {
                if let Some(count) = counts.get(&kind) {
                    line(&format!("cluster_stats_messages_{}_{way}", kind.name()), count);
                }
            }
            line(&format!("cluster_stats_messages_{way}"), &counts.values().sum::<u64>());
        }
        line("total_cluster_links_buffer_limit_exceeded", &self.limit_exceeded);
        Reply::Verbatim(*b"txt", text.into())
    }

    /// Finds the node named by an argument of a command.
    ///
    /// # Errors
    /// If the node is unknown.
    pub(super) fn named(&self, id: &[u8]) -> Result<Key, String> {
        let found = NodeId::parse(id).and_then(|id| self.find(id));
        found.ok_or_else(|| format!("Unknown node {}", String::from_utf8_lossy(id)))
    }
}

/// Returns the IP address of a node for clients. Valkey shows them the one that a node announces
/// for them; the simulated one does so for clients of both versions of IP.
fn client_ip(node: &Known) -> &str {
    if node.client_ip.is_empty() { &node.address.ip } else { &node.client_ip }
}

fn shown_link(direction: &str, node: &Known, created: i64, unsent: usize) -> Reply {
    let text = |name: &str, value: &str| (Reply::bulk(name), Reply::bulk(value));
    let number = |name: &str, value: i64| (Reply::bulk(name), Reply::Integer(value));
    let unsent = i64::try_from(unsent).unwrap_or(i64::MAX);
    Reply::Map(vec![
        text("direction", direction),
        text("node", node.id.as_str()),
        number("create-time", created),
        text("events", if unsent > 0 { "rw" } else { "r" }),
        number("send-buffer-allocated", unsent),
        number("send-buffer-used", unsent),
    ])
}
