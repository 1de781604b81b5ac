//! The operation of a node, simulated or real: its start options and its console.

use std::{cell::RefCell, collections::VecDeque, io, rc::Rc};

use lockstorm_sim::{
    config::{Config, options},
    event::DiskFault,
};
use lockstorm_world::{HostCtx, time::True};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    sync::{Notify, oneshot},
};

use crate::{
    file::scenario::{Durability, Node as Written},
    judge::history::Serving,
};

/// The port by which the watcher on a real server's own host connects. It works before the clients'
/// port does, so that the watcher misses no command.
pub(super) const BACK_DOOR: u16 = 16379;

/// A node as its operator sees it.
pub(super) trait Operated {
    /// Returns the console that accepts commands for the node.
    fn console(&self) -> &Console;
    /// Returns true if the node, provided it is up, accepts writes.
    fn is_master(&self) -> bool;
    /// Returns the time until which the node's actions are known, or `None` if nothing limits that.
    fn seen_until(&self) -> Option<True> {
        None
    }
    /// Returns the master that the node replicates, if known.
    fn follows(&self) -> Option<String> {
        None
    }
    /// Returns how a node of a cluster serves a slot.
    fn serving(&self, _slot: u16) -> Option<Serving> {
        None
    }
    /// Returns the node's ID in its cluster.
    fn cluster_id(&self) -> Option<String> {
        None
    }
    /// Returns the node's keys in a slot, in order.
    fn keys_of(&self, _slot: u16) -> Vec<String> {
        Vec::new()
    }
    /// Returns true if it is a process of the operating system, of which only its answers are
    /// known.
    fn is_process(&self) -> bool {
        false
    }
    /// Makes the next crash lose the data on disk: the node then starts as at first.
    fn lose_disk(&self) {}
    /// Makes writes to the disk fail because of fault number `by`, until [`Operated::mend_disk`].
    fn spoil_disk(&self, _by: usize, _fault: DiskFault) {}
    /// Ends the disk fault with this number. Others may last.
    fn mend_disk(&self, _by: usize) {}
    /// Records what is only known at the end of the run.
    fn close(&self) {}
}

/// Commands of an operator at the node's console. They do not pass through the network, but the
/// node must be running.
#[derive(Debug, Clone, Default)]
pub(super) struct Console(Rc<(RefCell<VecDeque<Given>>, Notify)>);

/// A command, and the channel of its reply if a caller waits for one.
type Given = (Vec<String>, Option<oneshot::Sender<String>>);

impl Console {
    /// Sends a command. The node executes it as soon as it runs.
    pub(super) fn give(&self, command: Vec<String>) {
        self.push((command, None));
    }

    /// Sends a command and waits for the reply, which may come only after the node's next start.
    /// Returns `None` if the node goes down after taking the command.
    pub(super) async fn ask(&self, command: Vec<String>) -> Option<String> {
        let (answer, answered) = oneshot::channel();
        self.push((command, Some(answer)));
        answered.await.ok()
    }

    fn push(&self, given: Given) {
        self.0.0.borrow_mut().push_back(given);
        self.0.1.notify_one();
    }

    async fn next(&self) -> Given {
        loop {
            let command = self.0.0.borrow_mut().pop_front();
            match command {
                Some(command) => return command,
                None => self.0.1.notified().await,
            }
        }
    }
}

/// Sets options that were validated with the scenario.
pub(super) fn set<'a>(config: &mut Config, given: impl Iterator<Item = (&'a str, &'a str)>) {
    for (name, value) in given {
        let option = options::find(name).expect("a scenario's options are checked before it runs");
        let value = option.check(config, value).expect("a scenario's options are checked before it runs");
        option.set(config, &value);
    }
}

/// Returns the options of `redis.conf` with which a node is started.
pub(super) fn options(written: &Written) -> Vec<(String, String)> {
    let (save, appendonly, appendfsync) = match written.durability {
        Durability::None => ("", "no", "everysec"),
        Durability::Rdb => ("3600 1 300 100 60 10000", "no", "everysec"),
        Durability::AofAlways => ("", "yes", "always"),
        Durability::AofEverysec => ("", "yes", "everysec"),
        Durability::AofNo => ("", "yes", "no"),
    };
    let own = [("save", save), ("appendonly", appendonly), ("appendfsync", appendfsync)];
    let own = own.map(|(name, value)| (name.to_owned(), value.to_owned()));
    own.into_iter().chain(written.config.clone()).collect()
}

/// The commands whose arguments may name a host to which a real server or Sentinel then connects.
const LEADING: [&str; 6] = ["REPLICAOF", "SLAVEOF", "MIGRATE", "FAILOVER", "CLUSTER", "SENTINEL"];

/// Replaces the hosts in a command, each followed by a port, by the addresses at which a real
/// process on this host reaches them: their doors, or else its own gates to them. MIGRATE connects
/// from no address of the process, so only a gate knows who does.
async fn lead(ctx: &HostCtx, command: &mut [String]) {
    let name = command.first().map_or_else(String::new, |name| name.to_ascii_uppercase());
    if !LEADING.contains(&name.as_str()) {
        return;
    }
    for at in 1..command.len().saturating_sub(1) {
        let Ok(port) = command[at + 1].parse() else { continue };
        let door = ctx.door(&command[at], port).filter(|_| name != "MIGRATE");
        let has_gate = at == 1 && matches!(name.as_str(), "REPLICAOF" | "SLAVEOF" | "MIGRATE");
        let address = match door {
            None if has_gate => ctx.gate(&command[at], port).await.ok(),
            door => door,
        };
        if let Some(address) = address {
            (command[at], command[at + 1]) = (address.ip().to_string(), address.port().to_string());
        }
    }
}

/// Executes the commands of the console over one connection inside the host, one at a time.
/// Authenticates with the password that the node was started with, if any.
pub(super) async fn operate(ctx: HostCtx, port: u16, console: Console, password: String) {
    loop {
        let (mut command, wanted) = console.next().await;
        if ctx.stands_at(ctx.name(), BACK_DOOR).is_some() {
            lead(&ctx, &mut command).await;
        }
        let mut bytes = format!("*{}\r\n", command.len()).into_bytes();
        for word in &command {
            bytes.extend_from_slice(format!("${}\r\n{word}\r\n", word.len()).as_bytes());
        }
        let answered = async {
            let mut stream = ctx.dial(ctx.name(), port).await?;
            let mut answer = vec![0; 4096];
            if !password.is_empty() {
                let auth = format!("*2\r\n$4\r\nAUTH\r\n${}\r\n{password}\r\n", password.len());
                stream.write_all(auth.as_bytes()).await?;
                // If the password is refused, the reply to the command shows it.
                let _ = stream.read(&mut answer).await?;
            }
            stream.write_all(&bytes).await?;
            let read = stream.read(&mut answer).await?;
            io::Result::Ok(String::from_utf8_lossy(&answer[..read]).trim().to_owned())
        };
        let answer = answered.await.unwrap_or_else(|error| error.to_string());
        ctx.observe("console", format!("{}: {answer}", command.join(" ")));
        if let Some(wanted) = wanted {
            let _ = wanted.send(answer);
        }
    }
}
