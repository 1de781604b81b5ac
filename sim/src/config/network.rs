//! The addresses that a node listens on. `timeout` is in seconds.

/// The sockets of a node (`NETWORK` in `redis.conf`).
#[derive(Debug, Clone)]
pub struct NetworkOptions {
    /// `port`: the TCP port to listen on. Default 6379.
    pub port: u16,
    /// `tcp-backlog`: the number of connections that may wait to be accepted.
    pub tcp_backlog: u32,
    /// `bind`: the addresses that the node listens on.
    pub bind: String,
    /// `bind-source-addr`: the source address of connections to a master; any if empty.
    pub bind_source_addr: String,
    /// `unixsocket`: the path of the socket file to listen at; empty for none.
    pub unixsocket: String,
    /// `unixsocketperm`: the permissions of that file, in octal digits; 0 to keep its initial
    /// permissions.
    pub unixsocketperm: u32,
    /// `protected-mode`: while the default user needs no password, only clients on the node's own
    /// host are served. It applies only if strangers may connect
    /// ([`Env::strangers`](crate::env::Env::strangers)).
    pub protected_mode: bool,
    /// `timeout` in seconds after which a silent client is disconnected; 0 for never.
    pub timeout: u64,
}

impl Default for NetworkOptions {
    fn default() -> NetworkOptions {
        NetworkOptions {
            port: 6379,
            tcp_backlog: 511,
            bind: "* -::*".into(),
            bind_source_addr: String::new(),
            unixsocket: String::new(),
            unixsocketperm: 0,
            protected_mode: true,
            timeout: 0,
        }
    }
}
