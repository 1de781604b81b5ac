//! Pushed messages and suppressed replies: client-side caching, keyspace notifications, CLIENT
//! REPLY.

use crate::{
    episode::{Draw, Scene},
    steps::Step,
    words::LISTENER,
};

impl Draw<'_> {
    /// Client-side caching: clients that have read a key get an invalidation when it changes.
    pub(super) fn tracking(&mut self, client: usize) {
        if self.prng.percent(40) {
            let steps: [&[&str]; 4] = [
                &["HELLO", "3"],
                &["SUBSCRIBE", "__redis__:invalidate"],
                &["CLIENT", "ID"],
                &["UNSUBSCRIBE", "__redis__:invalidate"],
            ];
            let words = *self.prng.pick(&steps);
            self.send(LISTENER, words);
        }
        for _ in 0..1 + self.prng.below(6) {
            let client = if self.prng.percent(70) { client } else { self.prng.below(self.clients) };
            let command = self.groups.tracking.draw(&mut self.prng, &self.words);
            self.command(client, command);
        }
        for _ in 0..self.prng.below(8) {
            let other = self.prng.below(self.clients + 1);
            match self.prng.below(12) {
                0 => self.transaction(other),
                1 => self.script(other),
                2 => self.pipeline(other),
                _ => self.plain(other),
            }
        }
    }

    /// Keyspace notifications, and a client that subscribes to them.
    pub(super) fn events(&mut self, client: usize) {
        let flags =
            *self.prng.pick(&["KEA", "KEA", "AKE", "KEAmn", "K$gx", "Elh", "Ezt", "Kxg", "", "KEm", "bogus"]);
        self.send(client, &["CONFIG", "SET", "notify-keyspace-events", flags]);
        if self.prng.percent(20) {
            self.send(client, &["CONFIG", "GET", "notify-keyspace-events"]);
        }
        let patterns: [&[&str]; 4] = [
            &["PSUBSCRIBE", "__key*__:*"],
            &["PSUBSCRIBE", "__keyspace@0__:s*", "__keyevent@0__:*"],
            &["SUBSCRIBE", "__keyevent@0__:expired", "__keyevent@0__:del", "__keyspace@0__:s0"],
            &["PSUBSCRIBE", "*"],
        ];
        let patterns = *self.prng.pick(&patterns);
        self.send(LISTENER, patterns);
    }

    /// Returns true if the episode enables keyspace events.
    pub(super) fn hears_events(&self) -> bool {
        self.scenes.iter().any(|(scene, _)| *scene == Scene::Events)
    }

    /// Channels and patterns. With keyspace events, only a client that does nothing else
    /// subscribes: events of a client's own commands may come in the middle of their replies.
    pub(super) fn pubsub(&mut self, client: usize) {
        let command = self.groups.pubsub.draw(&mut self.prng, &self.words);
        self.command(if self.hears_events() { LISTENER } else { client }, command);
    }

    /// Commands with CLIENT REPLY OFF or SKIP.
    pub(super) fn silent(&mut self, client: usize) {
        if self.prng.percent(40) {
            self.send(client, &["CLIENT", "REPLY", "SKIP"]);
            self.plain(client);
            self.plain(client);
            return;
        }
        self.send(client, &["CLIENT", "REPLY", "OFF"]);
        for _ in 0..1 + self.prng.below(5) {
            match self.prng.below(8) {
                0 => self.send(client, &["CLIENT", "REPLY", "SKIP"]),
                1 => self.script(client),
                2 => self.pubsub(client),
                _ => self.plain(client),
            }
        }
        if self.prng.percent(90) {
            self.send(client, &["CLIENT", "REPLY", "ON"]);
        } else {
            self.steps.push(Step::Close(client));
        }
    }
}
