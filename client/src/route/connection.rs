//! One connection to one server, shared by all callers; replies come in the order of the requests.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Cmd, ProtocolVersion, PushInfo, PushKind, Value};
use tokio::sync::Notify;

use super::greeting::Greeting;
use crate::endpoint::{Endpoint, Place, Security};
use crate::env::{Env, Monotonic, within};
use crate::error::{Error, ErrorKind, Result};
use crate::refusal;
use crate::script::Call;
use crate::tls;

/// What a subscribing connection does with a message. It runs inside the connection's own task.
pub(crate) type OnPush = Arc<dyn Fn(PushInfo) + Send + Sync>;

/// How many requests may wait to be written before their senders wait as well.
const WRITE_QUEUE: usize = 1024;

/// A connection. Dropping the last handle closes it, whatever is still to be written or to be
/// answered.
pub(crate) struct Connection {
    pub(crate) endpoint: Endpoint,
    sender: MultiplexedConnection,
    /// The identity of the connection on the server: its id and the address that the server sees.
    identity: Option<(String, String)>,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    closed: AtomicBool,
    /// Takes no new requests; replies may still come.
    retired: AtomicBool,
    /// Ended on the server: what was sent and not yet obeyed never will be.
    fenced: AtomicBool,
    close: Notify,
    ended: Notify,
}

/// A connection that requests were left on, as the server knows it. Its socket may be closed on our
/// side.
pub(super) struct Left {
    pub(super) endpoint: Endpoint,
    identity: Option<(String, String)>,
    shared: Arc<Shared>,
}

impl Left {
    /// As [`Connection::is_fenced`].
    pub(super) fn is_fenced(&self) -> bool {
        self.shared.fenced.load(Ordering::Acquire)
    }
}

impl Connection {
    /// Dials and logs in, all before `limit`. With `on_push` the connection speaks RESP3 and can
    /// subscribe.
    pub(crate) async fn open(
        env: &Arc<dyn Env>,
        endpoint: &Endpoint,
        on_push: Option<OnPush>,
        limit: Monotonic,
    ) -> Result<Arc<Self>> {
        match within(&**env, limit, pin!(Self::open_unlimited(env, endpoint, on_push))).await {
            Some(opened) => opened.map(Arc::new),
            None => Err(refused(endpoint, "timed out")),
        }
    }

    async fn open_unlimited(
        env: &Arc<dyn Env>,
        endpoint: &Endpoint,
        on_push: Option<OnPush>,
    ) -> Result<Self> {
        match Self::log_in(env, endpoint, on_push.clone()).await {
            // The password has changed while it was on its way, or the provider did not know yet.
            Err(error) if endpoint.has_provider() && error.is_server("WRONGPASS") => {
                Self::log_in(env, endpoint, on_push).await
            }
            done => done,
        }
    }

    async fn log_in(env: &Arc<dyn Env>, endpoint: &Endpoint, on_push: Option<OnPush>) -> Result<Self> {
        let mut login = endpoint.login().await?;
        let dialed = match &endpoint.place {
            Place::Tcp { host, port } => env.dial(host, *port),
            Place::Unix(path) => env.dial_unix(path),
        };
        let stream = dialed.await.map_err(|error| refused(endpoint, &error.to_string()).caused_by(error))?;
        let stream = match &endpoint.security {
            Security::None => stream,
            Security::Wanted => return Err(insecure(endpoint, "it was not set up".to_owned())),
            Security::By(tls) => {
                tls.secure(stream).await.map_err(|error| broken_handshake(endpoint, error))?
            }
        };
        let (greeting, stream) = Greeting::of(stream);
        // Time-outs are the caller's, on its own clock.
        let mut config =
            AsyncConnectionConfig::new().set_response_timeout(None).set_pipeline_buffer_size(WRITE_QUEUE);
        let subscribes = on_push.is_some();
        if let Some(on_push) = on_push {
            login = login.set_protocol(ProtocolVersion::RESP3);
            config = config.set_push_sender(move |push| {
                on_push(push);
                Ok::<(), ()>(())
            });
        }
        let (sender, driver) =
            MultiplexedConnection::new_with_config(&login, stream, config).await.map_err(|error| {
                let failed =
                    login_failed(endpoint, &greeting).unwrap_or_else(|| broken_login(endpoint, error));
                if subscribes { without_resp3(failed) } else { failed }
            })?;

        let shared = Arc::new(Shared::default());
        let watched = shared.clone();
        env.spawn(Box::pin(async move {
            tokio::select! {
                biased;
                () = watched.close.notified() => {}
                () = driver => {}
            }
            watched.closed.store(true, Ordering::Release);
            watched.ended.notify_waiters();
        }));

        let mut connection = Self { endpoint: endpoint.clone(), sender, identity: None, shared };
        if !subscribes {
            let identity = connection.ask_identity().await;
            connection.identity =
                identity.map_err(|error| login_failed(endpoint, &greeting).unwrap_or(error))?;
        }
        greeting.end();
        Ok(connection)
    }

    async fn ask_identity(&self) -> Result<Option<(String, String)>> {
        match self.call(redis::cmd("CLIENT").arg("INFO")).await {
            Ok(Value::BulkString(line)) => Ok(parse_identity(&String::from_utf8_lossy(&line))),
            Ok(Value::VerbatimString { text, .. }) => Ok(parse_identity(&text)),
            // Servers before 6.2 and restricted users: the connection works, and cannot be fenced.
            Err(error) if error.is_server("NOPERM") => Ok(None),
            Err(error) if error.is_server("ERR") && !error.to_string().contains(TOO_MANY) => Ok(None),
            Ok(other) => Err(Error::unexpected(&other)),
            // LOADING and its like, and a connection that broke at once.
            Err(error) => Err(refused(&self.endpoint, &error.to_string()).caused_by(error)),
        }
    }

    /// Sends one command and awaits its reply for as long as the connection lives.
    pub(crate) async fn call(&self, command: &Cmd) -> Result<Value> {
        let reply = self.sender.clone().send_packed_command(command).await;
        reply.map_err(broken).and_then(refuse_errors)
    }

    /// Runs a script by its name, or by its text when the server does not know it. With `wait` the
    /// script is followed by a WAIT on the same connection, and the replicas' acknowledgements come
    /// with the reply. `asking` says that a node which a slot is being moved to is to take it as an
    /// exception.
    pub(crate) async fn run(&self, call: &Call, wait: Option<&Cmd>, asking: bool) -> Result<(Value, usize)> {
        match self.run_command(call.evalsha(), wait, asking).await {
            Err(error) if error.is_server("NOSCRIPT") => {
                Box::pin(self.run_command(call.eval(), wait, asking)).await
            }
            done => done,
        }
    }

    /// As [`Connection::call`], with `asking` as in [`Connection::run`].
    pub(crate) async fn ask(&self, command: &Cmd, asking: bool) -> Result<Value> {
        if !asking {
            return self.call(command).await;
        }
        self.run_command(command.clone(), None, true).await.map(|(reply, _)| reply)
    }

    async fn run_command(&self, command: Cmd, wait: Option<&Cmd>, asking: bool) -> Result<(Value, usize)> {
        if wait.is_none() && !asking {
            return Ok((self.call(&command).await?, 0));
        }
        // The less usual, and larger than the rest: not a part of every request's memory.
        Box::pin(self.run_pipeline(command, wait, asking)).await
    }

    async fn run_pipeline(&self, command: Cmd, wait: Option<&Cmd>, asking: bool) -> Result<(Value, usize)> {
        // In one piece: between ASKING and the command there must be no other.
        let mut pipeline = redis::pipe();
        if asking {
            pipeline.cmd("ASKING");
        }
        pipeline.add_command(command);
        if let Some(wait) = wait {
            pipeline.add_command(wait.clone());
        }
        let count = pipeline.len();
        let replies = self.sender.clone().send_packed_commands(&pipeline, 0, count).await;
        let mut replies = replies.map_err(broken)?.into_iter();
        if asking && let Some(refusal) = replies.next() {
            // Of a server that is no node of a cluster, say.
            refuse_errors(refusal)?;
        }
        let Some(reply) = replies.next() else { return Err(Error::unexpected(&Value::Nil)) };
        let acked = replies.next().unwrap_or(Value::Int(0));
        // An error reply to WAIT acknowledges nothing; the script's own reply stands all the same.
        let acked = if let Value::Int(acked) = acked { usize::try_from(acked).unwrap_or(0) } else { 0 };
        Ok((refuse_errors(reply)?, acked))
    }

    /// Ends a connection that requests were left on, with all that it has sent but the server not
    /// yet read. Closing our side alone would leave requests that are still on their way to be
    /// obeyed later.
    ///
    /// An error means that it is not known whether that worked. A server that refuses is no error:
    /// the connection is then never [fenced](Connection::is_fenced).
    pub(super) async fn fence(&self, left: &Left) -> Result<()> {
        let Some((id, address)) = &left.identity else { return Ok(()) };
        // The address tells a connection of this client from a stranger's that got the same id
        // after a restart.
        let mut command = redis::cmd("CLIENT");
        command.arg("KILL").arg("ID").arg(id).arg("ADDR").arg(address);
        match self.call(&command).await {
            // None was found: it has ended already.
            Ok(_) => {
                left.shared.fenced.store(true, Ordering::Release);
                Ok(())
            }
            Err(error) if error.is_definite() => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// What is to be remembered of a connection that requests no longer take.
    pub(super) fn leave(&self) -> Left {
        let (identity, shared) = (self.identity.clone(), self.shared.clone());
        Left { endpoint: self.endpoint.clone(), identity, shared }
    }

    /// Whether nothing that was sent this way can be obeyed any more.
    pub(crate) fn is_fenced(&self) -> bool {
        self.shared.fenced.load(Ordering::Acquire)
    }

    pub(crate) async fn subscribe(&self, channels: &[String]) -> Result<()> {
        self.sender.clone().subscribe(channels).await.map_err(refused_or_broken)
    }

    pub(crate) async fn unsubscribe(&self, channels: &[String]) -> Result<()> {
        self.sender.clone().unsubscribe(channels).await.map_err(refused_or_broken)
    }

    /// Subscribes to a channel of the node's own slots, or ends that.
    ///
    /// A node that gives a slot away ends the subscriptions of its channels unasked, and what says
    /// so can be taken for the confirmation of another. Then the connection is of no more use, as
    /// the confirmations that follow are too.
    pub(crate) async fn subscribe_sharded(&self, channel: &str, begins: bool) -> Result<()> {
        let (name, expected) = if begins {
            ("SSUBSCRIBE", PushKind::SSubscribe)
        } else {
            ("SUNSUBSCRIBE", PushKind::SUnsubscribe)
        };
        let reply = self.call(redis::cmd(name).arg(channel)).await?;
        match &reply {
            Value::Push { kind, data } if *kind == expected && is_named(data.first(), channel) => Ok(()),
            other => {
                self.retire();
                Err(Error::unexpected(other))
            }
        }
    }

    /// Whether new requests may go this way.
    pub(crate) fn is_usable(&self) -> bool {
        !self.shared.closed.load(Ordering::Acquire) && !self.shared.retired.load(Ordering::Acquire)
    }

    /// Sends new requests elsewhere, and leaves the connection to the callers that still await a
    /// reply.
    pub(crate) fn retire(&self) {
        self.shared.retired.store(true, Ordering::Release);
    }

    /// Completes when the connection has ended.
    pub(crate) async fn ended(&self) {
        self.end().come().await;
    }

    /// The end of the connection, for a task that waits for it without keeping the connection
    /// alive.
    pub(super) fn end(&self) -> End {
        End(self.shared.clone())
    }
}

/// The end of a connection that may be in use still.
pub(super) struct End(Arc<Shared>);

impl End {
    pub(super) fn has_come(&self) -> bool {
        self.0.closed.load(Ordering::Acquire)
    }

    pub(super) async fn come(&self) {
        let ended = self.0.ended.notified();
        tokio::pin!(ended);
        ended.as_mut().enable();
        if !self.has_come() {
            ended.await;
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.shared.close.notify_one();
    }
}

fn is_named(value: Option<&Value>, name: &str) -> bool {
    matches!(value, Some(Value::BulkString(bytes)) if bytes == name.as_bytes())
}

fn parse_identity(info: &str) -> Option<(String, String)> {
    let id = info.split_whitespace().find_map(|pair| pair.strip_prefix("id="))?;
    // On a Unix socket the address is the socket's path, which may contain spaces.
    let (_, address) = info.split_once(" addr=")?;
    let (address, _) = address.split_once(" laddr=")?;
    Some((id.to_owned(), address.to_owned()))
}

pub(super) fn refused(endpoint: &Endpoint, reason: &str) -> Error {
    Error::definite(ErrorKind::Connect { endpoint: endpoint.to_string(), reason: reason.to_owned() })
}

/// What a server that accepts no more connections says first.
const TOO_MANY: &str = "max number of clients";

fn broken_handshake(endpoint: &Endpoint, error: std::io::Error) -> Error {
    let failed = match tls::refusal(&error) {
        Some(reason) => insecure(endpoint, reason),
        // The connection broke, which may pass.
        None => refused(endpoint, &format!("the TLS handshake failed: {error}")),
    };
    failed.caused_by(error)
}

fn insecure(endpoint: &Endpoint, reason: String) -> Error {
    Error::definite(ErrorKind::Tls { endpoint: endpoint.to_string(), reason })
}

/// The error of a server that has said why it refuses the connection.
fn login_failed(endpoint: &Endpoint, greeting: &Greeting) -> Option<Error> {
    if let Some(reason) = greeting.tls_refusal() {
        return Some(insecure(endpoint, reason));
    }
    let refusal = greeting.refusal()?;
    let (code, message) = refusal.split_once(' ').unwrap_or((&refusal, ""));
    let server = Error::definite(ErrorKind::Server { code: code.to_owned(), message: message.to_owned() });
    // A wrong password stays wrong, and a database that is not there stays away; these may pass.
    if server.is_transient() || message.starts_with(TOO_MANY) {
        return Some(refused(endpoint, &format!("the server says: {refusal}")));
    }
    Some(server)
}

/// What a server says to HELLO that does not have it, or not with the version 3 of the protocol.
fn without_resp3(error: Error) -> Error {
    let ErrorKind::Server { code, message } = error.kind() else { return error };
    if code != "NOPROTO" && !message.to_ascii_lowercase().contains("hello") {
        return error;
    }
    let message = format!("{message} (to wait for a lock needs RESP3, which Redis has since version 6)");
    Error::definite(ErrorKind::Server { code: code.clone(), message })
}

fn broken_login(endpoint: &Endpoint, error: redis::RedisError) -> Error {
    refused(endpoint, &error.to_string()).caused_by(error)
}

/// An error of the connection itself: the request may or may not have been obeyed.
fn broken(error: redis::RedisError) -> Error {
    Error::indefinite(ErrorKind::Disconnected(error.to_string())).caused_by(error)
}

/// An error reply or an error of the connection, where the driver makes one of them.
fn refused_or_broken(error: redis::RedisError) -> Error {
    let Some(code) = error.code() else { return broken(error) };
    let (code, message) = (code.to_owned(), error.detail().unwrap_or_default().to_owned());
    Error::definite(ErrorKind::Server { code, message })
}

/// An error reply: as a rule the request was refused before it changed anything.
fn refuse_errors(reply: Value) -> Result<Value> {
    let error = match reply {
        Value::ServerError(error) => error,
        reply => return Ok(reply),
    };
    let (code, message) = (error.code().to_owned(), error.details().unwrap_or_default().to_owned());
    if code == UNPUBLISHED {
        return Err(Error::indefinite(ErrorKind::NotPublished { reason: message }));
    }
    let is_before_writes = refusal::of(&code).is_some_and(|refusal| refusal.is_before_writes);
    let in_the_middle = message.contains("user_script") && !is_before_writes;
    let kind = ErrorKind::Server { code, message };
    Err(if in_the_middle { Error::indefinite(kind) } else { Error::definite(kind) })
}

/// The code by which our own scripts say that the lock was released and that the message was
/// refused.
const UNPUBLISHED: &str = "UNPUBLISHED";

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
    use tokio::net::TcpListener;

    use super::*;
    use crate::env::TokioEnv;

    /// Lets a client set a connection up, whose last command is CLIENT INFO, and reads nothing
    /// more.
    async fn stop_reading(listener: TcpListener) -> std::io::Result<()> {
        let (mut stream, _) = listener.accept().await?;
        let (reader, mut writer) = stream.split();
        let mut lines = BufReader::new(reader).lines();
        while let Some(line) = lines.next_line().await? {
            if line.starts_with('*') {
                writer.write_all(b"-ERR unknown command\r\n").await?;
            }
            if line == "INFO" {
                std::future::pending::<()>().await;
            }
        }
        Ok(())
    }

    /// The driver of a connection ends by itself when it has written all requests, which a server
    /// that hangs may never let it do.
    #[tokio::test]
    async fn a_dropped_connection_is_closed_whatever_is_still_to_be_written() {
        let env: Arc<dyn Env> = Arc::new(TokioEnv::current().unwrap());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = Endpoint::parse(&format!("redis://{}", listener.local_addr().unwrap())).unwrap();
        env.spawn(Box::pin(async move { stop_reading(listener).await.unwrap() }));
        let in_ms = |ms| env.now() + Duration::from_millis(ms);
        let connection = Connection::open(&env, &endpoint, None, in_ms(20_000)).await.unwrap();
        // More than the buffers of both sides take.
        let mut large = redis::cmd("SET");
        large.arg("k").arg(vec![b'v'; 32 << 20]);
        assert!(within(&*env, in_ms(100), pin!(connection.call(&large))).await.is_none());
        let end = connection.end();
        assert!(!end.has_come());
        drop(connection);
        within(&*env, in_ms(20_000), pin!(end.come())).await.expect("it is closed");
    }

    #[test]
    fn identity_is_read_from_client_info() {
        let line = "id=7 addr=127.0.0.1:4711 laddr=127.0.0.1:6379 fd=8 name= age=0\n";
        assert_eq!(parse_identity(line), Some(("7".into(), "127.0.0.1:4711".into())));
        let line = "id=7 addr=/run/my redis.sock:0 laddr=/run/my redis.sock:0 fd=8 name= age=0\n";
        assert_eq!(parse_identity(line), Some(("7".into(), "/run/my redis.sock:0".into())));
        assert_eq!(parse_identity("nonsense"), None);
    }
}
