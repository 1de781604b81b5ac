//! How a client gets to its server, and how it logs in there.

mod login;
#[path = "../support/mod.rs"]
mod support;
mod tls;
mod unix_socket;
