//! Compares every key of the databases in use, and all other state that remains at the end.

use std::time::Duration;

use crate::{
    duel::{Difference, Duel, words},
    servers::{Play, Received},
    steps::{Step, name},
    wire::{Wire, command},
};

/// The connection that inspects the keys.
const WATCHER: usize = 30;

impl Duel {
    /// Compares all state of both servers that commands can show.
    pub(super) fn keys(&mut self, at: usize) -> Option<Difference> {
        let send = |line: &str| Step::Send(WATCHER, words(line));
        let mut head = Vec::new();
        if self.users {
            head.push(send("AUTH control x"));
        }
        let lists = ["FUNCTION LIST WITHCODE", "ACL LIST", "ACL LOG 100"];
        let lists = &lists[..if self.users { 3 } else { 1 }];
        let lists: Vec<Step> = lists.iter().map(|line| send(line)).collect();
        if let Some(difference) = self.show(at, &head, &lists) {
            return Some(difference);
        }
        for db in 0..3 {
            let mut head = head.clone();
            head.push(send(&format!("SELECT {db}")));
            if let Some(difference) = self.show(at, &head, &[send("KEYS *"), send("DBSIZE")]) {
                return Some(difference);
            }
            let show = self.all_keys();
            if let Some(difference) = self.show(at, &head, &show) {
                return Some(difference);
            }
        }
        None
    }

    /// The commands that show all keys of the watcher's database.
    fn all_keys(&mut self) -> Vec<Step> {
        let mut show = Vec::new();
        self.sim.send(&name(WATCHER), &command(&words("KEYS *")));
        let Received::Reply(Wire::Items(_, keys)) = self.sim.receive(&name(WATCHER), Duration::ZERO) else {
            return show;
        };
        for key in keys {
            let Wire::Bulk(key) = key else { continue };
            self.sim.send(&name(WATCHER), &command(&[b"TYPE".to_vec(), key.clone()]));
            let Received::Reply(Wire::Status(kind)) = self.sim.receive(&name(WATCHER), Duration::ZERO) else {
                continue;
            };
            let whole = match &kind[..] {
                b"string" => "GET ?",
                b"hash" => "HGETALL ?",
                b"list" => "LRANGE ? 0 -1",
                b"set" => "SMEMBERS ?",
                b"zset" => "ZRANGE ? 0 -1 WITHSCORES",
                _ => "XINFO STREAM ? FULL 0",
            };
            for line in ["TYPE ?", whole, "OBJECT ENCODING ?", "PTTL ?"] {
                let words = line.split(' ').map(|word| match word {
                    "?" => key.clone(),
                    word => word.as_bytes().to_vec(),
                });
                show.push(Step::Send(WATCHER, words.collect()));
            }
        }
        show
    }

    /// Plays commands that only read, after those of `head` that lead there.
    fn show(&mut self, at: usize, head: &[Step], show: &[Step]) -> Option<Difference> {
        let steps = [head, show].concat();
        let mut from = 0;
        while from < steps.len() {
            let end = self.batch_end(&steps, from);
            if let Some(difference) = self.batch(&steps, from, end) {
                let mut show = head.to_vec();
                show.extend(steps.get(difference.at.max(head.len())).cloned());
                return Some(Difference { at, show, ..difference });
            }
            from = end;
        }
        None
    }
}
