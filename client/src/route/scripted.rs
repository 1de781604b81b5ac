//! A Sentinel for tests, which says what it is told to say.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

use crate::endpoint::Endpoint;
use crate::env::Env;
use crate::mutex::locked;

/// A Sentinel of the master `m`. It has no RESP3, so that it publishes nothing, and serves one
/// connection after the other.
pub(super) struct Scripted {
    pub(super) endpoint: Endpoint,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    /// The replies, by the subcommand of SENTINEL. What has none is an error.
    replies: BTreeMap<&'static str, String>,
    asked: Vec<String>,
}

impl Scripted {
    /// One that knows no master.
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

    /// What it says from now on when it is asked with this subcommand.
    pub(super) fn says(&self, subcommand: &'static str, reply: String) {
        locked(&self.state).replies.insert(subcommand, reply);
    }

    /// The master is there, with so many replicas, and so many other Sentinels watch it.
    pub(super) fn describes(&self, host: &str, replicas: usize, others: usize) {
        self.describes_in(1, host, replicas, others);
    }

    /// As [`Scripted::describes`], in a configuration of this epoch.
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

    /// It names these other Sentinels, each with the id that it is known by.
    pub(super) fn names(&self, others: &[(&Endpoint, &str)]) {
        let mut reply = format!("*{}\r\n", others.len());
        for (endpoint, id) in others {
            let at = endpoint.to_string();
            let (host, port) = at.rsplit_once(':').unwrap();
            reply += &list(["ip", host, "port", port, "runid", id, "flags", "sentinel"]);
        }
        self.says("SENTINELS", reply);
    }

    /// The subcommands that it was asked with since this was called last.
    pub(super) fn asked(&self) -> Vec<String> {
        std::mem::take(&mut locked(&self.state).asked)
    }
}

/// A reply that is a list of texts.
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
    // A request is a list of texts without line breaks: a line for their number, and two for each.
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
