//! Every error text of the commands, once.

use std::borrow::Cow;

use crate::{keyspace::WrongType, resp::Reply};

/// An error reply: a code, a space, and a text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Error(pub Cow<'static, str>);

impl Error {
    /// The syntax of the options is wrong.
    pub const SYNTAX: Error = Error::of("ERR syntax error");
    /// An argument that must be an integer is none, or is out of range.
    pub const NOT_INTEGER: Error = Error::of("ERR value is not an integer or out of range");
    /// An argument that must be a float is none.
    pub const NOT_FLOAT: Error = Error::of("ERR value is not a valid float");
    /// The key holds another type.
    pub const WRONG_TYPE: Error =
        Error::of("WRONGTYPE Operation against a key holding the wrong kind of value");
    /// The key is not there, where it must be.
    pub const NO_SUCH_KEY: Error = Error::of("ERR no such key");
    /// An index lies outside a list.
    pub const INDEX_OUT_OF_RANGE: Error = Error::of("ERR index out of range");

    /// An error with a fixed text.
    pub const fn of(text: &'static str) -> Error {
        Error(Cow::Borrowed(text))
    }

    /// The number of arguments is wrong; `name` as the specification has it.
    pub fn arity(name: &str) -> Error {
        Error(format!("ERR wrong number of arguments for '{name}' command").into())
    }

    /// A RESP2 connection that listens to channels may only change what it listens to.
    pub fn in_subscription(name: &str) -> Error {
        let allowed = "(P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET";
        Error(format!("ERR Can't execute '{name}': only {allowed} are allowed in this context").into())
    }

    /// An expiry that is not positive or too large.
    pub fn invalid_expire(command: &str) -> Error {
        Error(format!("ERR invalid expire time in '{command}' command").into())
    }
}

impl From<WrongType> for Error {
    fn from(WrongType: WrongType) -> Error {
        Error::WRONG_TYPE
    }
}

impl From<Error> for Reply {
    fn from(Error(text): Error) -> Reply {
        Reply::Error(text)
    }
}
