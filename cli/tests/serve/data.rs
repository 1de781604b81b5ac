//! The data that a served node keeps in a folder, and that `redis-server` reads.

use std::{
    fs,
    io::{Read, Write},
    net::TcpStream,
    path::Path,
    process::Command,
};

use rustix::process::Signal;

use crate::served::{Served, asks, folder, nothing_to_compare_with, redis};

/// Data of every type, in two databases.
const WRITES: &[(&str, &str)] = &[
    ("SET text hello", "+OK\r\n"),
    ("SET number 12345 PX 100000000", "+OK\r\n"),
    ("RPUSH list a b 3", ":3\r\n"),
    ("SADD set x y z", ":3\r\n"),
    ("SADD integers 1 2 -70000", ":3\r\n"),
    ("HSET hash f 1 g two", ":2\r\n"),
    ("ZADD ranks 1.5 a -inf b", ":2\r\n"),
    ("XADD stream 1-1 f v", "$3\r\n1-1\r\n"),
    ("XGROUP CREATE stream g 0", "+OK\r\n"),
    ("SELECT 3", "+OK\r\n"),
    ("SET other 1", "+OK\r\n"),
    ("SELECT 0", "+OK\r\n"),
];

/// The reply to DEBUG DIGEST: a hash of all keys and values.
fn digest(stream: &mut (impl Read + Write)) -> String {
    stream.write_all(b"DEBUG DIGEST\r\n").expect("open");
    let mut answer = [0; 43];
    stream.read_exact(&mut answer).expect("answered");
    String::from_utf8_lossy(&answer).into_owned()
}

/// Waits until the background write is done, for at most half a minute.
#[track_caller]
fn until(stream: &mut (impl Read + Write), there: impl Fn() -> bool) {
    for _ in 0..3_000 {
        if there() {
            return;
        }
        asks(stream, "DEBUG SLEEP 0.01", "+OK\r\n");
    }
    panic!("it is never there");
}

#[test]
fn data_is_kept_where_it_is_told_to() {
    let folder = folder("data");
    let start = || Served::start(&folder, &["--data", "."]);
    let served = start();
    let mut stream = served.connect();
    for (command, answer) in WRITES {
        asks(&mut stream, command, answer);
    }
    asks(&mut stream, "SAVE", "+OK\r\n");
    let saved = digest(&mut stream);
    drop(served);
    let served = start();
    let mut stream = served.connect();
    assert_eq!(digest(&mut stream), saved, "what was saved is there again");
    asks(&mut stream, "SET more 1", "+OK\r\n");
    let at_the_end = digest(&mut stream);
    served.signal(Signal::TERM);
    assert_eq!(served.ended().0, 0);
    let served = start();
    assert_eq!(digest(&mut served.connect()), at_the_end, "an orderly end saves");
    drop(served);

    // A folder that takes no file, and a file that is not a folder.
    fs::remove_file(folder.join("dump.rdb")).expect("it was saved");
    let served = Served::start(&folder, &["--data", ".", "--option", "dbfilename=none/none/x"]);
    asks(&mut served.connect(), "SAVE", "-ERR\r\n");
    drop(served);
    fs::write(folder.join("dump.rdb"), "nonsense").expect("a file");
    is_refused(&folder, &["--data", "nowhere"], "No such file or directory");
    is_refused(&folder, &["--data", "."], "Fatal error loading the DB from dump.rdb");
    assert_eq!(fs::read(folder.join("dump.rdb")).expect("it is there"), b"nonsense");
}

/// Checks that a start fails, and that its output ends with `says`.
#[track_caller]
fn is_refused(folder: &Path, arguments: &[&str], says: &str) {
    let refused = Command::new(env!("CARGO_BIN_EXE_lockstorm"))
        .args(["serve", "--port", "0"])
        .args(arguments)
        .current_dir(folder)
        .output()
        .expect("the binary runs");
    let err = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(64), "{arguments:?}: {err}");
    let last = err.trim_end().lines().last();
    assert!(last.is_some_and(|last| last.contains(says)), "{says:?} does not end {err}");
}

#[test]
fn a_real_server_reads_what_is_kept_and_the_other_way_round() {
    let folder = folder("data_of_both");
    let served = Served::beside(&folder, &["--data", "."]);
    let mut stream = served.connect();
    for (command, answer) in WRITES {
        asks(&mut stream, command, answer);
    }
    for n in 0..500 {
        let long = "x".repeat(n);
        asks(&mut stream, &format!("SET long:{n} v{long}"), "+OK\r\n");
        asks(&mut stream, &format!("HSET large f{n} v{long}"), ":1\r\n");
        asks(&mut stream, &format!("ZADD larger {n}.5 m{n}"), ":1\r\n");
    }
    asks(&mut stream, "BGSAVE", "+Background saving started\r\n");
    let kept = digest(&mut stream);
    until(&mut stream, || folder.join("dump.rdb").exists());
    drop(served);
    let Some(real) = redis(&folder, &[]) else {
        return nothing_to_compare_with();
    };
    let checked = Command::new("redis-check-rdb").arg(folder.join("dump.rdb")).output();
    if let Ok(checked) = checked {
        assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stdout));
    }
    let mut stream = real.connect();
    assert_eq!(digest(&mut stream), kept);
    asks(&mut stream, "LPUSH list more", ":4\r\n");
    asks(&mut stream, "SAVE", "+OK\r\n");
    let kept = digest(&mut stream);
    drop(real);
    let served = Served::beside(&folder, &["--data", "."]);
    assert_eq!(digest(&mut served.connect()), kept);
}

/// The arguments for an append-only file in the server's folder.
const APPENDING: [&str; 4] = ["--data", ".", "--option", "appendonly=yes"];

/// A complete stream, a transaction, a library, and a key that expires late.
const MORE_WRITES: &[(&str, &str)] = &[
    ("XADD stream 2-1 f w", "$3\r\n2-1\r\n"),
    ("XREADGROUP GROUP g one COUNT 1 STREAMS stream >", "*1\r\n"),
    ("XGROUP CREATECONSUMER stream g idle", ":1\r\n"),
    ("XGROUP CREATE empty g $ MKSTREAM", "+OK\r\n"),
    ("EXPIREAT list 4000000000", ":1\r\n"),
    ("MULTI", "+OK\r\n"),
    ("INCR number", "+QUEUED\r\n"),
    ("SPOP set", "+QUEUED\r\n"),
    ("EXEC", "*2\r\n:12346\r\n"),
    ("EVAL \"return redis.call('append', KEYS[1], 'x')\" 1 text", ":6\r\n"),
];

/// Sends the commands, and compares only the beginnings of their replies: some replies contain
/// more.
#[track_caller]
fn writes(stream: &mut TcpStream, commands: &[(&str, &str)]) {
    let mut queued = false;
    for (command, answer) in commands {
        asks(stream, command, answer);
        queued = (queued || *command == "MULTI") && *command != "EXEC";
        if queued {
            continue;
        }
        // Read the rest of the reply, up to the reply to ECHO.
        stream.write_all(b"ECHO end\r\n").expect("open");
        let mut seen = Vec::new();
        while !seen.ends_with(b"$3\r\nend\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).expect("answered");
            seen.push(byte[0]);
        }
    }
}

#[test]
fn an_append_only_file_outlives_a_kill_and_a_real_server_goes_on_with_it() {
    for preamble in ["yes", "no"] {
        let folder = folder(&format!("append_{preamble}"));
        let form = format!("aof-use-rdb-preamble={preamble}");
        let arguments = [&APPENDING[..], &["--option", &form]].concat();
        let served = Served::beside(&folder, &arguments);
        let mut stream = served.connect();
        writes(&mut stream, WRITES);
        // The rewritten data is in the base; later commands follow it.
        asks(&mut stream, "BGREWRITEAOF", "+Background append only file rewriting started\r\n");
        asks(&mut stream, "CONFIG SET aof-timestamp-enabled yes", "+OK\r\n");
        writes(&mut stream, MORE_WRITES);
        let kept = digest(&mut stream);
        let manifest = folder.join("appendonlydir/appendonly.aof.manifest");
        let has_base = |number: usize| {
            let text = fs::read_to_string(&manifest).expect("a manifest");
            text.contains(&format!(".{number}.base."))
        };
        until(&mut stream, || {
            has_base(2) && fs::read_dir(manifest.with_file_name("")).is_ok_and(|files| files.count() == 3)
        });
        drop(served);
        let extension = if preamble == "yes" { "rdb" } else { "aof" };
        let expected = format!(
            "file appendonly.aof.2.base.{extension} seq 2 type b\nfile appendonly.aof.2.incr.aof seq 2 type i\n"
        );
        assert_eq!(fs::read_to_string(&manifest).expect("a manifest"), expected);
        assert_eq!(fs::read_dir(folder.join("appendonlydir")).expect("a folder").count(), 3);

        let served = Served::beside(&folder, &arguments);
        let mut stream = served.connect();
        assert_eq!(digest(&mut stream), kept, "{preamble}");
        asks(&mut stream, "DEBUG LOADAOF", "+OK\r\n");
        assert_eq!(digest(&mut stream), kept, "{preamble}");
        drop(served);

        let real = ["--appendonly", "yes", "--aof-use-rdb-preamble", preamble];
        let Some(served) = redis(&folder, &real) else { return nothing_to_compare_with() };
        if let Ok(checked) = Command::new("redis-check-aof").arg(&manifest).output() {
            let said = String::from_utf8_lossy(&checked.stdout);
            assert!(said.contains("All AOF files and manifest are valid"), "{said}");
        }
        let mut stream = served.connect();
        assert_eq!(digest(&mut stream), kept, "{preamble}");
        asks(&mut stream, "LPUSH list more", ":4\r\n");
        asks(&mut stream, "BGREWRITEAOF", "+Background append only file rewriting started\r\n");
        until(&mut stream, || has_base(3));
        asks(&mut stream, "SADD set more", ":1\r\n");
        let kept = digest(&mut stream);
        served.signal(Signal::TERM);
        assert_eq!(served.ended().0, 0);

        let served = Served::beside(&folder, &arguments);
        let mut stream = served.connect();
        assert_eq!(digest(&mut stream), kept, "{preamble}");
        // The AOF can be turned off and on, and then a new file begins.
        asks(&mut stream, "CONFIG SET appendonly no", "+OK\r\n");
        asks(&mut stream, "SET off 1", "+OK\r\n");
        asks(&mut stream, "CONFIG SET appendonly yes", "+OK\r\n");
        let kept = digest(&mut stream);
        until(&mut stream, || has_base(4));
        drop(served);
        let Some(served) = redis(&folder, &real) else { return nothing_to_compare_with() };
        assert_eq!(digest(&mut served.connect()), kept, "{preamble}");
    }
}

/// A command in the form of the append-only file.
fn appended(words: &[&str]) -> String {
    let parts: String = words.iter().map(|word| format!("${}\r\n{word}\r\n", word.len())).collect();
    format!("*{}\r\n{parts}", words.len())
}

#[test]
fn an_append_only_file_that_cannot_be_read_is_told_with_its_place() {
    let folder = folder("append_damaged");
    let (dir, incremental) = (folder.join("appendonlydir"), "appendonlydir/appendonly.aof.1.incr.aof");
    fs::create_dir_all(&dir).expect("a folder");
    let manifest = |text: &str| {
        fs::write(dir.join("appendonly.aof.manifest"), text).expect("written");
    };
    manifest("file appendonly.aof.1.incr.aof seq 1 type i\n");
    let set = appended(&["SET", "a", "1"]);
    let strict = [&APPENDING[..], &["--option", "aof-load-truncated=no"]].concat();
    for (text, arguments, says) in [
        (format!("{set}!!!"), &APPENDING[..], "Bad file format reading the append only file {} at byte 27"),
        (
            format!("{set}{}", appended(&["BLA", "a"])),
            &APPENDING,
            "Unknown command 'BLA' reading the append only file {} at byte 27",
        ),
        (
            format!("{set}{}", &set[..20]),
            &strict,
            "Unexpected end of file reading the append only file {}: what begins at byte 27",
        ),
        (
            format!("{set}{}{set}", appended(&["MULTI"])),
            &strict,
            "Unexpected end of file reading the append only file {}: what begins at byte 27",
        ),
    ] {
        fs::write(folder.join(incremental), &text).expect("written");
        is_refused(&folder, arguments, &says.replace("{}", incremental));
        assert_eq!(fs::read_to_string(folder.join(incremental)).expect("it is there"), text);
    }
    // If the option allows it, an incomplete end is cut off, and later commands follow the complete
    // part.
    let served = Served::start(&folder, &APPENDING);
    asks(&mut served.connect(), "GET a", "$1\r\n1\r\n");
    asks(&mut served.connect(), "INCR a", ":2\r\n");
    drop(served);
    let served = Served::start(&folder, &strict);
    asks(&mut served.connect(), "GET a", "$1\r\n2\r\n");
    drop(served);
    fs::remove_file(folder.join(incremental)).expect("it was there");
    is_refused(&folder, &APPENDING, "appendonly.aof.1.incr.aof cannot be opened: No such file or directory");
    manifest("nonsense\n");
    is_refused(&folder, &APPENDING, "Invalid AOF manifest file format: line 1 of");
}

#[test]
fn the_single_file_of_an_older_version_becomes_a_base() {
    let folder = folder("append_single");
    let set = appended(&["SET", "a", "1"]);
    for begun in [false, true] {
        let _ = fs::remove_dir_all(folder.join("appendonlydir"));
        fs::write(folder.join("appendonly.aof"), &set).expect("written");
        let manifest = folder.join("appendonlydir/appendonly.aof.manifest");
        if begun {
            fs::create_dir_all(folder.join("appendonlydir")).expect("a folder");
            fs::write(&manifest, "file appendonly.aof seq 1 type b\n").expect("written");
        }
        let served = Served::start(&folder, &APPENDING);
        asks(&mut served.connect(), "INCR a", ":2\r\n");
        drop(served);
        assert_eq!(
            fs::read_to_string(&manifest).expect("a manifest"),
            "file appendonly.aof seq 1 type b\nfile appendonly.aof.1.incr.aof seq 1 type i\n"
        );
        assert!(!folder.join("appendonly.aof").exists());
        assert_eq!(fs::read_to_string(folder.join("appendonlydir/appendonly.aof")).expect("moved"), set);
        let served = Served::start(&folder, &APPENDING);
        asks(&mut served.connect(), "GET a", "$1\r\n2\r\n");
    }
}
