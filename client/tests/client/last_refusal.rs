//! A server refuses a request with LOADING, and the connection ends before it replies to the next
//! one: the caller gets the refusal.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use lockstorm_client::{Client, Error, ErrorKind};
use tokio::io::{AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

use crate::redirects::next;
use crate::support::{soon, task};

/// A server that refuses the first request and ends the connection in place of the second reply.
/// Later it has no key.
struct Loading {
    url: String,
}

impl Loading {
    /// `names` is true if the server tells connections their ids, so that they can be ended.
    async fn start(names: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a loopback port");
        let url = format!("redis://{}", listener.local_addr().expect("a bound listener has an address"));
        let asked = Arc::new(AtomicUsize::new(0));
        task(async move {
            while let Ok((stream, _)) = listener.accept().await {
                task(Self::reply(stream, names, asked.clone()));
            }
        });
        Self { url }
    }

    async fn reply(stream: TcpStream, names: bool, asked: Arc<AtomicUsize>) {
        let mut stream = BufReader::new(stream);
        while let Some(words) = next(&mut stream).await {
            let name = words[0].to_ascii_uppercase();
            let reply = match (name.as_str(), words.get(1).map_or("", String::as_str)) {
                ("CLIENT", "INFO") if names => {
                    let line = "id=7 addr=127.0.0.1:4711 laddr=127.0.0.1:6379 fd=8 name= db=0\n";
                    format!("${}\r\n{line}\r\n", line.len())
                }
                ("CLIENT", "INFO") => "-ERR unknown subcommand 'INFO'. Try CLIENT HELP.\r\n".to_owned(),
                ("CLIENT", "KILL") => ":1\r\n".to_owned(),
                ("CLIENT", _) => "+OK\r\n".to_owned(),
                _ => match (asked.fetch_add(1, Ordering::Relaxed), name.as_str()) {
                    (0, _) => "-LOADING Redis is loading the dataset in memory\r\n".to_owned(),
                    (1, _) => return,
                    (_, "PTTL") => ":-2\r\n".to_owned(),
                    _ => "$-1\r\n".to_owned(),
                },
            };
            if stream.get_mut().write_all(reply.as_bytes()).await.is_err() {
                return;
            }
        }
    }

    async fn client(&self, repeats: u32) -> Client {
        let builder = Client::builder().endpoint(&self.url).retry_attempts(repeats);
        let builder = builder.retry_delay(Duration::from_millis(1), Duration::from_millis(2));
        builder.connect().await.unwrap()
    }
}

fn is_loading(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Server { code, .. } if code == "LOADING")
}

/// Regression: the error of acquisitions and of forced releases was that of the connection. It is
/// definite only if the old connection could be ended, so that its request has no effect later.
#[tokio::test]
async fn the_end_of_a_connection_hides_no_refusal() {
    for names in [true, false] {
        let client = Loading::start(names).await.client(1).await;
        let error =
            soon("it gives up", async { client.lock("stock").try_acquire().await }).await.unwrap_err();
        assert!(is_loading(&error), "{names}: {error}");
        assert_eq!(error.is_definite(), names, "{error}");

        let client = Loading::start(names).await.client(1).await;
        let error = soon("it gives up", async { client.lock("stock").is_locked().await }).await.unwrap_err();
        assert!(is_loading(&error), "{names}: {error}");
    }
    // A second request could be executed before the first one, which nothing ended.
    let client = Loading::start(false).await.client(5).await;
    let error = soon("it gives up", async { client.lock("stock").force_release().await }).await.unwrap_err();
    assert!(is_loading(&error) && !error.is_definite(), "{error}");
}
