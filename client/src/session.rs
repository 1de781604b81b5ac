//! The state that all locks of one client share.

use std::sync::Arc;

use tokio::sync::Semaphore;

use crate::config::Config;
use crate::env::Env;
use crate::hold::ClientContext;
use crate::key::Key;
use crate::latches::SpentLatches;
use crate::owner::{self, OwnerId};
use crate::queue_leave::QueueLeave;
use crate::renew::Watchdog;
use crate::route::Router;
use crate::wake::Hub;

/// The maximum number of acquisitions of one client on the wire. A caller that leaves before its
/// request is sent causes no work. So only requests that were sent are followed up until their
/// outcome is known, and never more than this number.
const ASKS_AT_ONCE: usize = 1024;

/// The maximum number of unanswered Redlock requests at this client's server. Beyond it the server
/// counts as silent.
const CLAIMS_AT_ONCE: usize = 1024;

/// The state behind all handles of one client.
pub(crate) struct Session {
    pub(crate) ctx: ClientContext,
    pub(crate) config: Arc<Config>,
    pub(crate) client_id: String,
    pub(crate) router: Arc<Router>,
    pub(crate) hub: Arc<Hub>,
    pub(crate) watchdog: Arc<Watchdog>,
    pub(crate) queue_leave: Arc<QueueLeave>,
    pub(crate) latches: SpentLatches,
    /// Permits to send a request for a lock, a latch or a rate.
    pub(crate) asks: Semaphore,
    /// Permits to send a Redlock request to this client's server.
    pub(crate) claims: Arc<Semaphore>,
}

impl Session {
    pub(crate) fn new(ctx: ClientContext, config: Config, client_id: String) -> Arc<Self> {
        let config = Arc::new(config);
        let router = Router::new(ctx.env.clone(), config.clone());
        Self::with(ctx, config, client_id, router)
    }

    /// As [`Session::new`], with the given router.
    pub(crate) fn with(
        ctx: ClientContext,
        config: Arc<Config>,
        client_id: String,
        router: Router,
    ) -> Arc<Self> {
        let (env, router) = (ctx.env.clone(), Arc::new(router));
        let hub = Hub::new(env.clone(), config.clone(), router.clone());
        let watchdog = Watchdog::new(env.clone(), config.clone(), router.clone());
        let queue_leave = QueueLeave::new(env, config.clone(), router.clone(), ctx.work.clone());
        let latches = SpentLatches::default();
        let asks = Semaphore::new(ASKS_AT_ONCE);
        let claims = Arc::new(Semaphore::new(CLAIMS_AT_ONCE));
        Arc::new(Self { ctx, config, client_id, router, hub, watchdog, queue_leave, latches, asks, claims })
    }

    pub(crate) fn env(&self) -> &dyn Env {
        &*self.ctx.env
    }

    /// Maps the application's `name` to the key in Redis.
    pub(crate) fn key(&self, name: &str) -> Key {
        self.config.name_mapper.as_ref().map_or_else(|| Key::new(name), |mapper| Key::new(&mapper(name)))
    }

    pub(crate) fn field(&self, owner: OwnerId) -> String {
        owner::field(&self.client_id, owner)
    }
}
