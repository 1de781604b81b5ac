//! What a Sentinel replies to commands: one of ours as one of Redis.

use std::{
    io::{Read, Write},
    net::SocketAddr,
};

use super::{installed, sentinel_of, watching};
use crate::served::folder;

/// What a Sentinel answers that watches one master, at a port that is closed.
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
    // All commands of every server were told.
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
