//! The server programs of the generations. The suites of several packages include this file.

#![allow(unreachable_pub, reason = "public in the library of the suites, private in a test")]

use std::path::{Path, PathBuf};

/// The folder below the root in which `trials/setup servers` installs the programs.
const INSTALLED: &str = "target/trials/servers";

/// Returns the server program of a generation, such as `valkey-9.1`: in the folder that
/// `LOCKSTORM_SERVERS` names, or where `trials/setup servers` installs it.
///
/// # Panics
/// If it is absent and `LOCKSTORM_REQUIRE_SERVERS=1` requires it.
pub fn program_of(generation: &str) -> Option<PathBuf> {
    // The package of the suite is the root, or a folder in it.
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let installed =
        || package.ancestors().take(2).map(|root| root.join(INSTALLED)).find(|path| path.exists());
    let folder = std::env::var_os("LOCKSTORM_SERVERS").map(PathBuf::from).or_else(installed);
    let program = folder.unwrap_or_else(|| INSTALLED.into()).join(generation);
    let is_required = std::env::var_os("LOCKSTORM_REQUIRE_SERVERS").is_some_and(|value| value == "1");
    assert!(!is_required || program.exists(), "{} is absent: `trials/setup servers`", program.display());
    program.exists().then_some(program)
}
