//! Transactions and scripts.

use lockstorm_sim::generation::Feature;
use lockstorm_sim::script::sha1_hex;

use crate::{episode::Draw, steps::Step};

impl Draw<'_> {
    pub(super) fn transaction(&mut self, client: usize) {
        if self.prng.percent(40) {
            let key = self.words.fill("key", &mut self.prng);
            let mut words = vec![b"WATCH".to_vec(), key];
            if self.prng.percent(30) {
                words.push(self.words.fill("key", &mut self.prng));
            }
            self.command(client, words);
            for _ in 0..self.prng.below(4) {
                let other = self.prng.below(self.clients);
                self.plain(other);
            }
            if self.prng.percent(10) {
                self.send(client, &["UNWATCH"]);
            }
        }
        self.send(client, &["MULTI"]);
        for _ in 0..self.prng.below(12) {
            match self.prng.below(30) {
                0 => self.send(client, &["MULTI"]),
                1 => {
                    let key = self.words.fill("key", &mut self.prng);
                    self.command(client, vec![b"WATCH".to_vec(), key]);
                }
                2..=3 => {
                    let command = self.groups.blocking.draw(&mut self.prng, &self.words);
                    self.command(client, command);
                }
                4 => self.script(client),
                5 => {
                    let other = self.prng.below(self.clients);
                    self.plain(other);
                }
                6 if !self.hears_events() => {
                    // In EXEC the replies to several channels make an array longer than its header
                    // says.
                    let mut command = self.groups.pubsub.draw(&mut self.prng, &self.words);
                    if command[0].ends_with(b"SUBSCRIBE") {
                        command.truncate(2);
                    }
                    // A client's message to itself comes among its other replies.
                    if !command[0].ends_with(b"PUBLISH") {
                        self.steps.push(Step::Send(client, command));
                    }
                }
                _ => self.plain(client),
            }
        }
        let end = if self.prng.percent(88) { "EXEC" } else { "DISCARD" };
        self.send(client, &[end]);
    }

    /// A command inside a script, or a script that returns values.
    pub(super) fn script(&mut self, client: usize) {
        let eval = *self.prng.pick(&["EVAL", "EVAL", "EVAL", "EVAL_RO"]);
        if self.prng.percent(70) {
            let body = *self.prng.pick(&[
                "return redis.call(unpack(ARGV))",
                "return redis.pcall(unpack(ARGV))",
                "redis.setresp(3) return redis.call(unpack(ARGV))",
            ]);
            let inner = if self.prng.percent(5) {
                self.groups.blocking.draw(&mut self.prng, &self.words)
            } else {
                self.draw_plain()
            };
            // A script must not hide random elements or the order of a table.
            let mut words = vec![eval.as_bytes().to_vec(), body.as_bytes().to_vec(), b"0".to_vec()];
            words.extend(inner);
            self.command(client, words);
        } else {
            let body = format!("return {}", self.lua(3));
            let body = if self.prng.percent(30) { format!("redis.setresp(3) {body}") } else { body };
            let words = [eval.as_bytes(), body.as_bytes(), b"1", b"s0", b"17", b"x"];
            self.command(client, words.iter().map(|word| word.to_vec()).collect());
        }
    }

    /// Scripts of the cache: loaded, called by their digest, and evicted by many others.
    pub(super) fn cached(&mut self, client: usize) {
        let body = |number: usize| format!("return {number}");
        let digest = |number: usize| sha1_hex(body(number).as_bytes());
        let many = if self.prng.percent(30) { 600 } else { 5 };
        let (first, loaded) = (self.prng.below(4), 4 + self.prng.below(4));
        self.send(client, &["EVAL", &body(first), "0"]);
        self.send(client, &["SCRIPT", "LOAD", &body(loaded)]);
        for number in 0..many {
            self.send(client, &["EVAL", &body(10 + number), "0"]);
            if number % 100 == 50 {
                self.send(client, &["EVALSHA", &digest(loaded), "0"]);
            }
        }
        for number in [first, loaded, 10, 10 + many / 2, 10 + many - 1] {
            self.send(client, &["EVALSHA", &digest(number), "0"]);
            self.send(client, &["SCRIPT", "EXISTS", &digest(number)]);
            self.send(client, &["SCRIPT", "SHOW", &digest(number)]);
        }
        // A lease that is shorter than its script, and a clock that stands still.
        if self.groups.generation.has(Feature::FrozenScripts) {
            let idle = "for _ = 1, 1e6 do end";
            let lease =
                format!("redis.call('SET', 's0', 'x', 'PX', 1) {idle} return redis.call('EXISTS', 's0')");
            self.send(client, &["EVAL", &lease, "0"]);
            self.steps.push(Step::Sleep(2));
            self.send(client, &["EXISTS", "s0"]);
            let clock = format!("local t = redis.call('TIME') {idle} return redis.call('TIME')[2] == t[2]");
            self.send(client, &["EVAL", &clock, "0"]);
        }
    }

    /// A Lua expression.
    pub(super) fn lua(&mut self, depth: usize) -> String {
        let leaf = depth == 0 || self.prng.percent(50);
        if leaf {
            let leaves = [
                "nil",
                "true",
                "false",
                "1",
                "-7",
                "3.99",
                "-3.99",
                "0",
                "'text'",
                "''",
                "KEYS[1]",
                "ARGV[1]",
                "ARGV[2]",
                "ARGV[3]",
                "#ARGV",
                "1e15",
                "2^53",
                "2^63",
                "-2^63",
                "1/0",
                "-1/0",
                "0/0",
                "1e100",
                "tonumber(ARGV[1])",
                "tostring(1/3)",
                "tostring(2^53)",
                "{}",
                "{ok='fine'}",
                "{err='ERR bad'}",
                "{err='bad'}",
                "{double=3.5}",
                "{double=1e100}",
                "{big_number='123456789012345678901234567890'}",
                "{verbatim_string={string='txt', format='txt'}}",
                "redis.error_reply('X y')",
                "redis.error_reply('xy')",
                "redis.status_reply('S')",
                "redis.sha1hex('a')",
                "type(redis)",
                "('x'):rep(20)",
                "string.format('%d', 7.9)",
                "string.format('%5.2f|%s|%q', 1.5, 'a', 'b')",
                "cjson.encode({1,2,'x'})",
                "cjson.decode('[1,2.5,null]')[2]",
                "math.floor(2.7)",
                "redis.call('GET','s0')",
                "redis.call('SET','s0','7')",
                "redis.call('INCR','s0')",
                "redis.pcall('INCR','l0')",
                "redis.pcall('NOSUCH')",
                "redis.pcall()",
                "redis.call('LRANGE','l0',0,-1)",
                "redis.call('ZRANGE','z0',0,-1,'WITHSCORES')",
                "redis.call('EXISTS','s0')",
                "redis.call('ZSCORE','z0','m1')",
                "redis.REDIS_VERSION",
                "redis.breakpoint()",
                "redis.acl_check_cmd('GET','s0')",
                "tostring(nil)",
                "nosuch",
                "redis.LOG_WARNING",
                "bit.band(255, 15)",
                "bit.tohex(-1)",
                "struct.unpack('>I2', struct.pack('>I2', 258))",
            ];
            return (*self.prng.pick(&leaves)).into();
        }
        let count = 1 + self.prng.below(3);
        let items: Vec<String> = (0..count).map(|_| self.lua(depth - 1)).collect();
        match self.prng.below(8) {
            0 => format!("{{map={{[{}]=1}}}}", self.prng.pick(&["1", "'k'", "true"])),
            1 => format!("{{set={{[{}]=true}}}}", self.prng.pick(&["1", "'k'"])),
            2 => format!("({})..'s'", items[0]),
            3 => format!("({})+1", items[0]),
            _ => format!("{{{}}}", items.join(",")),
        }
    }
}
