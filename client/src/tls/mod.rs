//! TLS between the client and its servers (feature `tls`).
//!
//! It lies between [`Env::dial`](crate::Env::dial) and the protocol, so that every connection has
//! it: those of requests and of subscriptions, and the ones that look for the master. The time by
//! which certificates are judged is the wall clock of the `Env`. Keys are drawn by the operating
//! system, never by [`Env::random`](crate::Env::random): a seed that anyone can know is no source
//! of secrets.

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
