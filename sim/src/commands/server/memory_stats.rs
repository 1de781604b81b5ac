//! MEMORY STATS: the use of memory. It reports no fragmentation, because there is no allocator.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    keyspace::{OBJECT, table_memory},
    node::{Node, clients::Role},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "memory|stats",
    group: Group::Server,
    since: "4.0.0",
    summary: "What memory is used for.",
    arity: 2,
    flags: Flags::empty(),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, _: &[Bytes]) -> Result<Reply, Error> {
    let node = &ctx.node;
    let replicas = node.memory_of(|role| role == Role::Replica);
    let clients = node.memory_of(|role| role != Role::Replica);
    let backlog = node.replication.backlog.as_ref().map_or(0, |backlog| backlog.len());
    let tables: Vec<(usize, usize, usize)> = node
        .dbs
        .iter()
        .enumerate()
        .filter(|(_, db)| !db.is_empty())
        .map(|(at, db)| (at, db.len() * OBJECT + table_memory(db.len()), table_memory(db.volatile_len())))
        .collect();
    let in_tables: usize = tables.iter().map(|(_, main, expires)| main + expires).sum();
    let used = node.used_memory();
    let overhead = Node::STARTUP_MEMORY + clients + replicas + backlog + in_tables;
    let keys: usize = node.dbs.iter().map(|db| db.len()).sum();
    let above_start = used - Node::STARTUP_MEMORY;
    let dataset = used.saturating_sub(overhead);
    let figure = |name: &str, bytes: usize| (Reply::bulk(name), Reply::from(bytes));
    let ratio = |name: &str, of: f64| (Reply::bulk(name), Reply::Double(of));
    let mut figures = vec![
        figure("peak.allocated", used),
        figure("total.allocated", used),
        figure("startup.allocated", Node::STARTUP_MEMORY),
        figure("replication.backlog", backlog),
        figure("clients.slaves", replicas),
        figure("clients.normal", clients),
        figure("cluster.links", 0),
        figure("aof.buffer", 0),
        figure("lua.caches", node.scripts_memory()),
        figure("functions.caches", node.functions_memory()),
    ];
    figures.extend(tables.iter().map(|(at, main, expires)| {
        let table = vec![
            figure("overhead.hashtable.main", *main),
            figure("overhead.hashtable.expires", *expires),
            figure("overhead.hashtable.slot-to-keys", 0),
        ];
        (Reply::bulk(format!("db.{at}")), Reply::Map(table))
    }));
    let share = dataset as f64 * 100.0 / above_start.max(1) as f64;
    figures.extend([
        figure("overhead.total", overhead),
        figure("keys.count", keys),
        figure("keys.bytes-per-key", above_start.checked_div(keys).unwrap_or(0)),
        figure("dataset.bytes", dataset),
        ratio("dataset.percentage", share),
        ratio("peak.percentage", 100.0),
        figure("allocator.allocated", used),
        figure("allocator.active", used),
        figure("allocator.resident", used),
        ratio("allocator-fragmentation.ratio", 1.0),
        figure("allocator-fragmentation.bytes", 0),
        ratio("allocator-rss.ratio", 1.0),
        figure("allocator-rss.bytes", 0),
        ratio("rss-overhead.ratio", 1.0),
        figure("rss-overhead.bytes", 0),
        ratio("fragmentation", 1.0),
        figure("fragmentation.bytes", 0),
    ]);
    Ok(Reply::Map(figures))
}
