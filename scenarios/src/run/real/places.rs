//! The addresses of the processes of a group: nodes that Sentinels watch, Sentinels, and nodes of a
//! cluster, which report each other's addresses to one another and to clients.
//!
//! Each process has a loopback address of its own, to which it binds its connections. Every other
//! process, and every client, reaches it at a door: a listener of this program on that address,
//! which knows by the address of a connection which host has opened it, and carries it over the
//! link between the two. The process listens on another port, and announces its door.

use std::{
    cell::RefCell,
    collections::BTreeMap,
    io,
    net::{IpAddr, SocketAddr, TcpListener},
};

use lockstorm_world::{HostCtx, real_address};

use super::PORT;
use crate::{file::plan::Plan, judge::history::HostKind};

/// The clients' port of a Sentinel.
pub(in crate::run) const SENTINEL_PORT: u16 = 26379;

/// The port of the bus of a cluster. No file names it; it must differ from those of clients and
/// operators.
pub(super) const BUS: u16 = 26380;

/// The addresses of the processes of a group; empty without one.
#[derive(Default)]
pub(in crate::run) struct Places {
    doors: BTreeMap<(String, u16), SocketAddr>,
    /// The listeners of each host that are not yet open to connections.
    listeners: RefCell<BTreeMap<String, Vec<(u16, TcpListener)>>>,
    lacks: Option<String>,
}

impl Places {
    /// Chooses the addresses of a plan's processes, if they form a group.
    pub(in crate::run) fn of(plan: &Plan) -> Places {
        let (mut places, in_cluster) = (Places::default(), plan.scenario.is_cluster());
        if !is_group(plan) {
            return places;
        }
        for (at, host) in plan.hosts.iter().enumerate() {
            let ports: &[u16] = match host.software.kind() {
                HostKind::Node if in_cluster => &[PORT, BUS],
                HostKind::Node => &[PORT],
                HostKind::Sentinel => &[SENTINEL_PORT],
                _ => continue,
            };
            for port in ports {
                if let Err(error) = places.add(&host.name, *port, real_address(at)) {
                    let why = format!("{} has no address of its own: {error}", host.name);
                    places.lacks.get_or_insert(why);
                }
            }
        }
        places
    }

    fn add(&mut self, host: &str, port: u16, ip: IpAddr) -> io::Result<()> {
        let listener = TcpListener::bind((ip, 0))?;
        self.doors.insert((host.to_owned(), port), listener.local_addr()?);
        self.listeners.get_mut().entry(host.to_owned()).or_default().push((port, listener));
        Ok(())
    }

    /// Returns the reason why a process has no address, if one has none.
    pub(super) fn lack(&self) -> Option<String> {
        self.lacks.clone()
    }

    /// Returns the address at which others reach a port of a host; `None` outside of groups.
    pub(super) fn door(&self, host: &str, port: u16) -> Option<SocketAddr> {
        self.doors.get(&(host.to_owned(), port)).copied()
    }

    /// Returns the address of a host; `None` outside of groups.
    pub(super) fn ip(&self, host: &str) -> Option<IpAddr> {
        let door = self.doors.iter().find(|((of, _), _)| of == host);
        door.map(|(_, address)| address.ip())
    }

    /// Opens the doors of a host to others, once.
    pub(super) fn open(&self, ctx: &HostCtx) -> io::Result<()> {
        let listeners = self.listeners.borrow_mut().remove(ctx.name()).unwrap_or_default();
        listeners.into_iter().try_for_each(|(port, listener)| ctx.open_door(port, listener))
    }

    /// Replaces the addresses in a message of a Sentinel by the names and ports of the hosts:
    /// `127.1.0.1 40123` and `127.1.0.1:40123`.
    pub(super) fn named(&self, message: &str) -> String {
        let known = |ip: &str, port: &str| -> Option<(&str, u16)> {
            let address = SocketAddr::new(ip.parse().ok()?, port.parse().ok()?);
            let door = self.doors.iter().find(|(_, door)| **door == address);
            door.map(|((host, port), _)| (host.as_str(), *port))
        };
        let (mut words, mut named) = (message.split(' ').peekable(), Vec::new());
        while let Some(word) = words.next() {
            let pair = words.peek().and_then(|next| known(word, next));
            let joined = || word.rsplit_once(':').and_then(|(ip, port)| known(ip, port));
            if let Some((host, port)) = pair {
                words.next();
                named.push(format!("{host} {port}"));
            } else if let Some((host, port)) = joined() {
                named.push(format!("{host}:{port}"));
            } else {
                named.push(word.to_owned());
            }
        }
        named.join(" ")
    }
}

/// Returns true if processes of a plan report the addresses of others.
pub(super) fn is_group(plan: &Plan) -> bool {
    !plan.scenario.sentinel.is_empty() || plan.scenario.is_cluster()
}

#[cfg(test)]
impl Places {
    /// Returns places with these doors, which are not open.
    pub(super) fn with(doors: &[(&str, u16, &str)]) -> Places {
        let door = |(host, port, address): &(&str, u16, &str)| {
            (((*host).to_owned(), *port), address.parse().expect("an address"))
        };
        Places { doors: doors.iter().map(door).collect(), ..Places::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The messages are those of a Valkey 9.1 Sentinel.
    #[test]
    fn a_sentinel_s_message_names_hosts_and_not_addresses() {
        let places = Places::with(&[("m", PORT, "127.1.0.1:7001"), ("r", PORT, "127.1.0.2:7002")]);
        for (said, named) in [
            ("m 127.1.0.1 7001 127.1.0.2 7002", "m m 6379 r 6379"),
            ("slave 127.1.0.2:7002 127.1.0.2 7002 @ m 127.1.0.1 7001", "slave r:6379 r 6379 @ m m 6379"),
            ("slave 127.1.0.2:7002 127.1.0.2 7002 @ m 127.1.0.1 70011", {
                "slave r:6379 r 6379 @ m 127.1.0.1 70011"
            }),
            ("8428d194c7ad856eec5f96513f737a11e6004775 3", "8428d194c7ad856eec5f96513f737a11e6004775 3"),
            ("", ""),
        ] {
            assert_eq!(places.named(said), named);
        }
    }
}
