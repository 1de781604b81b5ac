//! `redis.set_repl`: chooses the effects of a script that go to replicas and to the append-only
//! file.

use super::node::{Node, until};

const SCRIPT: &str = "
redis.call('set', 'all', 1)
redis.set_repl(redis.REPL_AOF)
redis.call('set', 'log', 1)
redis.set_repl(redis.REPL_REPLICA)
redis.call('set', 'replicas', 1)
redis.call('spop', 'set')
redis.set_repl(redis.REPL_NONE)
redis.call('set', 'none', 1)
redis.set_repl(redis.REPL_SLAVE)
redis.call('incr', 'replicas')
redis.set_repl(redis.REPL_ALL)
redis.call('incr', 'all')
return redis.call('dbsize')";

const VALUES: &str = "MGET all log replicas none";

pub(crate) fn scripts_choose_where_they_are_propagated(mut master: Node, mut replica: Node) {
    master.ask("SADD set a");
    assert_eq!(master.ask("CONFIG SET appendonly yes"), "OK");
    until("the file is begun", || master.info("aof_rewrite_in_progress") == "0");
    replica.follow(&master);
    assert_eq!(master.ask_words(&["EVAL", SCRIPT, "0"]), "4");
    assert_eq!(master.ask("WAIT 1 5000"), "1");
    let values = |node: &mut Node| (node.ask(VALUES), node.ask("EXISTS set"));
    let list = |values: [&str; 4]| {
        let text =
            |value: &str| if value.is_empty() { "nil".into() } else { format!("bulk-string('\"{value}\"')") };
        format!("array([{}])", values.map(text).join(", "))
    };
    assert_eq!(values(&mut master), (list(["2", "1", "2", "1"]), "0".into()));
    assert_eq!(values(&mut replica), (list(["2", "", "2", ""]), "0".into()));
    // After loading the file, the master has the file's data.
    assert_eq!(master.ask("DEBUG LOADAOF"), "OK");
    assert_eq!(values(&mut master), (list(["2", "1", "", ""]), "1".into()));
}
