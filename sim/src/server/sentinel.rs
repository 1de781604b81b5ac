//! The server as a Sentinel: passes events of its connections to the state machine, and carries out
//! the state machine's requests.

use super::Server;
use crate::{
    acl::Acl,
    commands::access::{Table, lines, load_configured},
    config::Config,
    effect::{Effects, Publication},
    env::Env,
    event::Event,
    log::Level,
    sentinel::{Mistake, Sentinel, users_of},
};

impl Server {
    /// Returns a Sentinel that starts from its configuration file, which it rewrites when its state
    /// changes. It has neither data nor replication, and its own commands.
    ///
    /// # Errors
    /// The first line of the file that is not valid.
    pub fn sentinel(config: Config, file: &str, env: &mut Env) -> Result<Server, Mistake> {
        let (port, requirepass) = (config.network.port, config.security.requirepass.clone());
        let config = config.with(|config| {
            config.aof.appendonly = false;
            config.replication.replicaof = None;
            config.persistence.save = vec![];
            config.network.protected_mode = false;
            config.security.users = users_of(file);
        });
        // The rules of its users refer to its own commands, so they are loaded after it has become
        // a Sentinel.
        let mut server = Server::new(
            config.clone().with(|config| {
                config.security.aclfile = String::new();
                config.security.users = Vec::new();
            }),
            env,
        );
        server.node.config = config;
        server.node.sentinel = Some(Box::new(Sentinel::new(file, port, requirepass, env)?));
        load_configured(&mut server.node, env);
        server.carry_out_for_sentinel(env);
        server.set_alarm(env);
        Ok(server)
    }

    /// Processes an event of a connection that the Sentinel has dialed; returns any other event.
    pub(super) fn take_for_sentinel(&mut self, env: &mut Env, event: Event) -> Option<Event> {
        let Some(sentinel) = &mut self.node.sentinel else { return Some(event) };
        let taken = match &event {
            Event::Dialed { conn, local } => sentinel.connected(*conn, local),
            Event::Bytes { conn, bytes } => sentinel.received(env, *conn, bytes),
            Event::Closed { conn } => sentinel.disconnected(*conn),
            _ => false,
        };
        (!taken).then_some(event)
    }

    pub(super) fn run_sentinel(&mut self, env: &mut Env) {
        if let Some(sentinel) = &mut self.node.sentinel {
            sentinel.run_due(env);
        }
    }

    /// Writes the file, publishes the events, and then sends messages: no peer learns of a state
    /// that a crash could undo.
    pub(super) fn carry_out_for_sentinel(&mut self, env: &mut Env) {
        let Some(sentinel) = &mut self.node.sentinel else { return };
        let out = sentinel.take_outbox();
        if out.unsaved {
            let text = sentinel.save_file(&lines_of_users(&self.node.acl, &self.node.config));
            let path = self.node.config.server.config_file.clone();
            let written = match &env.files {
                Some(files) if !path.is_empty() => files.write(&path, &text),
                _ => Ok(()),
            };
            if let Err(error) = written {
                env.log(Level::Warning, || format!("The state cannot be written to {path}: {error}"));
            }
        }
        let mut effects = Effects::default();
        for telling in out.tellings.into_iter().take(out.crashes_after.unwrap_or(usize::MAX)) {
            env.log(Level::Warning, || format!("{} {}", telling.event, telling.message));
            let (channel, message) = (telling.event.into(), telling.message.into());
            effects.publish(Publication { channel, message, sharded: false });
        }
        self.settle(env, effects);
        match out.crashes_after {
            Some(_) => self.node.abort(),
            None => env.outbox.extend(out.actions),
        }
    }
}

/// Returns the lines about users for the Sentinel's file: none if users have a file of their own,
/// or if no rule was ever given. (Redis writes a line for the default user in the latter case,
/// too.)
fn lines_of_users(acl: &Acl, config: &Config) -> Vec<String> {
    let present = lines(acl, Table::Sentinel(config.generation));
    let is_plain = config.security.users.is_empty()
        && present == lines(&Acl::new(&config.security.requirepass), Table::Sentinel(config.generation));
    if config.security.aclfile.is_empty() && !is_plain { present } else { Vec::new() }
}
