//! The table of options: what each is called, which values it takes, and where it lives in [`Config`].
//!
//! CONFIG GET and CONFIG SET read it. Values are text in one canonical form, as CONFIG GET prints them.

use std::fmt::Display;

use crate::{
    config::{BufferLimit, Config, Eviction, Fsync, Notify, Share},
    keyspace,
    log::Level,
};

/// One option.
pub struct Opt {
    /// Its name.
    pub name: &'static str,
    /// An older name that works as well.
    pub alias: Option<&'static str>,
    /// Which values it takes.
    pub kind: Kind,
    /// Whether CONFIG SET may change it.
    pub change: Change,
    /// Where it lives.
    pub field: Field,
    /// Whether CONFIG GET shows it only to who asks for it by its name.
    pub hidden: bool,
}

/// Whether CONFIG SET may change an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// At any time.
    Free,
    /// Only before the start.
    Never,
    /// Only with `enable-protected-configs`, which is off.
    Protected,
}

/// Which values an option takes.
pub enum Kind {
    /// `yes` or `no`.
    Flag,
    /// An integer between two bounds.
    Integer(i64, i64),
    /// A number of bytes between two bounds, perhaps with a unit.
    Memory(u64, u64),
    /// A number of bytes, or a percentage of `maxmemory`.
    MemoryOrPercent,
    /// One of some words.
    Choice(&'static [&'static str]),
    /// Any text.
    Text,
    /// Whatever a function brings into its canonical form, or refuses with a text.
    Checked(fn(&Config, &str) -> Result<String, String>),
}

/// Where an option lives.
pub enum Field {
    /// In a field that the node reads.
    Live {
        /// Its value as text.
        get: fn(&Config) -> String,
        /// Sets it from canonical text.
        set: fn(&mut Config, &str),
    },
    /// Nowhere: nothing here depends on it. It is kept and answered, and this is its default.
    Kept(&'static str),
}

impl Opt {
    /// The value as CONFIG GET prints it.
    pub fn get(&self, config: &Config) -> String {
        match self.field {
            Field::Live { get, .. } => get(config),
            Field::Kept(default) => config.others.get(self.name).map_or(default, String::as_str).to_owned(),
        }
    }

    /// Sets the value from text in canonical form, which [`Opt::check`] has answered.
    pub fn set(&self, config: &mut Config, canonical: &str) {
        match self.field {
            Field::Live { set, .. } => set(config, canonical),
            Field::Kept(_) => drop(config.others.insert(self.name.to_owned(), canonical.to_owned())),
        }
    }

    /// Brings a value into canonical form.
    ///
    /// # Errors
    /// The reason why the option does not take it, in the words of `redis-server`.
    pub fn check(&self, config: &Config, text: &str) -> Result<String, String> {
        let out_of_range = |min: &dyn Display, max: &dyn Display| {
            format!("argument must be between {min} and {max} inclusive")
        };
        match self.kind {
            Kind::Flag => match &text.to_ascii_lowercase()[..] {
                value @ ("yes" | "no") => Ok(value.to_owned()),
                _ => Err("argument must be 'yes' or 'no'".into()),
            },
            Kind::Integer(min, max) => {
                let value = keyspace::integer(text.as_bytes());
                let value = value.ok_or("argument couldn't be parsed into an integer")?;
                if (min..=max).contains(&value) {
                    Ok(value.to_string())
                } else {
                    Err(out_of_range(&min, &max))
                }
            }
            Kind::Memory(min, max) => {
                let value = memory(text).ok_or("argument must be a memory value")?;
                if (min..=max).contains(&value) {
                    Ok(value.to_string())
                } else {
                    Err(out_of_range(&min, &max))
                }
            }
            Kind::MemoryOrPercent => match text.strip_suffix('%') {
                Some(percent) => match percent.parse::<u32>() {
                    Ok(percent) if percent <= 100 => Ok(format!("{percent}%")),
                    Ok(_) => Err("percentage argument must be less or equal to 100".into()),
                    Err(_) => Err("argument must be a memory or percent value".into()),
                },
                None => {
                    let value = memory(text).ok_or("argument must be a memory or percent value")?;
                    Ok(value.to_string())
                }
            },
            Kind::Choice(words) => match words.iter().find(|word| word.eq_ignore_ascii_case(text)) {
                Some(word) => Ok((*word).to_owned()),
                None => Err(format!("argument(s) must be one of the following: {}", words.join(", "))),
            },
            Kind::Text => Ok(text.to_owned()),
            Kind::Checked(check) => check(config, text),
        }
    }
}

/// A number of bytes with an optional unit: `k` is a thousand, `kb` is 1024, and so on. As on a server no number is 0, one that
/// is too large is the largest, and what does not fit when the unit is applied is lost.
pub fn memory(text: &str) -> Option<u64> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let factor: u64 = match &unit.to_ascii_lowercase()[..] {
        "" | "b" => 1,
        "k" => 1_000,
        "kb" => 1 << 10,
        "m" => 1_000_000,
        "mb" => 1 << 20,
        "g" => 1_000_000_000,
        "gb" => 1 << 30,
        _ => return None,
    };
    let number = if number.is_empty() { 0 } else { number.parse::<u64>().unwrap_or(u64::MAX) };
    Some(number.wrapping_mul(factor))
}

/// The option of a name, which may be its older one.
pub fn find(name: &str) -> Option<&'static Opt> {
    OPTIONS.iter().find(|option| {
        option.name.eq_ignore_ascii_case(name)
            || option.alias.is_some_and(|alias| alias.eq_ignore_ascii_case(name))
    })
}

/// Sets an option before a node starts, when every option may be set.
///
/// # Errors
/// That there is no such option, with the nearest name, or why it does not take the value.
pub fn set_at_start(config: &mut Config, name: &str, value: &str) -> Result<(), String> {
    let Some(option) = find(name) else {
        let nearest =
            nearest(name).map_or_else(String::new, |nearest| format!("; did you mean `{nearest}`?"));
        return Err(format!("there is no option `{name}`{nearest}"));
    };
    let canonical = option.check(config, value).map_err(|why| format!("`{name}`: {why}"))?;
    option.set(config, &canonical);
    Ok(())
}

/// The name most like `name`, if one is like it at all.
pub fn nearest(name: &str) -> Option<&'static str> {
    let name = name.to_lowercase();
    let near = names().map(|(known, _)| (strsim::damerau_levenshtein(known, &name), known)).min()?;
    (near.0 <= 1 + name.len() / 4).then_some(near.1)
}

/// Every name, older ones included, with its option.
pub fn names() -> impl Iterator<Item = (&'static str, &'static Opt)> {
    OPTIONS.iter().flat_map(|option| {
        let alias = option.alias.map(|alias| (alias, option));
        [(option.name, option)].into_iter().chain(alias)
    })
}

fn save_points(_: &Config, text: &str) -> Result<String, String> {
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    let (pairs, rest) = words.as_chunks::<2>();
    let fits = |[seconds, changes]: &[&str; 2]| {
        seconds.parse::<u64>().is_ok_and(|seconds| seconds >= 1) && changes.parse::<u32>().is_ok()
    };
    if rest.is_empty() && pairs.iter().all(fits) {
        Ok(words.join(" "))
    } else {
        Err("Invalid save parameters".into())
    }
}

fn buffer_limits(config: &Config, text: &str) -> Result<String, String> {
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    let (limits, rest) = words.as_chunks::<4>();
    if !rest.is_empty() {
        return Err("Wrong number of arguments in buffer limit configuration.".into());
    }
    let mut all = config.output_limits;
    for [class, hard, soft, seconds] in limits {
        let class = match &class.to_ascii_lowercase()[..] {
            "normal" => 0,
            "slave" | "replica" => 1,
            "pubsub" => 2,
            _ => return Err("Invalid client class specified in buffer limit configuration.".into()),
        };
        match (memory(hard), memory(soft), seconds.parse()) {
            (Some(hard), Some(soft), Ok(seconds)) => all[class] = BufferLimit { hard, soft, seconds },
            _ => {
                return Err(
                    "Error in hard, soft or soft_seconds setting in buffer limit configuration.".into()
                );
            }
        }
    }
    Ok(BufferLimit::print(&all))
}

fn percentiles(_: &Config, text: &str) -> Result<String, String> {
    let words = text.split(' ').filter(|_| !text.is_empty());
    let numbers: Option<Vec<f64>> =
        words.map(|word| word.parse().ok().filter(|n: &f64| !n.is_nan())).collect();
    let numbers = numbers.ok_or("Invalid latency-tracking-info-percentiles parameters")?;
    if numbers.iter().any(|percent| !(0.0..=100.0).contains(percent)) {
        return Err("latency-tracking-info-percentiles parameters should sit between [0.0,100.0]".into());
    }
    Ok(print_percentiles(&numbers))
}

fn print_percentiles(percentiles: &[f64]) -> String {
    percentiles.iter().map(|percent| percentile(*percent)).collect::<Vec<_>>().join(" ")
}

/// A percentage as it is printed: with six decimals, less the zeros at the end.
pub fn percentile(percent: f64) -> String {
    format!("{percent:.6}").trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn master(_: &Config, text: &str) -> Result<String, String> {
    match text.split_ascii_whitespace().collect::<Vec<_>>()[..] {
        [] => Ok(String::new()),
        ["no", "one"] => Ok(String::new()),
        [host, port] if port.parse::<u16>().is_ok() => Ok(format!("{host} {port}")),
        [_, _] => Err("Invalid master port".into()),
        _ => Err("wrong number of arguments".into()),
    }
}

/// Words of a list, in its order.
fn shutdown_options(_: &Config, text: &str) -> Result<String, String> {
    const WORDS: [&str; 5] = ["default", "save", "nosave", "now", "force"];
    let named: Vec<String> = text.split(' ').map(str::to_ascii_lowercase).collect();
    if named.iter().any(|word| !WORDS.contains(&&word[..])) {
        return Err(format!("argument(s) must be one of the following: {}", WORDS.join(", ")));
    }
    let has = |word: &str| named.iter().any(|named| named == word);
    if has("save") && has("nosave") {
        return Err("shutdown options SAVE and NOSAVE can't be used simultaneously".into());
    }
    let words: Vec<&str> = WORDS[1..].iter().copied().filter(|word| has(word)).collect();
    Ok(if words.is_empty() { WORDS[0].to_owned() } else { words.join(" ") })
}

fn oom_scores(_: &Config, text: &str) -> Result<String, String> {
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    if words.len() != 3 {
        return Err("wrong number of arguments".into());
    }
    let fits = |word: &&str| word.parse::<i32>().is_ok_and(|score| (-2000..=2000).contains(&score));
    if !words.iter().all(fits) {
        return Err("Invalid oom-score-adj-values, elements must be between -2000 and 2000.".into());
    }
    Ok(words.join(" "))
}

fn events(_: &Config, text: &str) -> Result<String, String> {
    let wrong = || "Invalid event class character. Use 'Ag$lshzxeKEtmdn'.".to_owned();
    Notify::parse(text).map(Notify::in_full).ok_or_else(wrong)
}

macro_rules! number {
    ($($field:ident).+) => {
        Field::Live {
            get: |config| config.$($field).+.to_string(),
            set: |config, value| config.$($field).+ = value.parse().unwrap_or(config.$($field).+),
        }
    };
}
macro_rules! flag {
    ($field:ident) => {
        Field::Live {
            get: |config| if config.$field { "yes" } else { "no" }.to_owned(),
            set: |config, value| config.$field = value == "yes",
        }
    };
}
macro_rules! text {
    ($field:ident) => {
        Field::Live {
            get: |config| config.$field.clone(),
            set: |config, value| config.$field = value.to_owned(),
        }
    };
}

use Change::{Free, Never, Protected};
use Field::Kept;
use Kind::{Checked, Choice, Flag, Integer, Memory, MemoryOrPercent, Text};

/// The largest number of bytes for most.
const LONG: u64 = i64::MAX as u64;
const I32: i64 = i32::MAX as i64;
const U32: i64 = u32::MAX as i64;
const YES_NO_LOCAL: Kind = Choice(&["no", "yes", "local"]);

const fn opt(name: &'static str, kind: Kind, change: Change, field: Field) -> Opt {
    Opt { name, alias: None, kind, change, field, hidden: false }
}

const fn was(alias: &'static str, option: Opt) -> Opt {
    Opt {
        name: option.name,
        alias: Some(alias),
        kind: option.kind,
        change: option.change,
        field: option.field,
        hidden: option.hidden,
    }
}

const fn hidden(name: &'static str, kind: Kind, field: Field) -> Opt {
    Opt { name, alias: None, kind, change: Free, field, hidden: true }
}

/// Every option of 7.0, sorted by name.
pub static OPTIONS: &[Opt] = &[
    opt(
        "acl-pubsub-default",
        Choice(&["allchannels", "resetchannels"]),
        Free,
        Field::Live {
            get: |config| if config.acl_pubsub_default { "allchannels" } else { "resetchannels" }.to_owned(),
            set: |config, value| config.acl_pubsub_default = value == "allchannels",
        },
    ),
    opt("aclfile", Text, Never, text!(aclfile)),
    opt("acllog-max-len", Integer(0, I32), Free, number!(acllog_max_len)),
    opt("active-defrag-cycle-max", Integer(0, I32), Free, Kept("25")),
    opt("active-defrag-cycle-min", Integer(0, I32), Free, Kept("1")),
    opt("active-defrag-ignore-bytes", Memory(0, LONG), Free, Kept("104857600")),
    opt("active-defrag-max-scan-fields", Integer(0, I32), Free, Kept("1000")),
    opt("active-defrag-threshold-lower", Integer(0, I32), Free, Kept("10")),
    opt("active-defrag-threshold-upper", Integer(0, I32), Free, Kept("100")),
    opt("active-expire-effort", Integer(0, I32), Free, Kept("1")),
    opt("activedefrag", Flag, Free, Kept("no")),
    opt("activerehashing", Flag, Free, Kept("yes")),
    opt("always-show-logo", Flag, Never, Kept("no")),
    opt("aof-disable-auto-gc", Flag, Free, Kept("no")),
    opt("aof-load-truncated", Flag, Free, Kept("yes")),
    opt("aof-rewrite-incremental-fsync", Flag, Free, Kept("yes")),
    opt("aof-timestamp-enabled", Flag, Free, Kept("no")),
    opt("aof-use-rdb-preamble", Flag, Free, Kept("yes")),
    opt("aof_rewrite_cpulist", Text, Never, Kept("")),
    opt("appenddirname", Text, Never, Kept("appendonlydir")),
    opt("appendfilename", Text, Never, Kept("appendonly.aof")),
    opt(
        "appendfsync",
        Choice(&["everysec", "always", "no"]),
        Free,
        Field::Live {
            get: |config| config.appendfsync.name().to_owned(),
            set: |config, name| config.appendfsync = Fsync::named(name),
        },
    ),
    opt("appendonly", Flag, Free, flag!(appendonly)),
    opt("auto-aof-rewrite-min-size", Memory(0, LONG), Free, Kept("67108864")),
    opt("auto-aof-rewrite-percentage", Integer(0, I32), Free, Kept("100")),
    opt("bgsave_cpulist", Text, Never, Kept("")),
    opt("bind", Text, Free, Kept("* -::*")),
    opt("bind-source-addr", Text, Free, Kept("")),
    opt("bio_cpulist", Text, Never, Kept("")),
    was(
        "lua-time-limit",
        opt("busy-reply-threshold", Integer(0, i64::MAX), Free, number!(busy_reply_threshold)),
    ),
    opt(
        "client-output-buffer-limit",
        Checked(buffer_limits),
        Free,
        Field::Live {
            get: |config| BufferLimit::print(&config.output_limits),
            set: |config, text| config.output_limits = BufferLimit::parse(text),
        },
    ),
    opt("client-query-buffer-limit", Memory(1 << 20, LONG), Free, number!(client_query_buffer_limit)),
    opt("cluster-allow-pubsubshard-when-down", Flag, Free, Kept("yes")),
    opt("cluster-allow-reads-when-down", Flag, Free, Kept("no")),
    opt("cluster-allow-replica-migration", Flag, Free, Kept("yes")),
    opt("cluster-announce-bus-port", Integer(0, I32), Free, Kept("0")),
    opt("cluster-announce-hostname", Text, Free, Kept("")),
    opt("cluster-announce-ip", Text, Free, Kept("")),
    opt("cluster-announce-port", Integer(0, I32), Free, Kept("0")),
    opt("cluster-announce-tls-port", Integer(0, I32), Free, Kept("0")),
    opt("cluster-config-file", Text, Never, Kept("nodes.conf")),
    opt("cluster-enabled", Flag, Never, Kept("no")),
    opt("cluster-link-sendbuf-limit", Memory(0, LONG), Free, Kept("0")),
    opt("cluster-migration-barrier", Integer(0, I32), Free, Kept("1")),
    opt("cluster-node-timeout", Integer(0, I32), Free, Kept("15000")),
    opt("cluster-port", Integer(0, I32), Never, Kept("0")),
    opt("cluster-preferred-endpoint-type", Choice(&["ip", "hostname", "unknown-endpoint"]), Free, Kept("ip")),
    was("cluster-slave-no-failover", opt("cluster-replica-no-failover", Flag, Free, Kept("no"))),
    was(
        "cluster-slave-validity-factor",
        opt("cluster-replica-validity-factor", Integer(0, I32), Free, Kept("10")),
    ),
    opt("cluster-require-full-coverage", Flag, Free, Kept("yes")),
    opt("crash-log-enabled", Flag, Free, Kept("yes")),
    opt("crash-memcheck-enabled", Flag, Free, Kept("yes")),
    opt("daemonize", Flag, Never, Kept("no")),
    opt("databases", Integer(1, I32), Never, number!(databases)),
    opt("dbfilename", Text, Protected, Kept("dump.rdb")),
    opt("dir", Text, Protected, Kept("/data")),
    opt("disable-thp", Flag, Never, Kept("yes")),
    opt("dynamic-hz", Flag, Free, Kept("yes")),
    opt("enable-debug-command", YES_NO_LOCAL, Never, flag!(enable_debug_command)),
    opt("enable-module-command", YES_NO_LOCAL, Never, Kept("no")),
    opt("enable-protected-configs", YES_NO_LOCAL, Never, Kept("no")),
    was(
        "hash-max-ziplist-entries",
        opt(
            "hash-max-listpack-entries",
            Integer(0, i64::MAX),
            Free,
            Field::Live {
                get: |config| config.encodings.hash_entries_max.to_string(),
                set: |config, value| {
                    config.encodings.hash_entries_max =
                        value.parse().unwrap_or(config.encodings.hash_entries_max)
                },
            },
        ),
    ),
    was(
        "hash-max-ziplist-value",
        opt(
            "hash-max-listpack-value",
            Memory(0, LONG),
            Free,
            Field::Live {
                get: |config| config.encodings.hash_value_max.to_string(),
                set: |config, value| {
                    config.encodings.hash_value_max = value.parse().unwrap_or(config.encodings.hash_value_max)
                },
            },
        ),
    ),
    opt(
        "hll-sparse-max-bytes",
        Memory(0, LONG),
        Free,
        Field::Live {
            get: |config| config.encodings.hyperloglog_sparse_max.to_string(),
            set: |config, value| {
                config.encodings.hyperloglog_sparse_max =
                    value.parse().unwrap_or(config.encodings.hyperloglog_sparse_max)
            },
        },
    ),
    opt(
        "hz",
        Integer(i64::MIN, i64::MAX),
        Free,
        Field::Live {
            get: |config| config.hz.to_string(),
            set: |config, text| config.hz = text.parse().unwrap_or(0).clamp(1, 500),
        },
    ),
    opt("ignore-warnings", Text, Never, Kept("")),
    opt("io-threads", Integer(0, I32), Never, Kept("1")),
    opt("io-threads-do-reads", Flag, Never, Kept("no")),
    opt("jemalloc-bg-thread", Flag, Free, Kept("yes")),
    hidden("key-load-delay", Integer(-1 - I32, I32), Kept("0")),
    opt("latency-monitor-threshold", Integer(0, i64::MAX), Free, number!(latency_monitor_threshold)),
    opt("latency-tracking", Flag, Free, flag!(latency_tracking)),
    opt(
        "latency-tracking-info-percentiles",
        Checked(percentiles),
        Free,
        Field::Live {
            get: |config| print_percentiles(&config.latency_percentiles),
            set: |config, value| {
                config.latency_percentiles = value.split(' ').flat_map(str::parse).collect();
            },
        },
    ),
    opt("lazyfree-lazy-eviction", Flag, Free, Kept("no")),
    opt("lazyfree-lazy-expire", Flag, Free, Kept("no")),
    opt("lazyfree-lazy-server-del", Flag, Free, Kept("no")),
    opt("lazyfree-lazy-user-del", Flag, Free, Kept("no")),
    opt("lazyfree-lazy-user-flush", Flag, Free, Kept("no")),
    opt("lfu-decay-time", Integer(0, I32), Free, number!(lfu.decay_minutes)),
    opt("lfu-log-factor", Integer(0, I32), Free, number!(lfu.log_factor)),
    opt("list-compress-depth", Integer(0, I32), Free, Kept("0")),
    was(
        "list-max-ziplist-size",
        opt("list-max-listpack-size", Integer(-1 - I32, I32), Free, number!(list_node_size)),
    ),
    hidden("loading-process-events-interval-bytes", Integer(1024, I32), Kept("2097152")),
    opt("logfile", Text, Never, Kept("")),
    opt(
        "loglevel",
        Choice(&["debug", "verbose", "notice", "warning"]),
        Free,
        Field::Live {
            get: |config| config.loglevel.name().to_owned(),
            set: |config, name| config.loglevel = Level::named(name),
        },
    ),
    opt("masterauth", Text, Free, text!(masterauth)),
    opt("masteruser", Text, Free, text!(masteruser)),
    opt("maxclients", Integer(1, U32), Free, number!(maxclients)),
    opt("maxmemory", Memory(0, u64::MAX), Free, number!(maxmemory)),
    opt(
        "maxmemory-clients",
        MemoryOrPercent,
        Free,
        Field::Live {
            get: |config| config.maxmemory_clients.to_string(),
            set: |config, text| config.maxmemory_clients = Share::parse(text),
        },
    ),
    opt("maxmemory-eviction-tenacity", Integer(0, I32), Free, Kept("10")),
    opt(
        "maxmemory-policy",
        Choice(&[
            "volatile-lru",
            "volatile-lfu",
            "volatile-random",
            "volatile-ttl",
            "allkeys-lru",
            "allkeys-lfu",
            "allkeys-random",
            "noeviction",
        ]),
        Free,
        Field::Live {
            get: |config| config.maxmemory_policy.name().to_owned(),
            set: |config, name| config.maxmemory_policy = Eviction::named(name),
        },
    ),
    opt("maxmemory-samples", Integer(1, I32), Free, number!(maxmemory_samples)),
    was(
        "min-slaves-max-lag",
        opt("min-replicas-max-lag", Integer(0, I32), Free, number!(min_replicas_max_lag)),
    ),
    was(
        "min-slaves-to-write",
        opt("min-replicas-to-write", Integer(0, I32), Free, number!(min_replicas_to_write)),
    ),
    opt("no-appendfsync-on-rewrite", Flag, Free, Kept("no")),
    opt(
        "notify-keyspace-events",
        Checked(events),
        Free,
        Field::Live {
            get: |config| config.notify_keyspace_events.to_string(),
            set: |config, text| config.notify_keyspace_events = Notify::parse(text).unwrap_or_default(),
        },
    ),
    opt("oom-score-adj", Choice(&["no", "yes", "relative", "absolute"]), Free, Kept("no")),
    opt("oom-score-adj-values", Checked(oom_scores), Free, Kept("0 200 800")),
    opt("pidfile", Text, Never, Kept("")),
    opt("port", Integer(0, 65535), Free, number!(port)),
    opt("proc-title-template", Text, Free, Kept("{title} {listen-addr} {server-mode}")),
    opt(
        "propagation-error-behavior",
        Choice(&["ignore", "panic", "panic-on-replicas"]),
        Free,
        Kept("ignore"),
    ),
    opt("protected-mode", Flag, Free, Kept("yes")),
    opt("proto-max-bulk-len", Memory(1 << 20, LONG), Free, number!(proto_max_bulk_len)),
    opt("rdb-del-sync-files", Flag, Free, Kept("no")),
    opt("rdb-save-incremental-fsync", Flag, Free, Kept("yes")),
    opt("rdbchecksum", Flag, Never, Kept("yes")),
    opt("rdbcompression", Flag, Free, flag!(rdb_compression)),
    opt("repl-backlog-size", Memory(1, LONG), Free, number!(repl_backlog_size)),
    opt("repl-backlog-ttl", Integer(0, I32), Free, number!(repl_backlog_ttl)),
    opt("repl-disable-tcp-nodelay", Flag, Free, Kept("no")),
    opt("repl-diskless-load", Choice(&["disabled", "on-empty-db", "swapdb"]), Free, Kept("disabled")),
    opt("repl-diskless-sync", Flag, Free, flag!(repl_diskless_sync)),
    opt("repl-diskless-sync-delay", Integer(0, I32), Free, number!(repl_diskless_sync_delay)),
    opt("repl-diskless-sync-max-replicas", Integer(0, I32), Free, Kept("0")),
    was(
        "repl-ping-slave-period",
        opt("repl-ping-replica-period", Integer(1, I32), Free, number!(repl_ping_period)),
    ),
    opt("repl-timeout", Integer(1, I32), Free, number!(repl_timeout)),
    was("slave-announce-ip", opt("replica-announce-ip", Text, Free, Kept(""))),
    was("slave-announce-port", opt("replica-announce-port", Integer(0, I32), Free, Kept("0"))),
    opt("replica-announced", Flag, Free, Kept("yes")),
    opt("replica-ignore-disk-write-errors", Flag, Free, Kept("no")),
    was("slave-ignore-maxmemory", opt("replica-ignore-maxmemory", Flag, Free, Kept("yes"))),
    was("slave-lazy-flush", opt("replica-lazy-flush", Flag, Free, Kept("no"))),
    was("slave-priority", opt("replica-priority", Integer(0, I32), Free, Kept("100"))),
    was("slave-read-only", opt("replica-read-only", Flag, Free, flag!(replica_read_only))),
    was(
        "slave-serve-stale-data",
        opt("replica-serve-stale-data", Flag, Free, flag!(replica_serve_stale_data)),
    ),
    was(
        "slaveof",
        opt(
            "replicaof",
            Checked(master),
            Never,
            Field::Live { get: Config::master_address, set: Config::set_master_address },
        ),
    ),
    opt("requirepass", Text, Free, text!(requirepass)),
    opt("sanitize-dump-payload", Choice(&["no", "yes", "clients"]), Free, Kept("no")),
    opt(
        "save",
        Checked(save_points),
        Free,
        Field::Live { get: Config::save_points, set: Config::set_save_points },
    ),
    opt("server_cpulist", Text, Never, Kept("")),
    opt(
        "set-max-intset-entries",
        Integer(0, i64::MAX),
        Free,
        Field::Live {
            get: |config| config.encodings.set_integers_max.to_string(),
            set: |config, value| {
                config.encodings.set_integers_max = value.parse().unwrap_or(config.encodings.set_integers_max)
            },
        },
    ),
    opt("set-proc-title", Flag, Free, Kept("yes")),
    opt("shutdown-on-sigint", Checked(shutdown_options), Free, Kept("default")),
    opt("shutdown-on-sigterm", Checked(shutdown_options), Free, Kept("default")),
    opt("shutdown-timeout", Integer(0, I32), Free, number!(shutdown_timeout)),
    opt("slowlog-log-slower-than", Integer(-1, i64::MAX), Free, number!(slowlog_slower_than)),
    opt("slowlog-max-len", Integer(0, I32), Free, number!(slowlog_max_len)),
    opt("socket-mark-id", Integer(0, I32), Free, Kept("0")),
    opt("stop-writes-on-bgsave-error", Flag, Free, flag!(stop_writes_on_bgsave_error)),
    opt(
        "stream-node-max-bytes",
        Memory(0, LONG),
        Free,
        Field::Live {
            get: |config| config.encodings.stream_node_bytes_max.to_string(),
            set: |config, value| {
                config.encodings.stream_node_bytes_max =
                    value.parse().unwrap_or(config.encodings.stream_node_bytes_max)
            },
        },
    ),
    opt(
        "stream-node-max-entries",
        Integer(0, i64::MAX),
        Free,
        Field::Live {
            get: |config| config.encodings.stream_node_entries_max.to_string(),
            set: |config, value| {
                config.encodings.stream_node_entries_max =
                    value.parse().unwrap_or(config.encodings.stream_node_entries_max)
            },
        },
    ),
    opt("supervised", Choice(&["upstart", "systemd", "auto", "no"]), Never, Kept("no")),
    opt("syslog-enabled", Flag, Never, Kept("no")),
    opt(
        "syslog-facility",
        Choice(&["user", "local0", "local1", "local2", "local3", "local4", "local5", "local6", "local7"]),
        Never,
        Kept("local0"),
    ),
    opt("syslog-ident", Text, Never, Kept("redis")),
    opt("tcp-backlog", Integer(0, I32), Never, Kept("511")),
    opt("tcp-keepalive", Integer(0, I32), Free, Kept("300")),
    opt("timeout", Integer(0, I32), Free, number!(timeout)),
    opt("tls-auth-clients", Choice(&["no", "yes", "optional"]), Free, Kept("yes")),
    opt("tls-ca-cert-dir", Text, Free, Kept("")),
    opt("tls-ca-cert-file", Text, Free, Kept("")),
    opt("tls-cert-file", Text, Free, Kept("")),
    opt("tls-ciphers", Text, Free, Kept("")),
    opt("tls-ciphersuites", Text, Free, Kept("")),
    opt("tls-client-cert-file", Text, Free, Kept("")),
    opt("tls-client-key-file", Text, Free, Kept("")),
    opt("tls-client-key-file-pass", Text, Free, Kept("")),
    opt("tls-cluster", Flag, Free, Kept("no")),
    opt("tls-dh-params-file", Text, Free, Kept("")),
    opt("tls-key-file", Text, Free, Kept("")),
    opt("tls-key-file-pass", Text, Free, Kept("")),
    opt("tls-port", Integer(0, I32), Free, Kept("0")),
    opt("tls-prefer-server-ciphers", Flag, Free, Kept("no")),
    opt("tls-protocols", Text, Free, Kept("")),
    opt("tls-replication", Flag, Free, Kept("no")),
    opt("tls-session-cache-size", Integer(0, I32), Free, Kept("20480")),
    opt("tls-session-cache-timeout", Integer(0, I32), Free, Kept("300")),
    opt("tls-session-caching", Flag, Free, Kept("yes")),
    opt("tracking-table-max-keys", Integer(0, I32), Free, number!(tracking_table_max_keys)),
    opt("unixsocket", Text, Never, Kept("")),
    opt("unixsocketperm", Integer(0, I32), Never, Kept("0")),
    was(
        "zset-max-ziplist-entries",
        opt(
            "zset-max-listpack-entries",
            Integer(0, i64::MAX),
            Free,
            Field::Live {
                get: |config| config.encodings.sorted_set_entries_max.to_string(),
                set: |config, value| {
                    config.encodings.sorted_set_entries_max =
                        value.parse().unwrap_or(config.encodings.sorted_set_entries_max)
                },
            },
        ),
    ),
    was(
        "zset-max-ziplist-value",
        opt(
            "zset-max-listpack-value",
            Memory(0, LONG),
            Free,
            Field::Live {
                get: |config| config.encodings.sorted_set_value_max.to_string(),
                set: |config, value| {
                    config.encodings.sorted_set_value_max =
                        value.parse().unwrap_or(config.encodings.sorted_set_value_max)
                },
            },
        ),
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_sorted_and_their_defaults_are_values_they_take() {
        let config = Config::default();
        assert!(OPTIONS.is_sorted_by(|a, b| a.name < b.name));
        for option in OPTIONS {
            let value = option.get(&config);
            assert_eq!(option.check(&config, &value).as_ref(), Ok(&value), "{}", option.name);
            let mut changed = config.clone();
            option.set(&mut changed, &value);
            assert_eq!(option.get(&changed), value, "{}", option.name);
        }
    }

    #[test]
    fn memory_has_units() {
        for (text, bytes) in [
            ("1kb", Some(1024)),
            ("2K", Some(2000)),
            ("1KiB", None),
            ("-1", None),
            ("", Some(0)),
            ("1kb\0x", None),
        ] {
            assert_eq!(memory(text), bytes, "{text}");
        }
        assert_eq!([memory("17179869184gb"), memory("99999999999999999999999")], [Some(0), Some(u64::MAX)]);
    }
}
