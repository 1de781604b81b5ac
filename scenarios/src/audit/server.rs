//! A live server to audit: its address, and the requests that begin MONITOR.

use redis::{ConnectionAddr, IntoConnectionInfo};

/// The name of the audit's connection, as CLIENT LIST shows it.
const NAME: &str = "lockstorm-audit";

/// A server with a login.
#[derive(Clone)]
pub struct Server {
    /// The host name or address.
    pub host: String,
    /// The TCP port.
    pub port: u16,
    login: Vec<String>,
}

impl std::fmt::Debug for Server {
    /// Leaves out the login.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Server({}:{})", self.host, self.port)
    }
}

impl Server {
    /// Parses `redis://user:password@host:port`.
    ///
    /// # Errors
    /// If it is no such address, without repeating the password.
    pub fn of_url(url: &str) -> Result<Server, String> {
        // The error may repeat the password.
        let info = url.into_connection_info().map_err(|_| "is no redis:// address".to_owned())?;
        let ConnectionAddr::Tcp(host, port) = info.addr() else {
            return Err(
                "is no redis:// address of host and port; TLS and Unix sockets are not supported".to_owned()
            );
        };
        let settings = info.redis_settings();
        let login = settings.username().into_iter().chain(settings.password()).map(str::to_owned);
        Ok(Server { host: host.clone(), port: *port, login: login.collect() })
    }

    /// Returns the name of the server as a node, without the login.
    pub fn name(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }

    /// Returns the requests that begin MONITOR, one for each reply.
    pub fn requests(&self) -> Vec<Vec<u8>> {
        let mut requests = Vec::new();
        if !self.login.is_empty() {
            let words = ["AUTH"].into_iter().chain(self.login.iter().map(String::as_str));
            requests.push(request(&words.collect::<Vec<_>>()));
        }
        requests.push(request(&["CLIENT", "SETNAME", NAME]));
        requests.push(request(&["MONITOR"]));
        requests
    }
}

fn request(words: &[&str]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend_from_slice(format!("${}\r\n{word}\r\n", word.len()).as_bytes());
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_login_that_is_never_shown() {
        let server = Server::of_url("redis://clerk:s%20t@10.0.0.1:6380/3").expect("an address");
        assert_eq!((server.name(), server.requests().len()), ("10.0.0.1:6380".to_owned(), 3));
        assert_eq!(server.requests()[0], b"*3\r\n$4\r\nAUTH\r\n$5\r\nclerk\r\n$3\r\ns t\r\n");
        assert_eq!(format!("{server:?}"), "Server(10.0.0.1:6380)");
        let server = Server::of_url("redis://localhost").expect("an address");
        assert_eq!((server.name(), server.requests().len()), ("localhost:6379".to_owned(), 2));
        for wrong in ["http://a:secret@b", "redis://a:secret@b:c", "unix:///run/a"] {
            let error = Server::of_url(wrong).expect_err(wrong);
            assert!(!error.contains("secret"), "{error}");
        }
    }
}
