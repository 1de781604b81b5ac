//! The configuration file, in which a Sentinel also keeps its state.

use std::{
    collections::{BTreeMap, VecDeque},
    fmt::Display,
    net::IpAddr,
    str::FromStr,
};

use super::{
    Address, MasterSettings, Sentinel, Settings, Times,
    instance::{Instance, Kind},
    master::Master,
};
use crate::{
    config::file::{SIGNATURE, quoted},
    resp::split_words,
};

/// The subject of an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// The Sentinel as a whole: `sentinel <option> <value>`.
    Sentinel,
    /// A master: `sentinel <option> <master> <value>`.
    Master,
}

/// The options of the file: name, scope, and expected value. The file also has `monitor`, and the
/// state of the Sentinel.
pub const OPTIONS: [(&str, Scope, &str); 14] = [
    ("announce-hostnames", Scope::Sentinel, YES_OR_NO),
    ("announce-ip", Scope::Sentinel, "a host"),
    ("announce-port", Scope::Sentinel, "a port, or 0 for the one that it listens on"),
    ("auth-pass", Scope::Master, "a password"),
    ("auth-user", Scope::Master, "the name of a user"),
    ("deny-scripts-reconfig", Scope::Sentinel, YES_OR_NO),
    ("down-after-milliseconds", Scope::Master, "a number of milliseconds"),
    ("failover-timeout", Scope::Master, "a number of milliseconds"),
    ("master-reboot-down-after-period", Scope::Master, "a number of milliseconds, or 0 for any time"),
    ("parallel-syncs", Scope::Master, "a number of replicas"),
    ("rename-command", Scope::Master, "the name of a command, and what is sent in its place"),
    ("resolve-hostnames", Scope::Sentinel, YES_OR_NO),
    ("sentinel-pass", Scope::Sentinel, "a password"),
    ("sentinel-user", Scope::Sentinel, "the name of a user"),
];

const YES_OR_NO: &str = "yes or no";

/// Checks the text that follows an option in a file.
///
/// # Errors
/// Returns the value that was expected, or that the option does not exist.
pub fn check_option(option: &str, value: &str) -> Result<(), String> {
    let Some((_, scope, expected)) = OPTIONS.iter().find(|(name, ..)| *name == option) else {
        return Err("there is no such option".into());
    };
    let is_line = !value.contains(['\n', '\r']);
    let words = split_words(value.as_bytes()).filter(|_| is_line).unwrap_or_default();
    let words: Vec<String> = words.iter().map(|word| String::from_utf8_lossy(word).into_owned()).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let set = match scope {
        Scope::Sentinel => set_own(&mut Settings::default(), option, &words),
        Scope::Master => set(&mut MasterSettings::new(Address::new("", 0), 1), option, &words),
    };
    set.map_err(|_| format!("expected {expected}"))
}

/// A wrong line of the file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {why}\n  {text}")]
pub struct Mistake {
    /// The number of the line, from 1.
    pub line: usize,
    /// The line as written.
    pub text: String,
    /// The reason why it is wrong.
    pub why: String,
}

/// A line has a quote that is not closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Unbalanced;

/// Returns the words after `sentinel`, if the line begins with that.
fn directive(line: &str) -> Option<Result<Vec<String>, Unbalanced>> {
    words_behind("sentinel", line)
}

/// Returns the words after the first one, if the line begins with `keyword`.
fn words_behind(keyword: &str, line: &str) -> Option<Result<Vec<String>, Unbalanced>> {
    let line = line.trim();
    let Some(words) = split_words(line.as_bytes()) else {
        let first = line.split_whitespace().next()?;
        return first.eq_ignore_ascii_case(keyword).then_some(Err(Unbalanced));
    };
    let words: Vec<String> = words.iter().map(|word| String::from_utf8_lossy(word).into_owned()).collect();
    let (first, behind) = words.split_first()?;
    first.eq_ignore_ascii_case(keyword).then(|| Ok(behind.to_vec()))
}

/// Returns a file without its lines about Sentinel: the rest is the configuration that every server
/// has.
pub fn without_directives(text: &str) -> String {
    // Leave empty lines, so that the numbers of the other lines stay.
    let kept = text.lines().map(|line| if directive(line).is_some() { "" } else { line });
    kept.fold(String::new(), |text, line| text + line + "\n")
}

/// Returns the words after `user` in each line about a user.
pub fn users_of(text: &str) -> Vec<Vec<String>> {
    text.lines().filter_map(|line| words_behind("user", line)?.ok()).collect()
}

/// Replaces the lines about users in a file.
pub(super) fn with_users(old: &str, users: &[String]) -> String {
    let is_about_user = |line: &str| words_behind("user", line).is_some();
    let first = old.lines().position(is_about_user);
    let before: Vec<&str> = old.lines().take(first.unwrap_or(usize::MAX)).collect();
    let after = old.lines().skip(before.len()).filter(|line| !is_about_user(line));
    let signed = before.contains(&SIGNATURE) || first.is_some() || users.is_empty();
    let lines = before.iter().copied().chain((!signed).then_some(SIGNATURE));
    let lines = lines.chain(users.iter().map(String::as_str)).chain(after);
    lines.fold(String::new(), |text, line| text + line + "\n")
}

/// Parses `yes` or `no`.
fn yes(word: &str) -> Result<bool, String> {
    match word.to_ascii_lowercase().as_str() {
        "yes" => Ok(true),
        "no" => Ok(false),
        _ => Err(format!("`{word}` is neither yes nor no")),
    }
}

fn number<T: FromStr + PartialOrd + Display>(word: &str, least: T) -> Result<T, String> {
    let number = word.parse().ok().filter(|number| *number >= least);
    number.ok_or_else(|| format!("`{word}` is no number from {least} on"))
}

impl Sentinel {
    /// Returns true for a host that can be watched: an IP address, or a name if `resolve-hostnames`
    /// is set.
    pub(super) fn is_host(&self, host: &str) -> bool {
        host.parse::<IpAddr>().is_ok() || (self.settings.resolve_hostnames && !host.is_empty())
    }

    /// Applies the directives of a file.
    pub(super) fn read(&mut self, text: &str, now: i64) -> Result<(), Mistake> {
        // Apply the Sentinel's own options first, then the masters, then the rest, in whatever
        // order the file has them.
        for pass in 0..3 {
            for (at, line) in text.lines().enumerate() {
                let Some(words) = directive(line) else { continue };
                let wrong = |why: String| Mistake { line: at + 1, text: line.into(), why };
                let words = words.map_err(|Unbalanced| wrong("unbalanced quotes".into()))?;
                let words: Vec<&str> = words.iter().map(String::as_str).collect();
                let this = match words.first().map(|word| word.to_ascii_lowercase()).as_deref() {
                    Some("monitor") => 1,
                    Some("myid" | "current-epoch") => 0,
                    Some(option) if is_own(option) => 0,
                    _ => 2,
                };
                if this == pass {
                    self.directive(&words, now).map_err(wrong)?;
                }
            }
        }
        Ok(())
    }

    fn directive(&mut self, words: &[&str], now: i64) -> Result<(), String> {
        let Some((directive, values)) = words.split_first() else {
            return Err("expected a directive behind `sentinel`, such as `monitor`".into());
        };
        match (directive.to_ascii_lowercase().as_str(), values) {
            ("myid", [id]) if id.len() == 40 => (*id).clone_into(&mut self.my_id),
            ("current-epoch", [epoch]) => self.current_epoch = self.current_epoch.max(number(epoch, 0)?),
            ("monitor", [name, ip, port, quorum]) => {
                let address = Address::new(*ip, number(port, 1)?);
                self.monitor(name, address, number(quorum, 1)?, now)?;
            }
            ("notification-script" | "client-reconfig-script", _) => {
                return Err("there are no scripts here".into());
            }
            (option, values) if is_own(option) => set_own(&mut self.settings, option, values)?,
            (directive, [name, rest @ ..]) => return self.directive_of(directive, name, rest, now),
            _ => return Err("there is no such directive, or it has other arguments".into()),
        }
        Ok(())
    }

    /// Applies a directive about one master.
    fn directive_of(&mut self, directive: &str, name: &str, rest: &[&str], now: i64) -> Result<(), String> {
        let Some(master) = self.masters.get_mut(name) else {
            return Err(format!("no `sentinel monitor` names a master {name:?}"));
        };
        match (directive, rest) {
            ("config-epoch", [epoch]) => master.config_epoch = number(epoch, 0)?,
            ("leader-epoch", [epoch]) => master.leader_epoch = number(epoch, 0)?,
            ("known-replica" | "known-slave", [ip, port]) => {
                let address = Address::new(*ip, number(port, 1)?);
                let replica = Instance::new(Kind::Replica, address.clone(), now);
                master.replicas.insert(address, replica);
            }
            ("known-sentinel", [ip, port, id]) if id.len() == 40 => {
                let address = Address::new(*ip, number(port, 1)?);
                Sentinel::join(&mut self.peers, master, id, address, now);
            }
            (option, values) => set(&mut master.settings, option, values)?,
        }
        Ok(())
    }

    /// Begins to watch a master.
    ///
    /// # Errors
    /// If the host is invalid, or the name is watched already.
    pub(super) fn monitor(
        &mut self,
        name: &str,
        address: Address,
        quorum: u32,
        now: i64,
    ) -> Result<(), String> {
        if !self.is_host(&address.ip) {
            return Err("Invalid IP address or hostname specified".into());
        }
        if self.masters.contains_key(name) {
            return Err("Duplicate master name.".into());
        }
        let mut settings = MasterSettings::new(address, quorum);
        settings.down_after = self.settings.times.down_after;
        settings.failover_timeout = self.settings.times.failover_timeout;
        self.masters.insert(name.to_owned(), Master::new(name.to_owned(), settings, now));
        Ok(())
    }

    /// Returns the text of the file. Comments, other lines and the order are those of `old`; a
    /// directive replaces one of its kind. Other new directives come at the end.
    pub(super) fn file(&self, old: &str) -> String {
        let lines = self.lines();
        let mut places: BTreeMap<&str, VecDeque<usize>> = BTreeMap::new();
        for (at, line) in lines.iter().enumerate() {
            places.entry(line.split(' ').next().unwrap_or_default()).or_default().push_back(at);
        }
        let mut written = vec![false; lines.len()];
        let mut text = String::new();
        let mut signed = false;
        for line in old.lines() {
            signed |= line == SIGNATURE;
            let Some(Ok(words)) = directive(line) else {
                text = text + line + "\n";
                continue;
            };
            let kind = words.first().map(|word| word.to_ascii_lowercase()).unwrap_or_default();
            if let Some(at) = places.get_mut(alias(&kind)).and_then(VecDeque::pop_front) {
                written[at] = true;
                text = text + "sentinel " + &lines[at] + "\n";
            } else if KEPT.contains(&kind.as_str()) {
                text = text + "sentinel " + &words.join(" ") + "\n";
            }
        }
        for (line, _) in lines.iter().zip(written).filter(|(_, written)| !written) {
            if !std::mem::replace(&mut signed, true) {
                text = text + SIGNATURE + "\n";
            }
            text = text + "sentinel " + line + "\n";
        }
        text
    }

    /// The directives of the current state, in the order in which new ones are appended.
    fn lines(&self) -> Vec<String> {
        let mut lines = vec![format!("myid {}", self.my_id)];
        let settings = &self.settings;
        for (name, set) in [
            ("resolve-hostnames", settings.resolve_hostnames),
            ("announce-hostnames", settings.announce_hostnames),
        ] {
            if set {
                lines.push(format!("{name} yes"));
            }
        }
        for (name, master) in &self.masters {
            lines.extend(lines_of(name, master, &settings.times));
        }
        lines.push(format!("current-epoch {}", self.current_epoch));
        for (name, value) in [
            ("announce-ip", &settings.announce_ip),
            ("sentinel-user", &settings.sentinel_user),
            ("sentinel-pass", &settings.sentinel_pass),
        ] {
            if !value.is_empty() {
                lines.push(format!("{name} {}", quoted(value)));
            }
        }
        if settings.announce_port != 0 {
            lines.push(format!("announce-port {}", settings.announce_port));
        }
        lines
    }
}

fn lines_of(name: &str, master: &Master, times: &Times) -> Vec<String> {
    let (settings, current) = (&master.settings, master.current_address());
    let mut lines = vec![format!("monitor {name} {} {} {}", current.ip, current.port, settings.quorum)];
    for (option, value, default) in [
        ("down-after-milliseconds", settings.down_after, times.down_after),
        ("failover-timeout", settings.failover_timeout, times.failover_timeout),
        ("parallel-syncs", settings.parallel_syncs.into(), 1),
    ] {
        if value != default {
            lines.push(format!("{option} {name} {value}"));
        }
    }
    for (option, value) in [("auth-pass", &settings.auth_pass), ("auth-user", &settings.auth_user)] {
        if !value.is_empty() {
            lines.push(format!("{option} {name} {}", quoted(value)));
        }
    }
    if settings.reboot_down_after > 0 {
        lines.push(format!("master-reboot-down-after-period {name} {}", settings.reboot_down_after));
    }
    lines.push(format!("config-epoch {name} {}", master.config_epoch));
    lines.push(format!("leader-epoch {name} {}", master.leader_epoch));
    for address in master.replicas.keys() {
        // The promoted replica counts as the master already, and the old master as a replica.
        let replica = if address == current { &master.own.address } else { address };
        lines.push(format!("known-replica {name} {} {}", replica.ip, replica.port));
    }
    for (id, peer) in &master.sentinels {
        lines.push(format!("known-sentinel {name} {} {} {id}", peer.address.ip, peer.address.port));
    }
    for (old, new) in &settings.renames {
        lines.push(format!("rename-command {name} {old} {new}"));
    }
    lines
}

/// Directives that stay as they are: they state a default, or concern scripts, which do not exist
/// here.
const KEPT: [&str; 3] = ["resolve-hostnames", "announce-hostnames", "deny-scripts-reconfig"];

/// The name under which a directive is written. Redis keeps a line of the older name instead, and
/// adds one of the newer name.
fn alias(kind: &str) -> &str {
    if kind == "known-slave" { "known-replica" } else { kind }
}

/// Returns true for an option of the Sentinel as a whole.
fn is_own(option: &str) -> bool {
    OPTIONS.iter().any(|(name, scope, _)| *name == option && *scope == Scope::Sentinel)
}

/// Sets an option of the Sentinel as a whole.
///
/// # Errors
/// Returns the reason if the option is unknown or the value is wrong.
fn set_own(settings: &mut Settings, option: &str, values: &[&str]) -> Result<(), String> {
    match (option, values) {
        ("announce-ip", [ip]) => (*ip).clone_into(&mut settings.announce_ip),
        ("announce-port", [port]) => settings.announce_port = number(port, 0)?,
        ("resolve-hostnames", [word]) => settings.resolve_hostnames = yes(word)?,
        ("announce-hostnames", [word]) => settings.announce_hostnames = yes(word)?,
        ("sentinel-user", [user]) => (*user).clone_into(&mut settings.sentinel_user),
        ("sentinel-pass", [pass]) => (*pass).clone_into(&mut settings.sentinel_pass),
        // Checked only: no scripts exist.
        ("deny-scripts-reconfig", [word]) => _ = yes(word)?,
        _ => return Err("there is no such directive, or it has other arguments".into()),
    }
    Ok(())
}

/// Sets an option of a master, from the file or from SENTINEL SET.
///
/// # Errors
/// Returns the reason if the option is unknown or the value is wrong.
pub(super) fn set(settings: &mut MasterSettings, option: &str, values: &[&str]) -> Result<(), String> {
    match (option, values) {
        ("down-after-milliseconds", [ms]) => settings.down_after = number(ms, 1)?,
        ("failover-timeout", [ms]) => settings.failover_timeout = number(ms, 1)?,
        ("parallel-syncs", [count]) => settings.parallel_syncs = number(count, 1)?,
        ("quorum", [count]) => settings.quorum = number(count, 1)?,
        ("auth-pass", [pass]) => (*pass).clone_into(&mut settings.auth_pass),
        ("auth-user", [user]) => (*user).clone_into(&mut settings.auth_user),
        ("master-reboot-down-after-period", [ms]) => settings.reboot_down_after = number(ms, 0)?,
        ("rename-command", [old, new]) => {
            if old.eq_ignore_ascii_case(new) {
                settings.renames.remove(&old.to_ascii_lowercase());
            } else {
                settings.renames.insert(old.to_ascii_lowercase(), (*new).to_owned());
            }
        }
        _ => return Err(format!("there is no option `{option}` of a master, or it has other arguments")),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::Env;

    /// A line of each directive.
    const DIRECTIVES: [&str; 22] = [
        "sentinel monitor other 127.0.0.1 6380 2",
        "sentinel myid 0123456789012345678901234567890123456789",
        "sentinel current-epoch 3",
        "sentinel config-epoch main 3",
        "sentinel leader-epoch main 3",
        "sentinel known-replica main 127.0.0.1 6381",
        "sentinel known-slave main 127.0.0.1 6382",
        "sentinel known-sentinel main 127.0.0.1 26380 0123456789012345678901234567890123456780",
        "sentinel announce-hostnames yes",
        "sentinel announce-ip \"10.0.0.1\"",
        "sentinel announce-port 7",
        "sentinel auth-pass main 'a secret'",
        "sentinel auth-user main clerk",
        "sentinel deny-scripts-reconfig no",
        "sentinel down-after-milliseconds main 500",
        "sentinel failover-timeout main 500",
        "sentinel master-reboot-down-after-period main 0",
        "sentinel parallel-syncs main 1",
        "sentinel rename-command main CONFIG hidden",
        "sentinel resolve-hostnames yes",
        "sentinel sentinel-pass secret",
        "sentinel sentinel-user clerk",
    ];

    /// Reads a file whose second line is `line`.
    fn reads(line: &str) -> Result<(), Mistake> {
        let file = format!("sentinel monitor main 127.0.0.1 6379 1\n{line}\n");
        Sentinel::new(&file, 26379, String::new(), &mut Env::new(1)).map(drop)
    }

    /// The line `sentinel` alone once ended the process. Redis ignores that line; every other
    /// truncated line is an error there, too.
    #[test]
    fn a_directive_that_is_cut_off_is_a_mistake_of_its_line() {
        for whole in DIRECTIVES {
            assert_eq!(reads(whole), Ok(()), "{whole}");
            for (end, _) in whole.match_indices(' ') {
                let line = &whole[..end];
                let mistake = reads(line).expect_err(line);
                assert_eq!((mistake.line, mistake.text.as_str()), (2, line), "{mistake}");
                // Add a quote that is not closed, unless the line has one of that kind already;
                // then an empty word.
                for quote in ['"', '\''].into_iter().filter(|quote| !line.contains(*quote)) {
                    let open = format!("{line} {quote}");
                    assert_eq!(reads(&open).expect_err(&open).why, "unbalanced quotes", "{open}");
                    let _ = reads(&format!("{line} {quote}{quote}"));
                }
            }
        }
        let alone = "expected a directive behind `sentinel`, such as `monitor`";
        for line in ["sentinel", "  SENTINEL \t", "\"sentinel\""] {
            assert_eq!(reads(line).expect_err(line).why, alone, "{line:?}");
        }
        for line in
            ["", "   ", "\t", "# sentinel", "'sentinel' parallel-syncs main 2", "port 7", "\"", "\"\""]
        {
            assert_eq!(reads(line), Ok(()), "{line:?} is for the other reader, or for none");
        }
    }

    proptest::proptest! {
        /// Words of directives and quotes in any order.
        #[test]
        fn no_line_ends_the_process(
            words in proptest::collection::vec(proptest::sample::select(WORDS.to_vec()), 0..7),
            behind in ".{0,12}",
        ) {
            let line = format!("{}{behind}", words.join(" "));
            let file = format!("sentinel monitor main 127.0.0.1 6379 1\n{line}\n");
            let read = Sentinel::new(&file, 26379, String::new(), &mut Env::new(1));
            let _ = (without_directives(&file), users_of(&file), with_users(&file, &["user x on".to_owned()]));
            if let Ok(mut sentinel) = read {
                let _ = sentinel.save_file(&[]);
            }
        }
    }

    const WORDS: [&str; 16] = [
        "sentinel",
        "SENTINEL",
        "monitor",
        "main",
        "myid",
        "known-replica",
        "known-sentinel",
        "auth-pass",
        "user",
        "127.0.0.1",
        "1",
        "-1",
        "\"",
        "'",
        "\"\"",
        "#",
    ];

    /// A good value of each option, and values with a word too many or too few, which are refused.
    #[test]
    fn each_option_says_what_it_expects() {
        for (option, scope, expected) in OPTIONS {
            let good = match expected {
                YES_OR_NO => "no",
                "a host" | "a password" | "the name of a user" => "\"one word\"",
                "the name of a command, and what is sent in its place" => "SLAVEOF OTHER",
                _ => "1",
            };
            assert_eq!(check_option(option, good), Ok(()), "{option} {scope:?}");
            let bad = ["", "one two three", "\"open", "1\n"];
            for bad in bad.into_iter().chain((expected == YES_OR_NO).then_some("1")) {
                assert_eq!(
                    check_option(option, bad),
                    Err(format!("expected {expected}")),
                    "{option} {bad:?}"
                );
            }
        }
        for unknown in ["", "monitor", "myid", "known-replica", "quorum"] {
            assert_eq!(check_option(unknown, "1"), Err("there is no such option".into()), "{unknown}");
        }
    }
}
