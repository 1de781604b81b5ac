//! The end of the process: asked for by SHUTDOWN or by a signal, put off while replicas catch up, and then carried out.

use std::time::Duration;

use super::Server;
use crate::{
    env::Env, event::Signal, log::Level, node::Shutdown, options, replication::Feed, time::Monotonic,
};

impl Server {
    /// A signal asks for the end, in the way that `shutdown-on-sigterm` and `shutdown-on-sigint` say.
    pub(super) fn signalled(&mut self, env: &mut Env, signal: Signal) {
        env.log(Level::Warning, || format!("{} came: shutting down", signal.name()));
        let option = match signal {
            Signal::Interrupt => "shutdown-on-sigint",
            Signal::Terminate => "shutdown-on-sigterm",
        };
        let how = options::find(option).map_or_else(String::new, |option| option.get(&self.node.config));
        let mut shutdown = Shutdown::default();
        for word in how.split(' ') {
            match word {
                "save" => shutdown.save = Some(true),
                "nosave" => shutdown.save = Some(false),
                "now" => shutdown.now = true,
                "force" => shutdown.force = true,
                _ => {}
            }
        }
        self.node.shutdown.get_or_insert(shutdown);
    }

    /// Goes on with a shutdown that was asked for.
    pub(super) fn run_shutdown(&mut self, env: &mut Env) {
        let Some(shutdown) = self.node.shutdown else { return };
        match shutdown.deadline {
            None => {
                let patience = Duration::from_secs(self.node.config.shutdown_timeout);
                if !shutdown.now && !patience.is_zero() && !self.replicas_have_all() {
                    env.log(Level::Notice, || "Waiting for replicas before the end".into());
                    let deadline = Some(env.monotonic + patience);
                    self.node.shutdown = Some(Shutdown { deadline, ..shutdown });
                    return;
                }
            }
            Some(deadline) if env.monotonic < deadline && !self.replicas_have_all() => return,
            Some(_) => {}
        }
        let saves = shutdown.save.unwrap_or(!self.node.config.save.is_empty());
        // Data that is half loaded must not replace what it is loaded from.
        if saves && !self.node.loading {
            env.log(Level::Notice, || "Saving a last snapshot".into());
            self.node.save(env.wall.as_secs());
        }
        env.log(Level::Warning, || "Ready to exit".into());
        self.node.exiting = true;
    }

    /// When replicas have been waited for long enough.
    pub(super) fn shutdown_due(&self) -> Option<Monotonic> {
        self.node.shutdown?.deadline
    }

    /// Whether no replica lacks anything of the stream.
    fn replicas_have_all(&self) -> bool {
        let replication = &self.node.replication;
        let online = replication.replicas.values().filter(|replica| replica.feed == Feed::Online);
        online.into_iter().all(|replica| replica.acked >= replication.history.offset)
    }
}
