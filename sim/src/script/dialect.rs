//! The two kinds of code that interpreters run.

/// Kind of the code in an interpreter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    /// Scripts of EVAL, with the globals `KEYS` and `ARGV`.
    Scripts,
    /// Libraries of functions, which get keys and arguments when they are called.
    Functions,
}

impl Dialect {
    /// Name of the code in errors.
    pub(super) fn chunk(self) -> &'static str {
        match self {
            Dialect::Scripts => "user_script",
            Dialect::Functions => "user_function",
        }
    }
}
