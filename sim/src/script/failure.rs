//! Errors that Rust raises inside Lua.

/// An error that Rust raises inside Lua.
#[derive(Debug, Clone, thiserror::Error)]
pub(super) enum Failure {
    /// An error reply, which `redis.call` and the other functions raise as a table.
    #[error("{0}")]
    Reply(String),
    /// The error reply of a called command, which the error statistics count already.
    #[error("{0}")]
    Called(String),
    /// A wrong call of a library. Lua raises it as a text that starts with the caller's position.
    #[error("{0}")]
    Library(String),
    /// Ends the script. No script may catch this.
    #[error("the script was killed")]
    Killed,
}

impl Failure {
    /// Makes an error reply.
    pub(super) fn reply(text: impl Into<String>) -> mlua::Error {
        mlua::Error::external(Failure::Reply(text.into()))
    }

    /// Makes the error reply of a called command.
    pub(super) fn called(text: impl Into<String>) -> mlua::Error {
        mlua::Error::external(Failure::Called(text.into()))
    }

    /// Makes an error of Lua's own, without a position.
    pub(super) fn plain(text: &str) -> mlua::Error {
        mlua::Error::external(Failure::Library(text.into()))
    }

    /// Makes Lua's error for missing memory.
    pub(super) fn out_of_memory() -> mlua::Error {
        Failure::plain("not enough memory")
    }

    /// Makes the error that ends the script.
    pub(super) fn killed() -> mlua::Error {
        mlua::Error::external(Failure::Killed)
    }
}

/// Extracts the Rust error from an error that has passed through Lua.
pub(super) fn fault(err: &mlua::Error) -> Failure {
    if let Some(failure) = err.downcast_ref::<Failure>() {
        return failure.clone();
    }
    match err {
        mlua::Error::CallbackError { cause, .. } => fault(cause),
        mlua::Error::RuntimeError(text) => Failure::Library(text.clone()),
        mlua::Error::MemoryError(_) => Failure::Library("not enough memory".into()),
        other => Failure::Library(other.to_string()),
    }
}
