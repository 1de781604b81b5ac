//! Commands in pieces, in other databases, as other users, and values that go from one server to
//! the other.

use crate::{
    episode::{Draw, spoil::tame},
    steps::{ANSWER, Command, Step},
};

impl Draw<'_> {
    /// Commands that are delivered together, cut at random bytes.
    pub(super) fn pipeline(&mut self, client: usize) {
        let mut commands: Vec<Command> = Vec::new();
        for _ in 0..2 + self.prng.below(12) {
            match self.prng.below(16) {
                0 => {
                    commands.push(vec![b"MULTI".to_vec()]);
                    for _ in 0..self.prng.below(4) {
                        let words = self.draw_plain();
                        commands.extend(self.sent(words));
                    }
                    commands.push(vec![b"EXEC".to_vec()]);
                }
                1 => {
                    let words = self.groups.blocking.draw(&mut self.prng, &self.words);
                    commands.extend(self.sent(words));
                }
                2 => {
                    let key = self.words.fill("key", &mut self.prng);
                    commands.push(vec![b"WATCH".to_vec(), key]);
                }
                _ => {
                    let words = self.draw_plain();
                    commands.extend(self.sent(words));
                }
            }
        }
        let cuts = (0..self.prng.below(4)).map(|_| self.prng.below(1 << 20)).collect();
        if commands.len() > 1 {
            self.steps.push(Step::Pipeline(client, commands, cuts));
        }
        if self.prng.percent(30) {
            // A client may now be blocked, with more commands queued behind.
            let giver = self.clients;
            for _ in 0..1 + self.prng.below(3) {
                let mut words = vec![b"RPUSH".to_vec(), self.words.fill("lkey", &mut self.prng)];
                words.push(self.words.fill("member", &mut self.prng));
                self.command(giver, words);
            }
        }
    }

    /// Users, their rules, and commands that these rules allow or refuse.
    pub(super) fn users(&mut self, client: usize) {
        for _ in 0..1 + self.prng.below(6) {
            let client = if self.prng.percent(70) { client } else { self.prng.below(self.clients) };
            let command = self.groups.users.draw(&mut self.prng, &self.words);
            self.command(client, command);
        }
        for _ in 0..self.prng.below(6) {
            let other = self.prng.below(self.clients);
            match self.prng.below(12) {
                0..=1 => self.transaction(other),
                2..=3 => self.script(other),
                4 => self.pubsub(other),
                _ => self.plain(other),
            }
        }
        if self.prng.percent(25) {
            self.send(client, &["RESET"]);
        }
    }

    /// Databases other than 0.
    pub(super) fn databases(&mut self, client: usize) {
        for _ in 0..2 + self.prng.below(8) {
            if self.prng.percent(25) {
                self.plain(client);
                continue;
            }
            let command = self.groups.databases.draw(&mut self.prng, &self.words);
            self.command(client, command);
        }
        if self.prng.percent(80) {
            self.send(client, &["SELECT", "0"]);
        }
    }

    /// Values and libraries that one server writes and the other reads.
    pub(super) fn across(&mut self, client: usize) {
        for _ in 0..1 + self.prng.below(4) {
            if self.prng.percent(12) {
                let ask = vec![b"FUNCTION".to_vec(), b"DUMP".to_vec()];
                let mut words = vec![b"FUNCTION".to_vec(), b"RESTORE".to_vec(), ANSWER.to_vec()];
                if self.prng.percent(80) {
                    words.push(self.prng.pick(&["FLUSH", "APPEND", "REPLACE", "bogus"]).as_bytes().to_vec());
                }
                self.steps.push(Step::Cross(client, ask, words));
                continue;
            }
            let (from, to) = (self.words.fill("key", &mut self.prng), self.words.fill("key", &mut self.prng));
            let to = if self.prng.percent(30) { from.clone() } else { to };
            let absolute = self.prng.percent(25);
            let ttl = match self.prng.below(3) {
                0 => self.words.fill(if absolute { "unixms" } else { "ms" }, &mut self.prng),
                _ => b"0".to_vec(),
            };
            let mut words = vec![b"RESTORE".to_vec(), to.clone(), ttl, ANSWER.to_vec()];
            if self.prng.percent(75) {
                words.push(b"REPLACE".to_vec());
            }
            if absolute {
                words.push(b"ABSTTL".to_vec());
            }
            let used = self.prng.below(6);
            if used < 2 {
                let name = if used == 0 { "IDLETIME" } else { "FREQ" };
                words.push(name.as_bytes().to_vec());
                let amount = *self.prng.pick(&["0", "1", "100", "255", "256", "-1", "1000000", "a"]);
                words.push(amount.as_bytes().to_vec());
            }
            if self.prng.percent(self.spoilt) {
                self.spoil(&mut words);
                tame(&mut words);
            }
            // Without a payload the servers' replies would differ in words.
            if words.first().is_none_or(|word| !word.eq_ignore_ascii_case(b"restore"))
                || words.get(3).is_none_or(|word| word != ANSWER)
            {
                continue;
            }
            self.steps.push(Step::Cross(client, vec![b"DUMP".to_vec(), from.clone()], words));
            match self.prng.below(5) {
                0 => self.command(client, vec![b"OBJECT".to_vec(), b"FREQ".to_vec(), to]),
                1 => self.command(client, vec![b"OBJECT".to_vec(), b"IDLETIME".to_vec(), to]),
                2 => self.command(client, vec![b"DUMP".to_vec(), to]),
                3 => self.command(client, vec![b"DUMP".to_vec(), from]),
                _ => self.command(client, vec![b"PTTL".to_vec(), to]),
            }
        }
        if self.prng.percent(20) {
            let mut words = vec![b"RESTORE".to_vec()];
            for slot in ["key", "ms", "value", "value"] {
                words.push(self.words.fill(slot, &mut self.prng));
            }
            self.command(client, words);
        }
    }
}
