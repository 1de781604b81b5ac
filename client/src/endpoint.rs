//! The address of a server and its login.

use std::path::PathBuf;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use redis::{ConnectionAddr, ConnectionInfo, IntoConnectionInfo, RedisConnectionInfo};

use crate::error::{Error, ErrorKind, Result};
use crate::tls::Connector;

/// A user and a password, as returned by the provider of
/// [`Builder::credentials`](crate::Builder::credentials).
#[derive(Clone)]
pub struct Credentials {
    username: Option<String>,
    password: String,
}

impl Credentials {
    /// Credentials of a named ACL user.
    pub fn new(username: impl Into<String>, password: impl Into<String>) -> Self {
        Self { username: Some(username.into()), password: password.into() }
    }

    /// Credentials of the user `default`, as set by `requirepass`.
    pub fn password(password: impl Into<String>) -> Self {
        Self { username: None, password: password.into() }
    }

    #[cfg(test)]
    pub(crate) fn user(&self) -> Option<&str> {
        self.username.as_deref()
    }
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Credentials").field("username", &self.username).finish_non_exhaustive()
    }
}

/// The error type of the application's own code.
pub(crate) type AnyError = Box<dyn std::error::Error + Send + Sync>;

/// Calls the application for the user and the password of each new connection.
#[derive(Clone)]
pub(crate) struct Provider(Arc<dyn Fn() -> BoxFuture<'static, Result<Credentials, AnyError>> + Send + Sync>);

impl Provider {
    pub(crate) fn new<F, R>(ask: F) -> Self
    where
        F: Fn() -> R + Send + Sync + 'static,
        R: Future<Output = Result<Credentials, AnyError>> + Send + 'static,
    {
        Self(Arc::new(move || Box::pin(ask())))
    }
}

impl std::fmt::Debug for Provider {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Provider")
    }
}

/// The address at which a server listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    Tcp {
        host: String,
        port: u16,
    },
    /// A Unix socket on this machine.
    Unix(PathBuf),
}

/// The TLS setting of the connections to a server.
#[derive(Debug, Clone)]
pub(crate) enum Security {
    None,
    /// TLS with the client's settings, which are not known yet. No connection is made until they
    /// are.
    Wanted,
    #[cfg_attr(not(feature = "tls"), expect(dead_code, reason = "there is no connector"))]
    By(Connector),
}

/// The address of a server and its login.
#[derive(Debug, Clone)]
pub(crate) struct Endpoint {
    pub(crate) place: Place,
    pub(crate) security: Security,
    login: RedisConnectionInfo,
    /// Provides the user and the password, instead of `login`.
    provider: Option<Provider>,
}

impl Endpoint {
    /// Returns true if both have the same host and port, or the same socket path. Compares them as
    /// written, without resolving names.
    pub(crate) fn is_same_place(&self, other: &Self) -> bool {
        self.place == other.place
    }

    /// # Errors
    /// When the URL is not of a server that this client supports.
    pub(crate) fn parse(url: &str) -> Result<Self> {
        // The URL may hold a password: do not repeat it in errors.
        let bad = |error: &str| Error::config(format!("bad redis URL: {error}"));
        let mut parsed = redis::parse_redis_url(url).ok_or_else(|| bad("it does not parse"))?;
        let parameters: &[_] = match parsed.scheme() {
            "redis" | "rediss" | "valkey" | "valkeys" => &["protocol"],
            _ => &["protocol", "db", "user", "pass"],
        };
        for (name, _) in parsed.query_pairs() {
            // Refuse unknown parameters: a setting that has no effect would look like one that
            // works.
            if !parameters.contains(&&*name) {
                let known = parameters.join("`, `");
                return Err(Error::config(format!(
                    "unknown parameter `{name}` in a redis URL: there is only `{known}`"
                )));
            }
        }
        if parsed.fragment().is_some() {
            return Err(Error::config("a redis URL has no part behind `#`"));
        }
        // TLS depends on the features of this crate, not of `redis`. So parse the URL without its
        // TLS scheme.
        let secure = matches!(parsed.scheme(), "rediss" | "valkeys");
        if secure {
            parsed.set_scheme("redis").map_err(|()| bad("its scheme does not fit"))?;
        }
        let info = parsed.into_connection_info().map_err(|error| bad(&error.to_string()))?;
        let endpoint = Self::from_info(&info)?;
        if secure { endpoint.secured() } else { Ok(endpoint) }
    }

    /// # Errors
    /// As [`Endpoint::parse`].
    pub(crate) fn from_info(info: &ConnectionInfo) -> Result<Self> {
        let at = |place| Self {
            place,
            security: Security::None,
            login: info.redis_settings().clone(),
            provider: None,
        };
        let tcp = |host: &String, port: &u16| at(Place::Tcp { host: host.clone(), port: *port });
        match info.addr() {
            ConnectionAddr::Tcp(host, port) => Ok(tcp(host, port)),
            ConnectionAddr::TcpTls { host, port, insecure: false, tls_params: None } => {
                tcp(host, port).secured()
            }
            ConnectionAddr::TcpTls { .. } => Err(Error::config(
                "how TLS is to be done is said with `Builder::tls`, and not in a ConnectionInfo",
            )),
            ConnectionAddr::Unix(path) => Ok(at(Place::Unix(path.clone()))),
            _ => Err(Error::config("only redis://, rediss:// and redis+unix:// are supported")),
        }
    }

    /// Returns true if the endpoint has this host and port. Compares the host as written.
    pub(crate) fn is_at(&self, host: &str, port: u16) -> bool {
        matches!(&self.place, Place::Tcp { host: own, port: own_port } if own == host && *own_port == port)
    }

    /// Returns an endpoint at another host and port with the same login and TLS settings.
    ///
    /// # Errors
    /// When `host` cannot be the name of a TLS server.
    pub(crate) fn at(&self, host: &str, port: u16) -> Result<Self> {
        let security = match &self.security {
            Security::By(connector) => Security::By(connector.to(host)?),
            other => other.clone(),
        };
        let place = Place::Tcp { host: host.to_owned(), port };
        Ok(Self { place, security, login: self.login.clone(), provider: self.provider.clone() })
    }

    /// Replaces the login and the database.
    pub(crate) fn with_login(mut self, credentials: Option<Credentials>, db: i64) -> Self {
        self.login = RedisConnectionInfo::default().set_db(db);
        if let Some(Credentials { username, password }) = credentials {
            self.login = self.login.set_password(password);
            if let Some(username) = username {
                self.login = self.login.set_username(username);
            }
        }
        self
    }

    /// Sets if connections use TLS; its settings are added later.
    pub(crate) fn with_tls(self, tls: bool) -> Result<Self> {
        if tls { self.secured() } else { Ok(Self { security: Security::None, ..self }) }
    }

    /// Returns the host, or `None` for a Unix socket.
    pub(crate) fn host(&self) -> Option<&str> {
        match &self.place {
            Place::Tcp { host, .. } => Some(host),
            Place::Unix(_) => None,
        }
    }

    /// Returns the user and password of the login, or `None` if it has no password.
    pub(crate) fn credentials(&self) -> Option<Credentials> {
        let (username, password) = (self.login.username(), self.login.password());
        let username = username.map(ToOwned::to_owned);
        password.map(|password| Credentials { username, password: password.to_owned() })
    }

    fn secured(self) -> Result<Self> {
        if cfg!(not(feature = "tls")) {
            return Err(Error::config("rediss:// needs the feature `tls` of lockstorm-client"));
        }
        Ok(Self { security: Security::Wanted, ..self })
    }

    /// Sets `provider` as the source of the user and the password. An error if the URL has a login
    /// as well.
    pub(crate) fn with_provider(&mut self, provider: &Provider) -> Result<()> {
        if self.login.username().is_some() || self.login.password().is_some() {
            return Err(Error::config(format!(
                "{self} comes with a login, and there is a provider of credentials"
            )));
        }
        self.provider = Some(provider.clone());
        Ok(())
    }

    pub(crate) fn db(&self) -> i64 {
        self.login.db()
    }

    /// Returns true if a provider exists, so that a new login may succeed where this one was
    /// refused.
    pub(crate) fn has_provider(&self) -> bool {
        self.provider.is_some()
    }

    /// Returns the login for a new connection; asks the provider if there is one.
    pub(crate) async fn login(&self) -> Result<RedisConnectionInfo> {
        let login = self.login.clone().set_skip_set_lib_name();
        let Some(provider) = &self.provider else { return Ok(login) };
        let Credentials { username, password } = (provider.0)().await.map_err(|error| {
            let (endpoint, reason) = (self.to_string(), format!("no credentials: {error}"));
            Error::definite(ErrorKind::Connect { endpoint, reason }).caused_by_any(error)
        })?;
        let login = login.set_password(password);
        Ok(match username {
            Some(username) => login.set_username(username),
            None => login,
        })
    }
}

impl std::fmt::Display for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.place {
            Place::Tcp { host, port } => write!(f, "{host}:{port}"),
            Place::Unix(path) => write!(f, "{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls() {
        let parsed = Endpoint::parse("redis://user:secret@10.0.0.1:7000/3").unwrap();
        assert_eq!((parsed.to_string().as_str(), parsed.db()), ("10.0.0.1:7000", 3));
        assert_eq!((parsed.login.username(), parsed.host()), (Some("user"), Some("10.0.0.1")));
        let parsed = Endpoint::parse("redis+unix:///run/redis.sock?db=3&user=clerk&pass=secret").unwrap();
        assert_eq!((parsed.to_string().as_str(), parsed.db()), ("/run/redis.sock", 3));
        assert_eq!((parsed.login.username(), parsed.host()), (Some("clerk"), None));
        for bad in ["", "10.0.0.1", "http://10.0.0.1", "redis+unix://"] {
            assert!(Endpoint::parse(bad).unwrap_err().is_definite(), "{bad}");
        }
    }

    #[test]
    fn a_secure_url_needs_the_feature() {
        let parsed = Endpoint::parse("rediss://user:secret@10.0.0.1/3");
        if cfg!(feature = "tls") {
            let parsed = parsed.unwrap();
            assert!(matches!(parsed.security, Security::Wanted));
            assert_eq!((parsed.to_string().as_str(), parsed.db()), ("10.0.0.1:6379", 3));
        } else {
            let error = parsed.unwrap_err();
            assert!(error.is_definite() && error.to_string().contains("the feature `tls`"), "{error}");
        }
    }

    /// The parameter in `redis://host?timeout=5` was ignored silently.
    #[test]
    fn unknown_url_parameters_were_accepted() {
        Endpoint::parse("redis://10.0.0.1?protocol=resp3").unwrap();
        for (bad, named) in [
            ("redis://10.0.0.1?timeout=5", "`timeout`"),
            ("redis://10.0.0.1/3?protocol=resp2&ssl=secret", "`ssl`"),
            ("redis://10.0.0.1#insecure", "`#`"),
            ("redis://10.0.0.1?db=1", "`db`"),
            ("redis+unix:///run/redis.sock?pass=secret&timeout=5", "`timeout`"),
        ] {
            let error = Endpoint::parse(bad).unwrap_err().to_string();
            assert!(error.contains(named) && !error.contains("secret"), "{bad}: {error}");
        }
    }

    #[test]
    fn connection_infos() {
        let tls = |insecure| ConnectionAddr::TcpTls {
            host: "10.0.0.1".to_owned(),
            port: 6379,
            insecure,
            tls_params: None,
        };
        let info: ConnectionInfo = "redis://user:secret@10.0.0.1:7000/3".parse().unwrap();
        let parsed = Endpoint::from_info(&info).unwrap();
        assert_eq!((parsed.to_string().as_str(), parsed.db()), ("10.0.0.1:7000", 3));
        let secure = Endpoint::from_info(&info.clone().set_addr(tls(false)));
        assert_eq!(secure.is_ok(), cfg!(feature = "tls"));
        let error = Endpoint::from_info(&info.set_addr(tls(true))).unwrap_err();
        assert!(error.to_string().contains("Builder::tls"), "{error}");
    }

    #[test]
    fn no_debug_output_has_a_password() {
        let provider = Provider::new(|| async { Ok(Credentials::password("secret")) });
        let mut endpoint = Endpoint::parse("redis://10.0.0.1").unwrap();
        endpoint.with_provider(&provider).unwrap();
        let shown = format!(
            "{:?} {:?} {endpoint:?}",
            Credentials::new("user", "secret"),
            Endpoint::parse("redis://:secret@10.0.0.1").unwrap(),
        );
        assert!(!shown.contains("secret"), "{shown}");
    }
}
