//! MIGRATE: keys move from one node to another.

use std::net::{Ipv4Addr, TcpListener};

use super::node::Node;

fn fill(node: &mut Node) {
    for line in [
        "SET text hello",
        "SET number 12345",
        "RPUSH list a b 3",
        "SADD set x y z",
        "SADD integers 1 2 3",
        "HSET hash f 1 g two",
        "ZADD ranks 1.5 a -inf b",
        "XADD stream 1-1 f v",
        "XGROUP CREATE stream g 0",
        "PFADD sketch a b c",
        "SET mortal 1 PX 1000000",
    ] {
        node.ask(line);
    }
}

const KEYS: &str = "text number list set integers hash ranks stream sketch mortal";

pub(crate) fn keys_move_with_all_that_is_in_them(mut source: Node, mut target: Node) {
    fill(&mut source);
    let digests = |node: &mut Node| node.ask(&format!("DEBUG DIGEST-VALUE {KEYS}"));
    let before = digests(&mut source);
    let to = format!("{} {}", target.host(), target.port());
    assert_eq!(source.ask_words(&words(&format!("MIGRATE {to} \"\" 0 5000 KEYS {KEYS} none"))), "OK");
    assert_eq!((source.ask("DBSIZE"), target.ask("DBSIZE")), ("0".into(), "10".into()));
    assert_eq!(digests(&mut target), before);
    let left: i64 = target.ask("PTTL mortal").parse().expect("a number");
    assert!((900_000..=1_000_000).contains(&left), "{left}");
    assert_eq!(target.ask("PTTL text"), "-1");

    for (line, answer) in [
        ("MIGRATE {to} text 0 5000", "NOKEY"),
        ("SET text other", "OK"),
        (
            "MIGRATE {to} text 0 5000",
            "Target instance replied with error: BUSYKEY Target key name already exists.",
        ),
        ("EXISTS text", "1"),
        ("MIGRATE {to} text 0 5000 COPY REPLACE", "OK"),
        ("EXISTS text", "1"),
        (
            "MIGRATE {to} text 99 5000 REPLACE",
            "Target instance replied with error: ERR DB index is out of range",
        ),
        (
            "MIGRATE {to} text 0 5000 AUTH secret",
            "Target instance replied with error: ERR AUTH <password> called",
        ),
        ("MIGRATE {to} text 0 5000 REPLACE", "OK"),
        ("EXISTS text", "0"),
        ("SET text third", "OK"),
        ("MIGRATE {to} text 3 5000", "OK"),
    ] {
        let got = source.ask(&line.replace("{to}", &to));
        assert!(got.contains(answer), "{line}: {got}");
    }
    assert_eq!(target.ask("GET text"), "other");
    // With several keys, those that can move do.
    source.ask("MSET a 1 b 2");
    target.ask("SET b 3");
    let busy = source.ask_words(&words(&format!("MIGRATE {to} \"\" 0 5000 KEYS a b")));
    assert!(busy.contains("BUSYKEY"), "{busy}");
    assert_eq!((source.ask("EXISTS a"), source.ask("EXISTS b")), ("0".into(), "1".into()));
    assert_eq!((target.ask("GET a"), target.ask("GET b")), ("1".into(), "3".into()));
}

pub(crate) fn a_target_without_a_server_is_an_error(mut source: Node, target: Node) {
    source.ask("SET a 1");
    let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    let port = free.local_addr().expect("it is bound").port();
    drop(free);
    let refused = source.ask(&format!("MIGRATE 127.0.0.1 {port} a 0 100"));
    assert!(refused.contains("error or timeout writing to target instance"), "{refused}");
    target.sleep(1.0);
    let late = source.ask(&format!("MIGRATE {} {} a 0 100", target.host(), target.port()));
    assert!(late.contains("error or timeout reading to target"), "{late}");
    assert_eq!(source.ask("GET a"), "1");
}

pub(crate) fn a_transaction_waits_for_the_target(mut source: Node, mut target: Node) {
    let to = format!("{} {}", target.host(), target.port());
    source.ask("MSET a 1 b 2 c 3");
    target.ask("SET b 9");
    for line in [
        "MULTI",
        "SET d 4",
        "MIGRATE {to} a 0 5000",
        "EXISTS a",
        "MIGRATE {to} b 0 5000",
        "MIGRATE {to} none 0 5000",
        "MIGRATE {to} c 0 5000 COPY",
        "MIGRATE {to} d 0 5000",
        "DBSIZE",
    ] {
        source.ask(&line.replace("{to}", &to));
    }
    let replies = source.ask("EXEC");
    let order = ["ok", "ok", "int(0)", "BUSYKEY", "NOKEY", "ok", "ok", "int(2)"];
    let mut left = &replies[..];
    for word in order {
        let Some((_, behind)) = left.split_once(word) else { panic!("no {word} in {left} of {replies}") };
        left = behind;
    }
    assert_eq!(source.ask("EXISTS a b c d"), "2");
    assert_eq!(target.ask("EXISTS a b c d"), "4");
}

/// Splits words at blanks; `""` is the empty word.
fn words(line: &str) -> Vec<&str> {
    line.split(' ').map(|word| if word == "\"\"" { "" } else { word }).collect()
}
