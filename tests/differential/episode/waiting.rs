//! Clients that wait: for keys, for a time, for the end of a pause.

use crate::{episode::Draw, steps::Step};

impl Draw<'_> {
    /// Clients that wait in the order of their commands, and others that bring the keys they wait
    /// for.
    pub(super) fn waiting(&mut self, client: usize) {
        for step in 0..1 + self.prng.below(3) {
            let waiter = (client + step) % self.clients;
            let command = self.groups.blocking.draw(&mut self.prng, &self.words);
            self.command(waiter, command);
        }
        let giver = self.prng.below(self.clients + 1);
        for _ in 0..2 + self.prng.below(8) {
            match self.prng.below(16) {
                0 => self.transaction(giver),
                1 => self.script(giver),
                12 => {
                    let command = self.groups.databases.draw(&mut self.prng, &self.words);
                    self.command(giver, command);
                }
                13 => {
                    let key = self.words.fill("xkey", &mut self.prng);
                    let group = self.words.fill("group", &mut self.prng);
                    let ways = [
                        vec![b"DEL".to_vec(), key.clone()],
                        vec![b"XGROUP".to_vec(), b"DESTROY".to_vec(), key.clone(), group.clone()],
                        vec![b"XGROUP".to_vec(), b"CREATE".to_vec(), key.clone(), group, b"$".to_vec()],
                        vec![b"SET".to_vec(), key.clone(), b"v".to_vec()],
                        vec![b"FLUSHALL".to_vec()],
                        vec![b"RENAME".to_vec(), key.clone(), b"x0".to_vec()],
                    ];
                    let way = self.prng.pick(&ways).clone();
                    self.command(giver, way);
                }
                14..=15 => {
                    let key = self.words.fill("xkey", &mut self.prng);
                    let id = self.words.fill("id", &mut self.prng);
                    self.command(giver, vec![b"XADD".to_vec(), key, id, b"f".to_vec(), b"v".to_vec()]);
                }
                2 => {
                    let words = ["lkey", "lkey"].map(|slot| self.words.fill(slot, &mut self.prng));
                    let [one, other] = words;
                    self.command(
                        giver,
                        vec![b"LMOVE".to_vec(), one, other, b"LEFT".to_vec(), b"RIGHT".to_vec()],
                    );
                }
                3..=6 => {
                    let mut words = vec![b"RPUSH".to_vec(), self.words.fill("lkey", &mut self.prng)];
                    for _ in 0..self.prng.few() {
                        words.push(self.words.fill("member", &mut self.prng));
                    }
                    self.command(giver, words);
                }
                7..=9 => {
                    let mut words = vec![b"ZADD".to_vec(), self.words.fill("zkey", &mut self.prng)];
                    for _ in 0..self.prng.few() {
                        words.push(self.words.fill("score", &mut self.prng));
                        words.push(self.words.fill("member", &mut self.prng));
                    }
                    self.command(giver, words);
                }
                _ => self.plain(giver),
            }
        }
        // A blocked client would delay later steps.
        for client in 0..self.clients {
            if self.prng.percent(85) {
                self.steps.push(Step::Close(client));
            }
        }
    }

    /// A time to live that ends while clients wait.
    pub(super) fn expiring(&mut self, client: usize) {
        let key = self.words.fill("key", &mut self.prng);
        let value = self.words.value(&mut self.prng);
        let soon = b"1".to_vec();
        let mut sleep = true;
        let command = match self.prng.below(6) {
            0 => vec![b"PEXPIRE".to_vec(), key.clone(), soon],
            1 => vec![b"SET".to_vec(), key.clone(), value, b"PX".to_vec(), soon],
            2 => vec![b"PSETEX".to_vec(), key.clone(), soon, value],
            3 => {
                sleep = false;
                let at = self.prng.pick(&["1", "1000", "1600000000000"]).as_bytes().to_vec();
                vec![b"SET".to_vec(), key.clone(), value, b"PXAT".to_vec(), at]
            }
            4 => {
                let waiter = self.words.fill("lkey", &mut self.prng);
                vec![b"BLPOP".to_vec(), waiter, b"0.001".to_vec()]
            }
            _ => {
                sleep = false;
                vec![b"PEXPIREAT".to_vec(), key.clone(), b"1600000000000".to_vec()]
            }
        };
        if self.prng.percent(30) {
            self.command(client, vec![b"WATCH".to_vec(), key.clone()]);
        }
        // Not tamed: this TTL is meant to end soon.
        self.steps.push(Step::Send(client, command));
        if sleep {
            self.steps.push(Step::Sleep(40));
        }
        if self.prng.percent(20) {
            self.send(client, &["MULTI"]);
            self.plain(client);
            self.send(client, &["EXEC"]);
        }
        if self.prng.percent(50) {
            self.command(client, vec![b"EXISTS".to_vec(), key]);
        }
    }

    /// Commands that a pause delays.
    pub(super) fn pausing(&mut self, client: usize) {
        let other = self.clients;
        if self.prng.percent(25) {
            // No command can end a pause of all commands.
            self.send(client, &["CLIENT", "PAUSE", "20", "ALL"]);
            let paused = self.prng.below(self.clients);
            self.plain(paused);
            self.steps.push(Step::Sleep(60));
            return;
        }
        self.send(client, &["CLIENT", "PAUSE", "1000000", "WRITE"]);
        for _ in 0..1 + self.prng.below(8) {
            let client = self.prng.below(self.clients);
            match self.prng.below(12) {
                0 => self.transaction(client),
                1 => self.script(client),
                2 => {
                    let command = self.groups.blocking.draw(&mut self.prng, &self.words);
                    self.command(client, command);
                }
                3 => self.pubsub(client),
                4 => self.steps.push(Step::Close(client)),
                _ => self.plain(client),
            }
        }
        // A real server forgets clients that are unblocked during a pause.
        self.send(other, &["CLIENT", "UNPAUSE"]);
    }
}
