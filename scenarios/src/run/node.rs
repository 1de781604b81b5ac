//! A Redis node on its host: started from what its disk kept, watched, and with a console.

use std::{cell::RefCell, collections::VecDeque, io, rc::Rc};

use lockstorm_sim::{
    config::{Config, options},
    drive::Node,
    env::Env,
    server::Server,
    time::True,
    world::{self, HostCtx, HostState},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    sync::Notify,
};

use super::{Stage, real, witness::Witness};
use crate::scenario::{Durability, Node as Written};

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
    /// The node's host does this from now on.
    fn is_now(&self, _state: HostState) {}
    /// Writes down what is only known at the end.
    fn close(&self);
}

/// One node over all its lives.
pub(super) struct Actor {
    written: Written,
    pub(super) node: Node,
    console: Console,
    witness: RefCell<Option<Rc<RefCell<Witness>>>>,
}

/// Commands of an operator at the node's console: there is no network in between, but the node must run.
#[derive(Debug, Clone, Default)]
pub struct Console(Rc<(RefCell<VecDeque<Vec<String>>>, Notify)>);

impl Console {
    /// Gives a command; it is carried out as soon as the node runs.
    pub fn give(&self, command: Vec<String>) {
        self.0.0.borrow_mut().push_back(command);
        self.0.1.notify_one();
    }

    async fn next(&self) -> Vec<String> {
        loop {
            let command = self.0.0.borrow_mut().pop_front();
            match command {
                Some(command) => return command,
                None => self.0.1.notified().await,
            }
        }
    }
}

impl Actor {
    pub(super) fn new(written: Written) -> Actor {
        Actor { written, node: Node::new(), console: Console::default(), witness: RefCell::default() }
    }

    fn config(&self) -> Config {
        let mut config = Config::default();
        for (name, value) in options(&self.written) {
            let option = options::find(&name).expect("a scenario's options are checked before it runs");
            let value =
                option.check(&config, &value).expect("a scenario's options are checked before it runs");
            option.set(&mut config, &value);
        }
        config.mutations.wall_from_monotonic = self.written.expire_by_monotonic;
        config.mutations.replicate_relative_ttl = self.written.replicate_relative_ttl;
        config.mutations.expire_at_the_millisecond = self.written.expire_at_the_millisecond;
        config.mutations.replicate_in_part = self.written.replicate_in_part;
        let edit = self.written.script_edit.clone();
        config.mutations.script_edit = edit.map(|edit| (edit.find, edit.replace));
        config
    }
}

impl Operated for Actor {
    fn console(&self) -> &Console {
        &self.console
    }

    fn is_master(&self) -> bool {
        self.node.look(|server| !server.node().is_replica()).unwrap_or(false)
    }

    /// The node and its witness know each other, and what knows itself is never freed: the server goes, and the watcher with it.
    fn close(&self) {
        if let Some(witness) = self.witness.take() {
            witness.borrow().close();
        }
        self.node.watch(|_| {});
        self.node.take();
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

/// Plays a node from one start to its crash or exit.
pub(super) async fn play(ctx: HostCtx, stage: Rc<Stage>, actor: Rc<Actor>) {
    let host = stage.host(ctx.name());
    let config = actor.config();
    let port = config.port;
    let witness = {
        let mut witness = actor.witness.borrow_mut();
        let witness = witness.get_or_insert_with(|| {
            let (shared, node, locks) = (stage.shared.clone(), actor.node.clone(), stage.locks());
            Rc::new(RefCell::new(Witness::new(ctx.clone(), shared, host, node, locks, stage.hosts.clone())))
        });
        witness.borrow_mut().ctx = ctx.clone();
        witness.clone()
    };
    let watching = witness.clone();
    actor.node.watch(move |observation| watching.borrow_mut().saw(observation));
    if let Some(master) = &actor.written.replica_of {
        actor.console.give(["REPLICAOF", master.as_str(), "6379"].map(str::to_owned).to_vec());
    }
    let operator = tokio::task::spawn_local(operate(ctx.clone(), port, actor.console.clone()));
    let start = |env: &mut Env, before: Option<Server>| match before {
        Some(before) => Server::restart(config, before.crash(), env),
        None => Server::new(config, env),
    };
    world::node::run_with(ctx, port, actor.node.clone(), start).await;
    operator.abort();
}

/// The operator at the console: one connection inside the host, one command after the other.
pub(super) async fn operate(ctx: HostCtx, port: u16, console: Console) {
    loop {
        let mut command = console.next().await;
        if let [name, master, port] = &mut command[..]
            && matches!(name.to_ascii_uppercase().as_str(), "REPLICAOF" | "SLAVEOF")
            && let Some(address) = ctx.stands_at(master, real::BACK_DOOR)
        {
            (*master, *port) = (address.ip().to_string(), address.port().to_string());
        }
        let mut bytes = format!("*{}\r\n", command.len()).into_bytes();
        for word in &command {
            bytes.extend_from_slice(format!("${}\r\n{word}\r\n", word.len()).as_bytes());
        }
        let answered = async {
            let mut stream = ctx.dial(ctx.name(), port).await?;
            stream.write_all(&bytes).await?;
            let mut answer = vec![0; 4096];
            let read = stream.read(&mut answer).await?;
            io::Result::Ok(String::from_utf8_lossy(&answer[..read]).trim().to_owned())
        };
        let answer = answered.await.unwrap_or_else(|error| error.to_string());
        ctx.observe("console", format!("{}: {answer}", command.join(" ")));
    }
}
