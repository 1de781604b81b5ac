//! CONFIG SET port and bind: a node changes the addresses at which it listens.

use std::net::{Ipv4Addr, TcpListener};

use super::node::{Node, ask};

pub(crate) fn a_node_listens_where_it_is_told_to(mut node: Node, other: Node) {
    let refused = |answer: &str, why: &str| assert!(answer.contains(why), "{answer}");
    let old = node.port();
    refused(
        &node.ask(&format!("CONFIG SET maxmemory 100mb port {}", other.port())),
        "CONFIG SET failed (possibly related to argument 'port') - Unable to listen on this port. Check server logs.",
    );
    // This address is reserved for examples; no machine has it.
    refused(
        &node.ask("CONFIG SET bind 192.0.2.1"),
        "CONFIG SET failed (possibly related to argument 'bind') - Failed to bind to specified addresses.",
    );
    assert!(node.ask("CONFIG GET maxmemory").contains("\"0\""));
    assert!(node.ask("CONFIG GET bind").contains("127.0.0.1"));
    assert_eq!(ask(&mut node.connect(), "PING"), "PONG", "it listens where it did");

    let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    let new = free.local_addr().expect("it is bound").port();
    drop(free);
    assert_eq!(node.ask(&format!("CONFIG SET port {new} maxmemory 100mb")), "OK");
    assert_eq!(node.info("tcp_port"), new.to_string());
    assert_eq!(node.info("maxmemory"), (100 << 20).to_string());
    assert!(!node.accepts(old) && node.accepts(new));
    // The same port again, and an address that the machine may lack.
    assert_eq!(node.ask(&format!("CONFIG SET port {new}")), "OK");
    assert_eq!(node.ask_words(&["CONFIG", "SET", "bind", "127.0.0.1 -192.0.2.1"]), "OK");
    assert!(node.accepts(new));
    assert_eq!(node.ask("CONFIG SET port 0"), "OK");
    assert!(!node.accepts(new));
    assert_eq!(node.ask("PING"), "PONG", "who is connected stays");
    assert_eq!(node.ask(&format!("CONFIG SET port {old}")), "OK");
    assert!(node.accepts(old));
}
