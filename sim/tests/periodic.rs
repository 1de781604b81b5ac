//! A node's own work: it expires keys on its grid of ticks, evicts when memory is full, and sleeps
//! otherwise.

use lockstorm_sim::{
    config::{Config, Eviction},
    env::Env,
    event::{Action, ConnId, Event},
    server::Server,
};
use lockstorm_world::time::{Monotonic, Wall};

const CONN: ConnId = ConnId(1);

fn start(config: Config) -> (Server, Env) {
    let mut env = Env::new(5);
    env.wall = Wall::from_secs(1_700_000_000);
    let mut server = Server::new(config.with(|config| config.persistence.save = Vec::new()), &mut env);
    server.step(&mut env, Event::Connected { conn: CONN, peer: "c:1".into(), local: "n:1".into() });
    (server, env)
}

/// Sends a command; returns the node's actions.
fn send(server: &mut Server, env: &mut Env, command: &str) -> Vec<Action> {
    env.outbox.clear();
    server.step(env, Event::Bytes { conn: CONN, bytes: format!("{command}\r\n").into() });
    std::mem::take(&mut env.outbox)
}

fn alarm(actions: &[Action]) -> Option<Monotonic> {
    actions.iter().rev().find_map(|action| if let Action::Alarm { at } = action { Some(*at) } else { None })
}

#[test]
fn a_node_without_volatile_keys_asks_for_no_alarm() {
    let (mut server, mut env) = start(Config::default());
    assert_eq!(alarm(&env.outbox), None);
    assert_eq!(alarm(&send(&mut server, &mut env, "SET k v")), None);
}

#[test]
fn a_key_goes_on_the_first_tick_after_its_time() {
    let (mut server, mut env) = start(Config::default());
    let mut at = alarm(&send(&mut server, &mut env, "SET k v PX 30000")).expect("an expiry is awaited");
    let mut alarms = 0;
    while !server.node().dbs[0].is_empty() {
        env.wall += at.since(env.monotonic);
        env.monotonic = at;
        server.step(&mut env, Event::Alarm);
        alarms += 1;
        if let Some(next) = alarm(&std::mem::take(&mut env.outbox)) {
            at = next;
        }
    }
    // Ticks come every 100 ms, and at 30.000 s the key still exists.
    assert_eq!(env.monotonic, Monotonic::from_millis(30_100));
    // Each alarm halves the remaining time rather than walking it tick by tick.
    assert!(alarms < 15, "{alarms} alarms for one expiry");
}

#[test]
fn eviction_keeps_memory_below_its_limit_and_draws_alike_from_one_seed() {
    let run = || {
        // The memory of a server without data, with one client.
        let empty = 876_336 + 17_158;
        let limit = empty + 4_000;
        let policy = Eviction::AllKeysRandom;
        let (mut server, mut env) = start(Config::default().with(|config| {
            config.memory.maxmemory = limit;
            config.memory.maxmemory_policy = policy;
        }));
        for n in 0..200 {
            send(&mut server, &mut env, &format!("SET key-{n} value"));
        }
        // One key may exceed the limit: eviction runs before a command, not after it.
        assert!(server.node().used_memory() as u64 <= limit + 100);
        assert!(server.node().stats.evicted > 100);
        server.node().dbs[0].entries().iter().map(|(key, _)| key.clone()).collect::<Vec<_>>()
    };
    assert_eq!(run(), run());
}

#[test]
fn a_stalled_node_answers_when_it_is_over() {
    let (mut server, mut env) = start(Config::default());
    let actions = send(&mut server, &mut env, "DEBUG SLEEP 2");
    let at = Monotonic::from_secs(2);
    assert_eq!(actions, [Action::Alarm { at }, Action::Stall { until: Some(at) }]);
    assert_eq!(send(&mut server, &mut env, "PING"), []);
    env.monotonic = Monotonic::from_secs(2);
    server.step(&mut env, Event::Alarm);
    let sent = Action::Send { conn: CONN, bytes: "+OK\r\n+PONG\r\n".into() };
    assert_eq!(env.outbox, [sent, Action::Stall { until: None }]);
}

/// Clients 1 to `count`, with a timeout of ten seconds.
fn crowd(count: u64) -> (Server, Env) {
    let (mut server, mut env) = start(Config::default().with(|config| {
        config.network.timeout = 10;
        config.clients.maxclients = 20_000;
    }));
    for id in 2..=count {
        let (peer, local) = (format!("c:{id}"), "n:1".into());
        server.step(&mut env, Event::Connected { conn: ConnId(id), peer, local });
    }
    (server, env)
}

/// The connections that are closed after this time.
fn closed_after(server: &mut Server, env: &mut Env, ms: u64) -> Vec<u64> {
    env.monotonic += std::time::Duration::from_millis(ms);
    env.outbox.clear();
    server.step(env, Event::Alarm);
    let closed = env.outbox.iter().filter_map(|action| match action {
        Action::Kill { conn, .. } => Some(conn.0),
        _ => None,
    });
    closed.collect()
}

#[test]
fn only_a_client_that_is_silent_for_too_long_is_disconnected() {
    let (mut server, mut env) = crowd(5);
    let say = |server: &mut Server, env: &mut Env, conn, text: &'static str| {
        server.step(env, Event::Bytes { conn: ConnId(conn), bytes: text.into() });
    };
    say(&mut server, &mut env, 1, "SUBSCRIBE ch\r\n");
    say(&mut server, &mut env, 2, "BLPOP q 14\r\n");
    assert_eq!(closed_after(&mut server, &mut env, 5000), []);
    say(&mut server, &mut env, 3, "PING\r\n");
    // The server counts whole seconds, and closes after one more.
    assert_eq!(closed_after(&mut server, &mut env, 5900), []);
    assert_eq!(closed_after(&mut server, &mut env, 200), [4, 5]);
    // The third client was active 5 s after the start, so it is closed after 16 s. The second was
    // blocked until now, which is not idle time.
    assert_eq!(closed_after(&mut server, &mut env, 4800), []);
    assert_eq!(closed_after(&mut server, &mut env, 300), [3]);
    assert_eq!(closed_after(&mut server, &mut env, 11_000), [2]);
    assert_eq!(closed_after(&mut server, &mut env, 1_000_000), []);
    assert_eq!(server.node().clients.sessions.len(), 1);
}

#[test]
fn ten_thousand_clients_are_not_looked_at_for_each_command() {
    let (mut server, mut env) = crowd(10_000);
    for round in 0..10 {
        for conn in (1..=10_000).filter(|conn| conn % 10 == round) {
            server.step(&mut env, Event::Bytes { conn: ConnId(conn), bytes: "PING\r\n".into() });
        }
        env.outbox.clear();
        env.monotonic += std::time::Duration::from_millis(900);
    }
    // The first round sent its commands nine seconds ago, the last one just now.
    let closed = closed_after(&mut server, &mut env, 2100);
    assert_eq!((closed.len(), closed[0], server.node().clients.sessions.len()), (1000, 10, 9000));
    assert_eq!(closed_after(&mut server, &mut env, 20_000).len(), 9000);
    assert!(server.node().clients.idle_queue.is_empty());
}
