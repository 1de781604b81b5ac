//! Faults that look at a message: "lose the reply of the k-th command matching ...", "delay the request matching ...".
//! Rules are data; whoever carries a node's bytes asks them about every command.

use std::{fmt, time::Duration};

/// What a rule does to the command it matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    /// The command is executed and its reply is lost, and with it all that follows on the connection: TCP has no holes,
    /// so the connection is silent until somebody closes or resets it.
    LoseReply,
    /// The command, and what follows it on the connection, reaches the node so much later.
    DelayRequest(Duration),
    /// The reply, and what follows it on the connection, leaves the node so much later.
    DelayReply(Duration),
    /// The command is not executed and its connection is closed.
    DropRequest,
    /// The command is executed and its connection is closed instead of a reply.
    DropConnection,
}

/// Which commands, and what to do to them. A condition that is not given holds for every command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// What the rule is called; removing a rule goes by it.
    pub name: String,
    /// The node that gets the command.
    pub node: Option<String>,
    /// The host that sends it.
    pub client: Option<String>,
    /// The command's name, in any case.
    pub command: Option<String>,
    /// Bytes that one of the arguments contains.
    pub contains: Option<Vec<u8>>,
    /// The first match that counts, from 1.
    pub nth: u64,
    /// How many matches count from there.
    pub times: u64,
    /// What to do.
    pub act: Act,
}

impl Rule {
    /// A rule for the first command of any kind.
    pub fn new(name: impl Into<String>, act: Act) -> Self {
        Self {
            name: name.into(),
            node: None,
            client: None,
            command: None,
            contains: None,
            nth: 1,
            times: 1,
            act,
        }
    }

    fn matches(&self, node: &str, client: &str, arguments: &[impl AsRef<[u8]>]) -> bool {
        let is = |wanted: &Option<String>, name: &str| wanted.as_ref().is_none_or(|wanted| wanted == name);
        let command = arguments.first().map_or(&[][..], AsRef::as_ref);
        is(&self.node, node)
            && is(&self.client, client)
            && self.command.as_ref().is_none_or(|wanted| wanted.as_bytes().eq_ignore_ascii_case(command))
            && self.contains.as_ref().is_none_or(|part| {
                arguments.iter().skip(1).any(|argument| {
                    part.is_empty() || argument.as_ref().windows(part.len()).any(|window| window == part)
                })
            })
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "rule {}: {:?} of {}",
            self.name,
            self.act,
            self.command.as_deref().unwrap_or("any command")
        )?;
        if let Some(part) = &self.contains {
            write!(f, " with {}", part.escape_ascii())?;
        }
        if let Some(client) = &self.client {
            write!(f, " from {client}")?;
        }
        if let Some(node) = &self.node {
            write!(f, " to {node}")?;
        }
        write!(f, ", from match {} on, {} times", self.nth, self.times)
    }
}

/// The rules in force, with how often each has matched.
#[derive(Debug, Default)]
pub(super) struct Rules(Vec<(Rule, u64)>);

impl Rules {
    pub(super) fn add(&mut self, rule: Rule) {
        self.remove(&rule.name);
        self.0.push((rule, 0));
    }

    pub(super) fn remove(&mut self, name: &str) {
        self.0.retain(|(rule, _)| rule.name != name);
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What to do to this command: every rule counts it, the first whose turn it is decides.
    pub(super) fn judge(&mut self, node: &str, client: &str, arguments: &[impl AsRef<[u8]>]) -> Option<Act> {
        let mut act = None;
        for (rule, matched) in &mut self.0 {
            if rule.matches(node, client, arguments) {
                *matched += 1;
                let turn = (rule.nth..rule.nth.saturating_add(rule.times)).contains(matched);
                act = act.or(turn.then_some(rule.act));
            }
        }
        act
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_acts_on_the_matches_it_names_and_no_other() {
        let lose = Rule {
            node: Some("r1".into()),
            client: Some("c1".into()),
            command: Some("evalsha".into()),
            contains: Some(b"lock:a".to_vec()),
            nth: 2,
            times: 2,
            ..Rule::new("lose", Act::LoseReply)
        };
        let mut rules = Rules::default();
        rules.add(lose);
        let rows: [(&str, &str, &[&str], Option<Act>); 8] = [
            ("r1", "c1", &["EVALSHA", "x", "{lock:a}"], None), // the first match
            ("r2", "c1", &["EVALSHA", "x", "{lock:a}"], None), // another node
            ("r1", "c2", &["EVALSHA", "x", "{lock:a}"], None), // another client
            ("r1", "c1", &["GET", "{lock:a}"], None),          // another command
            ("r1", "c1", &["EVALSHA", "x", "{lock:b}"], None), // another key
            ("r1", "c1", &["EvalSha", "x", "{lock:a}"], Some(Act::LoseReply)), // the second match
            ("r1", "c1", &["EVALSHA", "lock:a"], Some(Act::LoseReply)), // the third
            ("r1", "c1", &["EVALSHA", "lock:a"], None),        // the fourth is over
        ];
        for (row, (node, client, arguments, expected)) in rows.into_iter().enumerate() {
            assert_eq!(rules.judge(node, client, arguments), expected, "row {row}");
        }
    }
}
