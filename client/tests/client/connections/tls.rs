//! A server behind TLS, with an authority of its own.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::support::world::World;
use crate::support::{RedisServer, soon};
use lockstorm_client::{Builder, Client, Env, Error, ErrorKind, Tls, TokioEnv, Wall};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};

/// An authority that signs certificates.
struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

/// A certificate and its key, in PEM.
struct Identity {
    certificate: String,
    key: String,
}

impl Authority {
    fn called(name: &str) -> Self {
        let mut params = CertificateParams::new([]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Self { issuer: Issuer::new(params, key), pem }
    }

    /// Signs a certificate that is valid until the end of 2030.
    fn sign(&self, name: &str) -> Identity {
        let mut params = CertificateParams::new([name.to_owned()]).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.not_after = rcgen::date_time_ymd(2030, 12, 31);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap().pem();
        Identity { certificate, key: key.serialize_pem() }
    }
}

/// A server with a certificate for `localhost`, which requires its clients to have one of the same
/// authority.
struct Secure {
    server: RedisServer,
    tls_port: u16,
    authority: Authority,
    client: Identity,
    folder: PathBuf,
}

impl Secure {
    fn start(of: &str) -> Option<Self> {
        let authority = Authority::called("our own");
        let (own, client) = (authority.sign("localhost"), authority.sign("clerk"));
        let folder = std::env::temp_dir().join(format!("lockstorm-tls-{}-{of}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let file = |name: &str, text: &str| {
            let path: PathBuf = Path::new(&folder).join(name);
            std::fs::write(&path, text).unwrap();
            path.display().to_string()
        };
        let options = [
            "--tls-cert-file",
            &file("server.crt", &own.certificate),
            "--tls-key-file",
            &file("server.key", &own.key),
            "--tls-ca-cert-file",
            &file("ca.crt", &authority.pem),
        ];
        let (server, tls_port) = RedisServer::start_tls(&options)?;
        Some(Self { server, tls_port, authority, client, folder })
    }

    fn url(&self) -> String {
        format!("rediss://localhost:{}", self.tls_port)
    }

    /// The settings that this server accepts.
    fn right(&self) -> Tls {
        Tls::new()
            .authority(self.authority.pem.as_str())
            .client_certificate(self.client.certificate.as_str(), self.client.key.as_str())
    }

    fn client(&self) -> Builder {
        Client::builder().endpoint(self.url()).tls(self.right())
    }
}

impl Drop for Secure {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

#[tokio::test]
async fn a_lock_over_tls_is_waited_for_renewed_and_survives_its_connections() {
    let Some(secure) = Secure::start("lock") else { return };
    let client = || secure.client().watchdog_timeout(Duration::from_millis(1500)).connect();
    let (mine, other) = (client().await.unwrap(), client().await.unwrap());
    let guard = mine.lock("stock").acquire().await.unwrap();
    assert!(other.lock("stock").try_acquire_for(Duration::from_secs(2)).await.unwrap().is_none());
    assert!(guard.is_valid());
    // A message wakes the waiter: its next look would be a lease of 1.5 s later, which is longer
    // than a release takes.
    let (waited, released) =
        futures_util::future::join(other.lock("stock").acquire().into_future(), guard.release()).await;
    released.unwrap();
    let guard = waited.unwrap();

    for kind in ["normal", "pubsub"] {
        secure.server.command(&["CLIENT", "KILL", "TYPE", kind]).await;
    }
    let waiting = mine.lock("stock").acquire().into_future();
    let (waited, released) = futures_util::future::join(waiting, guard.release()).await;
    released.unwrap();
    soon("it is released over a new connection", waited.unwrap().release()).await.unwrap();
    mine.close().await.unwrap();
    other.close().await.unwrap();
}

/// A date in the year, in seconds since 1970; leap days do not matter here.
fn in_the_year(year: u64) -> Arc<World> {
    World::at(Wall(Duration::from_secs((year - 1970) * 365 * 24 * 3600)))
}

#[tokio::test]
async fn sides_that_do_not_accept_each_other_say_why_at_once() {
    let Some(secure) = Secure::start("refusals") else { return };
    let stranger = Authority::called("a stranger");
    let of_stranger = stranger.sign("clerk");
    let own = || Tls::new().authority(secure.authority.pem.as_str());
    let client = |tls: Tls| Client::builder().endpoint(secure.url()).tls(tls);
    let by_address = format!("rediss://127.0.0.1:{}", secure.tls_port);
    let rows: [(&str, Builder, &str); 7] = [
        (
            "an authority that did not sign the server's certificate",
            client(Tls::new().authority(stranger.pem.as_str())),
            "UnknownIssuer",
        ),
        (
            "the authorities of the system, which do not know ours",
            Client::builder().endpoint(secure.url()),
            "UnknownIssuer",
        ),
        ("no client certificate", client(own()), "the server asks for a client certificate"),
        (
            "a client certificate of another authority",
            client(own().client_certificate(of_stranger.certificate.as_str(), of_stranger.key.as_str())),
            "the server refuses: UnknownCA",
        ),
        (
            "a certificate for another name",
            Client::builder().endpoint(by_address.clone()).tls(secure.right()),
            "not valid for name \"127.0.0.1\"",
        ),
        (
            "by the name that was set",
            client(secure.right().server_name("redis.internal")),
            "not valid for name",
        ),
        (
            "after its end, by the clock of the Env",
            secure.client().env(in_the_year(2040)),
            "certificate expired",
        ),
    ];
    for (what, builder, reason) in rows {
        let client = builder.build().unwrap();
        // Without a repeat, which would come after half a second at the earliest.
        let begun = TokioEnv::current().unwrap().now();
        let error = client.lock("stock").acquire().await.unwrap_err();
        assert_refused(what, &error, reason);
        assert!(TokioEnv::current().unwrap().now() - begun < Duration::from_secs(5), "{what}: at once");
    }
    // The same server, by the name in its certificate.
    let client = Client::builder().endpoint(by_address).tls(secure.right().server_name("localhost"));
    client.connect().await.unwrap();
    secure.client().env(in_the_year(2029)).connect().await.unwrap();
}

/// A `redis-server` that gets a TLS handshake waits for the end of the line, and one behind TLS
/// without a handshake closes the connection: neither shows the reason, so both errors count as
/// passing.
#[tokio::test]
async fn a_port_without_tls_and_a_url_without_tls_do_not_connect() {
    let Some(secure) = Secure::start("ports") else { return };
    let wrong_port =
        Client::builder().endpoint(secure.server.url().replace("redis:", "rediss:")).tls(secure.right());
    let wrong_url = Client::builder().endpoint(secure.url().replace("rediss:", "redis:"));
    for builder in [wrong_port, wrong_url] {
        let error = builder.connect_timeout(Duration::from_millis(500)).connect().await.unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Connect { .. }), "{error:?}");
        assert!(error.is_definite() && error.is_transient(), "{error:?}");
    }
}

fn assert_refused(what: &str, error: &Error, reason: &str) {
    assert!(matches!(error.kind(), ErrorKind::Tls { .. }), "{what}: {error:?}");
    assert!(error.is_definite() && !error.is_transient(), "{what}: {error:?}");
    assert!(error.to_string().contains(reason), "{what}: {error}");
}

#[tokio::test]
async fn settings_that_cannot_work_are_refused_before_anything_is_sent() {
    let authority = Authority::called("our own");
    let Identity { certificate, key } = authority.sign("clerk");
    let other_key = authority.sign("other").key;
    let of =
        |chain: &str, key: &str| Tls::new().authority(authority.pem.as_str()).client_certificate(chain, key);
    let (secure, open) = ("rediss://redis.internal", "redis://redis.internal");
    for (url, tls, reason) in [
        (secure, Tls::new().authority("ca.crt"), "the TLS authority holds no certificate"),
        (secure, of("client.crt", &key), "the TLS client certificate holds no certificate"),
        (secure, of(&certificate, "client.key"), "holds no private key"),
        (secure, of(&certificate, &other_key), "the TLS client certificate and its key do not work"),
        (secure, of(&certificate, &key).server_name("a b"), "`a b` is no name"),
        (open, of(&certificate, &key), "without the TLS that is set"),
    ] {
        let error = Client::builder().endpoint(url).tls(tls).build().unwrap_err();
        assert!(
            matches!(error.kind(), ErrorKind::Config(_)) && error.to_string().contains(reason),
            "{error}"
        );
        assert!(!error.to_string().contains("PRIVATE KEY"), "{error}");
    }
}
