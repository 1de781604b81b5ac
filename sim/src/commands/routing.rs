//! Decides which node must execute a command: this one, or another of its cluster, or its master.

use bytes::Bytes;

use super::{Error, Flags, Spec, declared, find_in, key_uses};
use crate::{
    cluster::{Elsewhere, Request},
    env::Env,
    event::ConnId,
    keyspace::Found,
    node::{Node, clients::Role},
};

/// Checks that this node may execute a client's command, or for EXEC the whole queue. Records the
/// slot of the keys in the session.
///
/// # Errors
/// The redirection or the error to reply instead.
pub fn route(
    node: &mut Node,
    env: &mut Env,
    conn: ConnId,
    spec: &Spec,
    args: &[Bytes],
) -> Result<(), Elsewhere> {
    let Some(session) = node.clients.sessions.get_mut(conn).filter(|_| node.cluster.is_some()) else {
        return Ok(());
    };
    session.slot = None;
    if session.role == Role::Master {
        return Ok(());
    }
    // Take the transaction out of the session for the call: its queue holds the keys.
    let transaction = session.transaction.take_if(|_| spec.flags.contains(Flags::RUNS_QUEUE));
    let routed = match &transaction {
        Some(transaction) => route_all(node, env, conn, spec, &transaction.queue),
        None => route_all(node, env, conn, spec, std::slice::from_ref(&args)),
    };
    let session = node.clients.sessions.get_mut(conn).expect("it is there still");
    if transaction.is_some() {
        session.transaction = transaction;
    }
    session.slot = routed.clone()?;
    Ok(())
}

/// Checks that this node may execute a command that a script calls.
///
/// # Errors
/// The text of the error for the script.
pub fn route_in_script(
    node: &mut Node,
    env: &mut Env,
    conn: ConnId,
    spec: &Spec,
    words: &[Bytes],
    may_cross_slots: bool,
) -> Result<(), String> {
    let obeys = node.clients.sessions.get(conn).is_none_or(|session| session.role == Role::Master);
    if node.cluster.is_none() || obeys {
        return Ok(());
    }
    let routed = route_all(node, env, conn, spec, &[words]);
    let generation = node.config.generation;
    let slot = routed.map_err(|elsewhere| elsewhere.text_in_script(spec.name, generation))?;
    let Some(slot) = slot.filter(|_| !may_cross_slots) else { return Ok(()) };
    let Some(session) = node.clients.sessions.get_mut(conn) else { return Ok(()) };
    if *session.slot.get_or_insert(slot) == slot {
        return Ok(());
    }
    Err("Script attempted to access keys that do not hash to the same slot".into())
}

/// Returns the error that sends a client with `CLIENT CAPA redirect` from a replica to its master.
/// A client that has sent READONLY reads from the replica. In a cluster, slots decide.
pub fn master_for(node: &Node, conn: ConnId, flags: Flags) -> Option<Error> {
    let session = node.clients.sessions.get(conn)?;
    let reads_here = session.readonly || !flags.contains(Flags::READONLY);
    let stays = !session.redirects || session.role == Role::Master || node.cluster.is_some();
    if stays || (reads_here && !flags.contains(Flags::WRITE)) || !node.is_replica() {
        return None;
    }
    let (host, port) = node.config.replication.replicaof.as_ref()?;
    Some(Error(format!("REDIRECT {host}:{port}").into()))
}

fn route_all(
    node: &mut Node,
    env: &mut Env,
    conn: ConnId,
    spec: &Spec,
    commands: &[impl AsRef<[Bytes]>],
) -> Result<Option<u16>, Elsewhere> {
    let (mut keys, mut writes) = (Vec::new(), false);
    for args in commands {
        let args = args.as_ref();
        let Ok(of) = find_in(&node.config, args) else { continue };
        writes |= declared(node, of, args).contains(Flags::WRITE);
        keys.extend(keys_of(of, args).into_iter().map(|at| &args[at]));
    }
    if keys.is_empty() {
        return Ok(None);
    }
    let Some(session) = node.clients.sessions.get(conn) else { return Ok(None) };
    let request = Request {
        writes,
        shard_channels: is_of_shard_channels(spec),
        migrates: spec.name == "migrate",
        asking: session.asking || spec.flags.contains(Flags::ASKING),
        readonly: session.readonly,
    };
    let rule = node.config.expiry_rule(env.wall.as_millis());
    let routed = node.with_cluster(env, |cluster, _, around| {
        let db = &*around.db;
        let is_here = |key: &[u8]| matches!(db.find_by(key, rule), Found::Live(_));
        cluster.route(around, keys.iter().map(|key| &key[..]), request, is_here)
    });
    routed.unwrap_or(Ok(None))
}

fn is_of_shard_channels(spec: &Spec) -> bool {
    matches!(spec.name, "spublish" | "ssubscribe" | "sunsubscribe")
}

/// Returns the indices of the keys that decide the node, or of the channels of sharded pub/sub.
fn keys_of(spec: &Spec, args: &[Bytes]) -> Vec<usize> {
    match spec.name {
        "spublish" => vec![1],
        "ssubscribe" | "sunsubscribe" => (1..args.len()).collect(),
        _ => key_uses(spec, args).into_iter().map(|key| key.at).collect(),
    }
}
