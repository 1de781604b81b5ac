//! The ACL file, which keeps the users across restarts: one line for each.

use std::collections::BTreeSet;

use bytes::Bytes;

use super::{
    Table,
    describe::describe,
    rules::{UNKNOWN, apply, has_spaces, merge_selectors},
};
use crate::{
    acl::{Acl, DEFAULT, User},
    config::Config,
    env::Env,
    log::Level,
    node::Node,
};

/// Writes a user as in the ACL file, ACL LIST and the configuration.
pub(in crate::commands) fn line(user: &User, table: Table) -> Vec<u8> {
    [b"user ", &user.name[..], b" ", &describe(user, table)].concat()
}

/// Returns all users as lines of a configuration file.
pub fn lines(acl: &Acl, table: Table) -> Vec<String> {
    acl.users().map(|user| String::from_utf8_lossy(&line(user, table)).into_owned()).collect()
}

/// Parses the users of an ACL file.
///
/// # Errors
/// All errors of the file in one text.
pub fn read_file(path: &str, file: &[u8], table: Table, all_channels: bool) -> Result<Vec<User>, String> {
    let (mut users, mut names, mut wrong) = (Vec::new(), BTreeSet::new(), String::new());
    for (at, line) in file.split(|byte| *byte == b'\n').enumerate() {
        let line = line.trim_ascii();
        if line.is_empty() {
            continue;
        }
        let place = format!("{path}:{}", at + 1);
        let words: Vec<Bytes> = line.split(|byte| *byte == b' ').map(Bytes::copy_from_slice).collect();
        let [keyword, name, rules @ ..] = &words[..] else {
            wrong.push_str(&format!("{place} should start with user keyword followed by the username. "));
            continue;
        };
        let shown = String::from_utf8_lossy(name);
        if &keyword[..] != b"user" {
            wrong.push_str(&format!("{place} should start with user keyword followed by the username. "));
        } else if has_spaces(name) {
            wrong.push_str(&format!("'{place}: username '{shown}' contains invalid characters. "));
        } else if !names.insert(name.clone()) {
            wrong.push_str(&format!("WARNING: Duplicate user '{shown}' found on line {}. ", at + 1));
        } else {
            let mut user = User::new(name.clone(), all_channels);
            read_rules(&mut user, &place, rules, (table, all_channels), &mut wrong);
            users.push(user);
        }
    }
    if wrong.is_empty() {
        return Ok(users);
    }
    wrong
        .push_str("WARNING: ACL errors detected, no change to the previously active ACL rules was performed");
    Err(wrong)
}

/// Returns a node's users at its start: those of the configuration's `user` lines, or those of the
/// ACL file that it names, which `read` reads. Empty if the configuration has neither.
///
/// # Errors
/// The errors of the lines or of the file.
pub fn configured(
    config: &Config,
    table: Table,
    read: impl FnOnce(&str) -> Result<Bytes, String>,
) -> Result<Vec<User>, String> {
    let (path, all_channels) = (&config.security.aclfile, config.security.acl_pubsub_default);
    if path.is_empty() {
        return config_users(config, table);
    }
    if !config.security.users.is_empty() {
        return Err("Configuring Redis with users defined in redis.conf and at the same setting an ACL file path is invalid. \
                    This setup is very likely to lead to configuration errors and security holes, please define either an \
                    ACL file or declare users directly in your redis.conf, but not both."
            .into());
    }
    let mut users = read_file(path, &read(path)?, table, all_channels)?;
    if users.iter().all(|user| user.name != DEFAULT) {
        users.push(User::default_user());
    }
    Ok(users)
}

/// Parses the `user` lines of a configuration.
fn config_users(config: &Config, table: Table) -> Result<Vec<User>, String> {
    let all_channels = config.security.acl_pubsub_default;
    let mut users: Vec<User> = Vec::new();
    for words in &config.security.users {
        let words: Vec<Bytes> = words.iter().map(|word| Bytes::copy_from_slice(word.as_bytes())).collect();
        let [name, rules @ ..] = &words[..] else { return Err("a user without a name".into()) };
        let shown = |word: &Bytes| String::from_utf8_lossy(word).into_owned();
        if has_spaces(name) {
            return Err(format!("the user name '{}' has spaces in it", shown(name)));
        }
        if users.iter().any(|user| user.name == *name) {
            return Err("Duplicate user found. A user can only be defined once in config files".into());
        }
        let mut user = User::new(name.clone(), all_channels);
        // The default user exists already: reset it first.
        let anew = (*name == DEFAULT).then_some(&b"reset"[..]);
        let rules = merge_selectors(rules, table).map_err(|word| {
            format!("Unmatched parenthesis in acl selector starting at '{}'", shown(&word))
        })?;
        for rule in anew.into_iter().chain(rules.iter().map(|rule| &rule[..])) {
            let wrong =
                |wrong| format!("Error in user declaration '{}': {wrong}", String::from_utf8_lossy(rule));
            apply(&mut user, rule, table, all_channels).map_err(wrong)?;
        }
        users.push(user);
    }
    Ok(users)
}

/// Reads the current ACL file.
///
/// # Errors
/// The reason why the file cannot be read, in the words of `redis-server`.
pub(in crate::commands) fn read_users(node: &Node, env: &Env) -> Result<Bytes, String> {
    let path = &node.config.security.aclfile;
    let error = |why: &str| format!("Error loading ACLs, opening file '{path}': {why}");
    match &env.files {
        Some(files) => files.read(path).map(Bytes::from).map_err(|wrong| {
            let wrong = wrong.to_string();
            error(wrong.split(" (os error").next().unwrap_or_default())
        }),
        // A node without a machine around it keeps the file on its own disk.
        None => node.persistence.disk.users.clone().ok_or_else(|| error("No such file or directory")),
    }
}

/// Loads the users of the configuration. Errors are logged, and then nothing changes.
pub fn load_configured(node: &mut Node, env: &mut Env) {
    match configured(&node.config, Table::of(node), |_| read_users(node, env)) {
        Ok(users) => users.into_iter().for_each(|user| node.acl.put(user)),
        Err(wrong) => env.log(Level::Warning, || wrong),
    }
}

fn read_rules(
    user: &mut User,
    place: &str,
    rules: &[Bytes],
    (table, all_channels): (Table, bool),
    wrong: &mut String,
) {
    let Ok(rules) = merge_selectors(rules, table) else {
        wrong.push_str(&format!("{place}: Unmatched parenthesis in selector definition."));
        return;
    };
    // Report every unknown command, but only the first of other errors, which may quote a secret.
    let mut told = false;
    for rule in rules {
        match apply(user, rule.trim_ascii(), table, all_channels) {
            Ok(()) => {}
            Err(UNKNOWN) => {
                let rule = String::from_utf8_lossy(&rule);
                wrong.push_str(&format!("{place}: Error in applying operation '{rule}': {UNKNOWN}. "));
            }
            Err(why) => {
                if !std::mem::replace(&mut told, true) {
                    wrong.push_str(&format!("{place}: {why}. "));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generation::Generation;

    const REFUSED: &str =
        "WARNING: ACL errors detected, no change to the previously active ACL rules was performed";

    fn wrong(file: &str) -> String {
        read_file("/u", file.as_bytes(), Table::Data(Generation::default()), false)
            .map(|users| users.len())
            .unwrap_err()
    }

    #[test]
    fn everything_wrong_with_a_file_is_told_as_redis_tells_it() {
        let keyword = format!("/u:1 should start with user keyword followed by the username. {REFUSED}");
        for line in ["foo bar", "user", "# remark"] {
            assert_eq!(wrong(line), keyword);
        }
        assert_eq!(
            wrong("user a on\nuser a off\n"),
            format!("WARNING: Duplicate user 'a' found on line 2. {REFUSED}")
        );
        assert_eq!(
            wrong("user a (+get"),
            format!("/u:1: Unmatched parenthesis in selector definition.{REFUSED}")
        );
        assert_eq!(
            wrong("user a +nosuch foo bar +nosuch2\n\nuser b ~* ~a\n"),
            format!(
                "/u:1: Error in applying operation '+nosuch': {UNKNOWN}. /u:1: Syntax error. /u:1: Error in applying \
                 operation '+nosuch2': {UNKNOWN}. /u:3: Adding a pattern after the * pattern (or the 'allkeys' flag) is \
                 not valid and does not have any effect. Try 'resetkeys' to start with an empty list of patterns. {REFUSED}"
            )
        );
    }

    #[test]
    fn a_configuration_makes_users_by_its_lines_or_by_a_file_but_not_both() {
        let lines = |lines: &[&[&str]]| {
            Config::default().with(|config| {
                config.security.users =
                    lines.iter().map(|words| words.iter().map(|word| (*word).to_owned()).collect()).collect();
            })
        };
        let none = |_: &str| Err("no file is asked for".to_owned());
        let users = configured(
            &lines(&[&["a", "on", "(+get", "~x)"], &["default", "off"]]),
            Table::Data(Generation::default()),
            none,
        )
        .unwrap();
        let shown: Vec<String> = users
            .iter()
            .map(|user| String::from_utf8_lossy(&line(user, Table::Data(Generation::default()))).into_owned())
            .collect();
        assert_eq!(
            shown,
            [
                "user a on sanitize-payload resetchannels -@all (~x resetchannels -@all +get)",
                "user default off sanitize-payload resetchannels -@all"
            ]
        );
        let wrong = |config: &Config| {
            configured(config, Table::Data(Generation::default()), none).map(|users| users.len()).unwrap_err()
        };
        assert_eq!(wrong(&lines(&[&["a", "foo"]])), "Error in user declaration 'foo': Syntax error");
        assert!(wrong(&lines(&[&["a"], &["a"]])).starts_with("Duplicate user found."));
        assert!(wrong(&lines(&[&["a", "(+get"]])).starts_with("Unmatched parenthesis"));
        assert!(wrong(&lines(&[&[]])).starts_with("a user without"));
        let both = lines(&[&["a"]]).with(|config| config.security.aclfile = "/u".into());
        assert!(wrong(&both).starts_with("Configuring Redis with users defined in redis.conf and"));
        // The default user always exists.
        let file = Config::default().with(|config| config.security.aclfile = "/u".into());
        let users = configured(&file, Table::Data(Generation::default()), |_| Ok(Bytes::from("user a on\n")))
            .unwrap();
        assert_eq!(users.iter().map(|user| &user.name[..]).collect::<Vec<_>>(), [&b"a"[..], b"default"]);
    }

    #[test]
    fn a_line_makes_the_user_that_it_describes() {
        let file = "user a on sanitize-payload #148de9c5a7a44d19e56cd9ae1a554bf67847afb0c58f6e12fa29ac7ddfca9940 ~x %R~y \
                    resetchannels &c -@all +@hash -hget (%W~z resetchannels -@all +set)";
        let users = read_file("/u", file.as_bytes(), Table::Data(Generation::default()), false).unwrap();
        assert_eq!(String::from_utf8_lossy(&line(&users[0], Table::Data(Generation::default()))), file);
    }
}
