//! Clients on other hosts, which a server without a password refuses.

use std::{
    io::{ErrorKind, Read},
    net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream, UdpSocket},
};

use crate::served::{PATIENCE, Served, asks, folder, nothing_to_compare_with, redis};

/// An address of this machine other than its loopback; prints one line if it has none. A connected
/// UDP socket shows its address without sending a packet.
fn own_address() -> Option<IpAddr> {
    let own = routed();
    if own.is_none() {
        eprintln!("this machine has no address but its loopback: nothing is tried by another one");
    }
    own
}

fn routed() -> Option<IpAddr> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
    socket.connect((Ipv4Addr::new(192, 0, 2, 1), 9)).ok()?;
    let own = socket.local_addr().ok()?.ip();
    (!own.is_loopback() && !own.is_unspecified()).then_some(own)
}

/// The text that a server sends on its own to a client at this address, until it closes the
/// connection.
fn greeted(address: SocketAddr) -> String {
    #[expect(clippy::disallowed_methods, reason = "a client on the real network")]
    let mut stream = TcpStream::connect(address).expect("it listens there");
    stream.set_read_timeout(Some(PATIENCE)).expect("a time-out can be set");
    let mut said = String::new();
    stream.read_to_string(&mut said).expect("a text and an end");
    said
}

#[test]
fn protected_mode_refuses_other_hosts_in_the_words_of_redis() {
    let Some(own) = own_address() else { return };
    let folder = folder("protection");
    let elsewhere = |served: &Served| SocketAddr::new(own, served.address.port());
    let ours = Served::beside(&folder, &[]);
    let refusal = greeted(elsewhere(&ours));
    assert!(refusal.starts_with("-DENIED Redis is running in protected mode"), "{refusal}");
    asks(&mut ours.connect(), "CONFIG SET protected-mode no", "+OK\r\n");
    let mut served = ours.connect();
    #[expect(clippy::disallowed_methods, reason = "a client on the real network")]
    let mut other = TcpStream::connect(elsewhere(&ours)).expect("it listens there");
    asks(&mut other, "PING", "+PONG\r\n");
    // A password also admits other hosts.
    asks(&mut served, "CONFIG SET protected-mode yes requirepass secret", "+OK\r\n");
    #[expect(clippy::disallowed_methods, reason = "a client on the real network")]
    let mut other = TcpStream::connect(elsewhere(&ours)).expect("it listens there");
    asks(&mut other, "PING", "-NOAUTH Authentication required.\r\n");
    asks(&mut other, "AUTH secret", "+OK\r\n");
    match redis(&folder, &["--bind", "0.0.0.0"]) {
        Some(real) => assert_eq!(greeted(elsewhere(&real)), refusal),
        None => nothing_to_compare_with(),
    }
}

#[test]
fn it_listens_at_the_addresses_that_it_is_told_and_at_no_other() {
    let Some(own) = own_address() else { return };
    let served =
        Served::start(&folder("addresses"), &["--bind", "127.0.0.1", "--option", "protected-mode=no"]);
    asks(&mut served.connect(), "PING", "+PONG\r\n");
    #[expect(clippy::disallowed_methods, reason = "a client on the real network")]
    let refused = TcpStream::connect(SocketAddr::new(own, served.address.port()));
    assert_eq!(refused.err().map(|error| error.kind()), Some(ErrorKind::ConnectionRefused));
}
