//! The sections of INFO.
//!
//! Values that a simulated node does not have (a process, a compiler, CPU time, fragmentation) are
//! constants: INFO depends only on the node's actions.

use std::{collections::BTreeMap, fmt::Write as _};

use crate::{
    commands::Ctx,
    config::options,
    event::ConnId,
    generation::{Feature, Generation},
    node::{
        Node, PauseMode, Receiving,
        clients::{BlockedOn, Role, Session},
        stats::Calls,
    },
    replication::{Backlog, Failover, NO_ID},
};

type Section = (&'static str, bool, fn(&Ctx<'_>, &mut String));

/// Name, true if in the default set, and writer; in the order of the server.
const SECTIONS: &[Section] = &[
    ("Server", true, server),
    ("Clients", true, clients),
    ("Memory", true, memory),
    ("Persistence", true, persistence),
    ("Stats", true, stats),
    ("Replication", true, replication),
    ("CPU", true, cpu),
    ("Modules", true, modules),
    ("Commandstats", false, command_stats),
    ("Errorstats", true, error_stats),
    ("Latencystats", false, latency_stats),
    ("Cluster", true, |ctx, out| {
        line(out, format_args!("cluster_enabled:{}", u8::from(ctx.node.cluster.is_some())))
    }),
    ("Keyspace", true, keyspace),
];

/// The sections of a Sentinel.
const SECTIONS_OF_SENTINEL: &[Section] = &[
    ("Server", true, server),
    ("Clients", true, clients),
    ("Stats", true, stats),
    ("CPU", true, cpu),
    ("Sentinel", true, |ctx, out| {
        let lines = ctx.node.sentinel.as_ref().map(|sentinel| sentinel.info_lines(ctx.env.wall.as_millis()));
        lines.iter().flatten().for_each(|text| line(out, format_args!("{text}")));
    }),
];

/// Prints the requested sections of a node. Their names are in lower case.
pub(super) fn print(ctx: &Ctx<'_>, wanted: &[String]) -> String {
    print_of(SECTIONS, ctx, wanted)
}

/// Prints the requested sections of a Sentinel.
pub(in crate::commands) fn print_sentinel(ctx: &Ctx<'_>, wanted: &[String]) -> String {
    print_of(SECTIONS_OF_SENTINEL, ctx, wanted)
}

fn print_of(sections: &[Section], ctx: &Ctx<'_>, wanted: &[String]) -> String {
    let asks = |name: &str| wanted.iter().any(|wanted| wanted == name);
    let (all, default) = (asks("all") || asks("everything"), wanted.is_empty() || asks("default"));
    let mut out = String::new();
    for (name, by_default, write) in sections {
        if all || (default && *by_default) || asks(&name.to_ascii_lowercase()) {
            if !out.is_empty() {
                out.push_str("\r\n");
            }
            line(&mut out, format_args!("# {name}"));
            let begin = out.len();
            write(ctx, &mut out);
            if ctx.node.config.generation == Generation::Redis62 {
                let of_old = out.split_off(begin);
                out.extend(of_old.split_inclusive("\r\n").filter(|field| !is_later(field)));
            }
        }
    }
    out
}

/// Returns true for a line of INFO with a field that 6.2 lacks.
fn is_later(line: &str) -> bool {
    const LATER: [&str; 30] = [
        "monotonic_clock",
        "used_memory_vm_eval",
        "used_memory_scripts_eval",
        "number_of_functions",
        "number_of_libraries",
        "used_memory_vm_functions",
        "used_memory_vm_total",
        "used_memory_vm_total_human",
        "used_memory_functions",
        "mem_total_replication_buffers",
        "mem_cluster_links",
        "async_loading",
        "current_cow_peak",
        "rdb_saves",
        "rdb_last_load_keys_expired",
        "rdb_last_load_keys_loaded",
        "aof_rewrites",
        "aof_rewrites_consecutive_failures",
        "total_net_repl_input_bytes",
        "total_net_repl_output_bytes",
        "instantaneous_input_repl_kbps",
        "instantaneous_output_repl_kbps",
        "evicted_clients",
        "total_eviction_exceeded_time",
        "current_eviction_exceeded_time",
        "pubsubshard_channels",
        "total_active_defrag_time",
        "current_active_defrag_time",
        "reply_buffer_shrinks",
        "reply_buffer_expands",
    ];
    line.split_once(':').is_some_and(|(field, _)| LATER.contains(&field))
}

fn line(out: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a String cannot fail.
    let _ = out.write_fmt(text);
    out.push_str("\r\n");
}

macro_rules! lines {
    ($out:ident, $($name:literal : $value:expr),* $(,)?) => {
        $( line($out, format_args!("{}:{}", $name, $value)); )*
    };
}

fn server(ctx: &Ctx<'_>, out: &mut String) {
    let (node, env) = (&ctx.node, &ctx.env);
    let uptime = env.monotonic.since(node.started).as_secs();
    let generation = node.config.generation;
    lines!(out, "redis_version": generation.redis_version());
    if generation.is_valkey() {
        lines!(out,
            "server_name": generation.server(),
            "valkey_version": generation.version(),
            "valkey_release_stage": "ga",
        );
    }
    lines!(out,
        "redis_git_sha1": "00000000",
        "redis_git_dirty": 0,
        "redis_build_id": "0",
    );
    let says_redis = node.config.server.extended_redis_compatibility || !generation.is_valkey();
    let mode = if says_redis { "redis_mode" } else { "server_mode" };
    line(out, format_args!("{mode}:{}", node.mode()));
    lines!(out,
        "os": "lockstorm",
        "arch_bits": 64,
        "monotonic_clock": "simulated",
        "multiplexing_api": "simulated",
    );
    if !generation.is_valkey() {
        lines!(out, "atomicvar_api": "none");
    }
    lines!(out,
        "gcc_version": "0.0.0",
        "process_id": node.config.server.process_id,
        "process_supervised": "no",
        "run_id": node.run_id,
        "tcp_port": node.config.network.port,
        "server_time_usec": env.wall.as_micros(),
        "uptime_in_seconds": uptime,
        "uptime_in_days": uptime / 86_400,
        "hz": node.config.server.hz,
        "configured_hz": node.config.server.hz,
    );
    if generation.is_valkey() {
        lines!(out, "clients_hz": node.config.server.hz);
    }
    lines!(out,
        "lru_clock": env.wall.as_secs() & 0x00ff_ffff,
        "executable": "lockstorm",
        "config_file": node.config.server.config_file,
        "io_threads_active": 0,
    );
    if generation.is_valkey() {
        lines!(out, "availability_zone": node.config.others.get("availability-zone").map_or("", String::as_str));
    }
    if generation.has(Feature::Listeners) {
        let bind: String = node
            .config
            .network
            .bind
            .split_ascii_whitespace()
            .map(|address| format!("bind={address},"))
            .collect();
        line(out, format_args!("listener0:name=tcp,{bind}port={}", node.config.network.port));
    }
    if let Some(deadline) = node.shutdown.and_then(|shutdown| shutdown.deadline) {
        lines!(out, "shutdown_in_milliseconds": deadline.since(env.monotonic).as_millis());
    }
}

fn clients(ctx: &Ctx<'_>, out: &mut String) {
    let sessions = &ctx.node.clients.sessions;
    let buffered = sessions.iter().map(|session| session.decoder.buffered()).max().unwrap_or(0);
    let blocked: Vec<&Session> = sessions.iter().filter(|session| session.blocked.is_some()).collect();
    let timed =
        |session: &&&Session| session.blocked.as_ref().is_some_and(|blocked| blocked.deadline.is_some());
    lines!(out,
        // Replicas do not count as clients.
        "connected_clients": sessions.len() - ctx.node.replication.attached().count(),
        "cluster_connections": ctx.node.cluster.as_ref().map_or(0, |cluster| cluster.connections()),
        "maxclients": ctx.node.config.clients.maxclients,
        "client_recent_max_input_buffer": buffered,
        "client_recent_max_output_buffer": 0,
        "blocked_clients": blocked.len(),
        "tracking_clients": ctx.node.clients.tracking.trackers,
    );
    let is_new = ctx.node.config.generation.has(Feature::ClientCounts);
    if is_new {
        lines!(out,
            "pubsub_clients": sessions.iter().filter(|session| session.is_subscriber()).count(),
            "watching_clients": sessions.iter().filter(|session| !session.watched.is_empty()).count(),
        );
    }
    lines!(out, "clients_in_timeout_table": blocked.iter().filter(timed).count());
    if !is_new {
        return;
    }
    let mut awaited = BTreeMap::new();
    for session in &blocked {
        let Some(wait) = session.blocked.as_ref().filter(|wait| wait.on == BlockedOn::Keys) else { continue };
        // A group's reader also waits for the end of its key.
        let for_none = wait.args.first().is_some_and(|name| name.eq_ignore_ascii_case(b"xreadgroup"));
        for key in &wait.keys {
            *awaited.entry((session.db, key)).or_insert(false) |= for_none;
        }
    }
    lines!(out,
        "total_watched_keys": ctx.node.clients.watchers.len(),
        "total_blocking_keys": awaited.len(),
        "total_blocking_keys_on_nokey": awaited.values().filter(|for_none| **for_none).count(),
    );
    if ctx.node.config.generation.is_valkey() {
        pauses(ctx, out);
    }
}

fn pauses(ctx: &Ctx<'_>, out: &mut String) {
    let node = &ctx.node;
    let reason = match node.paused {
        Some(_) => "client_pause",
        None if node.replication.failover.is_some() => "failover_in_progress",
        None if node.is_paused() => "shutdown_in_progress",
        None => "none",
    };
    let left = node.paused.map_or(0, |(until, _)| until.since(ctx.env.monotonic).as_millis());
    lines!(out,
        "paused_reason": reason,
        "paused_actions": match node.pause() {
            Some(PauseMode::All) => "all",
            Some(PauseMode::Write) => "write",
            None => "none",
        },
        "paused_timeout_milliseconds": left,
    );
}

fn modules(ctx: &Ctx<'_>, out: &mut String) {
    if ctx.node.config.generation.has(Feature::LuaModule) {
        let options = "handle-repl-async-load|handle-atomic-slot-migration";
        line(
            out,
            format_args!("module:name=lua,ver=1,api=1,filters=0,usedby=[],using=[],options=[{options}]"),
        );
    }
}

fn memory(ctx: &Ctx<'_>, out: &mut String) {
    let node = &ctx.node;
    let (used, max) = (node.used_memory(), node.config.memory.maxmemory);
    let clients = node.memory_of(|role| role != Role::Replica);
    let replicas = node.memory_of(|role| role == Role::Replica);
    let backlog = node.replication.backlog.as_ref().map_or(0, Backlog::len);
    let overhead = Node::STARTUP_MEMORY + clients + replicas + backlog;
    let dataset = used.saturating_sub(overhead);
    let share = dataset as f64 * 100.0 / (used - Node::STARTUP_MEMORY).max(1) as f64;
    let (for_scripts, for_functions) = Node::INTERPRETERS_MEMORY;
    let (scripts, functions) = (node.scripts_memory(), node.functions_memory());
    lines!(out,
        "used_memory": used,
        "used_memory_human": human(used as u64),
        "used_memory_rss": used,
        "used_memory_rss_human": human(used as u64),
        "used_memory_peak": used,
        "used_memory_peak_human": human(used as u64),
        "used_memory_peak_perc": "100.00%",
        "used_memory_overhead": overhead,
        "used_memory_startup": Node::STARTUP_MEMORY,
        "used_memory_dataset": dataset,
        "used_memory_dataset_perc": format_args!("{share:.2}%"),
        "allocator_allocated": used,
        "allocator_active": used,
        "allocator_resident": used,
        // Unknown, as on systems that do not report it.
        "total_system_memory": 0,
        "total_system_memory_human": human(0),
        "used_memory_lua": for_scripts,
        "used_memory_vm_eval": for_scripts,
        "used_memory_lua_human": human(for_scripts as u64),
        "used_memory_scripts_eval": scripts,
        "number_of_cached_scripts": ctx.node.scripts.len(),
        "number_of_functions": ctx.node.libraries.function_count(),
        "number_of_libraries": ctx.node.libraries.len(),
        "used_memory_vm_functions": for_functions,
        "used_memory_vm_total": for_scripts + for_functions,
        "used_memory_vm_total_human": human((for_scripts + for_functions) as u64),
        "used_memory_functions": functions,
        "used_memory_scripts": scripts + functions,
        "used_memory_scripts_human": human((scripts + functions) as u64),
        "maxmemory": max,
        "maxmemory_human": human(max),
        "maxmemory_policy": ctx.node.config.memory.maxmemory_policy.name(),
        "allocator_frag_ratio": "1.00",
        "allocator_frag_bytes": 0,
        "allocator_rss_ratio": "1.00",
        "allocator_rss_bytes": 0,
        "rss_overhead_ratio": "1.00",
        "rss_overhead_bytes": 0,
        "mem_fragmentation_ratio": "1.00",
        "mem_fragmentation_bytes": 0,
        "mem_not_counted_for_evict": replicas,
        "mem_replication_backlog": backlog,
        "mem_total_replication_buffers": replication_buffers(ctx),
        "mem_clients_slaves": replicas,
        "mem_clients_normal": clients,
        "mem_cluster_links": 0,
        "mem_aof_buffer": 0,
        "mem_allocator": "simulated",
        "active_defrag_running": 0,
        "lazyfree_pending_objects": 0,
        "lazyfreed_objects": ctx.node.stats.lazily_freed,
    );
}

/// Returns the bytes of the stream that are kept for replicas or wait to be sent. Replicas share
/// them: the slowest one decides.
fn replication_buffers(ctx: &Ctx<'_>) -> usize {
    let replication = &ctx.node.replication;
    let unsent = |conn: ConnId| ctx.node.clients.sessions.get(conn).map_or(0, |session| session.unsent);
    let waiting = replication.attached().map(|(&conn, _)| unsent(conn));
    waiting.chain(replication.backlog.as_ref().map(Backlog::len)).max().unwrap_or(0)
}

/// Formats bytes with a unit and two decimals, as INFO prints them for people.
fn human(bytes: u64) -> String {
    let units = [(1u64 << 40, 'T'), (1 << 30, 'G'), (1 << 20, 'M'), (1 << 10, 'K')];
    match units.iter().find(|(size, _)| bytes >= *size) {
        Some((size, unit)) => format!("{:.2}{unit}", bytes as f64 / *size as f64),
        None => format!("{bytes}B"),
    }
}

fn persistence(ctx: &Ctx<'_>, out: &mut String) {
    let node = &ctx.node;
    let rewrites = node.rewrites_log();
    let aside = node.persistence.background.as_ref();
    let since = aside.map_or(-1, |aside| ctx.env.wall.as_secs() - aside.since);
    let (processed, total) = aside.map_or((0, 0), |aside| (aside.processed(ctx.env.monotonic), aside.keys));
    lines!(out,
        "loading": u8::from(node.loading.is_some() || node.receiving() == Some(Receiving::WithoutData)),
        "async_loading": u8::from(node.receiving() == Some(Receiving::BesideData)),
        "current_cow_peak": 0,
        "current_cow_size": 0,
        "current_cow_size_age": 0,
        "current_fork_perc": format_args!("{:.2}", if total == 0 { 0.0 } else { processed as f64 * 100.0 / total as f64 }),
        "current_save_keys_processed": processed,
        "current_save_keys_total": total,
        "rdb_changes_since_last_save": node.stats.dirty,
        "rdb_bgsave_in_progress": u8::from(node.writes_snapshot()),
        "rdb_last_save_time": node.persistence.saved_at,
        "rdb_last_bgsave_status": status(node.persistence.save_failed),
        "rdb_last_bgsave_time_sec": node.stats.save_secs.unwrap_or(-1),
        "rdb_current_bgsave_time_sec": if rewrites { -1 } else { since },
        "rdb_saves": node.stats.saves,
        "rdb_last_cow_size": 0,
        "rdb_last_load_keys_expired": node.stats.loaded.1,
        "rdb_last_load_keys_loaded": node.stats.loaded.0,
        "aof_enabled": u8::from(node.config.aof.appendonly),
        "aof_rewrite_in_progress": u8::from(rewrites),
        "aof_rewrite_scheduled": u8::from(node.persistence.rewrite_scheduled),
        "aof_last_rewrite_time_sec": node.stats.rewrite_secs.unwrap_or(-1),
        "aof_current_rewrite_time_sec": if rewrites { since } else { -1 },
        "aof_last_bgrewrite_status": status(node.persistence.aof.rewrite_failed),
        "aof_rewrites": node.stats.rewrites,
        "aof_rewrites_consecutive_failures": node.stats.rewrites_failed,
        "aof_last_write_status": status(node.persistence.aof.failed.is_some()),
        "aof_last_cow_size": 0,
        "module_fork_in_progress": 0,
        "module_fork_last_cow_size": 0,
    );
    if node.config.aof.appendonly {
        let (len, base_len) = node.persistence.aof.lens(&node.persistence.disk);
        lines!(out,
            "aof_current_size": len,
            "aof_base_size": base_len,
            "aof_pending_rewrite": u8::from(node.persistence.rewrite_scheduled),
            "aof_buffer_length": node.persistence.aof.unwritten.len(),
            "aof_pending_bio_fsync": 0,
            "aof_delayed_fsync": 0,
        );
    }
    if let Some(loading) = &node.loading {
        let (spent, left) =
            (ctx.env.wall.as_secs() - loading.since, loading.until.since(ctx.env.monotonic).as_secs());
        let share = spent as f64 / (spent as f64 + left as f64).max(1.0);
        lines!(out,
            "loading_start_time": loading.since,
            "loading_total_bytes": loading.len,
            "loading_loaded_bytes": (loading.len as f64 * share) as u64,
            "loading_loaded_perc": format_args!("{:.2}", share * 100.0),
            "loading_eta_seconds": left,
        );
    }
}

fn status(failed: bool) -> &'static str {
    if failed { "err" } else { "ok" }
}

fn stats(ctx: &Ctx<'_>, out: &mut String) {
    use crate::effect::Subscription::{Channel, Pattern, Shard};
    let (node, stats) = (&ctx.node, &ctx.node.stats);
    let [ops, input, output, repl_input, repl_output] = stats.rates.per_second(ctx.env.monotonic);
    let kilobytes = |bytes: f64| bytes / 1024.0;
    lines!(out,
        "total_connections_received": stats.connections,
        "total_commands_processed": stats.commands,
        "instantaneous_ops_per_sec": ops as u64,
        "total_net_input_bytes": stats.net_in + stats.repl_in,
        "total_net_output_bytes": stats.net_out + stats.repl_out,
        "total_net_repl_input_bytes": stats.repl_in,
        "total_net_repl_output_bytes": stats.repl_out,
        "instantaneous_input_kbps": format_args!("{:.2}", kilobytes(input + repl_input)),
        "instantaneous_output_kbps": format_args!("{:.2}", kilobytes(output + repl_output)),
        "instantaneous_input_repl_kbps": format_args!("{:.2}", kilobytes(repl_input)),
        "instantaneous_output_repl_kbps": format_args!("{:.2}", kilobytes(repl_output)),
        "rejected_connections": stats.rejected,
        "sync_full": node.replication.syncs.full,
        "sync_partial_ok": node.replication.syncs.partial,
        "sync_partial_err": node.replication.syncs.partial_refused,
        "expired_keys": stats.expired,
        // The node knows the due keys, and checks no others.
        "expired_stale_perc": "0.00",
        "expired_time_cap_reached_count": 0,
        "expire_cycle_cpu_milliseconds": 0,
        "evicted_keys": stats.evicted,
        "evicted_clients": stats.evicted_clients,
    );
    if node.config.generation.has(Feature::ScriptEviction) {
        lines!(out, "evicted_scripts": node.scripts.evicted());
    }
    lines!(out,
        "total_eviction_exceeded_time": 0,
        "current_eviction_exceeded_time": 0,
        "keyspace_hits": stats.hits,
        "keyspace_misses": stats.misses,
        "pubsub_channels": node.clients.pubsub.of(Channel).len(),
        "pubsub_patterns": node.clients.pubsub.of(Pattern).len(),
        "pubsubshard_channels": node.clients.pubsub.of(Shard).len(),
        "latest_fork_usec": 0,
        "total_forks": stats.forks,
        "migrate_cached_sockets": node.targets.len(),
        "slave_expires_tracked_keys": node.replication.own_expiries.len(),
        "active_defrag_hits": 0,
        "active_defrag_misses": 0,
        "active_defrag_key_hits": 0,
        "active_defrag_key_misses": 0,
        "total_active_defrag_time": 0,
        "current_active_defrag_time": 0,
        "tracking_total_keys": node.clients.tracking.keys_len(),
        "tracking_total_items": node.clients.tracking.items_len(),
        "tracking_total_prefixes": node.clients.tracking.prefixes_len(),
        "unexpected_error_replies": stats.unexpected_errors,
        "total_error_replies": stats.errors,
        "dump_payload_sanitizations": 0,
        "total_reads_processed": stats.reads,
        "total_writes_processed": stats.writes,
        "io_threaded_reads_processed": 0,
        "io_threaded_writes_processed": 0,
        "reply_buffer_shrinks": stats.reply_buffers.shrunk,
        "reply_buffer_expands": stats.reply_buffers.grown,
    );
}

fn replication(ctx: &Ctx<'_>, out: &mut String) {
    let replication = &ctx.node.replication;
    let now_secs = ctx.env.wall.as_secs();
    lines!(out, "role": if replication.master.is_some() { "slave" } else { "master" });
    let offset = replication.history.offset;
    if let Some(link) = &replication.master {
        // A replica without a position in any stream reports the first possible one.
        let position = if link.is_up() || link.resume.is_some() { offset } else { 1 };
        let last_io = if link.is_up() { now_secs - link.last_io_secs } else { -1 };
        lines!(out,
            "master_host": link.host,
            "master_port": link.port,
            "master_link_status": if link.is_up() { "up" } else { "down" },
            "master_last_io_seconds_ago": last_io,
            "master_sync_in_progress": u8::from(link.state() == "sync"),
            "slave_read_repl_offset": position + if link.is_up() { link.buffer.len() as u64 } else { 0 },
            "slave_repl_offset": position,
        );
        if !link.is_up() {
            lines!(out, "master_link_down_since_seconds": link.down_since.map_or(-1, |since| now_secs - since));
        }
        lines!(out,
            "slave_priority": ctx.node.config.replication.announce.priority,
            "slave_read_only": u8::from(ctx.node.config.replication.replica_read_only),
            "replica_announced": u8::from(ctx.node.config.replication.announce.announced),
        );
    }
    lines!(out, "connected_slaves": replication.attached().count());
    if ctx.node.config.replication.min_replicas_to_write > 0 {
        lines!(out, "min_slaves_good_slaves": replication.good_replicas);
    }
    for (at, (conn, replica)) in replication.attached().enumerate() {
        let (ip, port) = (ctx.node.replica_address(*conn), replica.port);
        let (acked, lag) = (replica.acked, replica.lag_secs(now_secs));
        line(
            out,
            format_args!("slave{at}:ip={ip},port={port},state={},offset={acked},lag={lag}", replica.state()),
        );
    }
    let backlog = replication.backlog.as_ref();
    lines!(out,
        "master_failover_state": Failover::state(replication.failover.as_ref()),
        "master_replid": replication.history.id,
        "master_replid2": if replication.history.second_offset.is_some() { &replication.history.id2 } else { NO_ID },
        "master_repl_offset": offset,
        "second_repl_offset": replication.history.second_offset.map_or(-1, |offset| offset as i64),
        "repl_backlog_active": u8::from(backlog.is_some()),
        "repl_backlog_size": ctx.node.config.replication.backlog_size,
        "repl_backlog_first_byte_offset": backlog.map_or(0, |backlog| backlog.first()),
        "repl_backlog_histlen": backlog.map_or(0, |backlog| backlog.len()),
    );
}

fn cpu(_: &Ctx<'_>, out: &mut String) {
    let of = ["sys", "user", "sys_children", "user_children", "sys_main_thread", "user_main_thread"];
    for name in of {
        line(out, format_args!("used_cpu_{name}:0.000000"));
    }
}

fn command_stats(ctx: &Ctx<'_>, out: &mut String) {
    for (name, calls) in ctx.node.stats.by_command() {
        let Calls { executed, rejected, failed, took_us, .. } = calls;
        let each = if *executed == 0 { 0.0 } else { *took_us as f64 / *executed as f64 };
        line(
            out,
            format_args!(
                "cmdstat_{name}:calls={executed},usec={took_us},usec_per_call={each:.2},rejected_calls={rejected},failed_calls={failed}"
            ),
        );
    }
}

fn latency_stats(ctx: &Ctx<'_>, out: &mut String) {
    let config = &ctx.node.config;
    for (name, calls) in ctx.node.stats.by_command().filter(|_| config.monitoring.latency_tracking) {
        let Some(latencies) = &calls.latencies else { continue };
        let percentile = |percent: &f64| {
            let us = latencies.percentile_ns(*percent) as f64 / 1000.0;
            format!("p{}={us:.3}", options::percentile(*percent))
        };
        let percentiles: Vec<String> = config.monitoring.latency_percentiles.iter().map(percentile).collect();
        line(out, format_args!("latency_percentiles_usec_{name}:{}", percentiles.join(",")));
    }
}

fn error_stats(ctx: &Ctx<'_>, out: &mut String) {
    for (code, count) in &ctx.node.stats.errors_by_code {
        line(out, format_args!("errorstat_{code}:count={count}"));
    }
}

fn keyspace(ctx: &Ctx<'_>, out: &mut String) {
    for (index, db) in ctx.node.dbs.iter().enumerate().filter(|(_, db)| !db.is_empty()) {
        let left = db.volatile().iter().filter_map(|(key, ())| db.get(key)?.expires_ms());
        let left: i128 = left.map(|when_ms| i128::from(when_ms.saturating_sub(ctx.now_ms).max(0))).sum();
        let average = left.checked_div(db.volatile_len() as i128).unwrap_or(0);
        let (keys, expires) = (db.len(), db.volatile_len());
        line(out, format_args!("db{index}:keys={keys},expires={expires},avg_ttl={average}"));
    }
}
