//! TLS connections to one server, and the reasons of their failures.

use std::io;
use std::sync::Arc;

use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{self, AlertDescription, ClientConfig};

use crate::env::BoxStream;
use crate::error::{Error, Result};

#[derive(Clone)]
pub(crate) struct Connector {
    config: Arc<ClientConfig>,
    server_name: ServerName<'static>,
    /// True if all servers share this name, so that the host does not matter.
    is_common: bool,
}

impl Connector {
    /// Makes a connector to the server whose certificate is for `name`. `is_common` is true if all
    /// servers use that name.
    pub(super) fn new(config: Arc<ClientConfig>, name: &str, is_common: bool) -> Result<Self> {
        let server_name = ServerName::try_from(name.to_owned())
            .map_err(|error| Error::config(format!("`{name}` is no name of a TLS server: {error}")))?;
        Ok(Self { config, server_name, is_common })
    }

    /// Returns a connector to another host with the same settings.
    pub(crate) fn to(&self, host: &str) -> Result<Self> {
        if self.is_common { Ok(self.clone()) } else { Self::new(self.config.clone(), host, false) }
    }

    /// Runs the handshake and returns the stream under TLS. Under TLS 1.3 the server checks the
    /// client's certificate only after the handshake.
    pub(crate) async fn secure(&self, stream: BoxStream) -> io::Result<BoxStream> {
        let connecting = TlsConnector::from(self.config.clone()).connect(self.server_name.clone(), stream);
        Ok(Box::new(connecting.await?))
    }
}

impl std::fmt::Debug for Connector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connector").field("server_name", &self.server_name).finish_non_exhaustive()
    }
}

/// Returns the reason for which one side does not accept the other, if that is what `error` means.
/// A retry would fail the same way.
pub(crate) fn refusal(error: &io::Error) -> Option<String> {
    let error = error.get_ref()?.downcast_ref::<rustls::Error>()?;
    Some(match error {
        rustls::Error::AlertReceived(AlertDescription::CertificateRequired) => {
            "the server asks for a client certificate".to_owned()
        }
        rustls::Error::AlertReceived(alert) => format!("the server refuses: {alert:?}"),
        rustls::Error::InvalidMessage(_) => format!("the server speaks no TLS on this port: {error}"),
        other => other.to_string(),
    })
}
