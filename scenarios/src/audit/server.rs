//! Live servers to audit: their addresses, and the requests that begin MONITOR.

use lockstorm_client::{Client, Deployment};

/// The name of the audit's connection, as CLIENT LIST shows it.
pub(super) const NAME: &str = "lockstorm-audit";

/// The certificates of TLS connections, in PEM.
#[derive(Clone, Default)]
pub struct Certificates {
    /// The authorities that sign the servers' certificates; `None` for those of the system.
    pub authorities: Option<Vec<u8>>,
    /// The chain and the key of the client's certificate.
    pub client: Option<(Vec<u8>, Vec<u8>)>,
}

impl std::fmt::Debug for Certificates {
    /// Leaves out the contents, which include a key.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Certificates").finish_non_exhaustive()
    }
}

/// Reads the addresses of a group as `lockstorm-client` does: servers, Sentinels of a master, or
/// nodes of a cluster. Call it on a tokio runtime.
///
/// # Errors
/// If an address is wrong, without repeating its password.
pub fn open(urls: &[String], certificates: &Certificates) -> lockstorm_client::Result<Deployment> {
    let mut builder = Client::builder();
    for url in urls {
        builder = builder.endpoint(url);
    }
    #[cfg(feature = "tls")]
    if certificates.authorities.is_some() || certificates.client.is_some() {
        let mut tls = lockstorm_client::Tls::new();
        if let Some(pem) = &certificates.authorities {
            tls = tls.authority(pem.clone());
        }
        if let Some((chain, key)) = &certificates.client {
            tls = tls.client_certificate(chain.clone(), key.clone());
        }
        builder = builder.tls(tls);
    }
    #[cfg(not(feature = "tls"))]
    let _ = certificates;
    builder.deployment()
}

/// Returns the requests that begin MONITOR, one for each reply: AUTH with the words of a login,
/// unless there are none, CLIENT SETNAME, and MONITOR.
pub fn requests(login: &[String]) -> Vec<Vec<u8>> {
    let mut requests = Vec::new();
    if !login.is_empty() {
        let words = ["AUTH"].into_iter().chain(login.iter().map(String::as_str));
        requests.push(request(&words.collect::<Vec<_>>()));
    }
    requests.push(request(&["CLIENT", "SETNAME", NAME]));
    requests.push(request(&["MONITOR"]));
    requests
}

pub(super) fn request(words: &[&str]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend_from_slice(format!("${}\r\n{word}\r\n", word.len()).as_bytes());
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_group_has_a_login_that_is_never_shown() {
        let url = "redis://clerk:s%20t@10.0.0.1:6380/3".to_owned();
        let group = open(&[url], &Certificates::default()).expect("an address");
        let master = group.masters().await.expect("it is named").remove(0);
        assert_eq!((master.name().as_str(), group.fails_over()), ("10.0.0.1:6380", false));
        let login = master.login().await.expect("it is in the address");
        assert_eq!(requests(&login)[0], b"*3\r\n$4\r\nAUTH\r\n$5\r\nclerk\r\n$3\r\ns t\r\n");
        assert_eq!((requests(&login).len(), requests(&[]).len()), (3, 2));
        assert!(!format!("{group:?} {master:?}").contains("s t"));
        for wrong in ["http://a:secret@b", "redis://a:secret@b:c", "redis+sentinel://:secret@a"] {
            let error = open(&[wrong.to_owned()], &Certificates::default()).expect_err(wrong).to_string();
            assert!(!error.contains("secret"), "{error}");
        }
        for several in ["redis+sentinel://:s@a,b:1/m", "redis+cluster://a,b"] {
            assert!(open(&[several.to_owned()], &Certificates::default()).expect("an address").fails_over());
        }
    }
}
