//! A long script, and its time slices between the turns of other clients.

use super::{Server, finish::Finished};
use crate::{
    commands::{Ctx, Origin, next_turn},
    effect::Effects,
    env::Env,
    event::{Action, ConnId},
    node::clients::BlockedOn,
};

impl Server {
    /// Asks the driver for the next turn of a script that runs by a clock.
    pub(super) fn ask_for_turn(&mut self, env: &mut Env) {
        if self.node.busy.is_some() && env.script_clock.is_some() && !self.turn_asked {
            self.turn_asked = true;
            env.outbox.push(Action::ResumeScript);
        }
    }

    /// Returns true if the closed connection's script is running. The script then runs to its end
    /// before the session is closed.
    pub(super) fn outlived_by_script(&mut self, conn: ConnId) -> bool {
        let busy = self.node.busy.as_mut().filter(|busy| busy.conn == conn);
        busy.is_some_and(|busy| {
            busy.hung_up = true;
            true
        })
    }

    /// Ends a script that was killed.
    pub(super) fn end_killed(&mut self, env: &mut Env) {
        if self.node.busy.as_ref().is_some_and(|busy| busy.killed) {
            self.next_turn(env);
        }
    }

    /// Continues the script after all other clients have had their turn.
    pub(super) fn resume_script(&mut self, env: &mut Env) {
        self.turn_asked = false;
        self.next_turn(env);
    }

    /// Gives the script its next turn, and sends its client the reply if it has ended.
    fn next_turn(&mut self, env: &mut Env) {
        let Some(busy) = self.node.busy.take() else { return };
        let (conn, now_ms, hung_up) = (busy.conn, busy.now_ms, busy.hung_up);
        let args = if env.observing { busy.command.clone() } else { Vec::new() };
        let db = self.node.clients.sessions.get(conn).map_or(0, |session| session.db);
        let mut effects = Effects::default();
        let mut ctx = Ctx::new(&mut self.node, env, &mut effects, conn, db, Origin::Client, now_ms);
        let Some(reply) = next_turn(&mut ctx, busy) else { return };
        if let Some(session) = self.node.clients.sessions.get_mut(conn) {
            session.blocked.take_if(|blocked| blocked.on == BlockedOn::Script);
        }
        self.finish(env, conn, Finished { args, effects: Some(effects), reply, waited: true });
        if hung_up {
            self.node.clients.kill(conn);
        }
        self.resume_master_stream(env);
        self.serve_ready(env);
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use crate::{
        config::Config,
        env::Env,
        event::{Action, ConnId, Event, Signal},
        server::Server,
    };

    #[expect(clippy::disallowed_methods, reason = "scripts of a served node go by the machine's clock")]
    fn now() -> Instant {
        Instant::now()
    }

    /// A node whose scripts give turns to other clients from their start, with clients 1 to 3.
    struct Rig {
        server: Server,
        env: Env,
    }

    impl Rig {
        fn new(config: Config) -> Rig {
            let mut env = Env::new(1);
            env.script_clock = Some(now);
            let mut server =
                Server::new(config.with(|config| config.scripts.busy_reply_threshold = 0), &mut env);
            for conn in [ConnId(1), ConnId(2), ConnId(3)] {
                server.step(&mut env, Event::Connected { conn, peer: "c:1".into(), local: "n:1".into() });
            }
            env.outbox.clear();
            Rig { server, env }
        }

        /// Returns the replies that one event causes, and the node's other actions except alarms.
        fn step(&mut self, event: Event) -> (Vec<(u64, String)>, Vec<Action>) {
            self.env.monotonic += Duration::from_millis(1);
            self.env.wall += Duration::from_millis(1);
            self.server.step(&mut self.env, event);
            let (mut said, mut rest) = (Vec::new(), Vec::new());
            for action in self.env.outbox.drain(..) {
                match action {
                    Action::Send { conn, bytes } => {
                        said.push((conn.0, String::from_utf8_lossy(&bytes).replace("\r\n", " ")));
                    }
                    Action::Alarm { .. } => {}
                    other => rest.push(other),
                }
            }
            (said, rest)
        }

        fn send(&mut self, conn: u64, lines: &str) -> Vec<(u64, String)> {
            let bytes = format!("{}\r\n", lines.replace('\n', "\r\n")).into();
            self.step(Event::Bytes { conn: ConnId(conn), bytes }).0
        }

        /// Begins a script of client 1 that is suspended in the middle.
        fn begin(&mut self, before: &str, after: &str) {
            let script = format!("EVAL \"{before} for i = 1, 1e6 do end {after}\" 0");
            assert_eq!(self.send(1, &script), []);
            assert!(self.server.node().busy.is_some(), "it is left in the middle");
        }

        /// Gives the script turns until it has ended; returns the replies.
        fn end(&mut self) -> Vec<(u64, String)> {
            let mut said = Vec::new();
            while self.server.node().busy.is_some() {
                said.extend(self.step(Event::ResumeScript).0);
            }
            said
        }
    }

    fn said(conn: u64, text: &str) -> (u64, String) {
        (conn, text.into())
    }

    #[test]
    fn a_snapshot_for_replicas_is_not_taken_in_the_middle_of_a_script() {
        let mut rig = Rig::new(Config::default().with(|config| config.replication.diskless_sync_delay = 1));
        rig.send(2, "REPLCONF capa eof capa psync2");
        assert_eq!(rig.send(2, "PSYNC ? -1"), []);
        rig.begin("redis.call('incr', 'k')", "return redis.call('incr', 'k')");
        rig.env.wall += Duration::from_secs(10);
        rig.env.monotonic += Duration::from_secs(10);
        let (heard, _) = rig.step(Event::Alarm);
        assert!(heard.iter().all(|(conn, text)| *conn != 2 || !text.contains("EOF")), "{heard:?}");
        let mut heard = rig.end();
        heard.extend(rig.step(Event::Alarm).0);
        let snapshot = heard.iter().find(|(conn, text)| *conn == 2 && text.contains("$EOF:"));
        let (_, snapshot) =
            snapshot.unwrap_or_else(|| panic!("it comes when the script has ended: {heard:?}"));
        assert!(!snapshot.contains("INCR"), "with all of the script in it: {snapshot}");
    }

    #[test]
    fn no_save_begins_in_the_middle_of_a_script() {
        let mut rig = Rig::new(Config::default().with(|config| config.persistence.save = vec![(1, 1)]));
        rig.begin("redis.call('set', 'a', 1)", "redis.call('set', 'b', 1)");
        rig.env.wall += Duration::from_secs(10);
        rig.env.monotonic += Duration::from_secs(10);
        rig.step(Event::Alarm);
        assert_eq!(rig.server.node().stats.saves, 0);
        rig.end();
        rig.step(Event::Alarm);
        assert_eq!(rig.server.node().stats.saves, 1);
    }

    #[test]
    fn no_key_goes_for_memory_in_the_middle_of_a_script() {
        let mut rig = Rig::new(Config::default());
        rig.send(1, "CONFIG SET maxmemory 2mb maxmemory-policy allkeys-random");
        rig.begin(
            "for i = 1, 2000 do redis.call('set', i, ('x'):rep(1000)) end",
            "return redis.call('dbsize')",
        );
        rig.send(2, "PING");
        assert_eq!(rig.end(), [said(1, ":2000 ")]);
        rig.send(2, "PING");
        assert!(rig.server.node().dbs[0].len() < 2000, "they go afterwards");
    }

    #[test]
    fn what_a_script_changes_is_told_to_its_own_client() {
        let mut rig = Rig::new(Config::default());
        for conn in [1, 2] {
            rig.send(conn, "HELLO 3\nCLIENT TRACKING ON\nGET k");
        }
        rig.begin("redis.call('set', 'k', 1)", "return 7");
        let invalid = ">2 $10 invalidate *1 $1 k ";
        assert_eq!(rig.end(), [said(2, invalid), said(1, &format!(":7 {invalid}"))]);
        assert_eq!(rig.send(3, "PING"), [said(3, "+PONG ")]);
    }

    #[test]
    fn a_killed_script_answers_after_script_kill_and_its_client_goes_on() {
        let mut rig = Rig::new(Config::default());
        rig.begin("while true do end", "");
        rig.send(1, "PING");
        let heard = rig.send(2, "SCRIPT KILL");
        assert_eq!(heard[0], said(2, "+OK "));
        assert!(heard[1].0 == 1 && heard[1].1.starts_with("-ERR Script killed"), "{heard:?}");
        assert!(heard[1].1.ends_with(" +PONG "), "{heard:?}");
    }

    #[test]
    fn a_reply_that_is_skipped_is_that_of_the_script() {
        let mut rig = Rig::new(Config::default());
        rig.send(1, "CLIENT REPLY SKIP");
        rig.begin("", "return 7");
        rig.send(1, "PING");
        assert_eq!(rig.end(), [said(1, "+PONG ")]);
    }

    #[test]
    fn a_signal_waits_for_a_script_and_shutdown_nosave_does_not() {
        let exits = |rest: &[Action]| rest.contains(&Action::Exit);
        let mut rig = Rig::new(Config::default());
        rig.begin("redis.call('set', 'a', 1)", "redis.call('set', 'b', 1)");
        assert!(!exits(&rig.step(Event::Signal(Signal::Terminate)).1));
        let mut ended = false;
        while rig.server.node().busy.is_some() {
            ended = exits(&rig.step(Event::ResumeScript).1);
        }
        assert!(ended, "it ends with the script");

        let mut rig = Rig::new(Config::default());
        rig.begin("while true do end", "");
        let bytes = "SHUTDOWN NOSAVE\r\n".into();
        assert!(exits(&rig.step(Event::Bytes { conn: ConnId(2), bytes }).1));
    }

    #[test]
    fn a_node_that_is_dropped_leaves_no_script_behind() {
        for body in ["while true do end", "while true do load(function() while true do end end) end"] {
            let mut rig = Rig::new(Config::default());
            rig.begin(body, "");
        }
    }
}
