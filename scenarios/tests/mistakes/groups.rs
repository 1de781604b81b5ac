//! Mistakes about clusters, Sentinels and their clients.

use super::{GOOD, check, with};

#[test]
fn a_cluster_that_cannot_be_is_pointed_at() {
    with("[node.redis]", "[node.redis]\n«slots» = \"0-9\"", "no master of a cluster");
    with("[node.redis]", "[node.redis]\ncluster = true\nslots = «\"0-16384\"»", "expected slots such as");
    with("[node.redis]", "[node.redis]\nconfig = { «cluster-enabled» = \"yes\" }", "by `cluster = true`");
    with("[node.redis]", "[node.a]\ncluster = true\n[node.«redis»]", "outside of the cluster");
    with(
        "[node.redis]",
        "[node.redis]\ncluster = true\nslots = \"0-9\"\n[node.b]\ncluster = true\nslots = «\"9\"»",
        "slot 9 is given to two nodes",
    );
    with(
        "[node.redis]",
        "[node.redis]\ncluster = true\n[node.r]\nreplica_of = \"redis\"\n[node.rr]\nreplica_of = «\"r\"»",
        "r is none",
    );
    with("[node.redis]", "[node.redis]\ncluster = true\n[sentinel.«s»]", "no Sentinels in it");
    let cluster = "[node.redis]\ncluster = true";
    with("[node.redis]", &format!("[lock]\nkind = «\"redlock\"»\n{cluster}"), "nothing of each other");
    with("[node.redis]", &format!("[lock]\n«nodes» = [\"redis\"]\n{cluster}"), "where its slot is");
    with("[node.redis]", &format!("[lock]\nsubject = «\"counted-lock\"»\n{cluster}"), "no model does");
    with("crash = \"redis\"", "«failover» = { replica = \"redis\" }", "needs a cluster");
    let fault = |fault: &str| GOOD.replace("[node.redis]", cluster).replace("crash = \"redis\"", fault);
    let both = "«reshard» = { slots = \"0\", of = \"lock\", to = \"redis\" }";
    check(&fault(both), "both `slots` and `of`");
    let by_itself = fault("«reshard» = { to = \"redis\", atomic = true }");
    check(&by_itself, "CLUSTER MIGRATESLOTS is no command of node redis");
    let valkey = cluster.to_owned() + "\nserver = \"valkey-9.1\"";
    let stepped = GOOD
        .replace("[node.redis]", &valkey)
        .replace("crash = \"redis\"", "«reshard» = { to = \"redis\", atomic = true, step = \"1s\" }");
    check(&stepped, "both `atomic` and `step`");
    check(&fault("reshard = { of = «\"stock\"», to = \"redis\" }"), "there is no lock `stock`");
}

#[test]
fn options_of_sentinels_are_checked_as_those_of_nodes() {
    for (config, says) in [
        ("«auth-pas» = \"x\"", "did you mean `auth-pass`?"),
        ("«maxmemory» = \"1mb\"", "there is no option of a Sentinel `maxmemory`"),
        ("«known-replica» = \"r 6379\"", "there is no option of a Sentinel `known-replica`"),
        ("«down-after-milliseconds» = \"500\"", "write `down_after` of the Sentinel instead"),
        ("«resolve-hostnames» = \"no\"", "hosts of a scenario know each other by their names"),
        ("auth-pass = «\"two words\"»", "auth-pass = \"two words\": expected a password"),
        ("rename-command = «\"SLAVEOF\"»", "expected the name of a command, and what is sent in its place"),
        ("master-reboot-down-after-period = «\"1s\"»", "expected a number of milliseconds"),
        ("deny-scripts-reconfig = «\"maybe\"»", "expected yes or no"),
        ("sentinel-user = «\"x\\nsentinel myid y\"»", "expected the name of a user"),
        ("maxclients = «\"many\"»", "sentinel s: maxclients = \"many\""),
    ] {
        with("[client.c1]", &format!("[sentinel.s]\nconfig = {{ {config} }}\n[client.c1]"), says);
    }
}

#[test]
fn a_failover_is_by_a_sentinel_that_can() {
    let group = GOOD.replace("[client.c1]", "[sentinel.s]\ncount = 2\n[client.c1]");
    for (keys, says) in [
        ("master = «\"redis\"», coordinated = true", "say which one does"),
        ("«coordinated» = true", "only Sentinels have coordinated failovers"),
        ("sentinel = «\"s3\"», master = \"redis\"", "there is no host `s3`"),
        ("sentinel = «\"redis\"», master = \"redis\"", "by a Sentinel, and `redis` is none"),
        ("«sentinel» = \"s1\"", "does not say what the Sentinel replaces"),
        ("«how» = \"force\", sentinel = \"s\", master = \"redis\"", "`how` is about clusters"),
        ("sentinel = \"s\", master = «\"m\"»", "Sentinel s watches no master `m`"),
        ("sentinel = \"s1\", master = \"redis\", «coordinated» = true", "has no COORDINATED on Sentinel s"),
        ("sentinel = \"@any-sentinel\", master = \"redis\", «coordinated» = true", "has no COORDINATED"),
    ] {
        check(&group.replace("crash = \"redis\"", &format!("failover = {{ {keys} }}")), says);
    }
    with("crash = \"redis\"", "«failover» = {}", "needs the `replica` of a cluster");
}

#[test]
fn a_client_asks_sentinels_that_are_there_and_knows_no_nodes_beside_them() {
    with("steps =", "sentinels = [«\"s\"»]\nsteps =", "there is no Sentinel `s`");
    let sentinel = GOOD.replace("[client.c1]", "[sentinel.s]\n[client.c1]");
    let client = |keys: &str| sentinel.replace("steps =", &format!("{keys}\nsteps ="));
    check(&client("nodes = [\"redis\"]\nsentinels = [«\"s\"»]"), "no `nodes` of its own");
    let redlock =
        client("sentinels = [«\"s\"»]").replace("[node.redis]", "[lock]\nkind = \"redlock\"\n[node.redis]");
    check(&redlock, "the one master of a lock");
}
