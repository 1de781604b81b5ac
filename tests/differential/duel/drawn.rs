//! Compares random replies: each must be possible. Afterwards both servers get the same state
//! again.

use std::collections::BTreeMap;

use crate::{duel::Duel, rule::Rule, servers::Received, steps::Step, wire::Wire};

impl Duel {
    /// The elements that a command may draw, from the simulator's state.
    pub(super) fn possible(&mut self, conn: usize, words: &[Vec<u8>]) -> Rule {
        if self.elsewhere.contains(&conn) {
            return Rule::Shape;
        }
        let key = words.get(1).cloned().unwrap_or_default();
        let name = words[0].to_ascii_uppercase();
        let (ask, width) = match &name[..] {
            b"RANDOMKEY" => (vec![b"KEYS".to_vec(), b"*".to_vec()], 1),
            b"HRANDFIELD" => (vec![b"HGETALL".to_vec(), key.clone()], 2),
            b"ZRANDMEMBER" => (
                vec![b"ZRANGE".to_vec(), key.clone(), b"0".to_vec(), b"-1".to_vec(), b"WITHSCORES".to_vec()],
                2,
            ),
            _ => (vec![b"SMEMBERS".to_vec(), key.clone()], 1),
        };
        let there = name == b"RANDOMKEY" || self.encoding(&key).is_some();
        let Received::Reply(Wire::Items(_, items)) =
            (if there { self.ask_sim(&ask) } else { Received::Nothing })
        else {
            return Rule::Shape;
        };
        let text = |wire: Option<&Wire>| match wire {
            Some(Wire::Bulk(bytes)) => bytes.clone(),
            _ => Vec::new(),
        };
        let all: BTreeMap<Vec<u8>, Vec<u8>> =
            items.chunks(width).map(|pair| (text(pair.first()), text(pair.get(1)))).collect();
        // During a pause expired elements remain and may still be drawn.
        if all.is_empty() {
            return Rule::Shape;
        }
        let count = words.get(2).and_then(|word| std::str::from_utf8(word).ok()?.parse::<i64>().ok());
        // The form of a score in each protocol is compared elsewhere.
        let valued = name == b"HRANDFIELD" && words.len() == 4;
        let skip = name == b"ZRANDMEMBER" && words.len() == 4;
        Rule::Among { all, valued, skip, distinct: count.is_some_and(|count| count > 0) }
    }

    /// After SPOP: removes the real server's elements from the simulator, and puts back those that
    /// the simulator had drawn.
    pub(super) fn even_out(&mut self, step: &Step, ours: &[Received], theirs: &[Received]) {
        let Step::Send(_, words) = step else { return };
        if words.len() < 2 || !words[0].eq_ignore_ascii_case(b"spop") {
            return;
        }
        let taken = |frames: &[Received]| -> Vec<Vec<u8>> {
            let mut taken = Vec::new();
            for frame in frames {
                match frame {
                    Received::Reply(Wire::Bulk(one)) => taken.push(one.clone()),
                    Received::Reply(Wire::Items(_, items)) => {
                        taken.extend(items.iter().filter_map(|item| {
                            if let Wire::Bulk(one) = item { Some(one.clone()) } else { None }
                        }));
                    }
                    Received::Reply(_) | Received::Nothing | Received::Closed => {}
                }
            }
            taken
        };
        let (ours, theirs) = (taken(ours), taken(theirs));
        let evened = ours.iter().any(|one| !theirs.contains(one));
        for (name, members) in [
            (b"SADD", ours.iter().filter(|one| !theirs.contains(one)).cloned().collect::<Vec<_>>()),
            (b"SREM", theirs.iter().filter(|one| !ours.contains(one)).cloned().collect()),
        ] {
            if !members.is_empty() {
                let mut command = vec![name.to_vec(), words[1].clone()];
                command.extend(members);
                self.ask_sim(&command);
            }
        }
        // The encoding of a set may depend on its remaining elements.
        let encoding = [b"OBJECT".to_vec(), b"ENCODING".to_vec(), words[1].clone()];
        if evened && self.ask_sim(&encoding) != self.ask_real(&encoding) {
            let key = words[1].clone();
            let expires = self.ask_sim(&[b"PEXPIRETIME".to_vec(), key.clone()]);
            self.ask_sim(&[b"SUNIONSTORE".to_vec(), key.clone(), key.clone()]);
            if let Received::Reply(Wire::Integer(at @ 0..)) = expires {
                self.ask_sim(&[b"PEXPIREAT".to_vec(), key, at.to_string().into_bytes()]);
            }
        }
    }
}
