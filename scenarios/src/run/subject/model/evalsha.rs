//! A call of a script, and the commands that make it by the script's hash.

use lockstorm_sim::script::sha1_hex;
use redis::{Arg, Cmd};

/// An EVAL, in parts.
pub(super) struct Called {
    text: Vec<u8>,
    /// The SHA-1 of the text, in hex digits.
    pub(super) sha: String,
    /// The number of keys, the keys and the other arguments.
    rest: Vec<Vec<u8>>,
}

impl Called {
    /// Takes an EVAL apart; `None` for another command.
    pub(super) fn of(command: &Cmd) -> Option<Called> {
        let words = command.args_iter().map(|word| match word {
            Arg::Simple(bytes) => Some(bytes.to_vec()),
            _ => None,
        });
        let mut words = words.collect::<Option<Vec<_>>>()?.into_iter();
        words.next().filter(|name| name == b"EVAL")?;
        let text = words.next()?;
        let sha = sha1_hex(&text);
        Some(Called { text, sha, rest: words.collect() })
    }

    pub(super) fn evalsha(&self) -> Cmd {
        let mut command = redis::cmd("EVALSHA");
        command.arg(&self.sha).arg(&self.rest);
        command
    }

    pub(super) fn load(&self) -> Cmd {
        let mut command = redis::cmd("SCRIPT");
        command.arg("LOAD").arg(&self.text);
        command
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_eval_becomes_a_call_by_hash() {
        let mut eval = redis::cmd("EVAL");
        eval.arg("return 1").arg(1).arg("k").arg("a");
        let called = Called::of(&eval).expect("it is an EVAL");
        let words = |command: &Cmd| String::from_utf8_lossy(&command.get_packed_command()).into_owned();
        let sha = "e0e1f9fabfc9d4800c877a703b823ac0578ff8db";
        assert_eq!(called.sha, sha);
        let expected = format!("*5\r\n$7\r\nEVALSHA\r\n$40\r\n{sha}\r\n$1\r\n1\r\n$1\r\nk\r\n$1\r\na\r\n");
        assert_eq!(words(&called.evalsha()), expected);
        let loaded = "*3\r\n$6\r\nSCRIPT\r\n$4\r\nLOAD\r\n$8\r\nreturn 1\r\n";
        assert_eq!(words(&called.load()), loaded);
        assert!(Called::of(&redis::cmd("PING")).is_none());
    }
}
