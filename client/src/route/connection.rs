//! One connection to one server, shared by all callers. Replies come in the order of the requests.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Cmd, ProtocolVersion, PushInfo, PushKind, Value};
use tokio::sync::Notify;

use super::greeting::Greeting;
use crate::endpoint::{Endpoint, Place, Security};
use crate::env::{BoxStream, Env, Monotonic, within};
use crate::error::{Error, ErrorKind, Result};
use crate::refusal;
use crate::script::Call;
use crate::tls;

/// Handles a message on a subscribing connection. Runs inside the connection's own task.
pub(crate) type OnPush = Arc<dyn Fn(PushInfo) + Send + Sync>;

/// The number of requests that may be queued for writing before senders have to wait.
const WRITE_QUEUE: usize = 1024;

/// A connection. Dropping the last handle closes it, even if requests are unwritten or unanswered.
pub(crate) struct Connection {
    pub(crate) endpoint: Endpoint,
    sender: MultiplexedConnection,
    /// The identity of the connection on the server: its id and the address that the server sees.
    identity: Option<(String, String)>,
    /// Set if the server knows CLIENT CAPA.
    has_capabilities: bool,
    /// Set if the server, as a replica, refuses to read keys and names its master instead.
    is_redirected: AtomicBool,
    /// Set while the server may have commands that compare a string before they change it.
    may_compare: AtomicBool,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    closed: AtomicBool,
    /// Set once new requests must not use the connection; replies may still come.
    retired: AtomicBool,
    /// Set once the server has ended the connection: requests that were not executed by then never
    /// will be.
    fenced: AtomicBool,
    close: Notify,
    ended: Notify,
}

/// A connection with unanswered requests, as the server knows it. The client's side of the socket
/// may be closed.
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
            // The password has changed since the login was read, or the provider did not know the
            // new one yet.
            Err(error) if endpoint.has_provider() && error.is_server("WRONGPASS") => {
                Self::log_in(env, endpoint, on_push).await
            }
            done => done,
        }
    }

    /// Dials, and runs the handshake of TLS.
    pub(super) async fn dial(env: &Arc<dyn Env>, endpoint: &Endpoint) -> Result<BoxStream> {
        let dialed = match &endpoint.place {
            Place::Tcp { host, port } => env.dial(host, *port),
            Place::Unix(path) => env.dial_unix(path),
        };
        let stream = dialed.await.map_err(|error| refused(endpoint, &error.to_string()).caused_by(error))?;
        match &endpoint.security {
            Security::None => Ok(stream),
            Security::Wanted => Err(insecure(endpoint, "it was not set up".to_owned())),
            Security::By(tls) => tls.secure(stream).await.map_err(|error| broken_handshake(endpoint, error)),
        }
    }

    async fn log_in(env: &Arc<dyn Env>, endpoint: &Endpoint, on_push: Option<OnPush>) -> Result<Self> {
        let mut login = endpoint.login().await?;
        let (greeting, stream) = Greeting::of(Self::dial(env, endpoint).await?);
        // The caller enforces timeouts by the clock of its `Env`.
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

        let mut connection = Self {
            endpoint: endpoint.clone(),
            sender,
            identity: None,
            has_capabilities: false,
            is_redirected: AtomicBool::new(false),
            may_compare: AtomicBool::new(false),
            shared,
        };
        if !subscribes {
            let introduced = connection.introduce().await;
            introduced.map_err(|error| login_failed(endpoint, &greeting).unwrap_or(error))?;
        }
        greeting.end();
        Ok(connection)
    }

    /// Asks for the identity of the connection. The same reply shows if the server is a Valkey that
    /// can name its master.
    async fn introduce(&mut self) -> Result<()> {
        let Some(line) = self.ask_info().await? else { return Ok(()) };
        self.identity = parse_identity(&line);
        self.has_capabilities = has_capabilities(&line);
        self.may_compare = AtomicBool::new(self.has_capabilities);
        Ok(())
    }

    /// Asks a server that can name its master to do so once it is a replica.
    ///
    /// # Errors
    /// If the connection ends, or there is no answer before `limit`.
    pub(super) async fn ask_for_redirections(&self, env: &Arc<dyn Env>, limit: Monotonic) -> Result<()> {
        if !self.has_capabilities {
            return Ok(());
        }
        let mut command = redis::cmd("CLIENT");
        command.arg("CAPA").arg("redirect");
        let answer = within(&**env, limit, pin!(self.call(&command))).await;
        match answer.ok_or_else(|| refused(&self.endpoint, "timed out"))? {
            Ok(_) => self.is_redirected.store(true, Ordering::Relaxed),
            // A restricted user: the connection works without.
            Err(error) if error.is_definite() => {}
            Err(error) => return Err(refused(&self.endpoint, &error.to_string()).caused_by(error)),
        }
        Ok(())
    }

    async fn ask_info(&self) -> Result<Option<String>> {
        match self.call(redis::cmd("CLIENT").arg("INFO")).await {
            Ok(Value::BulkString(line)) => Ok(Some(String::from_utf8_lossy(&line).into_owned())),
            Ok(Value::VerbatimString { text, .. }) => Ok(Some(text)),
            // Servers before 6.2 and restricted users: the connection works but cannot be fenced.
            Err(error) if error.is_server("NOPERM") => Ok(None),
            Err(error) if error.is_server("ERR") && !error.to_string().contains(TOO_MANY) => Ok(None),
            Ok(other) => Err(Error::unexpected(&other)),
            // LOADING and similar replies, and a connection that broke immediately.
            Err(error) => Err(refused(&self.endpoint, &error.to_string()).caused_by(error)),
        }
    }

    /// Returns true if the server refuses to read keys once it is a replica, and names its master.
    /// Commands of scripts it refuses with READONLY all the same.
    pub(super) fn is_redirected(&self) -> bool {
        self.is_redirected.load(Ordering::Relaxed)
    }

    /// Returns true if DELIFEQ is worth a try.
    pub(crate) fn may_compare(&self) -> bool {
        self.may_compare.load(Ordering::Relaxed)
    }

    /// Records that the server or the rights of the user have no DELIFEQ.
    pub(crate) fn cannot_compare(&self) {
        self.may_compare.store(false, Ordering::Relaxed);
    }

    /// Sends one command and awaits its reply as long as the connection lives.
    pub(crate) async fn call(&self, command: &Cmd) -> Result<Value> {
        let reply = self.sender.clone().send_packed_command(command).await;
        reply.map_err(broken).and_then(refuse_errors)
    }

    /// Runs a script by its hash, or by its text if the server does not know it or has evicted it.
    /// The commands `then` follow the script on the same connection, and the result includes their
    /// replies. With `asking` an ASKING precedes the script, so that a node that is importing the
    /// slot accepts it.
    pub(crate) async fn run(&self, call: &Call, then: &[Cmd], asking: bool) -> Result<(Value, Vec<Value>)> {
        if self.may_compare()
            && let Some(command) = call.instead()
        {
            match Box::pin(self.run_command(command, then, asking)).await {
                // The user may have the rights that the script needs.
                Err(error) if error.is_unknown_command() || error.is_server("NOPERM") => {
                    self.cannot_compare();
                }
                // For the script, a key of another kind is no error.
                Err(error) if error.is_server("WRONGTYPE") => {}
                done => return done,
            }
        }
        match self.run_command(call.request(), then, asking).await {
            Err(error) if error.is_server("NOSCRIPT") => {
                Box::pin(self.run_command(call.eval(), then, asking)).await
            }
            done => done,
        }
    }

    /// As [`Connection::call`], with `asking` as for [`Connection::run`].
    pub(crate) async fn ask(&self, command: &Cmd, asking: bool) -> Result<Value> {
        if !asking {
            return self.call(command).await;
        }
        self.run_command(command.clone(), &[], true).await.map(|(reply, _)| reply)
    }

    async fn run_command(&self, command: Cmd, then: &[Cmd], asking: bool) -> Result<(Value, Vec<Value>)> {
        if then.is_empty() && !asking {
            return Ok((self.call(&command).await?, Vec::new()));
        }
        // Boxed because it is rarer and its future is larger: it must not enlarge every request.
        Box::pin(self.run_pipeline(command, then, asking)).await
    }

    async fn run_pipeline(&self, command: Cmd, then: &[Cmd], asking: bool) -> Result<(Value, Vec<Value>)> {
        // Sent as one pipeline: no other command may come between ASKING and the command.
        let mut pipeline = redis::pipe();
        if asking {
            pipeline.cmd("ASKING");
        }
        pipeline.add_command(command);
        for command in then {
            pipeline.add_command(command.clone());
        }
        let count = pipeline.len();
        let replies = self.sender.clone().send_packed_commands(&pipeline, 0, count).await;
        let mut replies = replies.map_err(broken)?.into_iter();
        if asking && let Some(refusal) = replies.next() {
            // For example by a server that is no cluster node.
            refuse_errors(refusal)?;
        }
        let Some(reply) = replies.next() else { return Err(Error::unexpected(&Value::Nil)) };
        Ok((refuse_errors(reply)?, replies.collect()))
    }

    /// Ends a connection with unanswered requests on the server, including any request that the
    /// server has not read yet. Closing only the client's side would let requests in transit be
    /// executed later.
    ///
    /// An error means that the outcome is unknown. A refusal by the server is not an error, but
    /// leaves the connection [unfenced](Connection::is_fenced).
    pub(super) async fn fence(&self, left: &Left) -> Result<()> {
        let Some((id, address)) = &left.identity else { return Ok(()) };
        // The address guards against ending a stranger's connection that got the same id after a
        // server restart.
        let mut command = redis::cmd("CLIENT");
        command.arg("KILL").arg("ID").arg(id).arg("ADDR").arg(address);
        match self.call(&command).await {
            // The server also replies `Ok` (0) if the connection has ended already.
            Ok(_) => {
                left.shared.fenced.store(true, Ordering::Release);
                Ok(())
            }
            Err(error) if error.is_definite() => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Returns what is needed to fence this connection once requests use another.
    pub(super) fn leave(&self) -> Left {
        let (identity, shared) = (self.identity.clone(), self.shared.clone());
        Left { endpoint: self.endpoint.clone(), identity, shared }
    }

    /// Returns true if no request sent on this connection can be executed any more.
    pub(crate) fn is_fenced(&self) -> bool {
        self.shared.fenced.load(Ordering::Acquire)
    }

    pub(crate) async fn subscribe(&self, channels: &[String]) -> Result<()> {
        self.sender.clone().subscribe(channels).await.map_err(refused_or_broken)
    }

    pub(crate) async fn unsubscribe(&self, channels: &[String]) -> Result<()> {
        self.sender.clone().unsubscribe(channels).await.map_err(refused_or_broken)
    }

    /// Subscribes to a channel of the node's own slots, or unsubscribes from it.
    ///
    /// A node that gives a slot away ends the subscriptions to its channels unasked. That push can
    /// be mistaken for the confirmation of another subscription, and the confirmations after it as
    /// well. So the connection is retired on a mismatch.
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

    /// Returns true if new requests may use this connection.
    pub(crate) fn is_usable(&self) -> bool {
        !self.shared.closed.load(Ordering::Acquire) && !self.shared.retired.load(Ordering::Acquire)
    }

    /// Sends new requests elsewhere. Callers that still await a reply keep the connection.
    pub(crate) fn retire(&self) {
        self.shared.retired.store(true, Ordering::Release);
    }

    /// Completes when the connection has ended.
    pub(crate) async fn ended(&self) {
        self.end().come().await;
    }

    /// Returns a handle to await the end of the connection without keeping it alive.
    pub(super) fn end(&self) -> End {
        End(self.shared.clone())
    }
}

/// The end of a connection that may still be in use.
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

/// Returns true if the server knows CLIENT CAPA: Valkey from version 8.1 on, which lists a client's
/// capabilities.
fn has_capabilities(info: &str) -> bool {
    info.split_whitespace().any(|field| field.starts_with("capa="))
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

/// The start of the greeting of a server that accepts no more connections.
const TOO_MANY: &str = "max number of clients";

fn broken_handshake(endpoint: &Endpoint, error: std::io::Error) -> Error {
    let failed = match tls::refusal(&error) {
        Some(reason) => insecure(endpoint, reason),
        // The connection broke, which may be transient.
        None => refused(endpoint, &format!("the TLS handshake failed: {error}")),
    };
    failed.caused_by(error)
}

fn insecure(endpoint: &Endpoint, reason: String) -> Error {
    Error::definite(ErrorKind::Tls { endpoint: endpoint.to_string(), reason })
}

/// Returns the reason for which the server refused the connection, if it sent one.
fn login_failed(endpoint: &Endpoint, greeting: &Greeting) -> Option<Error> {
    if let Some(reason) = greeting.tls_refusal() {
        return Some(insecure(endpoint, reason));
    }
    let refusal = greeting.refusal()?;
    let (code, message) = refusal.split_once(' ').unwrap_or((&refusal, ""));
    let server = Error::definite(ErrorKind::Server { code: code.to_owned(), message: message.to_owned() });
    // A wrong password or a missing database is permanent; the refusals below may be transient.
    if server.is_transient() || message.starts_with(TOO_MANY) {
        return Some(refused(endpoint, &format!("the server says: {refusal}")));
    }
    Some(server)
}

/// Explains the error of a server without HELLO or without RESP3.
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

/// Makes the error of a broken connection: the request may or may not have been executed.
fn broken(error: redis::RedisError) -> Error {
    Error::indefinite(ErrorKind::Disconnected(error.to_string())).caused_by(error)
}

/// Converts an error of the `redis` crate that stands for either an error reply or a broken
/// connection.
fn refused_or_broken(error: redis::RedisError) -> Error {
    let Some(code) = error.code() else { return broken(error) };
    let (code, message) = (code.to_owned(), error.detail().unwrap_or_default().to_owned());
    Error::definite(ErrorKind::Server { code, message })
}

/// Converts an error reply. It is definite, because as a rule a request is refused before it
/// changes anything; an error in the middle of a script is not.
fn refuse_errors(reply: Value) -> Result<Value> {
    let error = match reply {
        Value::ServerError(error) => error,
        reply => return Ok(reply),
    };
    let message = error.details().unwrap_or_default().to_owned();
    let code = refusal::code(error.code(), &message).to_owned();
    if code == UNPUBLISHED {
        return Err(Error::indefinite(ErrorKind::NotPublished { reason: message }));
    }
    let is_before_writes = refusal::of(&code).is_some_and(|refusal| refusal.is_before_writes);
    let in_the_middle = message.contains("user_script") && !is_before_writes;
    let kind = ErrorKind::Server { code, message };
    Err(if in_the_middle { Error::indefinite(kind) } else { Error::definite(kind) })
}

/// The error code with which our scripts report that the lock was released but its message was
/// refused.
const UNPUBLISHED: &str = "UNPUBLISHED";

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
    use tokio::net::TcpListener;

    use super::*;
    use crate::env::TokioEnv;

    /// Accepts a client, lets it log in up to its last command, CLIENT INFO, and then reads nothing
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

    /// The driver of a connection ends by itself only after it has written all requests. A hanging
    /// server may never let it.
    #[tokio::test]
    async fn a_dropped_connection_is_closed_whatever_is_still_to_be_written() {
        let env: Arc<dyn Env> = Arc::new(TokioEnv::current().unwrap());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = Endpoint::parse(&format!("redis://{}", listener.local_addr().unwrap())).unwrap();
        env.spawn(Box::pin(async move { stop_reading(listener).await.unwrap() }));
        let in_ms = |ms| env.now() + Duration::from_millis(ms);
        let connection = Connection::open(&env, &endpoint, None, in_ms(20_000)).await.unwrap();
        // Exceeds the buffers of both sides.
        let mut large = redis::cmd("SET");
        large.arg("k").arg(vec![b'v'; 32 << 20]);
        assert!(within(&*env, in_ms(100), pin!(connection.call(&large))).await.is_none());
        let end = connection.end();
        assert!(!end.has_come());
        drop(connection);
        within(&*env, in_ms(20_000), pin!(end.come())).await.expect("it is closed");
    }

    /// The fields are those of Redis 8.2.3 and of Valkey 9.1.2.
    #[test]
    fn a_server_that_lists_capabilities_can_redirect() {
        let line = |more: &str| {
            format!("id=3 addr=127.0.0.1:40228 laddr=127.0.0.1:27605 fd=11 flags=N{more} db=0 resp=2")
        };
        assert!(has_capabilities(&line(" capa=")) && has_capabilities(&line(" capa=r")));
        assert!(!has_capabilities(&line("")) && !has_capabilities(&line(" name=capa lib-name=")));
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
