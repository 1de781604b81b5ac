//! Faults that apply to selected messages: "lose the reply of the k-th command matching ...",
//! "delay the request matching ...". Rules are data. A node is a host whose code reads requests; it
//! asks for the effect of the rules on each ([`HostCtx::judge`](crate::HostCtx::judge)). The first
//! word of a request names its command.

use std::{fmt, time::Duration};

use crate::{
    cause::Cause,
    fate::{Break, Fate},
};

/// The effect of a rule on a matching command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageFault {
    /// The command, and all later bytes of the connection, reach the node with this delay.
    DelayRequest(Duration),
    /// The reply, and all later bytes of the connection, leave the node with this delay.
    DelayReply(Duration),
    /// The connection breaks at this point.
    Break(Break),
}

impl MessageFault {
    fn add_to(self, fate: &mut Fate) {
        match self {
            MessageFault::DelayRequest(by) => fate.request_delay = fate.request_delay.saturating_add(by),
            MessageFault::DelayReply(by) => fate.reply_delay = fate.reply_delay.saturating_add(by),
            MessageFault::Break(at) => fate.breaks = fate.breaks.max(Some(at)),
        }
    }
}

/// Selects requests by their words, and a fault for them. A missing criterion matches every
/// request. The first word is the name of the command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// The name of the node that receives the command; `None` for any.
    pub node: Option<String>,
    /// The name of the host that sends the command; `None` for any.
    pub client: Option<String>,
    /// The command's name; the case of letters is ignored.
    pub command: Option<String>,
    /// Bytes that one of the arguments contains.
    pub contains: Option<Vec<u8>>,
    /// The first match that the fault applies to, counted from 1.
    pub nth: u64,
    /// The number of matches, from `nth` on, that the fault applies to.
    pub times: u64,
    /// The fault that each selected command suffers.
    pub fault: MessageFault,
}

impl Rule {
    /// Returns a rule for the first command of any kind.
    pub fn new(fault: MessageFault) -> Self {
        Self { node: None, client: None, command: None, contains: None, nth: 1, times: 1, fault }
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
        write!(f, "rule {:?} of {}", self.fault, self.command.as_deref().unwrap_or("any command"))?;
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

/// The rules in force, each with its cause and its number of matches so far.
#[derive(Debug, Default)]
pub(crate) struct Rules(Vec<(Cause, Rule, u64)>);

impl Rules {
    pub(crate) fn add(&mut self, cause: Cause, rule: Rule) {
        self.remove(&cause, &rule);
        self.0.push((cause, rule, 0));
    }

    pub(crate) fn remove(&mut self, cause: &Cause, rule: &Rule) {
        self.0.retain(|(other, its, _)| (other, its) != (cause, rule));
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the effect of all rules on this command. Every matching rule counts the command, and
    /// applies its fault if the count is within the rule's range.
    pub(crate) fn judge(&mut self, node: &str, client: &str, arguments: &[impl AsRef<[u8]>]) -> Fate {
        let mut fate = Fate::default();
        self.0.retain_mut(|(_, rule, matched)| {
            let end = rule.nth.saturating_add(rule.times);
            if rule.matches(node, client, arguments) {
                *matched += 1;
                if (rule.nth..end).contains(matched) {
                    rule.fault.add_to(&mut fate);
                }
            }
            // Remove a rule that has acted for the last time.
            matched.saturating_add(1) < end
        });
        fate
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
            ..Rule::new(MessageFault::Break(Break::LoseReply))
        };
        let mut rules = Rules::default();
        rules.add(Cause::from("it"), lose);
        let rows: [(&str, &str, &[&str], Option<Break>); 8] = [
            ("r1", "c1", &["EVALSHA", "x", "{lock:a}"], None), // the first match
            ("r2", "c1", &["EVALSHA", "x", "{lock:a}"], None), // another node
            ("r1", "c2", &["EVALSHA", "x", "{lock:a}"], None), // another client
            ("r1", "c1", &["GET", "{lock:a}"], None),          // another command
            ("r1", "c1", &["EVALSHA", "x", "{lock:b}"], None), // another key
            ("r1", "c1", &["EvalSha", "x", "{lock:a}"], Some(Break::LoseReply)), // the second match
            ("r1", "c1", &["EVALSHA", "lock:a"], Some(Break::LoseReply)), // the third
            ("r1", "c1", &["EVALSHA", "lock:a"], None),        // the fourth is over
        ];
        for (row, (node, client, arguments, expected)) in rows.into_iter().enumerate() {
            let expected = Fate { breaks: expected, ..Fate::default() };
            assert_eq!(rules.judge(node, client, arguments), expected, "row {row}");
            // The last match removes the rule.
            assert_eq!(rules.is_empty(), row >= 6, "row {row}");
        }
    }

    #[test]
    fn all_rules_whose_turn_it_is_act_on_a_command() {
        let ms = Duration::from_millis;
        let delayed =
            |request, reply| Fate { request_delay: ms(request), reply_delay: ms(reply), breaks: None };
        let broken = |at, request| Fate { breaks: Some(at), ..delayed(request, 0) };
        let rows: [(&[MessageFault], Fate); 5] = [
            (&[MessageFault::DelayRequest(ms(500)), MessageFault::DelayRequest(ms(100))], delayed(600, 0)),
            (
                &[
                    MessageFault::DelayRequest(ms(50)),
                    MessageFault::DelayReply(ms(7)),
                    MessageFault::DelayReply(ms(2)),
                ],
                delayed(50, 9),
            ),
            (
                &[MessageFault::DelayRequest(ms(50)), MessageFault::Break(Break::LoseReply)],
                broken(Break::LoseReply, 50),
            ),
            // A broken connection sends no reply either, and a command that never arrived has no
            // reply to lose.
            (
                &[MessageFault::Break(Break::LoseReply), MessageFault::Break(Break::BeforeReply)],
                broken(Break::BeforeReply, 0),
            ),
            (
                &[MessageFault::Break(Break::BeforeRequest), MessageFault::Break(Break::BeforeReply)],
                broken(Break::BeforeRequest, 0),
            ),
        ];
        for (acts, expected) in rows {
            let mut rules = Rules::default();
            for (at, act) in acts.iter().enumerate() {
                rules.add(Cause::from(at.to_string()), Rule::new(*act));
            }
            assert_eq!(rules.judge("m", "c", &["GET", "a"]), expected, "{acts:?}");
            // Each rule applied to the first command only, and has counted it.
            assert_eq!(rules.judge("m", "c", &["GET", "a"]), Fate::default(), "{acts:?}");
        }
    }
}
