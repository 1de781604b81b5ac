//! One Sentinel: the connection to it, and its report about a master.

use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use redis::{PushInfo, PushKind, Value};
use tokio::sync::{Notify, oneshot};

use super::connection::{Connection, OnPush, refused};
use super::slots::text;
use crate::endpoint::Endpoint;
use crate::env::{Env, Monotonic, within};
use crate::error::{Error, ErrorKind, Result};
use crate::mutex::locked;

/// The time after which an unanswered query makes the client reconnect to the Sentinel.
const SILENCE: Duration = Duration::from_secs(3);

/// The time after which an unanswered query keeps further queries from being sent.
const PATIENCE: Duration = Duration::from_secs(1);

/// The time limit of connecting to a Sentinel.
const DIAL: Duration = Duration::from_secs(3);

/// The channel on which a new master is announced.
const SWITCHES: &str = "+switch-master";

/// A Sentinel that the client asks.
pub(super) struct SentinelLink {
    pub(super) endpoint: Endpoint,
    /// True if the application named it; false if another Sentinel did.
    pub(super) is_configured: bool,
    state: Mutex<State>,
    /// Notified when an attempt to connect is over.
    dialled: Notify,
    closed: AtomicBool,
    /// The number of other Sentinels that it reported when it was last asked for them.
    others: AtomicUsize,
}

#[derive(Default)]
struct State {
    connection: Option<Arc<Connection>>,
    is_dialling: bool,
    failure: Option<Error>,
    /// The Sentinel's own id, which never changes.
    id: Option<String>,
    /// The time since which a query is unanswered.
    asked_since: Option<Monotonic>,
}

/// A Sentinel's report about a master.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct View {
    pub(super) host: String,
    pub(super) port: u16,
    /// The configuration epoch: the higher one is newer.
    pub(super) epoch: u64,
    pub(super) replicas: usize,
    /// The flag that says that the master is about to be replaced.
    pub(super) ends: Option<String>,
    /// The other Sentinels with their ids, if their number has changed.
    pub(super) others: Vec<(String, u16, String)>,
}

impl SentinelLink {
    pub(super) fn new(endpoint: Endpoint, is_configured: bool) -> Arc<Self> {
        Arc::new(Self {
            endpoint,
            is_configured,
            state: Mutex::default(),
            dialled: Notify::new(),
            closed: AtomicBool::new(false),
            others: AtomicUsize::new(usize::MAX),
        })
    }

    pub(super) fn id(&self) -> Option<String> {
        locked(&self.state).id.clone()
    }

    pub(super) fn close(&self) {
        self.closed.store(true, Ordering::Release);
        locked(&self.state).connection = None;
    }

    /// Asks for the report about `master`; `None` if the Sentinel knows no master of this name.
    /// `reason` is notified when the Sentinel announces a new master.
    pub(super) async fn view(
        self: &Arc<Self>,
        env: &Arc<dyn Env>,
        master: &str,
        reason: &Arc<Notify>,
        limit: Monotonic,
    ) -> Result<Option<View>> {
        let connection = self.connection(env, master, reason, limit).await?;
        {
            let mut state = locked(&self.state);
            let asked = *state.asked_since.get_or_insert(env.now());
            if env.now() - asked > PATIENCE {
                return Err(refused(&self.endpoint, "it has not answered yet"));
            }
        }
        // Runs in its own task: an answer that comes after the caller has stopped waiting still
        // counts as one.
        let (answer, answered) = oneshot::channel();
        let (link, master, clock) = (self.clone(), master.to_owned(), env.clone());
        env.spawn(Box::pin(async move {
            let told = within(&*clock, clock.now() + SILENCE, pin!(link.ask(&connection, &master))).await;
            let told =
                told.unwrap_or_else(|| Err(refused(&link.endpoint, "it does not answer").made_indefinite()));
            if told.as_ref().is_err_and(|error| !error.is_definite()) {
                connection.retire();
            }
            let mut state = locked(&link.state);
            // Leave the state alone if another connection has been made since.
            if state.connection.as_ref().is_none_or(|current| Arc::ptr_eq(current, &connection)) {
                state.asked_since = None;
            }
            drop(state);
            // The caller may have stopped waiting.
            let _ = answer.send(told);
        }));
        answered.await.unwrap_or_else(|_| Err(Error::definite(ErrorKind::Shutdown)))
    }

    /// Returns the connection. A separate task makes it; if that takes long, the next query waits
    /// for the same attempt.
    async fn connection(
        self: &Arc<Self>,
        env: &Arc<dyn Env>,
        master: &str,
        reason: &Arc<Notify>,
        limit: Monotonic,
    ) -> Result<Arc<Connection>> {
        let mut dialled = std::pin::pin!(self.dialled.notified());
        dialled.as_mut().enable();
        let begins = {
            let mut state = locked(&self.state);
            if state.connection.as_ref().is_some_and(|connection| !connection.is_usable()) {
                state.connection = None;
                state.asked_since = None;
            }
            if let Some(connection) = &state.connection {
                return Ok(connection.clone());
            }
            !std::mem::replace(&mut state.is_dialling, true)
        };
        if begins {
            let (link, env, master, reason) = (self.clone(), env.clone(), master.to_owned(), reason.clone());
            let dialling = env.clone();
            dialling.spawn(Box::pin(async move { link.dial(&env, master, reason).await }));
        }
        tokio::select! {
            biased;
            () = dialled => {}
            () = env.sleep_until(limit) => return Err(refused(&self.endpoint, "timed out")),
        }
        let state = locked(&self.state);
        match (&state.connection, &state.failure) {
            (Some(connection), _) => Ok(connection.clone()),
            (None, Some(error)) => Err(error.clone()),
            (None, None) => Err(refused(&self.endpoint, "the connection ended at once")),
        }
    }

    async fn dial(&self, env: &Arc<dyn Env>, master: String, reason: Arc<Notify>) {
        let opened = self.open(env, master, reason).await;
        {
            let mut state = locked(&self.state);
            state.is_dialling = false;
            match opened {
                Ok((connection, id)) => {
                    state.id = id.or(state.id.take());
                    state.failure = None;
                    state.connection = Some(connection).filter(|_| !self.closed.load(Ordering::Acquire));
                }
                Err(error) => state.failure = Some(error),
            }
        }
        self.others.store(usize::MAX, Ordering::Relaxed);
        self.dialled.notify_waiters();
    }

    async fn open(
        &self,
        env: &Arc<dyn Env>,
        master: String,
        reason: Arc<Notify>,
    ) -> Result<(Arc<Connection>, Option<String>)> {
        let hears = reason.clone();
        let on_push: OnPush = Arc::new(move |push| {
            if announces(&push, &master) {
                hears.notify_one();
            }
        });
        let limit = env.now() + DIAL;
        let named = |error: Error| match error.kind() {
            // An error reply does not name the server, so add its address.
            ErrorKind::Server { .. } => {
                refused(&self.endpoint, &format!("the Sentinel says: {error}")).caused_by(error)
            }
            _ => error,
        };
        let connection = match Connection::open(env, &self.endpoint, Some(on_push), limit).await {
            // Without RESP3 no messages come, and polling has to do.
            Err(error) if speaks_no_resp3(&error) => {
                Connection::open(env, &self.endpoint, None, limit).await.map_err(named)?
            }
            Err(error) => return Err(named(error)),
            Ok(connection) => {
                // If the user may not subscribe, no messages come.
                match connection.subscribe(&[SWITCHES.to_owned()]).await {
                    Err(error) if !error.is_definite() => return Err(error.made_definite()),
                    _ => connection,
                }
            }
        };
        let id = connection.call(redis::cmd("SENTINEL").arg("MYID")).await.ok().as_ref().and_then(text);
        Ok((connection, id))
    }

    async fn ask(&self, connection: &Connection, master: &str) -> Result<Option<View>> {
        let question = |about: &str| {
            let mut question = redis::cmd("SENTINEL");
            question.arg(about).arg(master);
            question
        };
        // The order matters: if the master changes in between, the address is newer than the epoch,
        // not older.
        let described = match connection.call(&question("MASTER")).await {
            Err(error) if error.to_string().contains("No such master") => return Ok(None),
            described => self.told(described)?,
        };
        let address = self.told(connection.call(&question("GET-MASTER-ADDR-BY-NAME")).await)?;
        if address == Value::Nil {
            return Ok(None);
        }
        let mut view = read_view(&described, &address)?;
        let count =
            field(&described, "num-other-sentinels").and_then(|count| count.parse().ok()).unwrap_or(0);
        if self.others.swap(count, Ordering::Relaxed) != count && count > 0 {
            // The user may lack the right to this subcommand.
            let others = connection.call(&question("SENTINELS")).await;
            view.others = others.map(|others| read_others(&others)).unwrap_or_default();
        }
        Ok(Some(view))
    }

    fn told(&self, done: Result<Value>) -> Result<Value> {
        done.map_err(|error| match error.kind() {
            ErrorKind::Server { .. } => refused(&self.endpoint, &format!("the Sentinel says: {error}")),
            _ => error,
        })
    }
}

fn speaks_no_resp3(error: &Error) -> bool {
    let told = error.to_string().to_ascii_lowercase();
    matches!(error.kind(), ErrorKind::Server { .. }) && (told.contains("hello") || told.contains("noproto"))
}

/// Returns true if a message announces a new server for `master`. It has the master's name and,
/// after a space, the old and the new address.
fn announces(push: &PushInfo, master: &str) -> bool {
    let (PushKind::Message, [_, message]) = (&push.kind, push.data.as_slice()) else { return false };
    let announced = text(message);
    announced.is_some_and(|text| text.strip_prefix(master).is_some_and(|rest| rest.starts_with(' ')))
}

/// Returns a field of an instance, which is a map or, in RESP2, a list of alternating names and
/// values.
fn field(instance: &Value, name: &str) -> Option<String> {
    match instance {
        Value::Map(pairs) => pairs
            .iter()
            .find(|(key, _)| text(key).as_deref() == Some(name))
            .and_then(|(_, value)| text(value)),
        Value::Array(flat) => {
            let pair = flat.chunks(2).find(|pair| text(&pair[0]).as_deref() == Some(name))?;
            text(pair.get(1)?)
        }
        _ => None,
    }
}

fn read_view(described: &Value, address: &Value) -> Result<View> {
    let unexpected = || Error::unexpected(described).made_definite();
    let number = |name: &str| field(described, name).and_then(|number| number.parse::<u64>().ok());
    let Value::Array(address) = address else { return Err(Error::unexpected(address).made_definite()) };
    let [host, port] = address.as_slice() else { return Err(unexpected()) };
    let (host, port) = (text(host), text(port).and_then(|port| port.parse().ok()));
    let (Some(host), Some(port)) = (host, port) else { return Err(unexpected()) };
    let flags = field(described, "flags").unwrap_or_default();
    let ends =
        ["o_down", "failover_in_progress"].into_iter().find(|flag| flags.split(',').any(|set| set == *flag));
    let reported = (field(described, "ip"), number("port"));
    // In the last steps of a failover the address is already the new master's, while the flags are
    // still the old one's.
    let is_new = reported != (Some(host.clone()), Some(u64::from(port)));
    Ok(View {
        host,
        port,
        epoch: number("config-epoch").ok_or_else(unexpected)?,
        replicas: number("num-slaves").and_then(|count| usize::try_from(count).ok()).unwrap_or(0),
        ends: ends.filter(|_| !is_new).map(str::to_owned),
        others: Vec::new(),
    })
}

fn read_others(reply: &Value) -> Vec<(String, u16, String)> {
    let Value::Array(all) = reply else { return Vec::new() };
    let read =
        |one: &Value| Some((field(one, "ip")?, field(one, "port")?.parse().ok()?, field(one, "runid")?));
    all.iter().filter_map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::super::scripted::Scripted;
    use super::*;
    use crate::env::TokioEnv;

    fn bulk(text: &str) -> Value {
        Value::BulkString(text.as_bytes().to_vec())
    }

    fn instance(pairs: &[(&str, &str)], as_map: bool) -> Value {
        let pairs = pairs.iter().map(|(name, value)| (bulk(name), bulk(value)));
        if as_map {
            Value::Map(pairs.collect())
        } else {
            Value::Array(pairs.flat_map(|(name, value)| [name, value]).collect())
        }
    }

    #[test]
    fn what_a_sentinel_says() {
        for (flags, address, ends) in [
            ("master", "10.0.0.1", None),
            ("s_down,o_down,master", "10.0.0.1", Some("o_down")),
            ("master,failover_in_progress,force_failover", "10.0.0.1", Some("failover_in_progress")),
            // The master has been replaced: the flags are about the old one.
            ("s_down,o_down,master,failover_in_progress", "10.0.0.2", None),
            ("s_down,master", "10.0.0.1", None),
        ] {
            for as_map in [true, false] {
                let described = instance(
                    &[
                        ("name", "m"),
                        ("ip", "10.0.0.1"),
                        ("port", "6379"),
                        ("flags", flags),
                        ("config-epoch", "7"),
                        ("num-slaves", "2"),
                    ],
                    as_map,
                );
                let address = Value::Array(vec![bulk(address), bulk("6379")]);
                let view = read_view(&described, &address).unwrap();
                assert_eq!((view.epoch, view.replicas, view.ends.as_deref()), (7, 2, ends), "{flags}");
            }
        }
        read_view(&Value::Nil, &Value::Array(vec![bulk("10.0.0.1"), bulk("6379")])).unwrap_err();
        read_view(&instance(&[("config-epoch", "1")], true), &Value::Array(vec![bulk("h"), bulk("x")]))
            .unwrap_err();
        let others =
            Value::Array(vec![instance(&[("ip", "h"), ("port", "26379"), ("runid", "a")], true), Value::Nil]);
        assert_eq!(read_others(&others), [("h".to_owned(), 26379, "a".to_owned())]);
    }

    /// Starts a Sentinel; returns it with a function that asks it about `m`.
    async fn link() -> (Scripted, impl AsyncFn() -> Result<Option<View>>) {
        let env: Arc<dyn Env> = Arc::new(TokioEnv::current().unwrap());
        let sentinel = Scripted::start(&env).await;
        let link = SentinelLink::new(sentinel.endpoint.clone(), true);
        let view = async move || link.view(&env, "m", &Arc::default(), env.now() + DIAL).await;
        (sentinel, view)
    }

    #[tokio::test]
    async fn a_sentinel_that_knows_no_such_master_is_no_error_and_any_other_refusal_is() {
        let (sentinel, view) = link().await;
        sentinel.describes("10.0.0.1", 2, 0);
        let known = view().await.unwrap().expect("it knows the master");
        assert_eq!((known.host.as_str(), known.port, known.replicas), ("10.0.0.1", 6379, 2));
        sentinel.says("GET-MASTER-ADDR-BY-NAME", "*-1\r\n".to_owned());
        assert_eq!(view().await.unwrap(), None, "it has forgotten the master in between");
        sentinel.says("MASTER", "-ERR No such master with that name\r\n".to_owned());
        assert_eq!(view().await.unwrap(), None);
        sentinel.says("MASTER", "-NOPERM this user has no permissions\r\n".to_owned());
        let error = view().await.unwrap_err();
        let told = format!("{}: the Sentinel says: ", sentinel.endpoint);
        assert!(error.to_string().contains(&told), "the reply does not name the Sentinel: {error}");
        assert!(error.to_string().ends_with("NOPERM this user has no permissions"), "{error}");
    }

    #[tokio::test]
    async fn a_sentinel_is_asked_for_the_others_when_their_number_has_changed_and_there_are_some() {
        let (sentinel, view) = link().await;
        for (others, is_asked) in [(0, false), (0, false), (2, true), (2, false), (0, false), (1, true)] {
            sentinel.describes("10.0.0.1", 0, others);
            view().await.unwrap().expect("it knows the master");
            assert_eq!(sentinel.asked().contains(&"SENTINELS".to_owned()), is_asked, "{others} others");
        }
    }

    #[test]
    fn announcements_of_other_masters_are_none() {
        for (message, is_one) in
            [("m 10.0.0.1 1 10.0.0.2 1", true), ("m2 10.0.0.1 1 10.0.0.2 1", false), ("m", false)]
        {
            let data = vec![bulk(SWITCHES), bulk(message)];
            assert_eq!(announces(&PushInfo { kind: PushKind::Message, data }, "m"), is_one, "{message}");
        }
    }
}
