//! The real server under test.

use std::{fs, path::PathBuf, sync::LazyLock};

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

/// Runs a stock scenario with these arguments, and returns the exit status and standard error.
fn told(arguments: &[&str]) -> (Option<i32>, String) {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_lockstorm"));
    let output = command.args(["run", "single/wall_clock_step.toml"]).args(arguments).output();
    let output = output.expect("the binary runs");
    (output.status.code(), String::from_utf8_lossy(&output.stderr).replace(['\n', '│'], " "))
}

/// A mistake in `--server` ends the command before anything runs, with the path and the reason.
#[test]
fn a_wrong_server_is_named_before_anything_runs() {
    let (status, said) = told(&["--server", "/bin/true"]);
    assert_eq!(status, Some(64), "{said}");
    assert!(said.contains("--real"), "{said}");
    for (path, why) in [
        ("/bin/true", "/bin/true: no Redis or Valkey server: it ended"),
        ("/nonexistent", "/nonexistent: No such file"),
        (env!("CARGO_MANIFEST_DIR"), "no server in this folder; expected programs such as redis-server"),
    ] {
        let (status, said) = told(&["--real", "--server", path]);
        let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(status, Some(64), "{said}");
        assert!(said.contains(why), "{said}");
    }
}

/// A folder for the files of the servers, which ends with the test.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Folder {
        let folder = std::env::temp_dir().join(format!("lockstorm-real-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("created");
        Folder(folder)
    }

    pub(crate) fn path(&self) -> String {
        self.0.to_string_lossy().into_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
