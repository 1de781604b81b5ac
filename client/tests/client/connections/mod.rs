//! How a client gets to its server, and how it logs in there.

mod login;
mod tls;
mod unix_socket;
