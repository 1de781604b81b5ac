//! One server's connections under TLS, and why they fail.

use std::io;
use std::sync::Arc;

use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{self, AlertDescription, ClientConfig};

use crate::env::BoxStream;
use crate::error::{Error, Result};

/// Secures connections to one server.
#[derive(Clone)]
pub(crate) struct Connector {
    config: Arc<ClientConfig>,
    server_name: ServerName<'static>,
    /// The name is that of all servers, and not that of the host.
    is_common: bool,
}

impl Connector {
    /// To the server that is called `name` in its certificate. `is_common` when all servers are
    /// called so.
    pub(super) fn new(config: Arc<ClientConfig>, name: &str, is_common: bool) -> Result<Self> {
        let server_name = ServerName::try_from(name.to_owned())
            .map_err(|error| Error::config(format!("`{name}` is no name of a TLS server: {error}")))?;
        Ok(Self { config, server_name, is_common })
    }

    /// The same to another host.
    pub(crate) fn to(&self, host: &str) -> Result<Self> {
        if self.is_common { Ok(self.clone()) } else { Self::new(self.config.clone(), host, false) }
    }

    /// The same stream under TLS, when both sides have accepted each other. Under TLS 1.3 a server
    /// judges the client's certificate only after that.
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

/// Why one side does not accept the other, when `error` says so. Asking again would bring the same.
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
