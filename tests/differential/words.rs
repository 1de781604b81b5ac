//! The words that fill the slots of the grammar: keys of each type, boundary values, and words that
//! are no valid numbers.

use crate::{
    prng::Prng,
    steps::id_of,
    vocabulary::{EDGES, FLOATS, PERMITS, RULES, code, odd},
};

/// The vocabulary of one episode: few enough words that commands meet each other's keys.
pub(crate) struct Words {
    /// Number of keys per type.
    keys: usize,
    /// Number of fields and members.
    members: usize,
    /// Lengths at which encodings change, as the episode configures them.
    lengths: Vec<usize>,
}

/// The connection that only receives.
pub(crate) const LISTENER: usize = 21;

/// The slots that [`Words::fill`] can fill.
const SLOTS: &[&str] = &[
    "skey",
    "hkey",
    "lkey",
    "tkey",
    "zkey",
    "xkey",
    "pkey",
    "gkey",
    "ykey",
    "key",
    "idle",
    "exid",
    "code",
    "value",
    "int",
    "float",
    "index",
    "count",
    "bit",
    "offset",
    "field",
    "member",
    "element",
    "score",
    "min",
    "max",
    "lexmin",
    "lexmax",
    "pattern",
    "seconds",
    "ms",
    "unix",
    "unixms",
    "cursor",
    "db",
    "channel",
    "weight",
    "sortby",
    "text",
    "timeout",
    "id",
    "group",
    "consumer",
    "bittype",
    "bitoffset",
    "longitude",
    "latitude",
    "radius",
    "unit",
    "user",
    "rule",
    "function",
    "library",
    "flag",
    "blockms",
    "permit",
    "password",
    "category",
    "prefix",
    "peer",
    "target",
];

impl Words {
    pub(crate) fn new(prng: &mut Prng, lengths: Vec<usize>) -> Words {
        Words { keys: 1 + prng.below(5), members: *prng.pick(&[4, 8, 20, 60]), lengths }
    }

    /// Returns true if [`Words::fill`] can fill a slot of this name.
    pub(crate) fn knows(slot: &str) -> bool {
        SLOTS.contains(&slot)
    }

    pub(crate) fn fill(&self, slot: &str, prng: &mut Prng) -> Vec<u8> {
        let number = |n: i64| n.to_string().into_bytes();
        match slot {
            "skey" | "hkey" | "lkey" | "tkey" | "zkey" | "xkey" | "pkey" | "gkey" | "ykey" => {
                self.key(&slot[..1], prng)
            }
            "key" => {
                let letter = ["s", "h", "l", "t", "z", "x", "p", "g"];
                let at = prng.below(letter.len());
                self.key(letter[at], prng)
            }
            "value" | "element" | "text" => self.value(prng),
            "field" => self.member("f", prng),
            "member" => self.member("m", prng),
            "int" => self.int(prng),
            "float" | "weight" => self.float(prng),
            "score" => self.score(prng),
            "index" => match prng.below(20) {
                0 => odd(prng),
                1..=2 => number(*prng.pick(EDGES)),
                _ => number(prng.between(-8, 12)),
            },
            "count" | "offset" => match prng.below(20) {
                0 => odd(prng),
                1 => number(prng.between(-5, 0)),
                2 => number(prng.between(10, 400)),
                _ => number(prng.between(0, 5)),
            },
            "bit" => number(i64::from(prng.percent(50))),
            // No odd number that is large but allowed: strings of half a gigabyte only test the
            // machine.
            "bitoffset" => match prng.below(20) {
                0 => prng
                    .pick(&["", "a", "-1", "1.5", "01", "#", "#-1", "4294967296", "9223372036854775807"])
                    .as_bytes()
                    .to_vec(),
                1..=3 => format!("#{}", prng.between(0, 20)).into_bytes(),
                4 => number(prng.between(1000, 4000)),
                _ => number(prng.between(0, 100)),
            },
            "bittype" => match prng.below(20) {
                0 => prng
                    .pick(&["u64", "i65", "u0", "i0", "u", "x8", "8", "I8", "u-1", "u08"])
                    .as_bytes()
                    .to_vec(),
                n => format!("{}{}", if n % 2 == 0 { "u" } else { "i" }, prng.between(1, 63)).into_bytes(),
            },
            "min" | "max" => self.score_bound(slot == "min", prng),
            "lexmin" | "lexmax" => self.lex_bound(slot == "lexmin", prng),
            "pattern" => self.pattern(prng),
            // Far apart, so that the time between two commands decides nothing.
            "seconds" => match prng.below(12) {
                0 => odd(prng),
                1 => number(*prng.pick(&[0, -1, i64::MIN, i64::MAX, 9223372036854775, -5])),
                _ => number(prng.between(1_000, 100_000_000)),
            },
            "ms" => match prng.below(12) {
                0 => odd(prng),
                1 => number(*prng.pick(&[0, -1, i64::MIN, i64::MAX, 9223372036854775806, -5])),
                _ => number(prng.between(1_000_000, 100_000_000_000)),
            },
            "unix" => match prng.below(12) {
                0 => odd(prng),
                1..=2 => number(*prng.pick(&[0, -1, 1, i64::MIN, i64::MAX, 9223372036854775, 1_000_000_000])),
                _ => number(
                    prng.pick(&[3_000_000_000i64, 3_000_000_001, 4_000_000_000, 9_999_999_999]).to_owned(),
                ),
            },
            "unixms" => match prng.below(12) {
                0 => odd(prng),
                1..=2 => number(*prng.pick(&[0, -1, 1, i64::MIN, i64::MAX, 1_000_000_000_000])),
                _ => number(*prng.pick(&[3_000_000_000_000i64, 3_000_000_000_001, 9_999_999_999_999])),
            },
            "cursor" => match prng.below(10) {
                0 => odd(prng),
                _ => b"0".to_vec(),
            },
            "db" => match prng.below(12) {
                0 => odd(prng),
                1 => number(*prng.pick(&[15, 16, -1, 100])),
                _ => number(prng.between(0, 2)),
            },
            "channel" => prng.pick(&["c1", "c2", "news", "news.a", "news.b", "", "*"]).as_bytes().to_vec(),
            "sortby" => self.sort_pattern(prng),
            "timeout" => match prng.below(12) {
                0 => odd(prng),
                1 => prng.pick(&["-1", "-0.5", "1e10", "9223372036854775807", "1e300"]).as_bytes().to_vec(),
                _ => prng.pick(&["0", "1000", "5000.5", "100000"]).as_bytes().to_vec(),
            },
            "id" => self.stream_id(prng),
            "exid" => [b"(".to_vec(), self.stream_id(prng)].concat(),
            // Idle times that either no consumer or every consumer has reached.
            "idle" => prng.pick(&["0", "0", "1000000000", "-1", "x"]).as_bytes().to_vec(),
            "code" => code(prng),
            "group" => prng.pick(&["g1", "g2", "nogroup", ""]).as_bytes().to_vec(),
            "consumer" => prng.pick(&["c1", "c2", "c3", ""]).as_bytes().to_vec(),
            "longitude" => match prng.below(15) {
                0 => odd(prng),
                1 => prng.pick(&["180", "-180", "180.1", "-180.0001", "0"]).as_bytes().to_vec(),
                _ => format!("{:.4}", prng.between(-400_000, 400_000) as f64 / 10_000.0).into_bytes(),
            },
            "latitude" => match prng.below(15) {
                0 => odd(prng),
                1 => prng.pick(&["85.05112878", "-85.05112878", "85.06", "-90", "0"]).as_bytes().to_vec(),
                _ => format!("{:.4}", prng.between(-400_000, 400_000) as f64 / 10_000.0).into_bytes(),
            },
            "radius" => match prng.below(12) {
                0 => odd(prng),
                _ => number(*prng.pick(&[0, 1, 10, 100, 500, 1000, 5000, 20_000, 3_000_000])),
            },
            "unit" => prng.pick(&["m", "km", "ft", "mi", "KM", "m", "km", "yd"]).as_bytes().to_vec(),
            "user" => match prng.below(40) {
                0 => b"default".to_vec(),
                1 => b"nobody".to_vec(),
                _ => prng.pick(&["alice", "alice", "bob", "carol"]).as_bytes().to_vec(),
            },
            "permit" => prng.pick(PERMITS).as_bytes().to_vec(),
            "password" => prng.pick(&["secret", "secret", "secret", "wrong", ""]).as_bytes().to_vec(),
            "category" => {
                prng.pick(&["read", "write", "string", "dangerous", "READ", "nosuch"]).as_bytes().to_vec()
            }
            "prefix" => prng.pick(&["s", "h", "l", "s0", "", "z", "t"]).as_bytes().to_vec(),
            "peer" => match prng.below(10) {
                0 => odd(prng),
                _ => id_of(prng.below(5)),
            },
            // The REDIRECT target only receives: the order of its invalidations and its own replies
            // is unspecified.
            "target" => match prng.below(10) {
                0 => odd(prng),
                _ => id_of(LISTENER),
            },
            "blockms" => match prng.below(12) {
                0 => prng.pick(&["-1", "a", "", "1.5", "9223372036854775807"]).as_bytes().to_vec(),
                _ => prng.pick(&["0", "100000"]).as_bytes().to_vec(),
            },
            "rule" => prng.pick(RULES).as_bytes().to_vec(),
            "function" => prng.pick(&["f1", "f2", "f3"]).as_bytes().to_vec(),
            "library" => prng.pick(&["lib1", "lib2"]).as_bytes().to_vec(),
            "flag" => prng.pick(&["no-writes", "allow-oom", "allow-stale"]).as_bytes().to_vec(),
            other => unreachable!("{other} is in SLOTS"),
        }
    }

    /// Mostly a key of the type, now and then a key of another type or of none.
    fn key(&self, letter: &str, prng: &mut Prng) -> Vec<u8> {
        match prng.below(100) {
            // A range by name is only defined if all scores are equal, so these keys keep their
            // type.
            0..=3 if letter != "y" => {
                let other = ["s", "h", "l", "t", "z", "x", "p", "g"];
                let at = prng.below(other.len());
                format!("{}{}", other[at], prng.below(self.keys)).into_bytes()
            }
            4 => prng.pick(&["none", "", "k ey", "\0\u{ff}", "{tag}1"]).as_bytes().to_vec(),
            _ => format!("{letter}{}", prng.below(self.keys)).into_bytes(),
        }
    }

    fn member(&self, letter: &str, prng: &mut Prng) -> Vec<u8> {
        match prng.below(20) {
            0 => self.value(prng),
            1..=5 => prng.below(self.members).to_string().into_bytes(),
            _ => format!("{letter}{}", prng.below(self.members)).into_bytes(),
        }
    }

    fn int(&self, prng: &mut Prng) -> Vec<u8> {
        match prng.below(12) {
            0 => odd(prng),
            1..=3 => prng.pick(EDGES).to_string().into_bytes(),
            _ => prng.between(-20, 100).to_string().into_bytes(),
        }
    }

    fn float(&self, prng: &mut Prng) -> Vec<u8> {
        match prng.below(12) {
            0 => odd(prng),
            1..=5 => prng.pick(FLOATS).as_bytes().to_vec(),
            6 => format!("{}", prng.between(-1_000_000, 1_000_000) as f64 / 1024.0).into_bytes(),
            7 => {
                let any = f64::from_bits(prng.bits());
                format!("{any:e}").into_bytes()
            }
            _ => prng.between(-20, 100).to_string().into_bytes(),
        }
    }

    fn score(&self, prng: &mut Prng) -> Vec<u8> {
        if prng.percent(60) { prng.between(-3, 10).to_string().into_bytes() } else { self.float(prng) }
    }

    fn score_bound(&self, low: bool, prng: &mut Prng) -> Vec<u8> {
        match prng.below(10) {
            0..=2 => if low { "-inf" } else { "+inf" }.into(),
            3..=5 => [b"(".to_vec(), self.score(prng)].concat(),
            6 => if low { "+inf" } else { "-inf" }.into(),
            _ => self.score(prng),
        }
    }

    fn lex_bound(&self, low: bool, prng: &mut Prng) -> Vec<u8> {
        match prng.below(12) {
            0..=2 => if low { "-" } else { "+" }.into(),
            3 => if low { "+" } else { "-" }.into(),
            4 => self.member("m", prng),
            5..=7 => [b"(".to_vec(), self.member("m", prng)].concat(),
            _ => [b"[".to_vec(), self.member("m", prng)].concat(),
        }
    }

    fn pattern(&self, prng: &mut Prng) -> Vec<u8> {
        let fixed: &[&[u8]] = &[
            b"*", b"*", b"*", b"?*", b"*1", b"s*", b"[sh]*", b"[^s]*", b"m?", b"f[0-5]", b"f[5-0]", b"\\*",
            b"a\\", b"[", b"[a", b"[]", b"[^", b"", b"?", b"??", b"*0*", b"m[1-3", b"news.*", b"\\[",
            b"[\\]]", b"*\\",
        ];
        if prng.percent(90) { prng.pick(fixed).to_vec() } else { self.key("s", prng) }
    }

    fn sort_pattern(&self, prng: &mut Prng) -> Vec<u8> {
        prng.pick(&["nosort", "s*", "h*->f1", "s*->", "*", "#", "none", "h*->m*", "s\0*", "->f1", "h*->"])
            .as_bytes()
            .to_vec()
    }

    fn stream_id(&self, prng: &mut Prng) -> Vec<u8> {
        match prng.below(16) {
            0 => prng
                .pick(&["-", "+", "$", ">", "0-0", "abc", "1-", "-1", "1-*", "5-*", "18446744073709551615-1"])
                .as_bytes()
                .to_vec(),
            1 => prng
                .pick(&[
                    // No ID beyond 64 bits: it leaves an error number in redis-server that the next
                    // SORT takes for its own.
                    "18446744073709551615-18446744073709551615",
                    "1-2-3",
                    "(1-1",
                    "(",
                ])
                .as_bytes()
                .to_vec(),
            2..=5 => prng.between(0, 12).to_string().into_bytes(),
            _ => format!("{}-{}", prng.between(0, 12), prng.between(0, 4)).into_bytes(),
        }
    }

    /// A value of a string, a list element or a hash field.
    pub(crate) fn value(&self, prng: &mut Prng) -> Vec<u8> {
        match prng.below(40) {
            0 => Vec::new(),
            1..=8 => self.int(prng),
            9..=11 => self.float(prng),
            12..=15 => {
                // The length at which the encoding changes, and the lengths on either side.
                let length = *prng.pick(&self.lengths) as i64 + prng.between(-1, 1);
                vec![*prng.pick(b"abcxyz0189"); length.max(0) as usize]
            }
            16..=17 => (0..prng.below(12)).map(|_| prng.bits() as u8).collect(),
            18 => {
                let length = *prng.pick(&[44usize, 45, 63, 64, 65, 127, 128, 4095, 8192, 20_000]);
                vec![*prng.pick(b"q7"); length]
            }
            19 => "héllo wörld\r\n\"quoted\"\\ \t".into(),
            20 => b"foo=bar&baz".to_vec(),
            _ => (0..1 + prng.below(6)).map(|_| *prng.pick(b"abcdefghij")).collect(),
        }
    }
}
