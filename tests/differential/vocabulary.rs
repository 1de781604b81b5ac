//! Words that are drawn unchanged: numbers, words that are no valid numbers, rules of users, code
//! of functions.

use crate::prng::Prng;

/// Invalid numbers, and numbers that are only just valid.
pub(crate) const ODD_NUMBERS: &[&str] = &[
    "",
    " ",
    "a",
    "abc",
    "1.0",
    "+1",
    "01",
    " 1",
    "1 ",
    "0x10",
    "1e3",
    "-",
    "--1",
    "-0",
    "nan",
    "-nan",
    "inf",
    "-inf",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
    "-9223372036854775809",
    "18446744073709551615",
    "18446744073709551616",
    "2147483647",
    "2147483648",
    "4294967295",
    "4294967296",
    "-2147483649",
    "1.5e308",
    "1e-320",
    "1e5000",
    "0.1",
    ".5",
    "5.",
    "3.0e2",
    "infinity",
    "+inf",
    "Inf",
    "1_000",
    "1\0",
    "(1",
    "[1",
    "99999999999999999999999999",
];

/// Integers on the edges of their encodings.
pub(crate) const EDGES: &[i64] = &[
    0,
    1,
    -1,
    2,
    9,
    10,
    99,
    100,
    127,
    128,
    -128,
    -129,
    255,
    256,
    999,
    4095,
    4096,
    9999,
    10000,
    32767,
    32768,
    -32768,
    8388607,
    8388608,
    2147483647,
    2147483648,
    -2147483648,
    -2147483649,
    4294967296,
    9007199254740992,
    9007199254740993,
    999999999999999999,
    i64::MAX,
    i64::MAX - 1,
    i64::MIN,
    i64::MIN + 1,
];

/// Numbers with a fraction, and numbers at the limits of a double.
pub(crate) const FLOATS: &[&str] = &[
    "0",
    "1",
    "-1",
    "0.5",
    "1.5",
    "-2.25",
    "3.14159",
    "0.1",
    "0.2",
    "1e10",
    "1e-10",
    "1e17",
    "1e21",
    "123456789.125",
    "-0",
    "100",
    "17179869184.5",
    "3.0",
    "5e-324",
    "1.7976931348623157e308",
    "0.30000000000000004",
    "1e300",
    "2.50",
];

/// The code of a function library.
pub(crate) fn code(prng: &mut Prng) -> Vec<u8> {
    let heads =
        ["#!lua name=lib1", "#!lua name=lib2", "#!lua", "#!js name=lib1", "#!lua name=lib1 foo=bar", ""];
    let head = heads[if prng.percent(85) { prng.below(2) } else { prng.below(heads.len()) }];
    let names = ["f1", "f2", "f3", "bad name"];
    let name = names[if prng.percent(95) { prng.below(3) } else { 3 }];
    let bodies = [
        "return #keys + #args",
        "return keys[1]",
        "return {keys, args}",
        "return redis.call('SET', keys[1], args[1])",
        "return redis.pcall('INCR', keys[1])",
        "return redis.call('GET', 's0')",
        "return redis.status_reply('F')",
        "return redis.error_reply('MY error')",
        "error('oops')",
        "error({err='MY oops'})",
        "return redis.call('NOSUCH')",
        "x = 1",
        "return nosuch",
    ];
    let body = *prng.pick(&bodies);
    let flags = *prng.pick(&["", "'no-writes'", "'allow-oom','allow-stale'", "'bogus'"]);
    let function = format!("function(keys, args) {body} end");
    let mut code = format!("{head}\n");
    for turn in 0..1 + prng.below(2) {
        let name = if turn == 0 { name } else { "f3" };
        code += &match prng.below(4) {
            0 => format!(
                "redis.register_function{{function_name='{name}', callback={function}, flags={{{flags}}}}}\n"
            ),
            1 => format!("local function f(keys, args) {body} end redis.register_function('{name}', f)\n"),
            _ => format!("redis.register_function('{name}', {function})\n"),
        };
    }
    if prng.percent(8) {
        let last =
            *prng.pick(&["redis.call('GET','s0')", "x = 1", "error('no')", "syntax error here", "return 1"]);
        code += last;
    }
    code.into_bytes()
}

/// An invalid number, or one that is only just valid.
pub(crate) fn odd(prng: &mut Prng) -> Vec<u8> {
    prng.pick(ODD_NUMBERS).as_bytes().to_vec()
}

/// Rules that still allow some commands.
pub(crate) const PERMITS: &[&str] = &[
    "~*",
    "~*",
    "~s*",
    "~h*",
    "~l*",
    "%R~*",
    "%R~s*",
    "%W~s*",
    "%RW~z*",
    "&*",
    "&c*",
    "&news*",
    "+@all",
    "+@all",
    "+@read",
    "+@write",
    "-@write",
    "-@scripting",
    "-@string",
    "+@string",
    "-@keyspace",
    "+@hash",
    "-@blocking",
    "+eval",
    "+get",
    "-get",
    "+set",
    "-set",
    "+@connection",
    "+@transaction",
    "-@list",
    "+@sortedset",
    "+config|get",
    "+acl|whoami",
    "-eval",
    "+xadd",
    "(+@all ~t*)",
    "(+get +set ~h* ~l*)",
    "(%R~x* +@stream)",
    "(+@pubsub &*)",
    "resetkeys",
    "resetchannels",
    "clearselectors",
];

/// Rules of users, invalid ones among them.
pub(crate) const RULES: &[&str] = &[
    "on",
    "off",
    ">secret",
    "nopass",
    "resetpass",
    "~s*",
    "~*",
    "%R~h*",
    "%W~l*",
    "%RW~z*",
    "resetkeys",
    "allkeys",
    "&c*",
    "allchannels",
    "resetchannels",
    "+@all",
    "-@all",
    "+@read",
    "-@write",
    "+get",
    "-set",
    "+set",
    "+@string",
    "nocommands",
    "allcommands",
    "+config|get",
    "-config|set",
    "reset",
    "(+get ~s*)",
    "clearselectors",
    "<secret",
    "+nosuch",
    "+@nosuch",
    "#abc",
    "%X~a",
    "bogus",
    "-@dangerous",
    "+client|id",
];
