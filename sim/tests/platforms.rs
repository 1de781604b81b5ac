//! The same node behind real sockets and inside a `turmoil::Sim`. (Its own world has tests of its
//! own.)

use std::{cell::RefCell, rc::Rc, time::Duration};

use lockstorm_sim::{config::Config, drive, server::Server};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// Sends `command` and asserts that the reply begins with `expected`.
async fn check(stream: &mut (impl AsyncRead + AsyncWrite + Unpin), command: &str, expected: &str) {
    stream.write_all(command.as_bytes()).await.expect("open");
    let mut answer = vec![0; expected.len()];
    stream.read_exact(&mut answer).await.expect("answered");
    assert_eq!(String::from_utf8_lossy(&answer), expected, "{command}");
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a client on the real network")]
fn a_node_serves_the_real_network() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    tokio::task::LocalSet::new().block_on(&runtime, async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("bound");
        let node = drive::DrivenNode::new();
        let start = |env: &mut _| Server::new(Config::default(), env);
        let served = tokio::task::spawn_local(drive::tokio::Machine::new().listen(listener).run(
            node.clone(),
            1,
            start,
        ));

        let mut one = tokio::net::TcpStream::connect(address).await.expect("it listens");
        let mut other = tokio::net::TcpStream::connect(address).await.expect("it listens");
        check(&mut one, "SET a 1\r\n", "+OK\r\n").await;
        check(&mut other, "GET a\r\n", "$1\r\n1\r\n").await;
        check(&mut other, "PEXPIRE a 1\r\n", ":1\r\n").await;
        tokio::time::sleep(Duration::from_millis(20)).await;
        check(&mut one, "GET a\r\n", "$-1\r\n").await;

        // Half a command waits for its other half; a message reaches a subscriber on another
        // connection.
        check(&mut one, "*2\r\n$9\r\nSUBSCRIBE\r\n$1\r\nc\r\n", "*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n")
            .await;
        other.write_all(b"*3\r\n$7\r\nPUBL").await.expect("open");
        check(&mut other, "ISH\r\n$1\r\nc\r\n$2\r\nhi\r\n", ":1\r\n").await;
        check(&mut one, "", "*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$2\r\nhi\r\n").await;

        // More than any socket's buffer, in both directions.
        let big = "x".repeat(3 << 20);
        check(&mut other, &format!("*3\r\n$3\r\nSET\r\n$1\r\nb\r\n${}\r\n{big}\r\n", big.len()), "+OK\r\n")
            .await;
        check(&mut other, "GET b\r\n", &format!("${}\r\n{big}\r\n", big.len())).await;

        drop(one);
        check(&mut other, "PUBLISH c hi\r\n", ":0\r\n").await;
        assert_eq!(node.look(|server| server.node().clients.sessions.len()), Some(1));
        assert!(!served.is_finished());
    });
}

/// The observations of two clients of a node in a `turmoil::Sim`, with `turmoil`'s time in
/// milliseconds.
fn in_turmoil(seed: u64) -> Vec<String> {
    let seen = Rc::new(RefCell::new(vec![]));
    let mut sim = turmoil::Builder::new().rng_seed(seed).simulation_duration(Duration::from_secs(60)).build();
    let node = drive::DrivenNode::new();
    sim.host("redis", move || {
        let node = node.clone();
        async move {
            drive::turmoil::run(6379, node, 1, |env, _| Server::new(Config::default(), env)).await?;
            Ok(())
        }
    });
    for name in ["c1", "c2"] {
        let seen = seen.clone();
        #[expect(clippy::disallowed_methods, reason = "turmoil's time is tokio's")]
        sim.client(name, async move {
            let mut stream = turmoil::net::TcpStream::connect(("redis", 6379)).await?;
            check(&mut stream, &format!("SET {name} 1\r\nPEXPIRE {name} 500\r\n"), "+OK\r\n:1\r\n").await;
            seen.borrow_mut().push(format!("{name} set {}", turmoil::elapsed().as_millis()));
            check(&mut stream, &format!("GET {name}\r\n"), "$1\r\n1\r\n").await;
            tokio::time::sleep(Duration::from_millis(600)).await;
            check(&mut stream, &format!("GET {name}\r\n"), "$-1\r\n").await;
            seen.borrow_mut().push(format!("{name} gone {}", turmoil::elapsed().as_millis()));
            Ok(())
        });
    }
    sim.run().expect("both clients come to their end");
    seen.take()
}

#[test]
fn a_node_lives_in_a_users_own_turmoil_simulation() {
    let seen = in_turmoil(1);
    assert_eq!(seen.len(), 4, "{seen:?}");
    assert_eq!(seen, in_turmoil(1), "the same seed, the same run");
    assert_ne!(seen, in_turmoil(2), "another seed, other latencies");
}

#[test]
fn a_node_that_turmoil_crashes_comes_back_empty() {
    let mut sim = turmoil::Builder::new().simulation_duration(Duration::from_secs(60)).build();
    let node = drive::DrivenNode::new();
    sim.host("redis", move || {
        let node = node.clone();
        async move {
            drive::turmoil::run(6379, node, 1, |env, _| Server::new(Config::default(), env)).await?;
            Ok(())
        }
    });
    let ask = |command: &'static str, expected: &'static str| async move {
        check(&mut turmoil::net::TcpStream::connect(("redis", 6379)).await?, command, expected).await;
        Ok(())
    };
    sim.client("before", ask("SET a 1\r\nGET a\r\n", "+OK\r\n$1\r\n1\r\n"));
    sim.run().expect("answered");
    sim.crash("redis");
    sim.bounce("redis");
    sim.client("after", ask("GET a\r\n", "$-1\r\n"));
    sim.run().expect("answered");
}
