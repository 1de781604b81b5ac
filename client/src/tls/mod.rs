//! TLS between the client and its servers (feature `tls`).
//!
//! The TLS layer lies between [`Env::dial`](crate::Env::dial) and the protocol, so every connection
//! uses it: for requests, for subscriptions, and to find the master. The validity of certificates
//! is checked against the wall clock of the `Env`. Keys are drawn by the operating system, never by
//! [`Env::random`](crate::Env::random): a seed that others may know is no source of secrets.

#[cfg(not(feature = "tls"))]
mod absent;
#[cfg(feature = "tls")]
mod connector;
#[cfg(feature = "tls")]
mod settings;

#[cfg(not(feature = "tls"))]
pub(crate) use absent::{Connector, refusal};
#[cfg(feature = "tls")]
pub(crate) use connector::{Connector, refusal};
#[cfg(feature = "tls")]
pub use settings::Tls;
