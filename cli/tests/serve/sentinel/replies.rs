//! Replies of Sentinels to commands: ours like one of Redis, in both protocols.

use std::{
    collections::BTreeSet,
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpStream},
};

use super::{
    Ours, Redis, installed, now, sentinel_of, sentinel_with, until_it_follows, until_it_knows, wait, watching,
};
use crate::served::{PATIENCE, Served, folder};

/// The replies of a Sentinel that watches one master at a closed port.
const ANSWERS: &[(&str, &str)] = &[
    ("GET k", "-ERR unknown command 'GET', with args beginning with: 'k' "),
    ("QUIT", "-ERR unknown command 'QUIT', with args beginning with: "),
    ("CONFIG GET port", "-ERR unknown command 'CONFIG', with args beginning with: 'GET' 'port' "),
    ("SENTINEL FOO", "-ERR unknown subcommand 'FOO'. Try SENTINEL HELP."),
    ("SENTINEL", "-ERR wrong number of arguments for 'sentinel' command"),
    ("SENTINEL MASTER", "-ERR wrong number of arguments for 'sentinel|master' command"),
    ("SENTINEL MASTER x", "-ERR No such master with that name"),
    ("SENTINEL FAILOVER main", "-NOGOODSLAVE No suitable replica to promote"),
    ("SENTINEL FAILOVER x", "-ERR No such master with that name"),
    ("SENTINEL SET main quorum 0", "-ERR Invalid argument '0' for SENTINEL SET 'quorum'"),
    ("SENTINEL SET main foo 1", "-ERR Unknown option or number of arguments for SENTINEL SET 'foo'"),
    ("SENTINEL SET x quorum 2", "-ERR No such master with that name"),
    (
        "SENTINEL SET main down-after-milliseconds 0",
        "-ERR Invalid argument '0' for SENTINEL SET 'down-after-milliseconds'",
    ),
    ("SENTINEL SET main failover-timeout x", "-ERR Invalid argument 'x' for SENTINEL SET 'failover-timeout'"),
    ("SENTINEL SET main parallel-syncs 0", "-ERR Invalid argument '0' for SENTINEL SET 'parallel-syncs'"),
    (
        "SENTINEL SET main master-reboot-down-after-period -1",
        "-ERR Invalid argument '-1' for SENTINEL SET 'master-reboot-down-after-period'",
    ),
    (
        "SENTINEL SET main rename-command a",
        "-ERR Unknown option or number of arguments for SENTINEL SET 'rename-command'",
    ),
    ("SENTINEL SET main auth-user joe auth-pass '' rename-command PING PONG", "+OK"),
    ("SENTINEL MONITOR main 127.0.0.1 1 1", "-ERR Duplicate master name."),
    ("SENTINEL MONITOR a b 1 1", "-ERR Invalid IP address or hostname specified"),
    ("SENTINEL MONITOR a 127.0.0.1 x 1", "-ERR Invalid port"),
    ("SENTINEL MONITOR a 127.0.0.1 70000 1", "-ERR Invalid port number."),
    ("SENTINEL MONITOR a 127.0.0.1 1 0", "-ERR Quorum must be 1 or greater."),
    (
        "SENTINEL CONFIG GET *",
        "*12 $17 resolve-hostnames $2 no $18 announce-hostnames $2 no $11 announce-ip $0  $13 announce-port $1 0 $13 \
         sentinel-user $0  $13 sentinel-pass $0 ",
    ),
    ("SENTINEL CONFIG SET announce-ip 10.0.0.1", "+OK"),
    ("SENTINEL CONFIG SET ANNOUNCE-PORT 7", "+OK"),
    ("SENTINEL CONFIG SET announce-hostnames yes", "+OK"),
    (
        "SENTINEL CONFIG GET ann*",
        "*6 $18 announce-hostnames $3 yes $11 announce-ip $8 10.0.0.1 $13 announce-port $1 7",
    ),
    (
        "SENTINEL CONFIG SET announce-hostnames maybe",
        "-ERR Invalid value 'maybe' to SENTINEL CONFIG SET 'announce-hostnames'",
    ),
    ("SENTINEL CONFIG SET sentinel-user joe", "+OK"),
    ("SENTINEL CONFIG SET sentinel-pass secret", "+OK"),
    ("SENTINEL CONFIG GET SENTINEL-*", "*4 $13 sentinel-user $3 joe $13 sentinel-pass $6 secret"),
    ("SENTINEL CONFIG GET none", "*0"),
    (
        "SENTINEL CONFIG SET announce-port 7 announce-ip x",
        "-ERR Only SENTINEL CONFIG GET <option> / SET <option> <value> are supported.",
    ),
    ("SENTINEL CONFIG SET announce-port x", "-ERR Invalid value 'x' to SENTINEL CONFIG SET 'announce-port'"),
    ("SENTINEL CONFIG SET foo 1", "-ERR Invalid argument 'foo' to SENTINEL CONFIG SET"),
    ("SENTINEL CONFIG FOO x", "-ERR Only SENTINEL CONFIG GET <option> / SET <option> <value> are supported."),
    (
        "SENTINEL CKQUORUM main",
        "-NOQUORUM 1 usable Sentinels. Not enough available Sentinels to reach the specified quorum for this master",
    ),
    ("SENTINEL IS-MASTER-DOWN-BY-ADDR 127.0.0.1 1 0 *", "*3 :0 $1 * :0"),
    ("SENTINEL IS-MASTER-DOWN-BY-ADDR 127.0.0.1 x 0 *", "-ERR value is not an integer or out of range"),
    ("SENTINEL GET-MASTER-ADDR-BY-NAME main", "*2 $9 127.0.0.1 $1 1"),
    ("SENTINEL GET-MASTER-ADDR-BY-NAME x", "*-1"),
    ("PUBLISH foo bar", "-ERR Only HELLO messages are accepted by Sentinel instances."),
    ("PUBLISH __sentinel__:hello bar", ":1"),
    ("ROLE", "*2 $8 sentinel *1 $4 main"),
    ("SENTINEL DEBUG foo 1", "-ERR Unknown option or number of arguments for SENTINEL DEBUG 'foo'"),
    ("SENTINEL DEBUG info-period x", "-ERR Invalid argument 'x' for SENTINEL DEBUG 'info-period'"),
    ("SENTINEL DEBUG info-period 5000", "+OK"),
    ("SENTINEL SIMULATE-FAILURE foo", "-ERR Unknown failure simulation specified"),
    ("SENTINEL SIMULATE-FAILURE help", "*2 $20 crash-after-election $21 crash-after-promotion"),
    ("SENTINEL PENDING-SCRIPTS", "*0"),
    ("SENTINEL INFO-CACHE main", "*2 $4 main *1 *2 :0 $-1"),
    ("SENTINEL SENTINELS main", "*0"),
    ("SENTINEL REPLICAS main", "*0"),
    ("SENTINEL SLAVES x", "-ERR No such master with that name"),
    ("SENTINEL SET main quorum 1 auth-pass secret", "+OK"),
    ("SENTINEL CKQUORUM main", "+OK 1 usable Sentinels. Quorum and failover authorization can be reached"),
    ("SENTINEL FLUSHCONFIG", "+OK"),
    ("SENTINEL RESET m*", ":1"),
    ("SENTINEL REMOVE x", "-ERR No such master with that name"),
    ("COMMAND COUNT", ":15"),
    // Regression: this described every command of a server.
    ("COMMAND INFO get", "*1 $-1"),
    (
        "COMMAND INFO sentinel|myid",
        "*1 *10 $13 sentinel|myid :2 *1 +admin :0 :0 :0 *3 +@admin +@slow +@dangerous *0 *0 *0",
    ),
    ("COMMAND DOCS get", "*0"),
    ("COMMAND GETKEYS get a", "-ERR Invalid command specified"),
    ("ACL DRYRUN default get a", "-ERR Command 'get' not found"),
    // Regression: rules accepted the commands of every server, but none of a Sentinel's own.
    ("ACL SETUSER clerk on nopass -@all +sentinel|masters", "+OK"),
    (
        "ACL LIST",
        "*2 $58 user clerk on nopass resetchannels -@all +sentinel|masters $34 user default on nopass ~* &* +@all",
    ),
    ("ACL DRYRUN clerk SENTINEL MASTERS", "+OK"),
    (
        "ACL DRYRUN clerk SENTINEL MASTER main",
        "$65 This user has no permissions to run the 'sentinel|master' command",
    ),
    ("ACL SETUSER clerk +@all -publish", "+OK"),
    ("ACL DRYRUN clerk SENTINEL MASTER main", "+OK"),
    ("ACL DRYRUN clerk PUBLISH a b", "$57 This user has no permissions to run the 'publish' command"),
    ("ACL SETUSER clerk -sentinel", "+OK"),
    ("ACL SETUSER clerk +sentinel", "+OK"),
    (
        "ACL LIST",
        "*2 $49 user clerk on nopass resetchannels +@all -publish $34 user default on nopass ~* &* +@all",
    ),
    (
        "ACL SETUSER clerk +get",
        "-ERR Error in ACL SETUSER modifier '+get': Unknown command or category name in ACL",
    ),
    ("ACL SETUSER clerk -@all +@pubsub", "+OK"),
    (
        "ACL LIST",
        "*2 $49 user clerk on nopass resetchannels -@all +@pubsub $34 user default on nopass ~* &* +@all",
    ),
    ("ACL CAT keyspace", "*0"),
    ("ACL SETUSER default -publish", "+OK"),
    ("SENTINEL MYID x", "-ERR wrong number of arguments for 'sentinel|myid' command"),
    ("PUBLISH a b", "-NOPERM this user has no permissions to run the 'publish' command"),
    ("ACL SETUSER default +publish", "+OK"),
    ("ACL DELUSER clerk", ":1"),
    // Regression: this listed all commands of every server.
    ("COMMAND LIST FILTERBY PATTERN sub*be", "*1 $9 subscribe"),
    ("COMMAND LIST FILTERBY PATTERN g*", "*0"),
    ("SENTINEL MONITOR b 127.0.0.1 2 1", "+OK"),
    ("SENTINEL REMOVE b", "+OK"),
    ("SENTINEL REMOVE main", "+OK"),
    ("SENTINEL MASTERS", "*0"),
];

#[test]
fn a_sentinel_answers_as_redis_does() {
    let folder = folder("sentinel_answers");
    let nobody = SocketAddr::from(([127, 0, 0, 1], 1));
    for whose in installed() {
        let served = sentinel_of(whose, &folder, &format!("{whose:?}"), &watching(nobody, 2));
        let mut stream = served.connect();
        for (command, expected) in ANSWERS {
            stream.write_all(format!("{command}\r\n").as_bytes()).expect("open");
            let mut answer = vec![0; 4096];
            let len = stream.read(&mut answer).expect("answered");
            let answer = String::from_utf8_lossy(&answer[..len]).replace("\r\n", " ");
            assert_eq!(answer.strip_suffix(' '), Some(*expected), "{whose:?}: {command}");
        }
    }
}

/// Fields that differ between Sentinels or between moments.
const PASSING: &[&str] = &[
    "id",
    "info-refresh",
    "last-hello-message",
    "last-ok-ping-reply",
    "last-ping-reply",
    "last-ping-sent",
    "link-pending-commands",
    "role-reported-time",
    "slave-repl-offset",
];

/// The compared part of a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// All values except those of [`PASSING`].
    Values,
    /// Only the types, because the values differ.
    Types,
    /// The headings of an INFO.
    Headings,
}
use Part::{Headings, Types, Values};

/// Commands to two Sentinels that watch one master with a replica.
const QUESTIONS: &[(&str, Part)] = &[
    ("PING", Values),
    ("ROLE", Values),
    // Regression: it was not verbatim text, as INFO of a server is.
    ("INFO sentinel", Values),
    ("INFO", Headings),
    ("INFO all", Headings),
    ("INFO everything", Headings),
    ("INFO SENTINEL stats", Headings),
    ("INFO replication", Headings),
    ("SENTINEL MASTERS", Values),
    ("SENTINEL MASTER main", Values),
    ("SENTINEL MASTER x", Values),
    ("SENTINEL REPLICAS main", Values),
    ("SENTINEL SLAVES main", Values),
    ("SENTINEL SENTINELS main", Values),
    ("SENTINEL MYID", Values),
    ("SENTINEL GET-MASTER-ADDR-BY-NAME main", Values),
    ("SENTINEL GET-MASTER-ADDR-BY-NAME x", Values),
    ("SENTINEL IS-MASTER-DOWN-BY-ADDR 127.0.0.1 1 0 *", Values),
    ("SENTINEL CKQUORUM main", Values),
    ("SENTINEL CONFIG GET *", Values),
    ("SENTINEL DEBUG", Values),
    ("SENTINEL SIMULATE-FAILURE help", Values),
    ("SENTINEL PENDING-SCRIPTS", Values),
    ("SENTINEL INFO-CACHE main", Types),
    ("SENTINEL INFO-CACHE x", Values),
    ("SENTINEL FAILOVER x", Values),
    ("SENTINEL RESET x", Values),
    ("SENTINEL REMOVE x", Values),
    ("SENTINEL SET main quorum 2", Values),
    (
        "SENTINEL SET main down-after-milliseconds 9000 failover-timeout 7000 parallel-syncs 3 quorum 1",
        Values,
    ),
    ("SENTINEL MASTER main", Values),
    ("SENTINEL REPLICAS main", Values),
    ("SENTINEL SENTINELS main", Values),
    // The options before the wrong one remain set.
    ("SENTINEL SET main parallel-syncs 4 quorum 0 failover-timeout 8000", Values),
    ("SENTINEL MASTER main", Values),
    (
        "SENTINEL SET main down-after-milliseconds 2500 failover-timeout 20000 parallel-syncs 1 quorum 2",
        Values,
    ),
    ("SENTINEL FLUSHCONFIG", Values),
    ("ACL WHOAMI", Values),
    ("CLIENT GETNAME", Values),
    ("COMMAND COUNT", Values),
    // Regression: this described every command of a server, and none of a Sentinel's own.
    ("COMMAND INFO sentinel|masters ping get", Values),
    ("COMMAND DOCS get", Values),
    ("COMMAND GETKEYS get a", Values),
    ("ACL DRYRUN default get a", Values),
    ("QUIT", Values),
    ("MULTI", Values),
    ("CONFIG GET port", Values),
    ("PUBLISH x y", Values),
    // An event for the client that causes it. Regression: it came after the reply.
    ("SUBSCRIBE +set", Values),
    ("SENTINEL SET main quorum 2", Values),
    ("UNSUBSCRIBE +set", Values),
];

/// The next reply as text, with its types: `%4[$name $main $last-ping-sent $]`.
fn reply(from: &mut impl BufRead, part: Part) -> String {
    let mut line = String::new();
    from.read_line(&mut line).expect("a reply");
    let line = line.strip_suffix("\r\n").expect("a whole line");
    let (kind, rest) = line.split_at(1);
    let length = rest.parse::<usize>().ok();
    match (kind, length) {
        ("$" | "=", Some(length)) => {
            let mut bytes = vec![0; length + 2];
            from.read_exact(&mut bytes).expect("the rest of it");
            let text = String::from_utf8_lossy(&bytes[..length]);
            let headings = || text.lines().filter(|line| line.starts_with('#')).collect();
            let told: String = if part == Headings { headings() } else { text.to_string() };
            format!("{kind}{told}")
        }
        ("*" | "%" | "~" | ">", Some(length)) => {
            let length = if kind == "%" { 2 * length } else { length };
            let mut items: Vec<String> = Vec::new();
            for _ in 0..length {
                let item = reply(from, part);
                let named = items.last().and_then(|before| before.strip_prefix('$'));
                let is_left_out = part == Types || named.is_some_and(|name| PASSING.contains(&name));
                let is_whole = item.starts_with(['*', '%']) || !is_left_out;
                items.push(if is_whole { item } else { item[..1].to_owned() });
            }
            format!("{kind}{length}[{}]", items.join(" "))
        }
        _ => line.to_owned(),
    }
}

/// A Sentinel's replies to the [`QUESTIONS`] in a protocol. An event is read with the reply to the
/// command that caused it.
fn replies(served: &Served, protocol: u8) -> Vec<String> {
    let mut stream = served.connect();
    let mut lines = BufReader::new(stream.try_clone().expect("another handle of it"));
    let mut ask = |command: &str, part| {
        stream.write_all(format!("{command}\r\n").as_bytes()).expect("open");
        reply(&mut lines, part)
    };
    let mut all = vec![ask(&format!("HELLO {protocol}"), Values)];
    let (mut is_subscribed, mut events) = (false, 0);
    for (command, part) in QUESTIONS {
        all.push(ask(command, *part));
        is_subscribed |= command.starts_with("SUBSCRIBE");
        events += usize::from(is_subscribed && command.starts_with("SENTINEL SET"));
    }
    if protocol == 3 {
        // Each event is one more reply than was read: the last ones are still to come.
        all.extend((0..events).map(|_| reply(&mut lines, Values)));
    }
    all
}

/// Regression: RESP3 was not compared for any command, and no field of a Sentinel's maps was.
#[test]
fn a_sentinel_replies_in_both_protocols_as_redis_does() {
    let folder = folder("sentinel_replies");
    let whose: Vec<_> = installed().collect();
    if whose.len() < 2 {
        return;
    }
    let master = super::node(Redis, &folder, "m", None);
    let replica = super::node(Ours, &folder, "r", Some(master.address));
    until_it_follows(&replica);
    let sentinels: Vec<Served> = whose
        .iter()
        .map(|whose| sentinel_of(*whose, &folder, &format!("{whose:?}"), &watching(master.address, 2)))
        .collect();
    sentinels.iter().for_each(|served| until_it_knows(served, 1, 1));
    let id = |served: &Served| reply_to(served, "SENTINEL MYID").trim_start_matches('$').to_owned();
    let names: Vec<(String, String)> =
        sentinels.iter().map(|served| (id(served), served.address.port().to_string())).collect();
    // The maps have the values of the replica's INFO, and the connection of the Sentinels, a moment
    // later.
    let began = now();
    while !sentinels.iter().all(|served| {
        let replica = reply_to(served, "SENTINEL REPLICAS main");
        let other = reply_to(served, "SENTINEL SENTINELS main");
        let is_told = replica.contains("$flags $slave $") && replica.contains("$master-link-status $ok");
        is_told && other.contains("$flags $sentinel $")
    }) {
        assert!(began.elapsed() < PATIENCE, "they do not learn of the replica, or of each other");
        wait();
    }
    for protocol in [2, 3] {
        let told: Vec<Vec<String>> = sentinels
            .iter()
            .enumerate()
            .map(|(at, served)| {
                let ((own_id, own_port), (other_id, other_port)) = (&names[at], &names[1 - at]);
                let known = [
                    (own_id, "<own id>"),
                    (other_id, "<other id>"),
                    (own_port, "<own port>"),
                    (other_port, "<other port>"),
                ];
                let named = |reply: String| {
                    known.iter().fold(reply, |reply, (value, name)| reply.replace(value.as_str(), name))
                };
                replies(served, protocol).into_iter().map(named).collect()
            })
            .collect();
        let commands = ["HELLO"].into_iter().chain(QUESTIONS.iter().map(|(command, _)| *command));
        for ((command, ours), redis) in commands.chain(["events"]).zip(&told[0]).zip(&told[1]) {
            assert_eq!(ours, redis, "RESP{protocol}: {command}");
        }
        assert_eq!(told[0].len(), told[1].len());
        let maps = told[0].iter().filter(|reply| reply.contains("%")).count();
        assert_eq!(maps > 5, protocol == 3, "RESP{protocol} with {maps} maps: {told:#?}");
    }
}

/// The help is in our own words; it names the subcommands that Redis's help names, and the older
/// name of one.
#[test]
fn the_help_of_a_sentinel_names_what_that_of_redis_names() {
    let folder = folder("sentinel_help");
    let nobody = SocketAddr::from(([127, 0, 0, 1], 1));
    let named: Vec<BTreeSet<String>> = installed()
        .map(|whose| {
            let served = sentinel_of(whose, &folder, &format!("{whose:?}"), &watching(nobody, 2));
            let help = reply_to(&served, "SENTINEL HELP");
            // The explanation of a subcommand is indented below it.
            let lines = help.split(" +").skip(1).filter(|line| !line.starts_with(' '));
            let names = lines.filter_map(|line| line.split([' ', ']']).next());
            names.filter(|name| *name != "SLAVES").map(str::to_owned).collect()
        })
        .collect();
    assert!(named[0].contains("FAILOVER") && named[0].len() > 15, "{named:?}");
    assert!(named.windows(2).all(|two| two[0] == two[1]), "{named:#?}");
}

/// Regression: the users were gone with the process.
#[test]
fn the_users_of_a_sentinel_are_kept_in_its_file() {
    let folder = folder("sentinel_users");
    let nobody = SocketAddr::from(([127, 0, 0, 1], 1));
    for whose in installed() {
        let lines = format!("user reader on nopass -@all +ping\n{}", watching(nobody, 2));
        let start = |lines: Option<&str>| match lines {
            Some(lines) => sentinel_of(whose, &folder, &format!("{whose:?}"), lines),
            None => sentinel_with(whose, &folder, &folder.join(format!("{whose:?}.conf"))),
        };
        let served = start(Some(&lines));
        assert_eq!(reply_to(&served, "ACL SETUSER clerk on >desk -@all +sentinel|masters"), "+OK");
        assert_eq!(reply_to(&served, "ACL DELUSER reader"), ":1");
        assert_eq!(reply_to(&served, "SENTINEL FLUSHCONFIG"), "+OK");
        let users = reply_to(&served, "ACL LIST");
        drop(served);
        // The default user's line sets it up from the beginning.
        let users = users.replace("default on nopass", "default on nopass sanitize-payload");
        assert!(users.contains("$user clerk on #"), "{whose:?}: {users}");
        assert_eq!(reply_to(&start(None), "ACL LIST"), users, "{whose:?}");
    }
}

/// The reply to one command on a connection of its own.
fn reply_to(served: &Served, command: &str) -> String {
    let mut stream: TcpStream = served.connect();
    stream.write_all(format!("{command}\r\n").as_bytes()).expect("open");
    reply(&mut BufReader::new(stream), Values)
}
