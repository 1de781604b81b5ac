//! The TLS settings: the trusted authorities and the client's own certificate.

use std::sync::Arc;

use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use tokio_rustls::rustls::time_provider::TimeProvider;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use super::connector::Connector;
use crate::env::Env;
use crate::error::{Error, Result};

/// The TLS settings of connections to `rediss://` servers, for
/// [`Builder::tls`](crate::Builder::tls). Needs the feature `tls`.
///
/// By default a server must show a certificate for the host of its URL, signed by an authority that
/// this system trusts; hosted servers usually do. `SSL_CERT_FILE` and `SSL_CERT_DIR` replace the
/// system's authorities. A self-hosted server usually has its own authority and asks clients for a
/// certificate, as `redis-server` does unless `tls-auth-clients` says otherwise.
///
/// ```no_run
/// # async fn connect() -> Result<(), Box<dyn std::error::Error>> {
/// use lockstorm_client::{Client, Tls};
/// let tls = Tls::new()
///     .authority(std::fs::read("ca.crt")?)
///     .client_certificate(std::fs::read("client.crt")?, std::fs::read("client.key")?);
/// let client = Client::builder().endpoint("rediss://redis.internal:6379").tls(tls).connect().await?;
/// client.lock("stock").acquire().await?.release().await?;
/// # Ok(()) }
/// ```
#[derive(Clone, Default)]
#[must_use = "settings do nothing until they are given to a builder"]
pub struct Tls {
    authorities: Vec<Vec<u8>>,
    /// The chain of the client's certificate, and its key.
    client: Option<(Vec<u8>, Vec<u8>)>,
    server_name: Option<String>,
    whole: Option<Arc<ClientConfig>>,
}

impl Tls {
    /// Trusts the authorities of this system, and shows no certificate.
    pub fn new() -> Self {
        Self::default()
    }

    /// Trusts these authorities, in PEM, instead of those of the system. May be called several
    /// times.
    pub fn authority(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.authorities.push(pem.into());
        self
    }

    /// Shows this certificate to servers that ask for one. `chain_pem` has the certificate,
    /// followed by the intermediate certificates up to its authority. Both arguments are in PEM;
    /// the key is in PKCS #8, PKCS #1 or SEC 1.
    pub fn client_certificate(mut self, chain_pem: impl Into<Vec<u8>>, key_pem: impl Into<Vec<u8>>) -> Self {
        self.client = Some((chain_pem.into(), key_pem.into()));
        self
    }

    /// Sets the name that servers' certificates must be for, instead of the host in the URL. Needed
    /// behind a tunnel or load balancer.
    pub fn server_name(mut self, name: impl Into<String>) -> Self {
        self.server_name = Some(name.into());
        self
    }

    /// Uses a complete rustls configuration, for anything that has no setting here: another
    /// cryptography provider, the operating system's own verifier, keys in a security module.
    /// Authorities and certificates set elsewhere are then ignored.
    pub fn rustls(mut self, config: Arc<ClientConfig>) -> Self {
        self.whole = Some(config);
        self
    }

    /// Returns the connector to `host`. The session cache in `config` is shared by all hosts.
    pub(crate) fn connector(&self, host: &str, config: &Arc<ClientConfig>) -> Result<Connector> {
        let name = self.server_name.as_deref().unwrap_or(host);
        Connector::new(config.clone(), name, self.server_name.is_some())
    }

    /// Returns the settings as a rustls configuration.
    pub(crate) fn config(&self, env: &Arc<dyn Env>) -> Result<Arc<ClientConfig>> {
        self.whole.clone().map_or_else(|| self.make_config(env).map(Arc::new), Ok)
    }

    fn make_config(&self, env: &Arc<dyn Env>) -> Result<ClientConfig> {
        let provider = Arc::new(ring::default_provider());
        let config = ClientConfig::builder_with_details(provider, Arc::new(WallClock(env.clone())))
            .with_safe_default_protocol_versions()
            .map_err(|error| Error::config(format!("TLS does not work: {error}")))?
            .with_root_certificates(self.roots()?);
        let Some((chain, key)) = &self.client else { return Ok(config.with_no_client_auth()) };
        let chain = certificates(chain, "client certificate")?;
        // The error must not contain any byte of the key.
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|_| {
            Error::config("the key of the TLS client certificate holds no private key in PEM")
        })?;
        config.with_client_auth_cert(chain, key).map_err(|error| {
            Error::config(format!("the TLS client certificate and its key do not work: {error}"))
        })
    }

    fn roots(&self) -> Result<RootCertStore> {
        let mut roots = RootCertStore::empty();
        for pem in &self.authorities {
            for certificate in certificates(pem, "authority")? {
                roots
                    .add(certificate)
                    .map_err(|error| Error::config(format!("a TLS authority does not work: {error}")))?;
            }
        }
        if self.authorities.is_empty() {
            let found = rustls_native_certs::load_native_certs();
            // Some systems keep certificates that no verifier can parse; use the others.
            let (added, _unread) = roots.add_parsable_certificates(found.certs);
            if added == 0 {
                let why = found.errors.first().map(|error| format!(" ({error})")).unwrap_or_default();
                return Err(Error::config(format!(
                    "this system has no TLS authorities{why}: name one with `Tls::authority`"
                )));
            }
        }
        Ok(roots)
    }
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tls").field("server_name", &self.server_name).finish_non_exhaustive()
    }
}

fn certificates(pem: &[u8], what: &str) -> Result<Vec<CertificateDer<'static>>> {
    let all: std::result::Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let all = all.map_err(|error| Error::config(format!("the TLS {what} is no PEM: {error}")))?;
    if all.is_empty() {
        return Err(Error::config(format!("the TLS {what} holds no certificate in PEM")));
    }
    Ok(all)
}

/// The clock by which the validity of certificates is checked.
struct WallClock(Arc<dyn Env>);

impl TimeProvider for WallClock {
    fn current_time(&self) -> Option<UnixTime> {
        Some(UnixTime::since_unix_epoch(self.0.wall().0))
    }
}

impl std::fmt::Debug for WallClock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("WallClock")
    }
}
