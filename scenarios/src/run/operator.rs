//! How a node is operated, be it simulated or real: the options that it is started with, and its
//! console.

use std::{cell::RefCell, collections::VecDeque, io, rc::Rc};

use lockstorm_sim::{
    config::{Config, options},
    event::DiskFault,
    time::True,
    world::HostCtx,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    sync::{Notify, oneshot},
};

use crate::{
    file::scenario::{Durability, Node as Written},
    judge::history::Serving,
};

/// The port at which a real server's own host reaches it before any client does, so that the
/// watcher misses nothing.
pub(super) const BACK_DOOR: u16 = 16379;

/// A node as its operator sees it.
pub(super) trait Operated {
    /// Where to give it commands.
    fn console(&self) -> &Console;
    /// Whether the node, if it is up, takes writes.
    fn is_master(&self) -> bool;
    /// Until when it is known what the node did, if that is not always known at once.
    fn seen_until(&self) -> Option<True> {
        None
    }
    /// The master that the node replicates, if it is known to.
    fn follows(&self) -> Option<String> {
        None
    }
    /// What the node is to a slot, if it is one of a cluster.
    fn serving(&self, _slot: u16) -> Option<Serving> {
        None
    }
    /// What the node is called in its cluster.
    fn cluster_id(&self) -> Option<String> {
        None
    }
    /// The keys of a slot that the node has, in order.
    fn keys_of(&self, _slot: u16) -> Vec<String> {
        Vec::new()
    }
    /// What it has on its disk is lost with its next crash: it comes up as at first.
    fn lose_disk(&self) {}
    /// Its disk takes nothing, because of a fault with this number, until [`Operated::mend_disk`].
    fn spoil_disk(&self, _by: usize, _fault: DiskFault) {}
    /// That fault is over; another one may last.
    fn mend_disk(&self, _by: usize) {}
    /// Writes down what is only known at the end.
    fn close(&self) {}
}

/// Commands of an operator at the node's console: there is no network in between, but the node must
/// run.
#[derive(Debug, Clone, Default)]
pub struct Console(Rc<(RefCell<VecDeque<Given>>, Notify)>);

/// A command, and where its answer goes if it is wanted.
type Given = (Vec<String>, Option<oneshot::Sender<String>>);

impl Console {
    /// Gives a command; it is carried out as soon as the node runs.
    pub fn give(&self, command: Vec<String>) {
        self.push((command, None));
    }

    /// Gives a command and waits for the answer, for as long as the node does not run; `None` if it
    /// goes down meanwhile.
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

/// Sets options, which were checked with the scenario.
pub(super) fn set<'a>(config: &mut Config, given: impl Iterator<Item = (&'a str, &'a str)>) {
    for (name, value) in given {
        let option = options::find(name).expect("a scenario's options are checked before it runs");
        let value = option.check(config, value).expect("a scenario's options are checked before it runs");
        option.set(config, &value);
    }
}

/// The options of `redis.conf` that a node is started with.
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

/// The operator at the console: one connection inside the host, one command after the other. The
/// operator has the password that the node was started with, if it was with one.
pub(super) async fn operate(ctx: HostCtx, port: u16, console: Console, password: String) {
    loop {
        let (mut command, wanted) = console.next().await;
        if let [name, master, port] = &mut command[..]
            && matches!(name.to_ascii_uppercase().as_str(), "REPLICAOF" | "SLAVEOF")
            && ctx.stands_at(ctx.name(), BACK_DOOR).is_some()
            && let Ok(number) = port.parse()
            && let Ok(address) = ctx.gate(master, number).await
        {
            (*master, *port) = (address.ip().to_string(), address.port().to_string());
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
                // A refusal shows in the answer to the command.
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
