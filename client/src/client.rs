//! The client and its builder.

use std::sync::Arc;
use std::time::Duration;

use crate::address::{self, Address};
use crate::config::{Config, Durability, Redirects, ReplicaWait};
use crate::endpoint::{AnyError, Credentials, Provider};
use crate::env::{Env, TokioEnv};
use crate::error::{Error, Result};
use crate::hold::ClientContext;
use crate::observer::{Observer, Observers};
use crate::owner;
use crate::route::Deployment;
use crate::session::Session;
#[cfg(feature = "tls")]
use crate::tls::Tls;

/// A client of one Redis server, of one replicated set, of a master that Sentinels watch, or of a
/// Redis Cluster. Cheap to clone; all clones are one client.
#[derive(Clone)]
pub struct Client {
    pub(crate) session: Arc<Session>,
}

impl Client {
    /// Connects to a server with the default settings. The server is named by a URL such as
    /// `redis://user:password@host:6379/0`, or by any other form of [`Address`].
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> lockstorm_client::Result<()> {
    /// # let server = lockstorm_sim::TestServer::start().await.expect("a free port");
    /// # let url = server.url();
    /// let client = lockstorm_client::Client::connect(&url).await?; // such as redis://127.0.0.1:6379
    /// let guard = client.lock("stock").acquire().await?;
    /// guard.release().await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// When the URL does not parse or the server cannot be reached.
    pub async fn connect(server: impl Into<Address>) -> Result<Self> {
        Self::builder().endpoint(server).connect().await
    }

    /// Returns a builder, for settings that differ from the defaults.
    pub fn builder() -> Builder {
        Builder {
            servers: Vec::new(),
            is_cluster: false,
            credentials: None,
            config: Config::default(),
            client_id: None,
            env: None,
            observers: Observers::default(),
            #[cfg(feature = "tls")]
            tls: None,
        }
    }

    /// Returns the client id, with which the owner fields of this client begin.
    pub fn id(&self) -> &str {
        &self.session.client_id
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("id", &self.session.client_id).finish_non_exhaustive()
    }
}

/// Builds a [`Client`].
///
/// ```
/// # use std::time::Duration;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> lockstorm_client::Result<()> {
/// # let server = lockstorm_sim::TestServer::start().await.expect("a free port");
/// # let url = server.url();
/// use lockstorm_client::{Client, ReplicaWait};
/// let client = Client::builder()
///     .endpoint(url) // one of several nodes: the master is found among them
///     .replica_wait(ReplicaWait::All)
///     .watchdog_timeout(Duration::from_secs(10))
///     .connect()
///     .await?;
/// # Ok(()) }
/// ```
#[must_use = "a builder does nothing until build or connect"]
pub struct Builder {
    servers: Vec<Address>,
    is_cluster: bool,
    credentials: Option<Provider>,
    config: Config,
    client_id: Option<String>,
    env: Option<Arc<dyn Env>>,
    observers: Observers,
    #[cfg(feature = "tls")]
    tls: Option<Tls>,
}

impl Builder {
    /// Adds a server. Several servers form one replicated set; the client finds its master by
    /// asking each for its role. Several `redis+cluster://` URLs name nodes of one cluster.
    /// [`Sentinels`](crate::Sentinels) or a `redis+sentinel://` URL must be the only endpoint.
    pub fn endpoint(mut self, server: impl Into<Address>) -> Self {
        self.servers.push(server.into());
        self
    }

    /// Declares the endpoints to be nodes of one Redis Cluster. The client finds the other nodes
    /// through them.
    pub fn cluster(mut self) -> Self {
        self.is_cluster = true;
        self
    }

    /// Sets the interval at which Sentinels or cluster nodes are asked for the masters. The client
    /// asks in addition whenever a request or an event gives a reason. Default 1 s for Sentinels
    /// and 5 s for a cluster.
    pub fn scan_interval(mut self, interval: Duration) -> Self {
        self.config.scan_interval = Some(interval);
        self
    }

    /// Calls `provider` for the user and password each time a connection is made. Use it for
    /// credentials that change: rotated passwords, expiring tokens. Its time counts towards
    /// [`Builder::connect_timeout`]. It is called once more if the server answers `WRONGPASS`,
    /// because the password may have changed in between. While it fails, no connection is made and
    /// calls are retried as for an unreachable server.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> lockstorm_client::Result<()> {
    /// # let server = lockstorm_sim::TestServer::start().await.expect("a free port");
    /// # let url = server.url();
    /// # async fn fetch_password() -> Result<String, std::io::Error> { Ok("secret".to_owned()) }
    /// # let admin = redis::Client::open(url.as_str()).expect("a good URL");
    /// # let mut admin = admin.get_multiplexed_async_connection().await.expect("it answers");
    /// # let set = redis::cmd("ACL").arg(&["SETUSER", "clerk", "on", ">secret", "~*", "&*", "+@all"]).to_owned();
    /// # set.exec_async(&mut admin).await.expect("a good command");
    /// use lockstorm_client::{Client, Credentials};
    /// let client = Client::builder()
    ///     .endpoint(url) // such as redis://127.0.0.1:6379, without a password
    ///     .credentials(|| async { Ok(Credentials::new("clerk", fetch_password().await?)) })
    ///     .connect()
    ///     .await?;
    /// # client.lock("stock").acquire().await?.release().await?;
    /// # Ok(()) }
    /// ```
    pub fn credentials<F, R>(mut self, provider: F) -> Self
    where
        F: Fn() -> R + Send + Sync + 'static,
        R: Future<Output = Result<Credentials, AnyError>> + Send + 'static,
    {
        self.credentials = Some(Provider::new(provider));
        self
    }

    /// Sets the time after which a call, with all its retries, ends with an error. Default 10 s.
    ///
    /// Waiting for a lock that another owner holds does not count:
    /// [`Handle::acquire`](crate::Handle::acquire) ends when no server has answered for this long.
    /// [`Handle::try_acquire_for`](crate::Handle::try_acquire_for) ends no later than its own
    /// limit. Work that is then under way is finished or undone in the background.
    ///
    /// If the reply to an acquisition is lost, and a server then answers the client's questions
    /// about it, the acquisition is sent once more. The call may last longer for that: by a retry
    /// delay and a [response timeout](Builder::response_timeout) at most.
    pub fn call_timeout(mut self, timeout: Duration) -> Self {
        self.config.call_timeout = timeout;
        self
    }

    /// Sets the time to wait for a reply. Default 3 s.
    ///
    /// Once the client knows that Sentinels or a cluster have replaced a master, it waits only 250
    /// ms longer for replies of the old master, plus the replica timeout if replicas must confirm.
    pub fn response_timeout(mut self, timeout: Duration) -> Self {
        self.config.response_timeout = timeout;
        self
    }

    /// Sets the time to wait for a connection, including its login. Default 10 s.
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.config.connect_timeout = timeout;
        self
    }

    /// Sets the maximum number of retries of a call that can be retried. Default: as many as fit
    /// into [`Builder::call_timeout`].
    ///
    /// Calls that give something back are retried in any case, also in the background: [what
    /// servers refuse](crate#what-servers-refuse).
    pub fn retry_attempts(mut self, attempts: u32) -> Self {
        self.config.retry_attempts = Some(attempts);
        self
    }

    /// Sets the backoff between retries. Each delay is drawn from half of the current maximum to
    /// all of it. The maximum starts at `first` and doubles each time up to `most`. Default 1 s and
    /// 2 s.
    pub fn retry_delay(mut self, first: Duration, most: Duration) -> Self {
        self.config.retry_delay = first;
        self.config.retry_delay_max = most;
        self
    }

    /// Sets the lease of locks that are acquired without one. The watchdog renews it every third of
    /// this time. Default 30 s.
    pub fn watchdog_timeout(mut self, timeout: Duration) -> Self {
        self.config.watchdog_timeout = timeout;
        self
    }

    /// Sets the time for which a waiter of a fair lock counts as alive in the queue, if it set no
    /// limit of its own. Default 300 s.
    pub fn fair_wait_timeout(mut self, timeout: Duration) -> Self {
        self.config.fair_wait_timeout = timeout;
        self
    }

    /// Sets the time to wait for the confirmation of a subscription. Default 7.5 s.
    pub fn subscription_timeout(mut self, timeout: Duration) -> Self {
        self.config.subscription_timeout = timeout;
        self
    }

    /// Sets the maximum time that [`Client::close`] waits. Default 10 s.
    pub fn close_timeout(mut self, timeout: Duration) -> Self {
        self.config.close_timeout = timeout;
        self
    }

    /// Sets which replicas must confirm each change. Default none.
    pub fn replica_wait(mut self, wait: ReplicaWait) -> Self {
        self.config.replica_wait = wait;
        self
    }

    /// Sets the time to wait for the replicas. Default 1 s.
    pub fn replica_timeout(mut self, timeout: Duration) -> Self {
        self.config.replica_timeout = timeout;
        self
    }

    /// Sets which disks must have each change. Default none.
    pub fn durability(mut self, durability: Durability) -> Self {
        self.config.durability = durability;
        self
    }

    /// Sets the time to wait for the disks. Default 3 s: with `appendfsync everysec` a sync may
    /// begin a second after the change.
    pub fn durability_timeout(mut self, timeout: Duration) -> Self {
        self.config.durability_timeout = timeout;
        self
    }

    /// Sets the masters that the client follows when its only server has become a replica of one.
    /// Default none.
    pub fn redirects(mut self, redirects: Redirects) -> Self {
        self.config.redirects = redirects;
        self
    }

    /// Sets the client id, instead of a random UUID. Two clients that run at the same time must not
    /// share one.
    pub fn client_id(mut self, id: impl Into<String>) -> Self {
        self.client_id = Some(id.into());
        self
    }

    /// Puts `prefix` before each lock name, as in `app:` + `stock`. Replaces
    /// [`Builder::name_mapper`].
    pub fn name_prefix(self, prefix: impl Into<String>) -> Self {
        let prefix = prefix.into();
        self.name_mapper(move |name| format!("{prefix}{name}"))
    }

    /// Sets the function that maps the application's lock names to Redis keys.
    pub fn name_mapper(mut self, mapper: impl Fn(&str) -> String + Send + Sync + 'static) -> Self {
        self.config.name_mapper = Some(Arc::new(mapper));
        self
    }

    /// Sets the clocks, random numbers, connections and tasks to use, instead of those of the tokio
    /// runtime.
    pub fn env(mut self, env: Arc<dyn Env>) -> Self {
        self.env = Some(env);
        self
    }

    /// Adds an observer, which receives the events of the locks. Default none.
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.observers.add(observer);
        self
    }

    /// Sets how connections are secured. All endpoints must then use TLS. Default: a `rediss://`
    /// server must show a certificate of an authority that this system trusts.
    #[cfg(feature = "tls")]
    pub fn tls(mut self, tls: Tls) -> Self {
        self.tls = Some(tls);
        self
    }

    /// Builds a client that connects when it is first used.
    ///
    /// # Errors
    /// When the settings are invalid.
    pub fn build(mut self) -> Result<Client> {
        let (config, env) = self.settle()?;
        let Self { client_id, observers, .. } = self;
        let client_id = client_id.unwrap_or_else(|| owner::client_id(&*env));
        if client_id.is_empty() {
            return Err(Error::config("the client id is empty"));
        }
        let observer = Arc::new(observers);
        let call_timeout = config.call_timeout;
        let ctx = ClientContext { env, observer, ledger: Arc::default(), work: Arc::default(), call_timeout };
        Ok(Client { session: Session::new(ctx, config, client_id) })
    }

    /// Reads the addresses, and takes the environment.
    fn settle(&mut self) -> Result<(Config, Arc<dyn Env>)> {
        let mut config = self.config.clone();
        (config.endpoints, config.topology) =
            address::read(std::mem::take(&mut self.servers), self.is_cluster)?;
        if let Some(provider) = &self.credentials {
            config.topology.with_provider(&mut config.endpoints, provider)?;
        }
        config.check()?;
        let env = self.env.take();
        let env = env.map_or_else(|| TokioEnv::current().map(|env| Arc::new(env) as Arc<dyn Env>), Ok)?;
        #[cfg(feature = "tls")]
        config.secure(self.tls.as_ref(), &env)?;
        Ok((config, env))
    }

    /// Builds no client, but the list of the masters, for a tool that speaks to them itself.
    ///
    /// ```no_run
    /// # async fn list() -> lockstorm_client::Result<()> {
    /// let url = "redis+sentinel://10.0.0.1,10.0.0.2,10.0.0.3/mymaster";
    /// let deployment = lockstorm_client::Client::builder().endpoint(url).deployment()?;
    /// for master in deployment.masters().await? {
    ///     println!("{}", master.name());
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// When the settings are invalid.
    pub fn deployment(mut self) -> Result<Deployment> {
        let (config, env) = self.settle()?;
        Ok(Deployment::new(env, Arc::new(config)))
    }

    /// Builds a client and connects it. Of several endpoints, those that can be reached must form
    /// one replicated set.
    ///
    /// # Errors
    /// When the settings are invalid, no server can be reached, two endpoints are the same server
    /// under different names, two are masters of different data, or the master has no append-only
    /// file although [`Builder::durability`] requires one.
    pub async fn connect(self) -> Result<Client> {
        let client = self.build()?;
        client.session.router.connect().await?;
        Ok(client)
    }
}
