//! Lua scripts, and calls of them.

use std::fmt::Display;
use std::io::Write;

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
    pub(crate) fn call<K: AsRef<str>>(&'static self, keys: impl IntoIterator<Item = K>) -> Call {
        Call::of(Work::Script { script: self, command: None }, keys)
    }

    /// As [`Script::call`], for a script that does what `command` does with the same keys and
    /// arguments. That command stands for the script on servers that have it.
    pub(crate) fn call_or_command<K: AsRef<str>>(
        &'static self,
        command: &'static str,
        keys: impl IntoIterator<Item = K>,
    ) -> Call {
        Call::of(Work::Script { script: self, command: Some(command) }, keys)
    }
}

/// The work that a call requests.
#[derive(Clone, Copy)]
enum Work {
    Script {
        script: &'static Script,
        /// A command that does the same.
        command: Option<&'static str>,
    },
    Command(&'static str),
}

/// One call of a script or command: the request to send, and to send again after a lost reply.
#[derive(Clone)]
pub(crate) struct Call {
    work: Work,
    /// The keys and arguments, one after the other in one buffer: every lock makes two calls.
    words: Vec<u8>,
    /// The end of each word.
    ends: Vec<usize>,
    /// The number of keys, which come first.
    keys: usize,
}

impl Call {
    /// Makes a call of a plain command with these keys.
    pub(crate) fn command<K: AsRef<str>>(name: &'static str, keys: impl IntoIterator<Item = K>) -> Self {
        Self::of(Work::Command(name), keys)
    }

    fn of<K: AsRef<str>>(work: Work, keys: impl IntoIterator<Item = K>) -> Self {
        let (words, ends) = (Vec::with_capacity(256), Vec::with_capacity(8));
        let call = Self { work, words, ends, keys: 0 };
        let mut call = keys.into_iter().fold(call, |call, key| call.bytes(key.as_ref().as_bytes()));
        call.keys = call.ends.len();
        call
    }

    pub(crate) fn arg(mut self, arg: impl Display) -> Self {
        write!(self.words, "{arg}").expect("a vector takes everything");
        self.ends.push(self.words.len());
        self
    }

    /// Adds an argument that need not be text.
    pub(crate) fn bytes(mut self, arg: impl AsRef<[u8]>) -> Self {
        self.words.extend_from_slice(arg.as_ref());
        self.ends.push(self.words.len());
        self
    }

    /// Returns the keys, then the arguments.
    fn words(&self) -> impl Iterator<Item = &[u8]> {
        let begins = std::iter::once(0).chain(self.ends.iter().copied());
        begins.zip(&self.ends).map(|(begin, end)| &self.words[begin..*end])
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        self.words().take(self.keys).map(|key| std::str::from_utf8(key).expect("keys are text"))
    }

    /// Returns the slot of the keys, which all have the same.
    pub(crate) fn slot(&self) -> Slot {
        self.key().map_or(Slot(0), Slot::of)
    }

    pub(crate) fn key(&self) -> Option<&str> {
        self.names().next()
    }

    pub(crate) fn keys(&self) -> Vec<String> {
        self.names().map(ToOwned::to_owned).collect()
    }

    /// Turns this call of a release script, whose last key is the latch, into a call of `script`:
    /// the same script with `without_latch.lua` before it.
    pub(crate) fn without_latch(&self, script: &'static Script) -> Self {
        let beside = self.words().skip(1).take(self.keys.saturating_sub(1));
        let args = self.words().skip(self.keys);
        beside.chain(args).fold(script.call(self.key()).arg(self.keys), Self::bytes)
    }

    /// Returns two of the keys that have different slots, if any.
    pub(crate) fn divided(&self) -> Option<(&str, &str)> {
        let (first, slot) = (self.key()?, self.slot());
        let other = self.names().find(|key| Slot::of(key) != slot)?;
        Some((first, other))
    }

    /// Makes the request as it is usually sent: a script by its hash.
    pub(crate) fn request(&self) -> Cmd {
        match self.work {
            Work::Script { script, .. } => self.script("EVALSHA", &script.sha),
            Work::Command(name) => self.named(name),
        }
    }

    /// Makes the request that the server understands even if it does not know the script yet: the
    /// script with its text, which the server then caches.
    pub(crate) fn eval(&self) -> Cmd {
        match self.work {
            Work::Script { script, .. } => self.script("EVAL", script.text),
            Work::Command(name) => self.named(name),
        }
    }

    /// Makes the command that stands for the script on servers that have it.
    pub(crate) fn instead(&self) -> Option<Cmd> {
        match self.work {
            Work::Script { command, .. } => Some(self.named(command?)),
            Work::Command(_) => None,
        }
    }

    fn script(&self, name: &str, script: &str) -> Cmd {
        // The rest is the number of keys: reserve 8 bytes for it.
        let size = name.len() + script.len() + self.words.len() + 8;
        let mut command = Cmd::with_capacity(3 + self.ends.len(), size);
        command.arg(name).arg(script).arg(self.keys);
        self.with_words(command)
    }

    fn named(&self, name: &str) -> Cmd {
        let mut command = Cmd::with_capacity(1 + self.ends.len(), name.len() + self.words.len());
        command.arg(name);
        self.with_words(command)
    }

    fn with_words(&self, mut command: Cmd) -> Cmd {
        for word in self.words() {
            command.arg(word);
        }
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
