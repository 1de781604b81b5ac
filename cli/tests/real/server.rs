//! The real server under test.

use std::sync::LazyLock;

use lockstorm::file::server::{Server, Servers};

/// The server under test: `redis-server` on the PATH, or the program in `LOCKSTORM_REDIS_SERVER`.
pub(crate) static SERVERS: LazyLock<Result<Servers, String>> = LazyLock::new(|| {
    let found = match std::env::var_os("LOCKSTORM_REDIS_SERVER") {
        Some(program) => Server::at(program.as_ref()),
        None => Server::on_path(),
    };
    found.map(|server| Servers::new(server, Vec::new()))
});

/// Returns true if a server is available; prints one line if not.
pub(crate) fn redis() -> bool {
    match &*SERVERS {
        Ok(_) => true,
        Err(why) => {
            let required = std::env::var_os("LOCKSTORM_REQUIRE_REDIS").is_some_and(|value| value == "1");
            assert!(!required, "{why}, and LOCKSTORM_REQUIRE_REDIS=1");
            eprintln!("{why}: no scenario is run on a real Redis");
            false
        }
    }
}
