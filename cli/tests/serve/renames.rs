//! `rename-command`: the new name of a command, and replies that mention it. `redis-server` gets
//! the same commands.

use std::fs;

use crate::served::{Served, asks, folder, nothing_to_compare_with, redis};

const CONFIG: &str = "rename-command GET fetch\nrename-command CONFIG \"\"\nrename-command XINFO xi\n";

/// The reply to each line, or its beginning.
const ROWS: &[(&str, &str)] = &[
    ("FETCH k", "$-1\r\n"),
    ("GET k", "-ERR unknown command 'GET', with args beginning with: 'k' \r\n"),
    ("CONFIG GET port", "-ERR unknown command 'CONFIG', with args beginning with: 'GET' 'port' \r\n"),
    ("XI foo", "-ERR unknown subcommand 'foo'. Try XI HELP.\r\n"),
    ("XI", "-ERR wrong number of arguments for 'xinfo' command\r\n"),
    ("XI HELP", "*9\r\n+XI <subcommand> [<arg"),
    ("EVAL \"return redis.call('fetch', 'k')\" 0", "$-1\r\n"),
    // The reply contains the original name of a command that is looked up by its new one.
    ("COMMAND INFO fetch", "*1\r\n*10\r\n$3\r\nget\r\n"),
    ("COMMAND INFO get", "*1\r\n$-1\r\n"),
    ("COMMAND INFO config", "*1\r\n$-1\r\n"),
    ("COMMAND INFO xi|stream", "*1\r\n*10\r\n$12\r\nxinfo|stream\r\n"),
    ("COMMAND DOCS fetch", "*2\r\n$3\r\nget\r\n"),
    ("COMMAND DOCS get", "*0\r\n"),
    ("COMMAND COUNT", ":239\r\n"),
    ("COMMAND LIST FILTERBY PATTERN get", "*1\r\n$3\r\nget\r\n"),
    ("COMMAND LIST FILTERBY PATTERN fetch", "*0\r\n"),
    ("COMMAND LIST FILTERBY PATTERN config*", "*0\r\n"),
    ("COMMAND GETKEYS fetch a", "*1\r\n$1\r\na\r\n"),
    ("COMMAND GETKEYS get a", "-ERR Invalid command specified\r\n"),
    ("ACL DRYRUN default fetch a", "+OK\r\n"),
    ("ACL DRYRUN default get a", "-ERR Command 'get' not found\r\n"),
    ("LATENCY HISTOGRAM fetch", "*2\r\n$3\r\nget\r\n"),
    ("LATENCY HISTOGRAM get", "*0\r\n"),
];

#[test]
fn a_renamed_command_goes_by_its_new_name_everywhere() {
    let folder = folder("renames");
    let file = folder.join("renames.conf");
    fs::write(&file, CONFIG).expect("written");
    let ours = Served::beside(&folder, &["--config", "renames.conf"]);
    check(&ours);
    // redis-server takes the file first, and then the options.
    match redis(&folder, &["--include", &file.to_string_lossy()]) {
        Some(theirs) => check(&theirs),
        None => nothing_to_compare_with(),
    }
}

fn check(served: &Served) {
    for (line, answer) in ROWS {
        eprintln!("{line}");
        asks(&mut served.connect(), line, answer);
    }
}
