//! `lockstorm audit`: captures of real servers, and a stream of MONITOR.

use std::{
    fs,
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    path::PathBuf,
    process::Stdio,
    thread,
};

use super::{Folder, Ran};

/// Returns the path of a capture of the library's tests.
fn capture(name: &str) -> String {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../scenarios/tests/audit");
    folder.join(format!("{name}.monitor")).display().to_string()
}

#[test]
fn the_exit_status_says_if_there_are_findings() {
    let folder = Folder::with("audit_exit", "empty.monitor", "OK\n");
    fs::write(folder.0.join("bad.monitor"), "no capture\n").expect("written");
    let (late, clean) = (capture("redisson-late"), capture("redis-py-clean"));
    let rows: [(&[&str], i32, &str); 12] = [
        (&["audit", &late], 1, "expired under its holder: stock"),
        (&["audit", &clean], 0, "no findings"),
        (&["audit", "empty.monitor"], 2, "no locks"),
        (&["audit", "bad.monitor"], 2, "bad.monitor:1: the line does not begin with a time"),
        (&["audit", "absent.monitor"], 64, "absent.monitor cannot be read"),
        (&["audit", &late, "--lock", "other*"], 2, "no locks"),
        (&["audit", &late, "--for", "1s"], 64, "--for is for a server"),
        (&["audit", "http://user:secret@host"], 64, "bad redis URL"),
        (&["audit", &late, "--gentle"], 64, "--gentle is for a server"),
        (&["audit", &late, "--poll", "1s"], 64, "--gentle"),
        (&["audit", "redis://h", "--gentle", "--poll", "10ms"], 64, "--poll is less than 100ms"),
        (&["audit", "redis://h", "--gentle", "--history", "h.jsonl"], 64, "cannot be used with"),
    ];
    for (arguments, code, part) in rows {
        let ran = folder.run(arguments);
        assert_eq!(ran.code, code, "{arguments:?}\n{}{}", ran.out, ran.err);
        let both = format!("{}{}", ran.out, ran.err).replace('\n', " ");
        assert!(both.contains(part), "{arguments:?}: {part:?} is not in\n{both}");
        assert!(!both.contains("secret"), "{both}");
    }
}

#[test]
fn nodes_standard_input_json_page_and_history() {
    let folder = Folder::new("audit_outputs");
    let (late, deleted) = (capture("redisson-late"), capture("redis-py-deleted"));
    let (one, other) = (format!("n1={late}"), "n2=-".to_owned());
    let arguments = ["audit", "--node", &one, "--node", &other, "--json"];
    let outputs = ["--report", "page.html", "--history", "h.jsonl"];
    let mut command = folder.command(&[&arguments[..], &outputs[..]].concat());
    let input = fs::File::open(deleted).expect("it exists");
    let ran = Ran::of(command.stdin(Stdio::from(input)).output().expect("the binary runs"));
    assert_eq!(ran.code, 1, "{}", ran.err);
    let json: serde_json::Value = serde_json::from_str(&ran.out).expect("it is JSON");
    let kinds: Vec<(&str, &str)> = json["findings"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|one| (one["node"].as_str().unwrap_or(""), one["kind"].as_str().unwrap_or("")))
        .collect();
    assert_eq!(kinds.len(), 2);
    assert!(kinds.contains(&("n1", "late")) && kinds.contains(&("n2", "deleted")), "{kinds:?}");
    let page = fs::read_to_string(folder.0.join("page.html")).expect("a page");
    assert!(page.contains("deleted by hand: stock"), "{page}");
    let checked = folder.run(&["check", "h.jsonl"]);
    assert!(checked.code <= 2 && checked.err.is_empty(), "{}", checked.err);
}

#[test]
fn a_simulated_run_is_audited_by_its_captures() {
    let folder = Folder::new("audit_of_a_run");
    for of in [
        &["run", "single/del_without_token.toml#del", "--seed", "0"][..],
        &["replay", "single/del_without_token.toml#del@0"],
    ] {
        let ran = folder.run(&[of, &["--monitor", "captures"]].concat());
        assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
        let capture = fs::read_to_string(folder.0.join("captures/m.monitor")).expect("one for each node");
        assert!(capture.starts_with("OK\n1704067"), "{capture}");
        let ran = folder.run(&["audit", "captures/m.monitor"]);
        assert_eq!(ran.code, 1, "{}{}", ran.out, ran.err);
        assert!(ran.out.contains("1 finding\n\n  released by another client: lock"), "{}", ran.out);
    }
}

#[test]
fn a_finding_is_written_as_a_scenario_that_runs() {
    let folder = Folder::new("audit_scenario");
    let rows = [
        ("redisson-stopped", 1, "l3"),
        ("shedlock-flushed", 2, "owner-safety"),
        ("redis-py-deleted", 1, "owner-safety"),
        ("no-lease-watchdog", 1, "progress"),
    ];
    for (name, finding, checker) in rows {
        let (file, finding) = (format!("{name}.toml"), finding.to_string());
        let path = capture(name);
        let arguments = ["audit", &path, "--scenario", &file, "--finding", &finding];
        folder.run(&arguments).ends(0, &format!("shows finding {finding}: {checker} is violated"));
        folder.run(&["run", &file]).ends(0, "1 as expected, 0 not, 0 undecided");
        let text = fs::read_to_string(folder.0.join(&file)).expect("it is written");
        assert!(text.contains("granted it"), "{text}");
        folder.run(&arguments).ends(64, "already exists");
        folder.run(&[&arguments[..], &["--force"]].concat()).ends(0, "Try it");
    }
    let (late, clean) = (capture("redisson-late"), capture("redis-py-clean"));
    folder.run(&["audit", &late, "--scenario", "a.toml", "--finding", "2"]).ends(1, "there is no finding 2");
    folder.run(&["audit", &clean, "--scenario", "a.toml"]).ends(1, "a.toml is not written");
    folder.run(&["audit", &late, "--finding", "1"]).ends(64, "--scenario");
    folder.run(&["audit", &late, "--scenario", "a.toml", "--finding", "0"]).ends(64, "0 is not in 1..");
    assert!(!folder.0.join("a.toml").exists());
}

#[test]
fn a_scenario_that_does_not_show_its_finding_names_the_missing_assumption() {
    let text = "1700000000.000000 [0 10.0.0.1:1] \"PING\"\n\
         1700100000.000000 [0 10.0.0.1:1] \"SET\" \"a\" \"one\" \"NX\" \"PX\" \"9000\"\n\
         1700100001.000000 [0 10.0.0.2:1] \"DELIFEQ\" \"a\" \"one\"\n";
    let folder = Folder::with("audit_missing", "shared.monitor", text);
    let ran = folder.run(&["audit", "shared.monitor", "--scenario", "out.toml"]);
    ran.ends(2, "Missing assumption: kind: no step or fault");
    let written = fs::read_to_string(folder.0.join("out.toml")).expect("it is written");
    assert!(written.starts_with("# Missing assumption: kind: "), "{written}");
}

/// Accepts a connection, reads up to MONITOR, and sends three replies and the lines of a capture.
/// Returns the connection and the requests.
fn plays(listener: &TcpListener, text: &str) -> (TcpStream, String) {
    let (mut stream, _) = listener.accept().expect("the audit connects");
    let (mut asked, mut buffer) = (Vec::new(), [0; 1024]);
    while !asked.ends_with(b"MONITOR\r\n") {
        let count = stream.read(&mut buffer).expect("it asks");
        assert!(count > 0, "it ends before it asks");
        asked.extend_from_slice(&buffer[..count]);
    }
    let lines = text.lines().skip(1).map(|line| format!("+{line}\r\n"));
    let lines: String = lines.collect();
    stream.write_all(format!("+OK\r\n-NOPERM no\r\n+OK\r\n{lines}").as_bytes()).expect("it reads");
    (stream, String::from_utf8(asked).expect("it is text"))
}

/// The audit sends the server its login, its name and MONITOR. It reads the lines until the server
/// ends the connection.
#[test]
fn a_server_is_asked_for_monitor_and_nothing_else() {
    let text = fs::read_to_string(capture("redis-py-stopped")).expect("it exists");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let server = thread::spawn(move || plays(&listener, &text).1);
    let folder = Folder::new("audit_live");
    let ran = folder.run(&["audit", &format!("redis://:secret@127.0.0.1:{port}"), "--for", "20s"]);
    assert_eq!(ran.code, 1, "{}{}", ran.out, ran.err);
    assert!(ran.out.contains("granted twice: stock"), "{}", ran.out);
    assert!(ran.err.contains(" granted twice: stock, owner #"), "{}", ran.err);
    let asked = server.join().expect("it ends");
    let expected = "*2\r\n$4\r\nAUTH\r\n$6\r\nsecret\r\n\
        *3\r\n$6\r\nCLIENT\r\n$7\r\nSETNAME\r\n$15\r\nlockstorm-audit\r\n*1\r\n$7\r\nMONITOR\r\n";
    assert_eq!(asked, expected);
}

#[test]
fn a_server_that_refuses_is_an_error() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let server = thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("the audit connects");
        stream.write_all(b"-NOAUTH a\r\n-NOAUTH b\r\n").expect("it reads");
        let _ = stream.read_to_end(&mut Vec::new());
    });
    let folder = Folder::new("audit_refused");
    let ran = folder.run(&["audit", &format!("redis://127.0.0.1:{port}")]);
    assert_eq!(ran.code, 64, "{}", ran.out);
    assert!(ran.err.contains("the server refuses: NOAUTH b"), "{}", ran.err);
    server.join().expect("it ends");
}

#[test]
fn an_append_only_file_is_read_by_its_manifest() {
    let path = |name: &str| {
        let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../scenarios/tests/audit");
        folder.join(name).to_string_lossy().into_owned()
    };
    let folder = Folder::new("audit_aof");
    ["empty", "appendonlydir"].iter().for_each(|name| fs::create_dir(folder.0.join(name)).expect("created"));
    let manifest = folder.0.join("appendonlydir/a.manifest");
    fs::write(manifest, "file a.1.incr.aof seq x type i\n").expect("written");
    let (timed, old) = (path("redis-8.2-aof"), path("redis-6.2.aof"));
    let rows: [(&[&str], i32, &str); 6] = [
        (&["audit", &timed], 1, "deleted by hand: hash:stock"),
        (&["audit", &timed, "--lock", "lock:*"], 1, "overwritten: lock:stock"),
        (&["audit", &old], 0, "their times are unknown"),
        (&["audit", &timed, "--history", "h.jsonl"], 64, "neither senders nor refused requests"),
        (&["audit", "appendonlydir"], 64, "Invalid AOF manifest file format"),
        (&["audit", "empty"], 64, "has 0 files *.manifest"),
    ];
    for (arguments, code, part) in rows {
        let ran = folder.run(arguments);
        assert_eq!(ran.code, code, "{arguments:?}\n{}{}", ran.out, ran.err);
        // A long message is broken into lines with a margin.
        let both = format!("{}{}", ran.out, ran.err).replace("\n  │ ", " ").replace('\n', " ");
        assert!(both.contains(part), "{arguments:?}: {part:?} is not in\n{both}");
    }
}

/// The row of a finding has its first and its last command.
#[test]
fn findings_are_written_as_rows() {
    let folder = Folder::new("audit_rows");
    let stopped = capture("redis-py-stopped");
    let node = format!("n1={stopped}");
    let ran = folder.run(&["audit", "--node", &node, "--results", "rows.csv"]);
    ran.ends(1, "rows.csv has 1 findings in 24 columns");
    let text = fs::read_to_string(folder.0.join("rows.csv")).expect("it is written");
    let lines: Vec<&str> = text.lines().collect();
    let head = "finding,kind,node,db,lock,owner,at,unix_seconds,times,says,claim,commands,\
        first.place,first.unit,first.at,first.client,first.part,first.command,\
        last.place,last.unit,last.at,last.client,last.part,last.command";
    assert_eq!((lines.len(), lines[0]), (2, head));
    assert!(lines[1].starts_with("1,granted-twice,n1,0,stock,#"), "{text}");
    for part in
        [",S2,3,", ",line,", ",granted it,SET stock #", ",the former holder came back,EVALSHA c3f8721c "]
    {
        assert!(lines[1].contains(part), "{part:?} is not in\n{text}");
    }
    let clean = capture("redis-py-clean");
    folder.run(&["audit", &clean, "--results", "none.csv"]).ends(0, "none.csv has 0 findings");
    assert_eq!(fs::read_to_string(folder.0.join("none.csv")).expect("it is written").lines().count(), 1);
    folder.run(&["audit", &clean, "--results", "rows.txt"]).ends(64, ".csv or .parquet");
    folder.run(&["audit", &clean, "--results", "absent/rows.csv"]).ends(64, "cannot be written");
}

#[cfg(feature = "metrics")]
#[test]
fn metrics_are_served_while_a_server_is_audited() {
    use std::io::{BufRead, BufReader};

    let text = fs::read_to_string(capture("redis-py-stopped")).expect("it exists");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("redis://:secret@{}", listener.local_addr().expect("an address"));
    let folder = Folder::new("audit_metrics");
    let arguments = ["audit", &url, "--for", "60s", "--metrics", "127.0.0.1:0", "--metrics-by-lock"];
    let mut command = folder.command(&arguments);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary runs");
    let mut errors = BufReader::new(child.stderr.take().expect("a pipe"));
    let mut line = String::new();
    errors.read_line(&mut line).expect("it says where the metrics are");
    let address = line.trim_end().strip_prefix("metrics are at http://").expect("an address");
    let address = address.strip_suffix("/metrics").expect("a path").to_owned();
    let (stream, _) = plays(&listener, &text);
    let asked = |path: &str| {
        #[expect(clippy::disallowed_methods, reason = "a scraper on the real network")]
        let mut scraper = TcpStream::connect(&address).expect("it listens there");
        let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n");
        scraper.write_all(request.as_bytes()).expect("it reads");
        let mut answer = String::new();
        scraper.read_to_string(&mut answer).expect("an answer and an end");
        answer
    };
    let expected = [
        "lockstorm_audit_findings_total{kind=\"granted-twice\"} 1",
        "lockstorm_audit_monitored{node=\"127.0.0.1:",
        "lockstorm_audit_lock_held{node=\"127.0.0.1:",
        "lock=\"stock\"} ",
    ];
    let mut answer = String::new();
    for _ in 0..600 {
        answer = asked("/metrics");
        if answer.contains(expected[0]) {
            break;
        }
        #[expect(clippy::disallowed_methods, reason = "the audit shows its figures each second")]
        thread::sleep(std::time::Duration::from_millis(100));
    }
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    for part in expected {
        assert!(answer.contains(part), "{part:?} is not in\n{answer}");
    }
    assert!(!answer.contains("secret") && answer.ends_with("# EOF\n"), "{answer}");
    assert!(asked("/").starts_with("HTTP/1.1 404 "));
    drop(stream);
    let mut rest = String::new();
    errors.read_to_string(&mut rest).expect("it is text");
    // The finding is also a line, as standard error is no terminal.
    assert!(rest.contains(" granted twice: stock, owner #"), "{rest}");
    assert_eq!(child.wait().expect("it ends").code(), Some(1));
    let clean = capture("redis-py-clean");
    folder.run(&["audit", &clean, "--metrics", "127.0.0.1:0"]).ends(64, "--metrics is for a server");
    folder.run(&["audit", &clean, "--metrics-by-lock"]).ends(64, "--metrics <ADDR:PORT>");
}
