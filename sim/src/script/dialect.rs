//! The two kinds of code that interpreters run.

/// What the code in an interpreter is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    /// Scripts of EVAL, with the globals `KEYS` and `ARGV`.
    Scripts,
    /// Libraries of functions, which get keys and arguments when they are called.
    Functions,
}

impl Dialect {
    /// What its code is called in errors.
    pub(super) fn chunk(self) -> &'static str {
        match self {
            Dialect::Scripts => "user_script",
            Dialect::Functions => "user_function",
        }
    }
}
