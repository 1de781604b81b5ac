//! Connections of a client to its server, and logins.

mod login;
mod tls;
mod unix_socket;
