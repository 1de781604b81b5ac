//! A model's connection to one node. It is replaced when it is broken or silent.

use std::{cell::RefCell, collections::BTreeSet, sync::Arc, time::Duration};

use lockstorm_client::Env;
use lockstorm_world::HostCtx;
use redis::{
    AsyncConnectionConfig, Cmd, ErrorKind, ProtocolVersion, PushInfo, PushKind, RedisConnectionInfo,
    RedisResult, Value, aio::MultiplexedConnection,
};
use tokio::sync::Notify;

use super::evalsha::Called;
use crate::{
    file::scenario::traits::Scripts,
    run::{
        bridge::HostEnv,
        recorder::HistoryWriter,
        subject::{Failure, SubjectContext},
    },
};

/// A failed request. Without a reply, the command may have been executed, or not, or may still be.
/// After an error reply, a part of it may have been executed, if it is a script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Failed {
    pub(super) message: String,
    /// True if the node answered with an error. Such a command is not sent again.
    pub(super) replied: bool,
    /// True if the node does not know the script of an EVALSHA.
    is_unknown_script: bool,
}

impl Failed {
    fn without_reply(message: String) -> Failed {
        Failed { message, replied: false, is_unknown_script: false }
    }
}

impl From<Failed> for Failure {
    fn from(Failed { message, .. }: Failed) -> Failure {
        Failure { definite: false, message }
    }
}

/// The wire of one line of work to one node.
pub(super) struct Wire {
    ctx: HostCtx,
    /// Records which connections belong to this line, because a command need not name its sender.
    history: HistoryWriter,
    env: HostEnv,
    node: String,
    /// The user and the password, if it authenticates.
    login: RedisConnectionInfo,
    /// The number of times that a command is sent again.
    retries: u32,
    scripts: Scripts,
    /// The hashes of the scripts whose texts the node has received from this line.
    sent: RefCell<BTreeSet<String>>,
    connection: RefCell<Option<MultiplexedConnection>>,
}

impl Wire {
    pub(super) fn new(
        context: &SubjectContext,
        history: HistoryWriter,
        node: String,
        scripts: Scripts,
    ) -> Wire {
        let (ctx, env) = (context.ctx.clone(), HostEnv::new(context.ctx.clone()));
        let mut login = RedisConnectionInfo::default();
        if let Some((user, password)) = &context.login {
            login = login.set_username(user).set_password(password);
        }
        let (retries, sent, connection) = (context.retries, RefCell::default(), RefCell::default());
        Wire { ctx, history, env, node, login, retries, scripts, sent, connection }
    }

    /// Sends a command and waits for its reply, for at most `limit` each time that it is sent. An
    /// EVAL is sent in the way in which the model sends scripts.
    pub(super) async fn ask(&self, command: &Cmd, limit: Duration) -> Result<Value, Failed> {
        let called = if self.scripts == Scripts::Text { None } else { Called::of(command) };
        let Some(called) = called else { return self.send(command, limit).await };
        let is_new = !self.sent.borrow().contains(&called.sha);
        match self.scripts {
            Scripts::Load if is_new => {
                self.send(&called.load(), limit).await?;
            }
            Scripts::RunOnce | Scripts::RunAndLoad if is_new => {
                let answer = self.send(command, limit).await?;
                if self.scripts == Scripts::RunAndLoad {
                    // The call has had its effect, whatever the node answers now.
                    let _ = self.send(&called.load(), limit).await;
                }
                self.sent.borrow_mut().insert(called.sha);
                return Ok(answer);
            }
            _ => {}
        }
        let answer = self.send(&called.evalsha(), limit).await;
        self.sent.borrow_mut().insert(called.sha);
        match answer {
            Err(failed) if self.scripts == Scripts::ShaOrText && failed.is_unknown_script => {
                self.send(command, limit).await
            }
            answer => answer,
        }
    }

    /// Sends a command as it is. After an error reply the command is not sent again.
    async fn send(&self, command: &Cmd, limit: Duration) -> Result<Value, Failed> {
        for _ in 0..self.retries {
            match self.ask_once(command, limit).await {
                // No driver knows if the first one was executed, or will be.
                Err(Failed { replied: false, .. }) => self.hang_up(),
                answer => return answer,
            }
        }
        self.ask_once(command, limit).await
    }

    async fn ask_once(&self, command: &Cmd, limit: Duration) -> Result<Value, Failed> {
        self.answer_to(limit, async |mut connection| command.query_async(&mut connection).await).await
    }

    /// Sends commands in a transaction, and waits for their replies, for at most `limit`.
    pub(super) async fn ask_in_transaction<const N: usize>(
        &self,
        commands: [Cmd; N],
        limit: Duration,
    ) -> Result<[Value; N], Failed> {
        let mut all = redis::pipe();
        all.atomic();
        for command in commands {
            all.add_command(command);
        }
        self.answer_to(limit, async |mut connection| all.query_async(&mut connection).await).await
    }

    /// Waits for the answer to a query on the connection, for at most `limit`.
    async fn answer_to<T>(
        &self,
        limit: Duration,
        query: impl AsyncFnOnce(MultiplexedConnection) -> RedisResult<T>,
    ) -> Result<T, Failed> {
        let deadline = self.env.now() + limit;
        let asking = async {
            let answer = query(self.connect().await?).await;
            answer.map_err(|error| {
                // Drop a connection that the node has broken. A connection that is only silent is
                // still usable.
                if error.is_unrecoverable_error() {
                    self.hang_up();
                }
                let replied = matches!(
                    error.kind(),
                    ErrorKind::Server(_) | ErrorKind::Extension | ErrorKind::AuthenticationFailed
                );
                let is_unknown_script = error.code() == Some("NOSCRIPT");
                Failed { message: format!("{}: {error}", self.node), replied, is_unknown_script }
            })
        };
        let answer = tokio::select! {
            biased;
            answer = asking => answer,
            () = self.env.sleep_until(deadline) => {
                Err(Failed::without_reply(format!("{}: no reply within {limit:?}", self.node)))
            }
        };
        answer
    }

    /// Drops the connection, so that the next command opens a new one.
    pub(super) fn hang_up(&self) {
        self.connection.take();
    }

    /// Subscribes to a channel over a separate connection, within `limit`.
    pub(super) async fn subscribe(&self, channel: &str, limit: Duration) -> Result<Messages, Failed> {
        let deadline = self.env.now() + limit;
        let arrived = Arc::new(Notify::new());
        let subscribing = async {
            let (told, login) = (arrived.clone(), self.login.clone());
            let config = AsyncConnectionConfig::new().set_push_sender(move |push: PushInfo| {
                if push.kind == PushKind::Message {
                    told.notify_one();
                }
                Ok::<(), ()>(())
            });
            let mut connection = self.dial(&login.set_protocol(ProtocolVersion::RESP3), config).await?;
            let subscribed = connection.subscribe(channel).await;
            subscribed.map_err(|error| Failed::without_reply(format!("{}: {error}", self.node)))?;
            Ok(connection)
        };
        let connection = tokio::select! {
            biased;
            connection = subscribing => connection?,
            () = self.env.sleep_until(deadline) => {
                let message = format!("{}: no subscription within {limit:?}", self.node);
                return Err(Failed::without_reply(message));
            }
        };
        Ok(Messages { _connection: connection, arrived })
    }

    async fn connect(&self) -> Result<MultiplexedConnection, Failed> {
        let there = self.connection.borrow().clone();
        if let Some(connection) = there {
            return Ok(connection);
        }
        let connection = self.dial(&self.login, AsyncConnectionConfig::new()).await?;
        self.connection.replace(Some(connection.clone()));
        Ok(connection)
    }

    async fn dial(
        &self,
        login: &RedisConnectionInfo,
        config: AsyncConnectionConfig,
    ) -> Result<MultiplexedConnection, Failed> {
        let failed = |error: &dyn std::fmt::Display| Failed::without_reply(format!("{}: {error}", self.node));
        let stream = self.ctx.dial(&self.node, 6379).await.map_err(|error| failed(&error))?;
        self.history.connected(stream.local_addr().map_err(|error| failed(&error))?.port());
        // The model applies its own timeouts, by its host's clock.
        let config = config.set_response_timeout(None).set_connection_timeout(None);
        let made = MultiplexedConnection::new_with_config(login, stream, config).await;
        let (connection, driver) = made.map_err(|error| failed(&error))?;
        self.ctx.spawn(driver);
        Ok(connection)
    }
}

/// A subscription, for as long as it is kept.
pub(super) struct Messages {
    _connection: MultiplexedConnection,
    arrived: Arc<Notify>,
}

impl Messages {
    /// Resolves when a message has arrived since the last call.
    pub(super) async fn next(&self) {
        self.arrived.notified().await;
    }
}
