//! Makes a cluster, and watches how its nodes see each other.

use std::{collections::BTreeMap, io};

use crate::{
    client::{Asking, Client, PERIOD, Place, text},
    row::Rig,
};

/// Makes a cluster of nodes that do not know each other; returns once all nodes are healthy. If the
/// row's zero is the start of this, the masters begin without epochs.
pub(crate) async fn make<P: Place>(client: &Client<P>, rig: &Rig) {
    let mut nodes = Vec::new();
    for name in rig.nodes() {
        let stream = dial(client, &name).await;
        let address = client.place().peer(&stream).expect("it is connected");
        client.addresses.borrow_mut().insert(name.clone(), address);
        let mut asking = Asking::new(stream);
        let id = ask(&mut asking, "CLUSTER MYID").await;
        client.ids.borrow_mut().insert(id, name.clone());
        nodes.push((name, asking));
    }
    let count = nodes.len();
    for (epoch, (name, asking)) in (1..).zip(&mut nodes) {
        if rig.master_of(name).is_none() {
            let (first, last) = rig.slots_of(name).expect("a master of the rig");
            ask(asking, &format!("CLUSTER ADDSLOTSRANGE {first} {last}")).await;
        }
        if !rig.starts_at_zero {
            ask(asking, &format!("CLUSTER SET-CONFIG-EPOCH {epoch}")).await;
        }
    }
    // Only neighbours meet: gossip introduces the rest.
    let addresses: Vec<String> =
        nodes.iter().map(|(name, _)| client.addresses.borrow()[name].clone()).collect();
    for ((_, asking), next) in nodes.iter_mut().zip(&addresses[1..]) {
        ask(asking, &format!("CLUSTER MEET {next} 6379")).await;
    }
    for (_, asking) in &mut nodes {
        until(client, asking, "CLUSTER NODES", |nodes| {
            nodes.matches(" connected").count() == count && !nodes.contains("handshake")
        })
        .await;
    }
    for (name, asking) in &mut nodes {
        if let Some(master) = rig.master_of(name) {
            let id = client.ids.borrow().iter().find(|(_, name)| **name == master).map(|(id, _)| id.clone());
            let id = id.expect("its master is of the rig");
            ask(asking, &format!("CLUSTER REPLICATE {id}")).await;
        }
    }
    let replicas = nodes.iter().filter(|(name, _)| rig.master_of(name).is_some()).count();
    for (_, asking) in &mut nodes {
        // A master does not vote for a replica that it takes for a master.
        until(client, asking, "CLUSTER NODES", |nodes| nodes.matches("slave").count() == replicas).await;
        until(client, asking, "CLUSTER INFO", |info| info.contains("cluster_state:ok")).await;
        until(client, asking, "INFO replication", |info| {
            info.contains("role:master") || info.contains("master_link_status:up")
        })
        .await;
    }
    let order: Vec<String> = client.ids.borrow().values().cloned().collect();
    client.note("client", "order", &order.join(" "));
    client.note("client", "made", "");
}

async fn dial<P: Place>(client: &Client<P>, node: &str) -> P::Stream {
    loop {
        if let Ok(stream) = client.place().dial(node).await {
            return stream;
        }
        client.place().until(client.place().now() + PERIOD).await;
    }
}

/// The reply to a command as text; empty if the connection is lost.
async fn ask<S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin>(
    asking: &mut Asking<S>,
    command: &str,
) -> String {
    asking.ask(command).await.map_or_else(|_| String::new(), |reply| text(&reply))
}

async fn until<P: Place>(
    client: &Client<P>,
    asking: &mut Asking<P::Stream>,
    command: &str,
    is: impl Fn(&str) -> bool,
) {
    while !is(&ask(asking, command).await) {
        client.place().until(client.place().now() + PERIOD).await;
    }
}

/// One node's view of another: its health, master and epoch.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
struct Opinion {
    health: &'static str,
    master: Option<String>,
    epoch: String,
}

/// A node's view of its cluster.
#[derive(Debug, Default)]
struct Thoughts {
    state: Option<String>,
    pings: Option<u64>,
    of: BTreeMap<String, Opinion>,
}

/// Polls a node's view of its cluster and logs every change.
pub(crate) async fn view<P: Place>(client: &Client<P>, node: &str) {
    let mut thoughts = Thoughts::default();
    loop {
        let mut asking = Asking::new(dial(client, node).await);
        while look(client, node, &mut asking, &mut thoughts).await.is_ok() {
            client.place().until(client.place().now() + 2 * PERIOD).await;
        }
        client.place().until(client.place().now() + PERIOD).await;
    }
}

async fn look<P: Place>(
    client: &Client<P>,
    node: &str,
    asking: &mut Asking<P::Stream>,
    thoughts: &mut Thoughts,
) -> io::Result<()> {
    let info = text(&asking.ask("CLUSTER INFO").await?);
    let field = |name: &str| info.split(name).nth(1).and_then(|rest| rest.split(['\r', '\n']).next());
    let state = field("cluster_state:").unwrap_or_default();
    if thoughts.state.replace(state.to_owned()).is_some_and(|before| before != state) {
        client.note(node, "state", state);
    }
    let pings: u64 = field("messages_ping_sent:").and_then(|pings| pings.parse().ok()).unwrap_or_default();
    for _ in thoughts.pings.replace(pings).unwrap_or(pings)..pings {
        client.note(node, "ping", "");
    }
    let nodes = text(&asking.ask("CLUSTER NODES").await?);
    for line in nodes.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let [id, _, flags, master, _, _, epoch, ..] = words[..] else { continue };
        let name = |id: &str| client.ids.borrow().get(id).cloned().unwrap_or_else(|| id.to_owned());
        let is = |flag: &str| flags.split(',').any(|word| word == flag);
        let now = Opinion {
            health: if is("fail") {
                "fail"
            } else if is("fail?") {
                "fail?"
            } else {
                "well"
            },
            master: is("slave").then(|| name(master)),
            epoch: epoch.to_owned(),
        };
        let about = name(id);
        let before = thoughts.of.insert(about.clone(), now.clone());
        let before_epoch = before.as_ref().map(|before| &before.epoch);
        if now.master.is_none() && before_epoch != Some(&now.epoch) {
            client.note(node, "has epoch", &format!("{about} {epoch}"));
        }
        let Some(before) = before else { continue };
        if now.health != before.health {
            client.note(node, now.health, &about);
        }
        match &now.master {
            Some(master) if before.master != now.master => {
                client.note(node, "replica", &format!("{about} of {master}"));
            }
            None if before.master.is_some() => client.note(node, "master", &about),
            _ => {}
        }
        // A replica shows its master's epoch.
        if now.epoch != before.epoch && now.master.is_none() {
            client.note(node, "epoch", &format!("{about} {epoch}"));
        }
    }
    Ok(())
}
