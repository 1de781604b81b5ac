//! The ways in which an application names a deployment: one server, the Sentinels of a master, or
//! nodes of a cluster.

use redis::ConnectionInfo;

use crate::endpoint::{Credentials, Endpoint, Provider};
use crate::error::{Error, Result};

/// The address of a server, for [`Client::connect`](crate::Client::connect) and
/// [`Builder::endpoint`](crate::Builder::endpoint).
///
/// It is made from a URL: `redis://[user[:password]@]host[:port][/db]`, `rediss://..` for TLS
/// (feature `tls`), or `redis+unix:///path[?db=..&user=..&pass=..]`. It can also be made from a
/// [`redis::ConnectionInfo`], whose TCP settings and library name are ignored.
///
/// Two forms of URL name a deployment of several servers. With `rediss` in place of `redis` they
/// use TLS:
///
/// * `redis+sentinel://[user[:password]@]host[:port][,host[:port]..]/name[/db][?sentinel_username=..&sentinel_password=..]`
///   names the Sentinels (default port 26379) of the master `name`. User and password are for the
///   master and its replicas; the login of the Sentinels is given by the parameters after the `?`.
///   [`Sentinels`] does the same, with more settings.
/// * `redis+cluster://[user[:password]@]host[:port][,host[:port]..][/]` names some nodes of a Redis
///   Cluster, through which the client finds the others.
///   [`Builder::cluster`](crate::Builder::cluster) does the same for other forms of address.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = lockstorm_sim::TestServer::start().await.expect("a free port");
/// # let url = server.url();
/// use redis::{ConnectionInfo, RedisConnectionInfo};
/// let info: ConnectionInfo = url.parse()?; // such as redis://127.0.0.1:6379
/// let info = info.set_redis_settings(RedisConnectionInfo::default().set_db(3));
/// let client = lockstorm_client::Client::connect(info).await?;
/// # client.lock("stock").acquire().await?.release().await?;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Address(Written);

#[derive(Clone)]
enum Written {
    Url(String),
    Info(Box<ConnectionInfo>),
    Sentinels(Box<Sentinels>),
    Endpoint(Box<Endpoint>),
}

impl From<&str> for Address {
    fn from(url: &str) -> Self {
        Self(Written::Url(url.to_owned()))
    }
}

impl From<&String> for Address {
    fn from(url: &String) -> Self {
        Self(Written::Url(url.clone()))
    }
}

impl From<String> for Address {
    fn from(url: String) -> Self {
        Self(Written::Url(url))
    }
}

impl From<ConnectionInfo> for Address {
    fn from(info: ConnectionInfo) -> Self {
        Self(Written::Info(Box::new(info)))
    }
}

impl std::fmt::Debug for Address {
    /// Leaves out the contents, which may include a password.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Address").finish_non_exhaustive()
    }
}

impl From<Sentinels> for Address {
    fn from(sentinels: Sentinels) -> Self {
        Self(Written::Sentinels(Box::new(sentinels)))
    }
}

/// The Sentinels of a master, which know its current address. Can be used as an [`Address`].
///
/// ```no_run
/// # async fn connect() -> lockstorm_client::Result<()> {
/// use lockstorm_client::{Client, Credentials, Sentinels};
/// let sentinels = Sentinels::of("mymaster")
///     .at("redis://watcher:secret@10.0.0.1:26379") // each with its own login
///     .at("redis://watcher:secret@10.0.0.2:26379")
///     .at("redis://watcher:secret@10.0.0.3:26379")
///     .credentials(Credentials::new("clerk", "other secret")) // of the master and its replicas
///     .database(3);
/// let client = Client::connect(sentinels).await?;
/// # Ok(()) }
/// ```
///
/// A user of the Sentinels needs `+sentinel|master` and `+sentinel|get-master-addr-by-name`. With
/// `+subscribe` and `&+switch-master` the client is notified of a failover instead of having to
/// poll. With `+sentinel|sentinels` it finds Sentinels that were not named. With `+sentinel|myid`
/// it recognizes a Sentinel that has two addresses.
#[derive(Clone)]
#[must_use = "it does nothing until a client is made of it"]
pub struct Sentinels {
    master: String,
    at: Vec<Address>,
    credentials: Option<Credentials>,
    database: i64,
    tls: bool,
}

impl Sentinels {
    /// Names the master as the Sentinels do.
    pub fn of(master: impl Into<String>) -> Self {
        Self { master: master.into(), at: Vec::new(), credentials: None, database: 0, tls: false }
    }

    /// Adds a Sentinel with its own login. State the port unless it is 6379. The client finds
    /// further Sentinels through those that answer.
    pub fn at(mut self, sentinel: impl Into<Address>) -> Self {
        self.at.push(sentinel.into());
        self
    }

    /// Sets the login of the master and its replicas. For credentials that change use
    /// [`Builder::credentials`](crate::Builder::credentials).
    pub fn credentials(mut self, credentials: Credentials) -> Self {
        self.credentials = Some(credentials);
        self
    }

    /// Sets the number of the database. Default 0.
    pub fn database(mut self, number: u32) -> Self {
        self.database = number.into();
        self
    }

    /// Uses TLS for connections to the master and its replicas. The URL of each Sentinel decides
    /// for the connection to it.
    pub fn tls(mut self) -> Self {
        self.tls = true;
        self
    }
}

impl std::fmt::Debug for Sentinels {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sentinels").field("master", &self.master).finish_non_exhaustive()
    }
}

/// The kind of deployment, which determines what the endpoints are.
#[derive(Debug, Clone, Default)]
pub(crate) enum Topology {
    /// The endpoints are all servers: a single one, or a replicated set.
    #[default]
    Set,
    /// The endpoints are Sentinels.
    Sentinel {
        /// The name of the master in the Sentinels.
        master: String,
        /// An endpoint with the login of the master and its replicas; its host is replaced.
        nodes: Box<Endpoint>,
    },
    /// The endpoints are some nodes of a cluster.
    Cluster,
}

/// Returns the endpoints that `addresses` name, and the kind of deployment.
pub(crate) fn read(addresses: Vec<Address>, is_cluster: bool) -> Result<(Vec<Endpoint>, Topology)> {
    let several = addresses.len() > 1;
    let (mut endpoints, mut clusters, mut singles) = (Vec::new(), 0, 0);
    for Address(written) in addresses {
        let sentinels = match written {
            Written::Sentinels(sentinels) => Some(*sentinels),
            Written::Endpoint(endpoint) => {
                endpoints.push(*endpoint);
                singles += 1;
                None
            }
            Written::Info(info) => {
                endpoints.push(Endpoint::from_info(&info)?);
                singles += 1;
                None
            }
            Written::Url(url) => match Deployment::split(&url)? {
                Some(parts) if parts.sentinel => Some(parts.sentinels()?),
                Some(parts) => {
                    endpoints.extend(parts.nodes()?);
                    clusters += 1;
                    None
                }
                None => {
                    endpoints.push(Endpoint::parse(&url)?);
                    singles += 1;
                    None
                }
            },
        };
        if let Some(sentinels) = sentinels {
            if several || is_cluster {
                return Err(Error::config(
                    "Sentinels name one deployment, beside which there is no other endpoint",
                ));
            }
            return of_sentinels(sentinels);
        }
    }
    if clusters > 0 && singles > 0 && !is_cluster {
        return Err(Error::config("nodes of a cluster and other servers are no one deployment"));
    }
    let is_cluster = is_cluster || clusters > 0;
    if is_cluster && endpoints.iter().any(|endpoint| endpoint.db() != 0) {
        return Err(Error::config("a cluster has database 0 only"));
    }
    if is_cluster && endpoints.iter().any(|endpoint| endpoint.host().is_none()) {
        return Err(Error::config("nodes of a cluster are reached by TCP, and not by a Unix socket"));
    }
    Ok((endpoints, if is_cluster { Topology::Cluster } else { Topology::Set }))
}

fn of_sentinels(sentinels: Sentinels) -> Result<(Vec<Endpoint>, Topology)> {
    let Sentinels { master, at, credentials, database, tls } = sentinels;
    if master.is_empty() {
        return Err(Error::config("the master that Sentinels are to be asked for has no name"));
    }
    let (endpoints, topology) = read(at, false)?;
    let (Topology::Set, Some(first)) = (topology, endpoints.first()) else {
        return Err(Error::config("no Sentinel is named, or something else in its place"));
    };
    if endpoints.iter().any(|endpoint| endpoint.db() != 0) {
        return Err(Error::config("Sentinels have no database: that of the master is named by itself"));
    }
    if endpoints.iter().any(|endpoint| endpoint.host().is_none()) {
        return Err(Error::config("Sentinels are reached by TCP, and not by a Unix socket"));
    }
    // Only the login counts: the host is replaced at each use.
    let nodes = Box::new(first.clone().with_login(credentials, database).with_tls(tls)?);
    Ok((endpoints, Topology::Sentinel { master, nodes }))
}

impl Topology {
    /// Sets `provider` as the source of the credentials for the servers that hold the keys.
    pub(crate) fn with_provider(&mut self, endpoints: &mut [Endpoint], provider: &Provider) -> Result<()> {
        match self {
            Self::Set | Self::Cluster => {
                endpoints.iter_mut().try_for_each(|endpoint| endpoint.with_provider(provider))
            }
            Self::Sentinel { nodes, .. } => nodes.with_provider(provider),
        }
    }
}

/// A URL with several hosts, split into its parts.
struct Deployment<'a> {
    sentinel: bool,
    /// The scheme of a URL for each single server.
    scheme: &'a str,
    /// Includes the `@`.
    login: &'a str,
    hosts: Vec<&'a str>,
    path: Vec<&'a str>,
    parameters: Vec<(String, String)>,
}

impl<'a> Deployment<'a> {
    /// Returns `None` for a URL of one server.
    fn split(url: &'a str) -> Result<Option<Self>> {
        let Some((scheme, rest)) = url.split_once("://") else { return Ok(None) };
        let (scheme, sentinel) = match scheme {
            "redis+sentinel" | "valkey+sentinel" => ("redis", true),
            "rediss+sentinel" | "valkeys+sentinel" => ("rediss", true),
            "redis+cluster" | "valkey+cluster" => ("redis", false),
            "rediss+cluster" | "valkeys+cluster" => ("rediss", false),
            _ => return Ok(None),
        };
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        if rest.contains('#') || query.contains('#') {
            return Err(Error::config("a redis URL has no part behind `#`"));
        }
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let at = authority.rfind('@').map_or(0, |at| at + 1);
        let (login, hosts) = authority.split_at(at);
        let hosts: Vec<_> = hosts.split(',').collect();
        if hosts.contains(&"") {
            return Err(Error::config("bad redis URL: a host is empty"));
        }
        let path: Vec<_> = path.split('/').filter(|part| !part.is_empty()).collect();
        let allowed: &[&str] = if sentinel { &["sentinel_username", "sentinel_password"] } else { &[] };
        let parameters = pairs(query)?;
        if let Some((name, _)) = parameters.iter().find(|(name, _)| !allowed.contains(&&**name)) {
            let known = if sentinel {
                "there is only `sentinel_username`, `sentinel_password`"
            } else {
                "there is none"
            };
            return Err(Error::config(format!("unknown parameter `{name}` in a redis URL: {known}")));
        }
        Ok(Some(Self { sentinel, scheme, login, hosts, path, parameters }))
    }

    fn sentinels(&self) -> Result<Sentinels> {
        let (master, database) = match self.path.as_slice() {
            [master] => (*master, 0),
            [master, database] => {
                let bad = |_| Error::config("bad redis URL: the database behind the master is no number");
                (*master, database.parse().map_err(bad)?)
            }
            _ => {
                return Err(Error::config(
                    "bad redis URL: behind the Sentinels stands /master or /master/database",
                ));
            }
        };
        let master = pairs(&format!("name={}", master.replace('+', "%2B").replace('&', "%26")))?;
        let master = master.into_iter().next().map(|(_, name)| name).unwrap_or_default();
        let value =
            |of: &str| self.parameters.iter().find(|(name, _)| name == of).map(|(_, value)| value.clone());
        let login = match (value("sentinel_username"), value("sentinel_password")) {
            (Some(user), Some(password)) => Some(Credentials::new(user, password)),
            (None, Some(password)) => Some(Credentials::password(password)),
            (None, None) => None,
            (Some(_), None) => {
                return Err(Error::config("a `sentinel_username` comes with a `sentinel_password`"));
            }
        };
        let mut sentinels = Sentinels::of(master).database(database);
        for host in &self.hosts {
            let host = if has_port(host) { (*host).to_owned() } else { format!("{host}:{SENTINEL_PORT}") };
            let info = Endpoint::parse(&format!("{}://{host}", self.scheme))?;
            sentinels = sentinels.at(Address(Written::Endpoint(Box::new(info.with_login(login.clone(), 0)))));
        }
        // Only the login counts, so any host will do.
        let nodes = Endpoint::parse(&format!("redis://{}localhost", self.login))?;
        if let Some(credentials) = nodes.credentials() {
            sentinels = sentinels.credentials(credentials);
        }
        Ok(if self.scheme == "rediss" { sentinels.tls() } else { sentinels })
    }

    fn nodes(&self) -> Result<Vec<Endpoint>> {
        if !matches!(self.path.as_slice(), [] | ["0"]) {
            return Err(Error::config("a cluster has database 0 only"));
        }
        let each = self.hosts.iter().map(|host| format!("{}://{}{host}", self.scheme, self.login));
        each.map(|url| Endpoint::parse(&url)).collect()
    }
}

/// The default port of Sentinels.
const SENTINEL_PORT: u16 = 26379;

/// Returns true if a port follows the host, which may be an IPv6 address in brackets.
fn has_port(host: &str) -> bool {
    host.rsplit_once(':').is_some_and(|(before, _)| !before.starts_with('[') || before.ends_with(']'))
}

/// Decodes the parameters of a URL.
fn pairs(query: &str) -> Result<Vec<(String, String)>> {
    let url = redis::parse_redis_url(&format!("redis://localhost?{query}"));
    let url = url.ok_or_else(|| Error::config("bad redis URL: its parameters do not parse"))?;
    Ok(url.query_pairs().map(|(name, value)| (name.into_owned(), value.into_owned())).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_url(url: &str) -> Result<(Vec<Endpoint>, Topology)> {
        read(vec![url.into()], false)
    }

    fn shown(endpoints: &[Endpoint]) -> String {
        endpoints.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_printed_address_tells_no_password() {
        let sentinels = Sentinels::of("m").at("redis://watcher:secret@h1");
        for address in [Address::from("redis://clerk:secret@h1"), Address::from(sentinels)] {
            assert_eq!(format!("{address:?}"), "Address { .. }");
        }
    }

    #[test]
    fn urls_of_sentinels() {
        for (url, at, name, db, login, sentinel_login) in [
            (
                "redis+sentinel://h1,h2:7000,h3/mymaster",
                "h1:26379 h2:7000 h3:26379",
                "mymaster",
                0,
                None,
                None,
            ),
            (
                "redis+sentinel://clerk:a%40b@h1/my%20master/3",
                "h1:26379",
                "my master",
                3,
                Some("clerk"),
                None,
            ),
            ("redis+sentinel://[::1],[::2]:7/a+b", "::1:26379 ::2:7", "a+b", 0, None, None),
            (
                "redis+sentinel://clerk:x@h1/m?sentinel_username=watcher&sentinel_password=y%26z",
                "h1:26379",
                "m",
                0,
                Some("clerk"),
                Some("watcher"),
            ),
        ] {
            let (endpoints, topology) = read_url(url).unwrap();
            let Topology::Sentinel { master, nodes } = topology else { panic!("{url}: {topology:?}") };
            assert_eq!(
                (shown(&endpoints).replace(['[', ']'], "").as_str(), master.as_str()),
                (at, name),
                "{url}"
            );
            assert_eq!(nodes.db(), db, "{url}");
            let user = |endpoint: &Endpoint| {
                endpoint.credentials().and_then(|login| login.user().map(str::to_owned))
            };
            assert_eq!(user(&nodes).as_deref(), login, "{url}");
            assert_eq!(user(&endpoints[0]).as_deref(), sentinel_login, "{url}");
        }
    }

    /// The Sentinels may use TLS while their nodes do not, and vice versa.
    #[cfg(feature = "tls")]
    #[test]
    fn sentinels_and_their_nodes_are_secured_each_by_themselves() {
        use crate::endpoint::Security;
        for (at, tls) in
            [("redis://h1", false), ("redis://h1", true), ("rediss://h1", false), ("rediss://h1", true)]
        {
            let sentinels = Sentinels::of("m").at(at);
            let sentinels = if tls { sentinels.tls() } else { sentinels };
            let (endpoints, topology) = of_sentinels(sentinels).unwrap();
            let Topology::Sentinel { nodes, .. } = topology else { panic!("{at}: {topology:?}") };
            let is_secured = |endpoint: &Endpoint| !matches!(endpoint.security, Security::None);
            assert_eq!(
                (is_secured(&endpoints[0]), is_secured(&nodes)),
                (at.starts_with("rediss"), tls),
                "{at}"
            );
        }
    }

    #[test]
    fn urls_of_clusters() {
        let (endpoints, topology) = read_url("redis+cluster://clerk:x@h1:7000,h2/").unwrap();
        assert!(matches!(topology, Topology::Cluster));
        assert_eq!(shown(&endpoints), "h1:7000 h2:6379");
        assert!(endpoints.iter().all(|endpoint| endpoint.credentials().is_some()));
        let several = vec!["redis+cluster://h1".into(), "redis+cluster://h2".into()];
        assert_eq!(shown(&read(several, false).unwrap().0), "h1:6379 h2:6379");
        assert!(matches!(read(vec!["redis://h1".into()], true).unwrap().1, Topology::Cluster));
    }

    #[test]
    fn urls_that_name_no_one_deployment_are_refused() {
        for (urls, told) in [
            (&["redis+sentinel://h1"][..], "/master"),
            (&["redis+sentinel://h1/"], "/master"),
            (&["redis+sentinel://h1/m/x"], "no number"),
            (&["redis+sentinel://h1,/m"], "host is empty"),
            (&["redis+sentinel://h1/m?timeout=5"], "`timeout`"),
            (&["redis+sentinel://h1/m?sentinel_username=secret"], "`sentinel_password`"),
            (&["redis+sentinel://h1/m", "redis://h2"], "one deployment"),
            (&["redis+cluster://h1", "redis://h2"], "no one deployment"),
            (&["redis+cluster://h1/3"], "database 0"),
            (&["redis+cluster://h1?db=1"], "`db`"),
            (&["redis+cluster://h1#x"], "`#`"),
        ] {
            let addresses = urls.iter().map(|url| Address::from(*url)).collect();
            let error = read(addresses, false).unwrap_err().to_string();
            assert!(error.contains(told) && !error.contains("secret@"), "{urls:?}: {error}");
        }
    }

    #[test]
    fn a_server_of_any_form_is_none_of_a_cluster() {
        let info = redis::IntoConnectionInfo::into_connection_info("redis://h2").expect("a URL");
        for other in [Address::from("redis://h2"), Address::from(info)] {
            let error = read(vec!["redis+cluster://h1".into(), other], false).unwrap_err().to_string();
            assert!(error.contains("no one deployment"), "{error}");
        }
    }

    #[test]
    fn no_debug_output_has_a_password() {
        let sentinels =
            Sentinels::of("m").at("redis://:secret@h1").credentials(Credentials::password("secret"));
        let shown = format!("{:?} {:?}", Address::from("redis://:secret@10.0.0.1"), sentinels);
        assert!(!shown.contains("secret"), "{shown}");
    }
}
