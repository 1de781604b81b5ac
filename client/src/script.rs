//! Lua scripts, and calls of them.

use redis::Cmd;

use crate::wire::Slot;

/// A script and the hash under which a server caches it.
pub(crate) struct Script {
    text: &'static str,
    sha: String,
}

impl Script {
    pub(crate) fn new(text: &'static str) -> Self {
        Self { text, sha: redis::Script::new(text).get_hash().to_owned() }
    }

    /// Makes a call of this script with these keys; add arguments with [`Call::arg`].
    pub(crate) fn call<K: Into<String>>(&'static self, keys: impl IntoIterator<Item = K>) -> Call {
        Call { script: self, keys: keys.into_iter().map(Into::into).collect(), args: Vec::new() }
    }
}

/// One call of a script: the request to send, and to send again after a lost reply.
#[derive(Clone)]
pub(crate) struct Call {
    script: &'static Script,
    keys: Vec<String>,
    args: Vec<Vec<u8>>,
}

impl Call {
    pub(crate) fn arg(self, arg: impl ToString) -> Self {
        self.bytes(arg.to_string())
    }

    /// Adds an argument that need not be text.
    pub(crate) fn bytes(mut self, arg: impl Into<Vec<u8>>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// Returns the slot of the keys, which all have the same.
    pub(crate) fn slot(&self) -> Slot {
        self.keys.first().map_or(Slot(0), |key| Slot::of(key))
    }

    pub(crate) fn key(&self) -> Option<&str> {
        self.keys.first().map(String::as_str)
    }

    pub(crate) fn keys(&self) -> &[String] {
        &self.keys
    }

    /// Turns this call of a release script, whose last key is the latch, into a call of `script`:
    /// the same script with `without_latch.lua` before it.
    pub(crate) fn without_latch(self, script: &'static Script) -> Self {
        let count = self.keys.len();
        let mut keys = self.keys.into_iter();
        let own = keys.next().into_iter().collect();
        let beside = keys.map(String::into_bytes);
        let args = std::iter::once(count.to_string().into_bytes()).chain(beside).chain(self.args).collect();
        Self { script, keys: own, args }
    }

    /// Returns two of the keys that have different slots, if any.
    pub(crate) fn divided(&self) -> Option<(&str, &str)> {
        let other = self.keys.iter().find(|key| Slot::of(key) != self.slot())?;
        Some((self.keys.first()?, other))
    }

    /// Makes the command with the script's hash, which is the usual way.
    pub(crate) fn evalsha(&self) -> Cmd {
        self.command("EVALSHA", &self.script.sha)
    }

    /// Makes the command with the script's text, for a server that does not know the script yet. It
    /// caches the script.
    pub(crate) fn eval(&self) -> Cmd {
        self.command("EVAL", self.script.text)
    }

    fn command(&self, name: &str, script: &str) -> Cmd {
        let arguments = 3 + self.keys.len() + self.args.len();
        let texts = self.keys.iter().map(String::len).chain(self.args.iter().map(Vec::len));
        // The rest is the number of keys: reserve 8 bytes for it.
        let size = name.len() + script.len() + texts.sum::<usize>() + 8;
        let mut command = Cmd::with_capacity(arguments, size);
        command.arg(name).arg(script).arg(self.keys.len()).arg(&self.keys).arg(&self.args);
        command
    }
}

/// Declares a script beside the code that calls it: `script!(ACQUIRE, "acquire.lua")`. Several
/// files are concatenated.
macro_rules! script {
    ($vis:vis $name:ident, $($file:literal),+ $(,)?) => {
        $vis static $name: std::sync::LazyLock<$crate::script::Script> =
            std::sync::LazyLock::new(|| $crate::script::Script::new(concat!($(include_str!($file)),+)));
    };
}
pub(crate) use script;

#[cfg(test)]
mod tests {
    use super::*;

    /// The slot is that of the hash tag, or of the whole key.
    #[test]
    fn keys_of_different_slots_divide_a_call() {
        let script: &'static Script = Box::leak(Box::new(Script::new("return 1")));
        for (keys, divided) in [
            (&[][..], None),
            (&["a"], None),
            (&["a", "queue:{a}"], None),
            (&["{a}:1", "{a}:2", "a"], None),
            (&["a", "b"], Some(("a", "b"))),
            (&["a", "{a}:1", "b", "c"], Some(("a", "b"))),
            (&["a{b", "queue:a{b"], Some(("a{b", "queue:a{b"))),
        ] {
            assert_eq!(script.call(keys.iter().copied()).divided(), divided, "{keys:?}");
        }
    }
}
