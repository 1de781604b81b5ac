//! Replaces the connector if the feature `tls` is off: no value of its type exists.

use std::io;

use crate::env::BoxStream;
use crate::error::Result;

/// Stands for `connector::Connector`.
#[derive(Debug, Clone)]
pub(crate) enum Connector {}

impl Connector {
    pub(crate) fn to(&self, _host: &str) -> Result<Self> {
        match *self {}
    }

    #[expect(clippy::unused_async, reason = "the other one has a handshake to wait for")]
    pub(crate) async fn secure(&self, _stream: BoxStream) -> io::Result<BoxStream> {
        match *self {}
    }
}

/// Returns `None`: without TLS no stream breaks because of it.
pub(crate) fn refusal(_error: &io::Error) -> Option<String> {
    None
}
