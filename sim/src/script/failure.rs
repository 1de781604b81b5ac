//! Errors that Rust raises inside Lua.

/// What Rust raises inside Lua.
#[derive(Debug, Clone, thiserror::Error)]
pub(super) enum Failure {
    /// An error reply, which `redis.call` and its siblings raise as a table.
    #[error("{0}")]
    Reply(String),
    /// The error reply of a command that was called, which has been counted there.
    #[error("{0}")]
    Called(String),
    /// A mistake in calling a library, which Lua raises as a text with the caller's position before
    /// it.
    #[error("{0}")]
    Library(String),
    /// The script is to end where it stands. No script may catch this.
    #[error("the script was killed")]
    Killed,
}

impl Failure {
    /// An error reply, as an error for mlua.
    pub(super) fn reply(text: impl Into<String>) -> mlua::Error {
        mlua::Error::external(Failure::Reply(text.into()))
    }

    /// The error reply of a command that was called.
    pub(super) fn called(text: impl Into<String>) -> mlua::Error {
        mlua::Error::external(Failure::Called(text.into()))
    }

    /// An error of Lua's own, which has no position.
    pub(super) fn plain(text: &str) -> mlua::Error {
        mlua::Error::external(Failure::Library(text.into()))
    }

    /// What Lua says where memory is short.
    pub(super) fn out_of_memory() -> mlua::Error {
        Failure::plain("not enough memory")
    }

    /// The end of the script.
    pub(super) fn killed() -> mlua::Error {
        mlua::Error::external(Failure::Killed)
    }
}

/// What Rust raised, of an error that has passed through Lua.
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

/// The error that is raised in an endless script when it is killed.
pub(super) const KILLED: &str = "ERR Script killed by user with SCRIPT KILL...";
