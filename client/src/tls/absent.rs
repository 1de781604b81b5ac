//! In place of a connector, where the feature `tls` is off: there is none.

use std::io;

use crate::env::BoxStream;
use crate::error::Result;

/// See the module of the same name as its feature.
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

/// No stream breaks for a reason of TLS.
pub(crate) fn refusal(_error: &io::Error) -> Option<String> {
    None
}
