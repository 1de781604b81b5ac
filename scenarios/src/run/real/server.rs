//! Finds servers on this machine, and asks each for its kind, version, commands and options.

use std::{
    cell::RefCell,
    fs,
    io::{BufReader, Read, Write},
    net::TcpStream,
    path::{Path, PathBuf},
    time::Duration,
};

use redis::{Parser, Value};
use rustix::fs::{Access, access};

use super::{
    interrupted,
    process::{Home, Process, arguments},
};
use crate::file::server::{Kind, Server, absolute};

/// The longest time for a server to start and to answer the questions.
const LIMIT: Duration = Duration::from_secs(10);

/// The most bytes of the answers; those of Redis 8 take less than a tenth.
const ANSWERS_MAX: u64 = 4 << 20;

/// The most starts of a server until it has a port of its own.
const TRIES: usize = 5;

/// The error if another program answers at the server's port.
const PORT_TAKEN: &str = "another program answers at its port";

/// The name of the program that is used without any other.
const ON_PATH: &str = "redis-server";

impl Server {
    /// Starts the program once on a free port of the loopback interface, and asks it.
    ///
    /// # Errors
    /// One line that begins with the path: the program does not start, does not answer, or is
    /// neither Redis from 6.2 nor Valkey.
    pub fn at(program: &Path) -> Result<Server, String> {
        let program = absolute(program);
        let wrong = |why: String| format!("{}: {why}", program.display());
        // Another program may take the port between its choice and the start.
        let mut answered = Err(String::new());
        for _ in 0..TRIES {
            answered = answers(&program);
            if !matches!(&answered, Err(why) if why == PORT_TAKEN) {
                break;
            }
        }
        let [info, commands, options] = answered.map_err(&wrong)?;
        let (kind, version) = kind_and_version(&text(&info)).map_err(wrong)?;
        let commands = names_of(&commands).map(|name| name.to_ascii_uppercase()).collect();
        let options = words_of(&options).step_by(2).map(|name| name.to_ascii_lowercase()).collect();
        Ok(Server { program, kind, version, commands, options })
    }

    /// Finds `redis-server` on the PATH.
    ///
    /// # Errors
    /// One line, as for [`Server::at`].
    pub fn on_path() -> Result<Server, String> {
        let folders = std::env::var_os("PATH").unwrap_or_default();
        let program = std::env::split_paths(&folders).map(|folder| folder.join(ON_PATH));
        let program = program.into_iter().find(|path| is_program(path));
        Server::at(&program.ok_or_else(|| format!("no {ON_PATH} on the PATH"))?)
    }

    /// Finds the servers of a path: the program itself, or each program directly in a folder whose
    /// name is that of a server (`redis-server`, `valkey-server`, `redis-8.2`, `valkey-9.1`), in
    /// the order of their names.
    ///
    /// # Errors
    /// One line that begins with the path: it cannot be read, a folder has no program, or one of
    /// them is no server.
    pub fn all_at(path: &Path) -> Result<Vec<Server>, String> {
        if !path.is_dir() {
            return Ok(vec![Server::at(path)?]);
        }
        let wrong = |why: &dyn std::fmt::Display| format!("{}: {why}", path.display());
        let mut programs: Vec<PathBuf> = Vec::new();
        for entry in fs::read_dir(path).map_err(|error| wrong(&error))? {
            programs.push(entry.map_err(|error| wrong(&error))?.path());
        }
        programs.retain(|program| is_program(program) && has_name_of_server(program));
        programs.sort();
        if programs.is_empty() {
            return Err(wrong(
                &"no server in this folder; expected programs such as redis-server or valkey-9.1",
            ));
        }
        programs.iter().map(|program| Server::at(program)).collect()
    }
}

/// Starts the program, and returns its answers to the three questions.
fn answers(program: &Path) -> Result<[Value; 3], String> {
    let home = Home::new("asked").map_err(|error| error.to_string())?;
    let options = [("save", ""), ("appendonly", "no")];
    let options = options.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let arguments = arguments(home.address, &options, &[]);
    let process = Process::start(program, &home, &arguments).map_err(|error| error.to_string())?;
    let process = RefCell::new(process);
    home.answers_within(LIMIT, || process.borrow_mut().has_ended());
    if interrupted() {
        return Err("interrupted".to_owned());
    }
    let answers = ask(&home).map_err(|why| {
        let ended = process.borrow_mut().has_ended();
        let words = if ended { format!("it ended: {}", home.last_words()) } else { why };
        format!("no Redis or Valkey server: {words}")
    })?;
    let is_own = field(&text(&answers[0]), "process_id") == Some(process.borrow().id().to_string());
    if is_own { Ok(answers) } else { Err(PORT_TAKEN.to_owned()) }
}

/// Returns true for a file that may be executed.
fn is_program(path: &Path) -> bool {
    path.is_file() && access(path, Access::EXEC_OK).is_ok()
}

/// Returns true for `redis-server`, `valkey-server`, and names of one with its version.
fn has_name_of_server(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let rest = name.strip_prefix("redis-").or(name.strip_prefix("valkey-"));
    rest.is_some_and(|rest| rest == "server" || rest.starts_with(|first: char| first.is_ascii_digit()))
}

/// Sends the three questions, and returns their answers.
#[expect(clippy::disallowed_methods, reason = "the world that connections go through has not begun")]
fn ask(home: &Home) -> Result<[Value; 3], String> {
    let asked = || -> std::io::Result<TcpStream> {
        let mut stream = TcpStream::connect(home.address)?;
        stream.set_read_timeout(Some(LIMIT))?;
        stream.write_all(b"INFO server\r\nCOMMAND\r\nCONFIG GET *\r\n")?;
        Ok(stream)
    };
    let mut answers = BufReader::new(asked().map_err(|error| error.to_string())?.take(ANSWERS_MAX));
    let mut parser = Parser::new();
    let mut next = || parser.parse_value(&mut answers).map_err(|error| error.to_string());
    Ok([next()?, next()?, next()?])
}

/// Returns a field of INFO.
fn field(info: &str, name: &str) -> Option<String> {
    let mut lines = info.lines().filter_map(|line| line.split_once(':'));
    lines.find_map(|(field, value)| (field == name).then(|| value.trim().to_owned()))
}

/// Reads the kind and the version from INFO.
fn kind_and_version(info: &str) -> Result<(Kind, String), String> {
    let (kind, version) = match field(info, "server_name").as_deref() {
        None | Some("redis") => (Kind::Redis, field(info, "redis_version")),
        Some("valkey") => (Kind::Valkey, field(info, "valkey_version")),
        Some(other) => return Err(format!("a server of the kind {other}; expected Redis or Valkey")),
    };
    let version = version.ok_or("INFO gives no version; expected Redis or Valkey")?;
    let mut numbers = version.split('.').map(|number| number.parse::<u32>().unwrap_or(0));
    let number = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    if kind == Kind::Redis && number < (6, 2) {
        return Err(format!("Redis {version}; expected at least 6.2"));
    }
    Ok((kind, version))
}

/// Returns the first word of each entry of COMMAND.
fn names_of(commands: &Value) -> impl Iterator<Item = String> {
    let list = if let Value::Array(list) = commands { &list[..] } else { &[] };
    list.iter().filter_map(|command| match command {
        Value::Array(parts) => parts.first().map(text),
        _ => None,
    })
}

/// Returns the texts of a flat array.
fn words_of(array: &Value) -> impl Iterator<Item = String> {
    let list = if let Value::Array(list) = array { &list[..] } else { &[] };
    list.iter().map(text)
}

fn text(value: &Value) -> String {
    match value {
        Value::BulkString(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Value::SimpleString(text) | Value::VerbatimString { text, .. } => text.clone(),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::{plan::Plan, scenario::parse, server::Servers};

    #[test]
    fn info_names_kind_and_version() {
        let of = |info: &str| kind_and_version(info);
        let redis = "# Server\r\nredis_version:8.2.3\r\nredis_git_sha1:0\r\n";
        let valkey = "# Server\r\nredis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:9.1.2\r\n";
        assert_eq!(of(redis), Ok((Kind::Redis, "8.2.3".to_owned())));
        assert_eq!(of(valkey), Ok((Kind::Valkey, "9.1.2".to_owned())));
        assert_eq!(of("redis_version:6.0.16\r\n"), Err("Redis 6.0.16; expected at least 6.2".to_owned()));
        assert!(of("redis_version:7.2\r\nserver_name:other\r\n").is_err());
        assert!(of("").is_err());
    }

    /// A run that a server cannot play is refused by the name of the lacking part, before it
    /// begins.
    #[test]
    fn a_run_is_refused_by_the_name_of_the_option_or_command_that_the_server_lacks() {
        let server = |kind, version: &str, words: [&str; 2]| Server {
            program: "/server".into(),
            kind,
            version: version.to_owned(),
            commands: [words[0].to_owned()].into(),
            options: [words[1].to_owned()].into(),
        };
        let old = server(Kind::Redis, "6.2.5", ["SET", "maxmemory"]);
        let new = server(Kind::Valkey, "9.1.2", ["WAITAOF", "latency-tracking"]);
        let text = "[node.m]\nconfig.latency-tracking = \"no\"\n[node.r]\nserver = \"valkey-9.1\"\nreplica_of = \"m\"\n\
             [client.c]\n[fault.sync]\ncommand = { node = \"m\", run = [\"WAITAOF\", \"1\", \"0\", \"0\"] }\nat = \"1s\"\n";
        let refusals = |default: &Server, others: &[&Server]| {
            let source = parse("refused.toml", text).expect("it is a scenario");
            let others = others.iter().map(|&server| server.clone()).collect();
            let plan = Plan::draw(&source.variants[0].scenario, 0);
            super::super::impossible(&plan.with_servers(&Servers::new(default.clone(), others)))
        };
        let lacks = [
            "fault \"sync\" needs WAITAOF, which Redis 6.2.5 does not have",
            "m sets latency-tracking, which Redis 6.2.5 does not have",
        ];
        assert_eq!(refusals(&old, &[&new]), lacks);
        let missing = "r needs Valkey 9.1, and the servers given are Redis 6.2.5";
        assert_eq!(refusals(&old, &[]), [lacks[0], lacks[1], missing]);
        assert_eq!(refusals(&new, &[&old]), [""; 0]);
    }

    /// The commands of the lock itself count, on each of its nodes.
    #[test]
    fn a_run_is_refused_by_the_name_of_the_command_that_its_lock_needs() {
        let server = |version: &str, command: &str| Server {
            program: "/server".into(),
            kind: Kind::Redis,
            version: version.to_owned(),
            commands: [command.to_owned()].into(),
            options: [].into(),
        };
        let lock_with = |one: &str| format!("lock = {{ subject = \"token-lock\", traits = {{ {one} }} }}");
        for (lock, server, lacks) in [
            (
                "lock.synced = \"master\"".to_owned(),
                server("7.0.15", "SET"),
                Some("WAITAOF, which Redis 7.0.15"),
            ),
            ("lock.synced = \"master\"".to_owned(), server("7.2.4", "WAITAOF"), None),
            (lock_with("synced = true"), server("6.2.5", "SET"), Some("WAITAOF, which Redis 6.2.5")),
            (lock_with("lease = \"field\""), server("7.0.15", "SET"), Some("HSETEX, which Redis 7.0.15")),
            (lock_with("lease = \"field\""), server("8.0.0", "HSETEX"), None),
            (
                lock_with("replicas = \"in-script\""),
                server("7.0.15", "SET"),
                Some("WAIT in a script, which Redis 7.0.15"),
            ),
            (lock_with("replicas = \"in-script\""), server("7.2.4", "SET"), None),
        ] {
            let text = format!("{lock}\n[node.m]\n[node.r]\nreplica_of = \"m\"\n[client.c]\n");
            let source = parse("refused.toml", &text).unwrap_or_else(|error| panic!("{error}"));
            let plan = Plan::draw(&source.variants[0].scenario, 0);
            let refused = super::super::impossible(&plan.with_servers(&Servers::new(server, Vec::new())));
            let expected = lacks.map(|lacks| format!("lock \"lock\" needs {lacks} does not have"));
            assert_eq!(refused, expected.into_iter().collect::<Vec<_>>(), "{text}");
        }
    }

    /// A program that is no server is an error of one line that names it, and no run begins.
    #[test]
    fn a_program_that_is_no_server_is_refused() {
        let refused = Server::at(Path::new("/bin/true")).expect_err("it is no server");
        assert!(refused.starts_with("/bin/true: no Redis or Valkey server"), "{refused}");
        let missing = Server::at(Path::new("/nonexistent/server")).expect_err("it is not there");
        assert!(missing.starts_with("/nonexistent/server: "), "{missing}");
        assert!(!missing.contains('\n'));
    }
}
