//! A Redis node.

use std::rc::Rc;

use lockstorm_world::Entropy;

use crate::{
    file::{
        plan::host::{PlannedHost, Software},
        scenario::{Node, Scenario, cluster, group},
        server::Server,
    },
    judge::history::HostKind,
};

/// A Redis node of the run, not yet started.
#[derive(Debug, Clone)]
pub(crate) struct PlannedNode {
    /// The table of the file that defines it; the members of a group share the table.
    pub(crate) node: Node,
    /// The node that it follows from the start.
    pub(crate) master: Option<String>,
    /// The users that it knows from the start, each as the words of its line in `redis.conf`.
    pub(crate) users: Vec<Vec<String>>,
    /// The initial `nodes.conf` of a cluster node, in which it remembers the cluster.
    pub(crate) nodes_conf: Option<String>,
    /// The real server, in a run with real servers. An error is the end of a sentence about the
    /// node, if no server fits.
    pub(crate) server: Option<Result<Server, String>>,
}

impl Software for PlannedNode {
    fn kind(&self) -> HostKind {
        HostKind::Node
    }

    fn replica_of(&self) -> Option<&str> {
        self.master.as_deref()
    }

    fn unreal(&self) -> Vec<String> {
        let no_redis = self.node.is_no_redis().then_some("has options that no real server has".to_owned());
        let lacks = match &self.server {
            None => Vec::new(),
            Some(Err(why)) => vec![why.clone()],
            Some(Ok(server)) => self.lacks(server),
        };
        no_redis.into_iter().chain(lacks).collect()
    }

    fn is_process(&self) -> bool {
        true
    }

    fn words(&self) -> Vec<String> {
        let users = self.users.iter().map(|words| format!("user {}", words.join(" ")));
        users.chain(self.nodes_conf.iter().flat_map(|file| file.lines()).map(str::to_owned)).collect()
    }
}

impl PlannedNode {
    /// Returns the options of the node that the server does not have.
    fn lacks(&self, server: &Server) -> Vec<String> {
        let unknown = self.node.config.keys().filter(|name| !server.has_option(name));
        unknown.map(|name| format!("sets {name}, which {server} does not have")).collect()
    }
}

pub(super) fn hosts(scenario: &Scenario, entropy: &Entropy) -> Vec<PlannedHost> {
    let mut files = nodes_conf(scenario, entropy).into_iter();
    let mut hosts = Vec::new();
    for (name, node) in &scenario.node {
        for (number, host) in group(name, node.count).into_iter().enumerate() {
            let (node, master, nodes_conf) = (node.clone(), scenario.master_of(name, number), files.next());
            let (clock, users) = (node.clock.clone(), scenario.users_of(&host));
            let software = Rc::new(PlannedNode { node, master, users, nodes_conf, server: None });
            hosts.push(PlannedHost::draw(entropy, host, &clock, software));
        }
    }
    hosts
}

/// Returns the files of the nodes of a cluster, in the order of their hosts; none without a
/// cluster.
fn nodes_conf(scenario: &Scenario, entropy: &Entropy) -> Vec<String> {
    if !scenario.is_cluster() {
        return Vec::new();
    }
    let nodes = scenario.cluster_nodes();
    // Node ids decide which of two masters gives way, and which of several replicas migrates. They
    // are random, as real ones are.
    let mut stream = entropy.stream("plan/cluster");
    let ids: Vec<String> =
        nodes.iter().map(|_| (0..40).map(|_| format!("{:x}", stream.below(16))).collect()).collect();
    cluster::files(&nodes, &ids)
}
