//! Episodes: some hundred steps of several clients, drawn from one stream of dice.

use crate::{
    dice::Dice,
    grammar::Group,
    steps::Step,
    words::{Words, odd},
};

/// The groups of commands, by the syntax of each.
pub(crate) struct Groups {
    /// Groups of commands that any client may send at any time.
    plain: Vec<Group>,
    blocking: Group,
    pubsub: Group,
    connection: Group,
}

impl Groups {
    pub(crate) fn read() -> Groups {
        Groups {
            plain: vec![
                Group::read(include_str!("syntax/stream.txt")),
                Group::read(include_str!("syntax/functions.txt")),
                Group::read(include_str!("syntax/string.txt")),
                Group::read(include_str!("syntax/bitmap.txt")),
                Group::read(include_str!("syntax/hyperloglog.txt")),
                Group::read(include_str!("syntax/geo.txt")),
                Group::read(include_str!("syntax/hash.txt")),
                Group::read(include_str!("syntax/list.txt")),
                Group::read(include_str!("syntax/set.txt")),
                Group::read(include_str!("syntax/sorted_set.txt")),
                Group::read(include_str!("syntax/generic.txt")),
            ],
            blocking: Group::read(include_str!("syntax/blocking.txt")),
            pubsub: Group::read(include_str!("syntax/pubsub.txt")),
            connection: Group::read(include_str!("syntax/connection.txt")),
        }
    }
}

/// What an episode is drawn with.
struct Draw<'a> {
    dice: Dice,
    words: Words,
    groups: &'a Groups,
    /// How often each plain group is drawn; a few are preferred, so that their commands meet.
    weights: Vec<usize>,
    /// Of a hundred commands so many are spoilt.
    spoilt: usize,
    clients: usize,
    steps: Vec<Step>,
}

/// The steps of one episode of a seed.
pub(crate) fn draw(groups: &Groups, seed: u64, episode: u64) -> Vec<Step> {
    let mut dice = Dice::new(seed, episode);
    let lengths = vec![*dice.pick(&[4, 8, 64]), 44, 64];
    let words = Words::new(&mut dice, lengths.clone());
    let weights = groups.plain.iter().map(|_| if dice.percent(30) { 12 } else { 1 }).collect();
    let spoilt = *dice.pick(&[0, 2, 5, 20]);
    let clients = 1 + dice.below(4);
    let length = *dice.pick(&[60, 200, 200, 400, 1500]);
    let mut draw = Draw { dice, words, groups, weights, spoilt, clients, steps: Vec::new() };
    draw.configure(lengths[0]);
    for client in 0..clients {
        if draw.dice.percent(35) {
            draw.send(client, &["HELLO", "3"]);
        }
    }
    while draw.steps.len() < length {
        draw.scene();
    }
    draw.steps
}

impl Draw<'_> {
    /// Encodings that change early, so that small values have them all.
    fn configure(&mut self, value: usize) {
        // Bits may be far apart: strings of half a gigabyte would try nothing but the machine.
        self.send(0, &["CONFIG", "SET", "proto-max-bulk-len", "1mb"]);
        if self.dice.percent(70) {
            for (name, values) in [
                ("hash-max-listpack-entries", &["2", "4", "8"][..]),
                ("zset-max-listpack-entries", &["0", "2", "4", "8"]),
                ("set-max-intset-entries", &["0", "2", "4", "8"]),
            ] {
                let entries = *self.dice.pick(values);
                self.send(0, &["CONFIG", "SET", name, entries]);
            }
            let value = value.to_string();
            self.send(0, &["CONFIG", "SET", "hash-max-listpack-value", &value]);
            self.send(0, &["CONFIG", "SET", "zset-max-listpack-value", &value]);
        }
    }

    /// Something that clients do.
    fn scene(&mut self) {
        let client = self.dice.below(self.clients);
        match self.dice.below(100) {
            0..=61 => {
                for _ in 0..1 + self.dice.below(30) {
                    self.plain(client);
                }
            }
            62..=71 => self.transaction(client),
            72..=81 => {
                for _ in 0..1 + self.dice.below(6) {
                    self.script(client);
                }
            }
            82..=87 => self.waiting(client),
            88..=90 => self.expiring(client),
            91..=94 => {
                for _ in 0..1 + self.dice.below(4) {
                    let client = self.dice.below(self.clients);
                    let command = self.groups.pubsub.draw(&mut self.dice, &self.words);
                    self.command(client, command);
                }
            }
            95..=97 => {
                let command = self.groups.connection.draw(&mut self.dice, &self.words);
                self.command(client, command);
            }
            98 => self.steps.push(Step::Close(client)),
            _ => self.raw(client),
        }
    }

    fn send(&mut self, client: usize, words: &[&str]) {
        self.steps.push(Step::Send(client, words.iter().map(|word| word.as_bytes().to_vec()).collect()));
    }

    /// Sends a command, perhaps spoilt.
    fn command(&mut self, client: usize, mut words: Vec<Vec<u8>>) {
        if self.dice.percent(self.spoilt) {
            self.spoil(&mut words);
        }
        tame(&mut words);
        if !words.is_empty() {
            self.steps.push(Step::Send(client, words));
        }
    }

    fn draw_plain(&mut self) -> Vec<Vec<u8>> {
        let total: usize = self.weights.iter().sum();
        let mut left = self.dice.below(total);
        let mut at = 0;
        while left >= self.weights[at] {
            left -= self.weights[at];
            at += 1;
        }
        self.groups.plain[at].draw(&mut self.dice, &self.words)
    }

    fn plain(&mut self, client: usize) {
        let command = self.draw_plain();
        self.command(client, command);
    }

    /// What a wrong client, or a hostile one, would send.
    fn spoil(&mut self, words: &mut Vec<Vec<u8>>) {
        let at = self.dice.below(words.len());
        match self.dice.below(10) {
            0..=1 => {
                words.remove(at);
            }
            2 => {
                words.pop();
            }
            3 => words.insert(at + 1, odd(&mut self.dice)),
            4 => {
                let word = words[at].clone();
                words.push(word);
            }
            5 => words[at] = self.words.value(&mut self.dice),
            6 => {
                for word in words.iter_mut().filter(|word| word.iter().all(u8::is_ascii_uppercase)) {
                    word.make_ascii_lowercase();
                }
            }
            7 => {
                let other = self.dice.below(words.len());
                words.swap(at, other);
            }
            _ if at > 0 => words[at] = odd(&mut self.dice),
            _ => words.push(odd(&mut self.dice)),
        }
        // A blocking command that lost its time-out may wait for a moment.
        if words.first().is_some_and(|word| word.eq_ignore_ascii_case(b"debug")) {
            words.clear();
        }
    }

    fn transaction(&mut self, client: usize) {
        if self.dice.percent(40) {
            let key = self.words.fill("key", &mut self.dice);
            let mut words = vec![b"WATCH".to_vec(), key];
            if self.dice.percent(30) {
                words.push(self.words.fill("key", &mut self.dice));
            }
            self.command(client, words);
            for _ in 0..self.dice.below(4) {
                let other = self.dice.below(self.clients);
                self.plain(other);
            }
            if self.dice.percent(10) {
                self.send(client, &["UNWATCH"]);
            }
        }
        self.send(client, &["MULTI"]);
        for _ in 0..self.dice.below(12) {
            match self.dice.below(30) {
                0 => self.send(client, &["MULTI"]),
                1 => {
                    let key = self.words.fill("key", &mut self.dice);
                    self.command(client, vec![b"WATCH".to_vec(), key]);
                }
                2..=3 => {
                    let command = self.groups.blocking.draw(&mut self.dice, &self.words);
                    self.command(client, command);
                }
                4 => self.script(client),
                5 => {
                    let other = self.dice.below(self.clients);
                    self.plain(other);
                }
                6 => {
                    // In EXEC the answers to several channels make an array longer than it says.
                    let mut command = self.groups.pubsub.draw(&mut self.dice, &self.words);
                    if command[0].ends_with(b"SUBSCRIBE") {
                        command.truncate(2);
                    }
                    // And what a client publishes to itself comes among its other answers.
                    if !command[0].ends_with(b"PUBLISH") {
                        self.steps.push(Step::Send(client, command));
                    }
                }
                _ => self.plain(client),
            }
        }
        let end = if self.dice.percent(88) { "EXEC" } else { "DISCARD" };
        self.send(client, &[end]);
    }

    /// A command through a script, or a script of values.
    fn script(&mut self, client: usize) {
        let eval = *self.dice.pick(&["EVAL", "EVAL", "EVAL", "EVAL_RO"]);
        if self.dice.percent(70) {
            let body = *self.dice.pick(&[
                "return redis.call(unpack(ARGV))",
                "return redis.pcall(unpack(ARGV))",
                "redis.setresp(3) return redis.call(unpack(ARGV))",
            ]);
            let inner = if self.dice.percent(5) {
                self.groups.blocking.draw(&mut self.dice, &self.words)
            } else {
                self.draw_plain()
            };
            // What is drawn at random, or comes in the order of a table, is not what a script should hide.
            let mut words = vec![eval.as_bytes().to_vec(), body.as_bytes().to_vec(), b"0".to_vec()];
            words.extend(inner);
            self.command(client, words);
        } else {
            let body = format!("return {}", self.lua(3));
            let body = if self.dice.percent(30) { format!("redis.setresp(3) {body}") } else { body };
            let words = [eval.as_bytes(), body.as_bytes(), b"1", b"s0", b"17", b"x"];
            self.command(client, words.iter().map(|word| word.to_vec()).collect());
        }
    }

    /// A Lua expression.
    fn lua(&mut self, depth: usize) -> String {
        let leaf = depth == 0 || self.dice.percent(50);
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
            return (*self.dice.pick(&leaves)).into();
        }
        let count = 1 + self.dice.below(3);
        let items: Vec<String> = (0..count).map(|_| self.lua(depth - 1)).collect();
        match self.dice.below(8) {
            0 => format!("{{map={{[{}]=1}}}}", self.dice.pick(&["1", "'k'", "true"])),
            1 => format!("{{set={{[{}]=true}}}}", self.dice.pick(&["1", "'k'"])),
            2 => format!("({})..'s'", items[0]),
            3 => format!("({})+1", items[0]),
            _ => format!("{{{}}}", items.join(",")),
        }
    }

    /// Clients that wait, in the order in which they came, and others that bring what they wait for.
    fn waiting(&mut self, client: usize) {
        for step in 0..1 + self.dice.below(3) {
            let waiter = (client + step) % self.clients;
            let command = self.groups.blocking.draw(&mut self.dice, &self.words);
            self.command(waiter, command);
        }
        let giver = self.dice.below(self.clients + 1);
        for _ in 0..2 + self.dice.below(8) {
            match self.dice.below(12) {
                0 => self.transaction(giver),
                1 => self.script(giver),
                2 => {
                    let words = ["lkey", "lkey"].map(|slot| self.words.fill(slot, &mut self.dice));
                    let [one, other] = words;
                    self.command(
                        giver,
                        vec![b"LMOVE".to_vec(), one, other, b"LEFT".to_vec(), b"RIGHT".to_vec()],
                    );
                }
                3..=6 => {
                    let mut words = vec![b"RPUSH".to_vec(), self.words.fill("lkey", &mut self.dice)];
                    for _ in 0..self.dice.few() {
                        words.push(self.words.fill("member", &mut self.dice));
                    }
                    self.command(giver, words);
                }
                7..=9 => {
                    let mut words = vec![b"ZADD".to_vec(), self.words.fill("zkey", &mut self.dice)];
                    for _ in 0..self.dice.few() {
                        words.push(self.words.fill("score", &mut self.dice));
                        words.push(self.words.fill("member", &mut self.dice));
                    }
                    self.command(giver, words);
                }
                _ => self.plain(giver),
            }
        }
        // Who still waits would hold up what comes later.
        for client in 0..self.clients {
            if self.dice.percent(85) {
                self.steps.push(Step::Close(client));
            }
        }
    }

    /// A time to live that ends while both wait.
    fn expiring(&mut self, client: usize) {
        let key = self.words.fill("key", &mut self.dice);
        let value = self.words.value(&mut self.dice);
        let soon = b"1".to_vec();
        let mut sleep = true;
        let command = match self.dice.below(6) {
            0 => vec![b"PEXPIRE".to_vec(), key.clone(), soon],
            1 => vec![b"SET".to_vec(), key.clone(), value, b"PX".to_vec(), soon],
            2 => vec![b"PSETEX".to_vec(), key.clone(), soon, value],
            3 => {
                sleep = false;
                let at = self.dice.pick(&["1", "1000", "1600000000000"]).as_bytes().to_vec();
                vec![b"SET".to_vec(), key.clone(), value, b"PXAT".to_vec(), at]
            }
            4 => {
                let waiter = self.words.fill("lkey", &mut self.dice);
                vec![b"BLPOP".to_vec(), waiter, b"0.001".to_vec()]
            }
            _ => {
                sleep = false;
                vec![b"PEXPIREAT".to_vec(), key.clone(), b"1600000000000".to_vec()]
            }
        };
        if self.dice.percent(30) {
            self.command(client, vec![b"WATCH".to_vec(), key.clone()]);
        }
        self.command(client, command);
        if sleep {
            self.steps.push(Step::Sleep(40));
        }
        if self.dice.percent(20) {
            self.send(client, &["MULTI"]);
            self.plain(client);
            self.send(client, &["EXEC"]);
        }
        if self.dice.percent(50) {
            self.command(client, vec![b"EXISTS".to_vec(), key]);
        }
    }

    /// Bytes that are almost a command.
    fn raw(&mut self, client: usize) {
        let fixed: &[&[u8]] = &[
            b"PING\r\n",
            b"\r\n",
            b"*0\r\n",
            b"*-1\r\n",
            b"SET s0 \"a b\"\r\n",
            b"SET s0 \"a\\x41\\n\" \r\n",
            b"SET s0 'it''s'\r\n",
            b"GET \"s0\r\n",
            b"*1\r\n$4\r\nPING\r\n*1\r\n$4\r\nPING\r\n",
            b"*1\r\n$-1\r\n",
            b"*1\r\n:4\r\n",
            b"*x\r\n",
            b"*2147483648\r\n",
            b"*1048577\r\n$1\r\nx\r\n",
            b"*1\r\n$abc\r\n",
            b"*1\r\n$536870913\r\n",
            b"*2\r\n$4\r\nECHO\r\n$0\r\n\r\n",
            b"\0\r\n",
            b"echo a\\b\r\n",
            b"  ping  \n",
            b"GET / HTTP/1.1\r\n",
            b"POST / HTTP/1.1\r\n",
            b"Host: x\r\n",
            b"*3\r\n$3\r\nSET\r\n$2\r\ns0\r\n$3\r\na\r\n\r\n",
        ];
        let bytes = self.dice.pick(fixed).to_vec();
        self.steps.push(Step::Raw(client, bytes));
        if self.dice.percent(50) {
            self.steps.push(Step::Close(client));
        }
    }
}

/// Takes out what either server would answer with gigabytes: a bit that is far away, elements drawn a billion times.
fn tame(words: &mut [Vec<u8>]) {
    let names = |name: &str| words.iter().any(|word| word.to_ascii_uppercase().starts_with(name.as_bytes()));
    let (bits, draws) =
        (names("SETBIT") || names("BITFIELD"), names("SRAND") || names("ZRAND") || names("HRAND"));
    // How soon a short wait ends depends on the machine; those that are meant to end are followed by a sleep.
    let waits =
        words.first().is_some_and(|word| word.to_ascii_uppercase().starts_with(b"B")) && !names("BIT");
    for word in words.iter_mut().skip(1) {
        let seconds = std::str::from_utf8(word).ok().and_then(|text| text.parse::<f64>().ok()).unwrap_or(0.0);
        if waits && seconds > 0.0 && seconds < 1000.0 && seconds.fract() != 0.0 && word != b"0.001" {
            *word = b"0".to_vec();
        }
        let number = std::str::from_utf8(word).ok().and_then(|text| text.parse::<i64>().ok()).unwrap_or(0);
        if bits && number > 1 << 20 && number < 1 << 32 || draws && (-(1 << 62)..-1000).contains(&number) {
            *word = (number % 1000).to_string().into_bytes();
        }
    }
}
