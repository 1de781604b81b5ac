//! Commands of faulty and hostile clients; and commands that are kept from the servers because they
//! would only test the machine.

use crate::{episode::Draw, steps::Step, vocabulary::odd};

impl Draw<'_> {
    /// Changes a command as a faulty or hostile client would.
    pub(super) fn spoil(&mut self, words: &mut Vec<Vec<u8>>) {
        // A range by name over members with several scores depends on the levels that redis-server
        // has drawn, so those keys never get several scores.
        if let [command, key, ..] = &words[..]
            && command.eq_ignore_ascii_case(b"zadd")
            && key.starts_with(b"y")
        {
            return;
        }
        let at = self.prng.below(words.len());
        match self.prng.below(10) {
            0..=1 => {
                words.remove(at);
            }
            2 => {
                words.pop();
            }
            3 => words.insert(at + 1, odd(&mut self.prng)),
            4 => {
                let word = words[at].clone();
                words.push(word);
            }
            5 => words[at] = self.words.value(&mut self.prng),
            6 => {
                for word in words.iter_mut().filter(|word| word.iter().all(u8::is_ascii_uppercase)) {
                    word.make_ascii_lowercase();
                }
            }
            7 => {
                let other = self.prng.below(words.len());
                words.swap(at, other);
            }
            _ if at > 0 => words[at] = odd(&mut self.prng),
            _ => words.push(odd(&mut self.prng)),
        }
        // A blocking command that lost its timeout may wait for a moment.
        if words.first().is_some_and(|word| word.eq_ignore_ascii_case(b"debug")) {
            words.clear();
        }
    }

    /// Bytes that are almost a command.
    pub(super) fn raw(&mut self, client: usize) {
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
        let bytes = self.prng.pick(fixed).to_vec();
        self.steps.push(Step::Raw(client, bytes));
        if self.prng.percent(50) {
            self.steps.push(Step::Close(client));
        }
    }
}

/// Removes arguments that either server would answer with gigabytes: a bit that is far away,
/// elements drawn a billion times. Also removes TTLs that would end during later steps, where the
/// speed of the machine would decide.
pub(super) fn tame(words: &mut [Vec<u8>]) {
    let names = |name: &str| words.iter().any(|word| word.to_ascii_uppercase().starts_with(name.as_bytes()));
    let (bits, draws) = (
        names("SETBIT") || names("BITFIELD"),
        names("SRAND") || names("ZRAND") || names("HRAND") || names("SPOP"),
    );
    for word in words.iter_mut().skip(1) {
        let number = number(word).unwrap_or(0);
        if bits && number > 1 << 20 && number < 1 << 32 || draws && (-(1 << 62)..-1000).contains(&number) {
            *word = (number % 1000).to_string().into_bytes();
        }
    }
    for at in 0..words.len() {
        let (ahead, far) = match &words[at].to_ascii_uppercase()[..] {
            b"EXPIRE" | b"SETEX" => (2, 100_000),
            b"PEXPIRE" | b"PSETEX" | b"RESTORE" => (2, 100_000_000),
            b"EX" => (1, 100_000),
            b"PX" | b"BLOCK" => (1, 100_000_000),
            b"BLPOP" | b"BRPOP" | b"BLMOVE" | b"BRPOPLPUSH" | b"BZPOPMIN" | b"BZPOPMAX" => {
                (words.len() - 1 - at, 1_000_000)
            }
            b"BLMPOP" | b"BZMPOP" => (1, 1_000_000),
            _ => continue,
        };
        let Some(word) = words.get_mut(at + ahead) else { continue };
        let time = std::str::from_utf8(word).ok().and_then(|text| text.parse::<f64>().ok()).unwrap_or(0.0);
        if ahead > 0 && time > 0.0 && time < f64::from(far) / 100.0 {
            *word = far.to_string().into_bytes();
        }
    }
}

fn number(word: &[u8]) -> Option<i64> {
    std::str::from_utf8(word).ok()?.parse().ok()
}
