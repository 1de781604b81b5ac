//! Atomic slot migrations: sends writes to the target, and executes the commands of a source.
//!
//! The rules of both sides are in `cluster/slot_job/`.

use bytes::Bytes;

use super::{Server, execute::critical};
use crate::{
    cluster::key_slot,
    commands::{Ctx, Flags, Origin, Spec, find, key_uses, run},
    effect::{Effects, PropagateTo, Propagated},
    env::Env,
    event::ConnId,
    log::Level,
    node::clients::Role,
    replication::encode,
    resp::Reply,
};

impl Server {
    /// Sends the writes of a batch to the targets that get their slots.
    pub(super) fn stream_to_targets(&mut self, commands: &[Propagated]) {
        let Some(cluster) = self.node.cluster.as_mut().filter(|cluster| cluster.exports()) else { return };
        let generation = self.node.config.generation;
        let mut written: Vec<(u16, Vec<u8>)> = Vec::new();
        for command in commands.iter().filter(|command| command.to != PropagateTo::Aof) {
            let Some(slot) =
                find(generation, &command.args).ok().and_then(|spec| slot_of(spec, &command.args))
            else {
                continue;
            };
            if !cluster.streams(slot) {
                continue;
            }
            match written.last_mut() {
                Some((last, bytes)) if *last == slot => encode(&command.args, bytes),
                _ => {
                    let mut bytes = Vec::new();
                    encode(&command.args, &mut bytes);
                    written.push((slot, bytes));
                }
            }
        }
        for (slot, bytes) in written {
            cluster.stream_write(slot, bytes.into());
        }
    }

    /// Returns true if a connection brings slots here.
    pub(super) fn is_source(&self, conn: ConnId) -> bool {
        self.node.clients.sessions.get(conn).is_some_and(|session| session.role == Role::Source)
    }

    /// Returns true if the commands of sources wait, like those of a master.
    pub(super) fn keeps_sources_waiting(&self) -> bool {
        self.node.busy.is_some() || self.node.loading.is_some()
    }

    /// Continues to read from sources that had to wait.
    pub(super) fn read_from_sources(&mut self, env: &mut Env) {
        let sources = self.node.cluster.as_ref().map(|cluster| cluster.sources()).unwrap_or_default();
        for conn in sources {
            let session = self.node.clients.sessions.get(conn);
            if session.is_some_and(|session| session.decoder.unread() > 0) {
                self.process(env, conn);
            }
        }
    }

    /// Executes one command of a source: a message of the migration, or a write to its slots.
    pub(super) fn import(&mut self, env: &mut Env, conn: ConnId, args: &[Bytes]) {
        let is = |at: usize, word: &[u8]| args.get(at).is_some_and(|arg| arg.eq_ignore_ascii_case(word));
        if is(0, b"select") {
            return;
        }
        if args.len() > 2 && is(0, b"cluster") && is(1, b"syncslots") {
            self.node.with_cluster(env, |cluster, env, around| cluster.hear_source(env, around, conn, args));
            return self.carry_out_wants(env);
        }
        if let Err(why) = self.import_write(env, conn, args) {
            let name = String::from_utf8_lossy(&args[0]).into_owned();
            env.log(Level::Warning, || critical("A command of a slot migration fails", &why, &name));
            self.node.with_cluster(env, |cluster, _, around| cluster.refuse_source(around, conn));
            self.carry_out_wants(env);
        }
    }

    fn import_write(&mut self, env: &mut Env, conn: ConnId, args: &[Bytes]) -> Result<(), String> {
        let spec = find(self.node.config.generation, args).map_err(|error| error.0.into_owned())?;
        let keys = key_uses(spec, args);
        let mut keys = keys.iter().filter_map(|key| args.get(key.at)).map(|key| &key[..]);
        let cluster = self.node.cluster.as_ref();
        let writes = spec.flags.contains(Flags::WRITE) && !spec.flags.contains(Flags::NESTS);
        if !writes || !cluster.is_some_and(|cluster| cluster.imports_keys(conn, &mut keys)) {
            return Err("no write to the slots of the migration".into());
        }
        let mut effects = Effects::default();
        let now_ms = env.wall.as_millis();
        let mut ctx = Ctx::new(&mut self.node, env, &mut effects, conn, 0, Origin::Replication, now_ms);
        let reply = run(&mut ctx, spec, args);
        // No client of this node has made the change.
        self.settle(env, effects);
        match reply {
            Reply::Error(error) => Err(error.to_string()),
            _ => Ok(()),
        }
    }

    /// Ends the jobs of a connection that ends.
    pub(super) fn end_import_over(&mut self, env: &mut Env, conn: ConnId) {
        if self.is_source(conn) {
            self.node.with_cluster(env, |cluster, _, around| cluster.source_lost(around, conn));
        }
    }

    /// Ends all migrations, because the data of this master was flushed.
    pub(super) fn end_flushed_migrations(&mut self, env: &mut Env) {
        if !self.node.is_replica() {
            self.node.with_cluster(env, |cluster, _, around| cluster.fail_flushed_jobs(around));
        }
    }
}

/// Returns the slot of a write; `None` for any other command, and without keys.
fn slot_of(spec: &Spec, args: &[Bytes]) -> Option<u16> {
    let first = key_uses(spec, args).into_iter().next().filter(|_| spec.flags.contains(Flags::WRITE))?;
    args.get(first.at).map(|key| key_slot(key))
}
