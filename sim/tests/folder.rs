//! A node that keeps its data in a folder: its requests to the folder, and their times.

use std::{
    collections::BTreeMap,
    io,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use bytes::Bytes;
use lockstorm_sim::{
    config::{Config, Fsync},
    env::{Env, Folder},
    event::{Action, ConnId, Event},
    generation::Generation,
    server::Server,
};

const CONN: ConnId = ConnId(1);
/// The time until the periodic work has noticed the end of a background write.
const TICK: Duration = Duration::from_millis(100);
const MANIFEST: &str = "appendonlydir/appendonly.aof.manifest";

/// Files in memory, and counts of the requests to them.
#[derive(Debug, Clone, Default)]
struct Memory(Arc<Mutex<Files>>);

#[derive(Debug, Default)]
struct Files {
    files: BTreeMap<String, Vec<u8>>,
    /// The number of immediate and of deferred requests to sync.
    synced: [usize; 2],
    /// Set while nothing can be written.
    full: bool,
    /// Set while nothing may be read.
    locked: bool,
}

impl Memory {
    fn files(&self) -> MutexGuard<'_, Files> {
        self.0.lock().expect("no thread panics")
    }

    fn for_writing(&self) -> io::Result<MutexGuard<'_, Files>> {
        let files = self.files();
        if files.full { Err(io::ErrorKind::StorageFull.into()) } else { Ok(files) }
    }

    fn text(&self, name: &str) -> String {
        String::from_utf8_lossy(self.files().files.get(name).map_or(b"", Vec::as_slice)).into_owned()
    }
}

impl Folder for Memory {
    fn read(&self, name: &str) -> io::Result<Bytes> {
        let files = self.files();
        if files.locked {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        files.files.get(name).map(|bytes| bytes.clone().into()).ok_or(io::ErrorKind::NotFound.into())
    }

    fn put(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.for_writing()?.files.insert(name.into(), bytes.into());
        Ok(())
    }

    fn append(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.for_writing()?.files.entry(name.into()).or_default().extend_from_slice(bytes);
        Ok(())
    }

    fn sync(&self, name: &str, soon: bool) -> io::Result<bool> {
        let mut files = self.files();
        if !files.files.contains_key(name) {
            return Err(io::ErrorKind::NotFound.into());
        }
        files.synced[usize::from(soon)] += 1;
        Ok(true)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut files = self.for_writing()?;
        let bytes = files.files.remove(from).ok_or(io::ErrorKind::NotFound)?;
        files.files.insert(to.into(), bytes);
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.for_writing()?.files.remove(name).map(drop).ok_or(io::ErrorKind::NotFound.into())
    }

    fn has(&self, name: &str) -> bool {
        self.files().files.contains_key(name)
    }
}

fn beside(folder: &Memory) -> Env {
    let mut env = Env::new(1);
    env.folder = Some(Box::new(folder.clone()));
    env
}

fn start(config: Config, folder: &Memory) -> (Server, Env) {
    let mut env = beside(folder);
    let mut server = Server::open(config, &mut env).expect("what is there can be read");
    server.step(&mut env, Event::Connected { conn: CONN, peer: "c:1".into(), local: "n:1".into() });
    (server, env)
}

fn appending(appendfsync: Fsync) -> Config {
    Config::default().with(|config| {
        config.aof.appendonly = true;
        config.aof.appendfsync = appendfsync;
        config.persistence.save = Vec::new();
    })
}

/// The replies to lines that arrive together, as one text; empty for a closed connection.
fn ask(server: &mut Server, env: &mut Env, lines: &str) -> String {
    env.outbox.clear();
    server.step(env, Event::Bytes { conn: CONN, bytes: format!("{lines}\r\n").into() });
    let sent = env.outbox.iter().filter_map(|action| match action {
        Action::Send { bytes, .. } => Some(String::from_utf8_lossy(bytes).trim_end().to_owned()),
        _ => None,
    });
    sent.collect()
}

fn pass(server: &mut Server, env: &mut Env, time: Duration) {
    env.wall += time;
    env.monotonic += time;
    server.step(env, Event::Alarm);
}

#[test]
fn what_is_promised_is_durable_before_it_is_answered_or_within_a_second() {
    for (policy, at_once, soon) in
        [(Fsync::Always, [2, 0], [2, 0]), (Fsync::EverySecond, [0, 0], [0, 1]), (Fsync::No, [0, 0], [0, 0])]
    {
        let folder = Memory::default();
        let (mut server, mut env) = start(appending(policy), &folder);
        ask(&mut server, &mut env, "SET a 1");
        let wakes = env.outbox.iter().any(|action| matches!(action, Action::Alarm { .. }));
        assert_eq!(wakes, policy == Fsync::EverySecond, "whether an alarm is set for that");
        ask(&mut server, &mut env, "INCR a");
        assert_eq!(folder.files().synced, at_once, "{policy:?}");
        pass(&mut server, &mut env, Duration::from_secs(1));
        pass(&mut server, &mut env, Duration::from_secs(1));
        assert_eq!(folder.files().synced, soon, "{policy:?}: and no more than once");
        // Under every policy a write happens before its reply: killing the process loses nothing.
        drop(server);
        let (mut server, mut env) = start(appending(policy), &folder);
        assert_eq!(ask(&mut server, &mut env, "GET a"), "$1\r\n2", "{policy:?}");
        // An orderly end leaves nothing unsynced.
        ask(&mut server, &mut env, "SET b 1");
        let before = folder.files().synced[0];
        ask(&mut server, &mut env, "SHUTDOWN");
        assert_eq!(folder.files().synced[0] - before, usize::from(policy != Fsync::Always), "{policy:?}");
    }
}

#[test]
fn a_folder_that_takes_nothing_stops_writes_until_it_does() {
    let folder = Memory::default();
    let (mut server, mut env) = start(appending(Fsync::No), &folder);
    folder.files().full = true;
    assert_eq!(ask(&mut server, &mut env, "SET a 1"), "+OK");
    assert!(ask(&mut server, &mut env, "SET a 2").starts_with("-MISCONF"));
    assert_eq!(ask(&mut server, &mut env, "CONFIG SET appendonly no"), "+OK");
    let refused = ask(&mut server, &mut env, "CONFIG SET appendonly yes");
    assert!(refused.ends_with("Unable to turn on AOF. Check server logs."), "{refused}");
    assert!(ask(&mut server, &mut env, "CONFIG GET appendonly").ends_with("no"));
    folder.files().full = false;
    assert_eq!(ask(&mut server, &mut env, "CONFIG SET appendonly yes"), "+OK");
    assert_eq!(ask(&mut server, &mut env, "INCR a"), ":2");
    pass(&mut server, &mut env, TICK);
    drop(server);
    let (mut server, mut env) = start(appending(Fsync::No), &folder);
    assert_eq!(ask(&mut server, &mut env, "GET a"), "$1\r\n2");

    let (mut server, mut env) = start(appending(Fsync::Always), &folder);
    folder.files().full = true;
    assert_eq!(ask(&mut server, &mut env, "INCR a"), "", "it has promised too much to answer");
    folder.files().full = false;
    let (mut server, mut env) = start(appending(Fsync::No), &folder);
    assert_eq!(ask(&mut server, &mut env, "GET a"), "$1\r\n2");
}

#[test]
fn a_file_that_has_outgrown_its_base_is_begun_anew() {
    let folder = Memory::default();
    let config = appending(Fsync::No).with(|config| config.aof.rewrite_min_size = 1024);
    let (mut server, mut env) = start(config, &folder);
    let text = "x".repeat(100);
    for round in 1..=2 {
        let name = format!("appendonly.aof.{round}.incr.aof");
        while folder.text(MANIFEST).contains(&name) {
            ask(&mut server, &mut env, &format!("SET a {text}"));
            pass(&mut server, &mut env, Duration::from_secs(1));
            assert!(folder.text(&format!("appendonlydir/{name}")).len() < 2048, "it grows without bound");
        }
    }
    assert_eq!(
        folder.text(MANIFEST),
        "file appendonly.aof.3.base.rdb seq 3 type b\nfile appendonly.aof.3.incr.aof seq 3 type i\n"
    );
    assert_eq!(folder.files().files.len(), 3, "what was before is removed");
}

/// INFO's AOF size equals the bytes in the folder, also during and after a rewrite, and for an AOF
/// that has only begun.
#[test]
fn the_size_of_the_files_is_known_without_looking() {
    let folder = Memory::default();
    let (mut server, mut env) = start(appending(Fsync::No), &folder);
    let mut is_told = |lines: &str| {
        ask(&mut server, &mut env, lines);
        pass(&mut server, &mut env, TICK);
        let info = ask(&mut server, &mut env, "INFO persistence");
        let told = info.lines().find_map(|line| line.strip_prefix("aof_current_size:")).expect("it is on");
        let files = folder.files();
        let parts = files.files.iter().filter(|(name, _)| name.ends_with(".aof") || name.ends_with(".rdb"));
        assert_eq!(told.parse(), Ok(parts.map(|(_, bytes)| bytes.len()).sum::<usize>()), "{lines:?}");
    };
    is_told("SET a 1");
    is_told("SET b 1\r\nBGREWRITEAOF\r\nSET c 1\r\nSET d 1");
    is_told("CONFIG SET appendonly no\r\nSET e 1\r\nCONFIG SET appendonly yes\r\nSET f 1");
    is_told("SET g 1");
}

/// The sizes were measured on Redis 7.0.15: until the next rewrite they include the bytes that the
/// start cuts off. Regression: only the base size did, so that the file had to outgrow more than it
/// had.
#[test]
fn a_start_that_cuts_the_last_file_counts_its_bytes_until_a_rewrite() {
    const WHOLE: &str = "*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\n1\r\n";
    const BASE: &str = "appendonlydir/appendonly.aof.1.base.aof";
    const INCREMENTAL: &str = "appendonlydir/appendonly.aof.1.incr.aof";
    const BOTH: &str =
        "file appendonly.aof.1.base.aof seq 1 type b\nfile appendonly.aof.1.incr.aof seq 1 type i\n";
    let short = format!("{WHOLE}*3\r\n$3\r\nSET\r\n$1\r\nb");
    assert_eq!((WHOLE.len(), short.len()), (50, 68));
    let single = [("appendonly.aof", &*short)];
    let several = [(MANIFEST, BOTH), (BASE, WHOLE), (INCREMENTAL, &*short)];
    for (files, cut, current, base) in
        [(&single[..], "appendonlydir/appendonly.aof", 68, 68), (&several[..], INCREMENTAL, 118, 50)]
    {
        let folder = Memory::default();
        for (name, text) in files {
            folder.put(name, text.as_bytes()).expect("there is room");
        }
        let config = Config { generation: Generation::Redis70, ..appending(Fsync::No) };
        let (mut server, mut env) = start(config, &folder);
        assert_eq!(folder.text(cut), WHOLE);
        let info = ask(&mut server, &mut env, "INFO persistence");
        for line in [format!("aof_current_size:{current}\r\n"), format!("aof_base_size:{base}\r\n")] {
            assert!(info.contains(&line), "expected {line}, found {info}");
        }
        ask(&mut server, &mut env, "BGREWRITEAOF\r\nSET c 1");
        pass(&mut server, &mut env, TICK);
        let info = ask(&mut server, &mut env, "INFO persistence");
        let files = folder.files();
        let parts = files.files.iter().filter(|(name, _)| name.ends_with(".aof") || name.ends_with(".rdb"));
        let size: usize = parts.map(|(_, bytes)| bytes.len()).sum();
        assert!(info.contains(&format!("aof_current_size:{size}\r\n")), "expected {size}, found {info}");
    }
}

#[test]
fn what_one_step_does_before_and_behind_a_switch_is_kept() {
    let folder = Memory::default();
    let (mut server, mut env) = start(appending(Fsync::No), &folder);
    let lines = ["SET a 1", "CONFIG SET appendonly no", "SET b 1", "CONFIG SET appendonly yes", "SET c 1"];
    ask(&mut server, &mut env, &lines.join("\r\n"));
    pass(&mut server, &mut env, TICK);
    ask(&mut server, &mut env, "INCR d\r\nBGREWRITEAOF\r\nINCR d");
    pass(&mut server, &mut env, TICK);
    // The effects of a transaction that rewrites are either in the base or behind it, never both.
    ask(&mut server, &mut env, "MULTI\r\nINCR d\r\nBGREWRITEAOF\r\nINCR d\r\nEXEC");
    pass(&mut server, &mut env, TICK);
    let bases =
        folder.files().files.keys().filter(|name| name.contains(".base.")).cloned().collect::<Vec<_>>();
    assert_eq!(bases, ["appendonlydir/appendonly.aof.4.base.rdb"]);
    // A process that is killed while it writes a base has the earlier files, and the commands
    // appended since.
    ask(&mut server, &mut env, "BGREWRITEAOF\r\nSET f 1");
    let (mut server, mut env) = start(appending(Fsync::No), &folder);
    assert_eq!(
        ask(&mut server, &mut env, "MGET a b c d f"),
        "*5\r\n$1\r\n1\r\n$1\r\n1\r\n$1\r\n1\r\n$1\r\n4\r\n$1\r\n1"
    );
    ask(&mut server, &mut env, "SET e 1\r\nCONFIG SET appendonly no");
    let (mut server, mut env) = start(appending(Fsync::No), &folder);
    assert_eq!(ask(&mut server, &mut env, "GET e"), "$1\r\n1");
}

/// `aof-use-rdb-preamble no`: existing data of every type is rewritten as the commands that create
/// it.
#[test]
fn a_base_of_commands_brings_all_of_it_back() {
    const SCRIPT: &str =
        "FUNCTION LOAD \"#!lua name=lib\\nredis.register_function('one', function() return 1 end)\"
        SET text a
        SET short b PX 100000
        RPUSH list 1 2 three
        SADD members 1 2
        SADD names ann bob
        HSET fields f v g w
        ZADD scores 1.5 ann -inf bob
        XADD stream 1-1 f v
        XADD stream 2-1 f v g w
        XDEL stream 1-1
        XGROUP CREATE stream group 0
        XREADGROUP GROUP group ann STREAMS stream >
        XGROUP CREATE emptied group $ MKSTREAM
        SELECT 9
        SET other c
        SELECT 0";
    const ASKED: &str = "FUNCTION LIST WITHCODE
        DBSIZE
        GET text
        GET short
        PEXPIRETIME short
        LRANGE list 0 -1
        SORT members
        SORT names ALPHA
        HGETALL fields
        ZRANGE scores 0 -1 WITHSCORES
        XINFO STREAM stream FULL
        XINFO STREAM emptied FULL
        SELECT 9
        GET other
        DBSIZE
        SELECT 0";
    let lines = |text: &str| text.lines().map(str::trim).collect::<Vec<_>>().join("\r\n");
    let folder = Memory::default();
    let config = appending(Fsync::No).with(|config| config.aof.use_rdb_preamble = false);
    let (mut server, mut env) = start(config.clone(), &folder);
    let answers = ask(&mut server, &mut env, &lines(SCRIPT));
    assert!(!answers.contains("-ERR"), "{answers}");
    let before = ask(&mut server, &mut env, &lines(ASKED));
    ask(&mut server, &mut env, "BGREWRITEAOF");
    pass(&mut server, &mut env, TICK);
    assert_eq!(
        folder.text(MANIFEST),
        "file appendonly.aof.2.base.aof seq 2 type b\nfile appendonly.aof.2.incr.aof seq 2 type i\n"
    );
    assert_eq!(folder.text("appendonlydir/appendonly.aof.2.incr.aof"), "", "all of it is in the base");
    let (mut server, mut env) = start(config, &folder);
    assert_eq!(ask(&mut server, &mut env, &lines(ASKED)), before);
}

/// Versions before 7.0 appended to one file beside the present folder. It becomes the base, once,
/// and a power failure in between is harmless. If the manifest names other files, a file of that
/// name is ignored.
#[test]
fn the_single_file_of_an_older_version_is_adopted_once() {
    type File = (&'static str, &'static str);
    const OLD: File = ("appendonly.aof", "*3\r\n$3\r\nSET\r\n$1\r\na\r\n$3\r\nold\r\n");
    const NEW: File = ("appendonlydir/appendonly.aof", "*3\r\n$3\r\nSET\r\n$1\r\na\r\n$3\r\nnew\r\n");
    const SINGLE: File = (MANIFEST, "file appendonly.aof seq 1 type b\n");
    const OF_OTHERS: File = (MANIFEST, "file appendonly.aof.1.incr.aof seq 1 type i\n");
    const OTHER: File =
        ("appendonlydir/appendonly.aof.1.incr.aof", "*3\r\n$3\r\nSET\r\n$1\r\na\r\n$5\r\nother\r\n");
    let rows: [(&[File], &str, bool); 5] = [
        (&[OLD], "$3\r\nold", false),
        // The manifest exists, and the file has not been moved yet.
        (&[OLD, SINGLE], "$3\r\nold", false),
        (&[NEW, SINGLE], "$3\r\nnew", false),
        (&[OLD, NEW, SINGLE], "$3\r\nnew", true),
        (&[OLD, OF_OTHERS, OTHER], "$5\r\nother", true),
    ];
    for (files, answer, stays) in rows {
        let folder = Memory::default();
        for (name, text) in files {
            folder.put(name, text.as_bytes()).expect("there is room");
        }
        for _ in 0..2 {
            let (mut server, mut env) = start(appending(Fsync::No), &folder);
            assert_eq!(ask(&mut server, &mut env, "GET a"), answer, "{files:?}");
            assert_eq!(folder.has(OLD.0), stays, "{files:?}");
        }
    }
}

/// An unreadable manifest is not an empty folder: a node that started empty would lose the existing
/// data.
#[test]
fn a_manifest_that_cannot_be_read_is_an_error() {
    let folder = Memory::default();
    start(appending(Fsync::No), &folder);
    folder.files().locked = true;
    let opened = Server::open(appending(Fsync::No), &mut beside(&folder));
    let error = opened.map(drop).expect_err("it may not be read");
    assert!(error.to_string().contains(MANIFEST), "{error}");
}
