//! A simulated Redis inside one's own `turmoil` simulation: two clients take a lock with SET NX,
//! and the node is cut off from one of them for a while. Run it with `cargo run -p lockstorm-sim
//! --example turmoil`.

use std::{error::Error, time::Duration};

use lockstorm_sim::{config::Config, drive, server::Server};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use turmoil::net::TcpStream;

fn main() -> Result<(), Box<dyn Error>> {
    let mut sim = turmoil::Builder::new().rng_seed(1).simulation_duration(Duration::from_secs(60)).build();
    let node = drive::DrivenNode::new();
    sim.host("redis", move || {
        let node = node.clone();
        async move {
            drive::turmoil::run(6379, node, 1, |env, _| Server::new(Config::default(), env)).await?;
            Ok(())
        }
    });
    sim.client("alice", async {
        println!("alice: {}", ask("SETNX lock alice\r\n").await?);
        turmoil::partition("bob", "redis");
        println!("alice: {}", ask("DEL lock\r\n").await?);
        turmoil::repair("bob", "redis");
        Ok(())
    });
    sim.client("bob", async {
        loop {
            match ask("SETNX lock bob\r\n").await {
                Ok(reply) if reply == ":1" => break,
                Ok(_) | Err(_) => wait(Duration::from_millis(100)).await,
            }
        }
        println!("bob:   got it after {:?}", turmoil::elapsed());
        Ok(())
    });
    sim.run()
}

/// Sends one command over a connection of its own, and returns the first line of the answer.
async fn ask(command: &str) -> Result<String, Box<dyn Error>> {
    let mut stream = TcpStream::connect(("redis", 6379)).await?;
    stream.write_all(command.as_bytes()).await?;
    let mut buffer = [0; 256];
    let read = stream.read(&mut buffer).await?;
    Ok(String::from_utf8_lossy(&buffer[..read]).trim_end().to_owned())
}

#[expect(clippy::disallowed_methods, reason = "turmoil's time is tokio's")]
async fn wait(duration: Duration) {
    tokio::time::sleep(duration).await;
}
