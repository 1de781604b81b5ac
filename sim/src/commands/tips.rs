//! Hints about a command for cluster clients and proxies (tips of COMMAND INFO): the nodes to send
//! it to, the way to combine their replies, and differences between two runs.

use super::Spec;

/// Returns the tips of a command, as COMMAND INFO shows them.
pub(super) fn tips(spec: &Spec) -> &'static [&'static str] {
    match spec.name {
        "client|info"
        | "client|list"
        | "cluster|bumpepoch"
        | "cluster|count-failure-reports"
        | "cluster|getkeysinslot"
        | "cluster|info"
        | "cluster|links"
        | "cluster|myshardid"
        | "cluster|nodes"
        | "cluster|replicas"
        | "cluster|shards"
        | "cluster|slaves"
        | "cluster|slots"
        | "dump"
        | "hpttl"
        | "hrandfield"
        | "hscan"
        | "httl"
        | "lastsave"
        | "migrate"
        | "object|encoding"
        | "object|freq"
        | "object|idletime"
        | "object|refcount"
        | "pttl"
        | "spop"
        | "srandmember"
        | "sscan"
        | "time"
        | "ttl"
        | "xadd"
        | "xautoclaim"
        | "xclaim"
        | "xinfo|consumers"
        | "xpending"
        | "xtrim"
        | "zrandmember"
        | "zscan" => &["nondeterministic_output"],
        "command" | "command|docs" | "command|info" | "command|list" | "function|list" | "hgetall"
        | "hkeys" | "hvals" | "module|list" | "sdiff" | "sinter" | "smembers" | "sunion" => {
            &["nondeterministic_output_order"]
        }
        "config|set" | "latency|reset" | "script|flush" | "script|load" | "commandlog|reset"
        | "slowlog|reset" => &["request_policy:all_nodes", "response_policy:all_succeeded"],
        "dbsize" => &["request_policy:all_shards", "response_policy:agg_sum"],
        "del" | "exists" | "touch" | "unlink" => &["request_policy:multi_shard", "response_policy:agg_sum"],
        "flushall" | "flushdb" | "function|delete" | "function|flush" | "function|load"
        | "function|restore" | "memory|purge" | "ping" => {
            &["request_policy:all_shards", "response_policy:all_succeeded"]
        }
        "function|kill" | "script|kill" => &["request_policy:all_shards", "response_policy:one_succeeded"],
        "function|stats" | "info" | "memory|doctor" | "memory|malloc-stats" | "memory|stats" => {
            &["nondeterministic_output", "request_policy:all_shards", "response_policy:special"]
        }
        "keys" => &["request_policy:all_shards", "nondeterministic_output_order"],
        "latency|doctor" | "latency|graph" | "latency|histogram" | "latency|history" | "latency|latest" => {
            &["nondeterministic_output", "request_policy:all_nodes", "response_policy:special"]
        }
        "mget" => &["request_policy:multi_shard"],
        "mset" | "msetex" => &["request_policy:multi_shard", "response_policy:all_succeeded"],
        "msetnx" => &["request_policy:multi_shard", "response_policy:agg_min"],
        "randomkey" => &["request_policy:all_shards", "nondeterministic_output"],
        "scan" => &["nondeterministic_output", "request_policy:special"],
        "script|exists" => &["request_policy:all_shards", "response_policy:agg_logical_and"],
        "commandlog|get" | "slowlog|get" => &["request_policy:all_nodes", "nondeterministic_output"],
        "commandlog|len" | "slowlog|len" => {
            &["request_policy:all_nodes", "response_policy:agg_sum", "nondeterministic_output"]
        }
        "wait" | "waitaof" => &["request_policy:all_shards", "response_policy:agg_min"],
        _ => &[],
    }
}
