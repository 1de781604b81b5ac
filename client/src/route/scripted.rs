//! A Sentinel for tests that sends scripted replies.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

use crate::endpoint::Endpoint;
use crate::env::Env;
use crate::mutex::locked;

/// A Sentinel of the master `m`. It has no RESP3, so it publishes nothing. It serves one connection
/// after the other.
pub(super) struct Scripted {
    pub(super) endpoint: Endpoint,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    /// The replies by subcommand of SENTINEL. A subcommand without a reply gets an error.
    replies: BTreeMap<&'static str, String>,
    asked: Vec<String>,
}

impl Scripted {
    /// Starts a Sentinel that knows no master.
    pub(super) async fn start(env: &Arc<dyn Env>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("redis://{}", listener.local_addr().unwrap());
        let state = Arc::<Mutex<State>>::default();
        let served = state.clone();
        env.spawn(Box::pin(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let _ = serve(stream, &served).await;
            }
        }));
        Self { endpoint: Endpoint::parse(&url).unwrap(), state }
    }

    /// Sets the reply to this subcommand.
    pub(super) fn says(&self, subcommand: &'static str, reply: String) {
        locked(&self.state).replies.insert(subcommand, reply);
    }

    /// Describes a master at `host` with this number of replicas and of other Sentinels.
    pub(super) fn describes(&self, host: &str, replicas: usize, others: usize) {
        self.describes_in(1, host, replicas, others);
    }

    /// As [`Scripted::describes`], with the epoch of the configuration.
    pub(super) fn describes_in(&self, epoch: u64, host: &str, replicas: usize, others: usize) {
        let epoch = epoch.to_string();
        let (replicas, others) = (replicas.to_string(), others.to_string());
        let described = [
            ("ip", host),
            ("port", "6379"),
            ("flags", "master"),
            ("config-epoch", &epoch),
            ("num-slaves", &replicas),
            ("num-other-sentinels", &others),
        ];
        self.says("MASTER", list(described.into_iter().flat_map(|(name, value)| [name, value])));
        self.says("GET-MASTER-ADDR-BY-NAME", list([host, "6379"]));
        self.says("SENTINELS", "*0\r\n".to_owned());
    }

    /// Names these other Sentinels, each with its id.
    pub(super) fn names(&self, others: &[(&Endpoint, &str)]) {
        let mut reply = format!("*{}\r\n", others.len());
        for (endpoint, id) in others {
            let at = endpoint.to_string();
            let (host, port) = at.rsplit_once(':').unwrap();
            reply += &list(["ip", host, "port", port, "runid", id, "flags", "sentinel"]);
        }
        self.says("SENTINELS", reply);
    }

    /// Returns the subcommands that were requested since the last call of this.
    pub(super) fn asked(&self) -> Vec<String> {
        std::mem::take(&mut locked(&self.state).asked)
    }
}

/// Encodes a reply that is a list of texts.
fn list<'a>(texts: impl IntoIterator<Item = &'a str>) -> String {
    let (mut count, mut items) = (0, String::new());
    for text in texts {
        count += 1;
        write!(items, "${}\r\n{text}\r\n", text.len()).unwrap();
    }
    format!("*{count}\r\n{items}")
}

async fn serve(mut stream: TcpStream, state: &Mutex<State>) -> std::io::Result<()> {
    let (reader, mut writer) = stream.split();
    // A request is a list of texts without line breaks: one line with their number, and two lines
    // for each.
    let mut lines = BufReader::new(reader).lines();
    while let Some(head) = lines.next_line().await? {
        let count: usize = head.trim_start_matches('*').parse().unwrap();
        let mut words = Vec::new();
        for _ in 0..count {
            lines.next_line().await?;
            words.extend(lines.next_line().await?);
        }
        let reply = match words.as_slice() {
            [command, subcommand, ..] if command == "SENTINEL" => {
                let mut state = locked(state);
                state.asked.push(subcommand.clone());
                state.replies.get(subcommand.as_str()).cloned()
            }
            _ => None,
        };
        let reply = reply.unwrap_or_else(|| format!("-ERR unknown command '{}'\r\n", words[0]));
        writer.write_all(reply.as_bytes()).await?;
    }
    Ok(())
}
