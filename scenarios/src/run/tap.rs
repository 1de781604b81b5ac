//! The commands of a run's nodes as MONITOR shows them, without a connection that asks for them.

use std::{
    cell::RefCell,
    collections::BTreeMap,
    sync::mpsc::{Receiver, Sender, channel},
};

/// The text that `redis-cli monitor` would write, for each node. Each start of a node is a
/// connection of its own and begins with the line `OK`.
pub type Captures = BTreeMap<String, String>;

/// The lines of all nodes of a run; `None` if nothing reads them.
#[derive(Debug, Default)]
pub(super) struct Taps(Option<RefCell<BTreeMap<String, Tap>>>);

#[derive(Debug)]
struct Tap {
    send: Sender<String>,
    lines: Receiver<String>,
}

impl Taps {
    pub(super) fn open() -> Taps {
        Taps(Some(RefCell::default()))
    }

    /// Begins the lines of a node that has started. Returns the sender of these lines, or `None`
    /// if nothing reads them.
    pub(super) fn started(&self, node: &str) -> Option<Sender<String>> {
        let mut taps = self.0.as_ref()?.borrow_mut();
        let tap = taps.entry(node.to_owned()).or_insert_with(|| {
            let (send, lines) = channel();
            Tap { send, lines }
        });
        // The receiver is beside the sender.
        let _ = tap.send.send("OK".to_owned());
        Some(tap.send.clone())
    }

    /// Returns the lines up to now.
    pub(super) fn captures(&self) -> Captures {
        let Some(taps) = &self.0 else { return Captures::new() };
        let text = |tap: &Tap| tap.lines.try_iter().map(|line| line + "\n").collect();
        taps.borrow().iter().map(|(node, tap)| (node.clone(), text(tap))).collect()
    }
}

#[cfg(test)]
mod tests {
    use lockstorm_world::TraceRetention;

    use crate::{
        file::{plan::Plan, scenario::parse},
        run::{self, Engine},
    };

    const FILE: &str = r#"
        [node.redis]
        [lock]
        lease = "2s"
        [client.a]
        steps = [{ at = "1s", try_acquire = {} }, { sleep = "10ms" }, { release = {} }]
        [fault.crash]
        crash = "redis"
        at = "4s"
        for = "1s"
        [run]
        storm = "10s"
    "#;

    fn plan() -> Plan {
        let source = parse("tap.toml", FILE).unwrap_or_else(|error| panic!("{error}"));
        Plan::draw(&source.variants[0].scenario, 1)
    }

    #[test]
    fn a_run_that_is_monitored_is_the_same_run() {
        let plan = plan();
        let alone = run::run(&plan, "tap", Engine::Event, TraceRetention::Nothing);
        let (watched, captures) = run::monitored(&plan, "tap", Engine::Event, TraceRetention::Nothing);
        assert_eq!(watched.fingerprint, alone.fingerprint);
        assert_eq!(captures.keys().collect::<Vec<_>>(), ["redis"]);
        let text = &captures["redis"];
        let connections = text.lines().filter(|line| *line == "OK").count();
        assert_eq!(connections, 2, "one for each start of the node:\n{text}");
        assert!(text.starts_with("OK\n17040672"), "times are those of the node:\n{text}");
        assert!(text.contains(" lua] \"PTTL\" \"lock\""), "the commands of scripts are shown:\n{text}");
    }
}
