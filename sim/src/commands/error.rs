//! All error texts of the commands.

use std::borrow::Cow;

use super::printable;
use crate::{generation::Generation, keyspace::WrongType, node::Busy, resp::Reply};

/// An error reply: a code, a space, and a text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Error(pub Cow<'static, str>);

impl Error {
    /// The syntax of the options is wrong.
    pub const SYNTAX: Error = Error::of("ERR syntax error");
    /// An argument is not an integer, or is out of range.
    pub const NOT_INTEGER: Error = Error::of("ERR value is not an integer or out of range");
    /// An argument is not a float.
    pub const NOT_FLOAT: Error = Error::of("ERR value is not a valid float");
    /// The key holds another type.
    pub const WRONG_TYPE: Error =
        Error::of("WRONGTYPE Operation against a key holding the wrong kind of value");
    /// The key must exist, but does not.
    pub const NO_SUCH_KEY: Error = Error::of("ERR no such key");
    /// An index is outside a list.
    pub const INDEX_OUT_OF_RANGE: Error = Error::of("ERR index out of range");

    /// ACL SAVE and ACL LOAD on a node without an ACL file.
    pub const NO_ACL_FILE: Error = Error::of(
        "ERR This Redis instance is not configured to use an ACL file. You may want to specify users via the ACL SETUSER command \
         and then issue a CONFIG REWRITE (assuming you have a Redis configuration file set) in order to store users in the Redis \
         configuration.",
    );

    /// The connection must authenticate first.
    pub const NO_AUTH: Error = Error::of("NOAUTH Authentication required.");
    /// The name and password do not match, or the user is disabled.
    pub const WRONG_PASS: Error = Error::of("WRONGPASS invalid username-password pair or user is disabled.");
    /// MULTI does not accept this command.
    const NOT_IN_MULTI: Error = Error::of("ERR Command not allowed inside a transaction");
    /// A number that has no opposite.
    pub const NOT_NEGATABLE: Error = Error::of(
        "ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807",
    );
    /// Scripts may not call this command.
    pub const NOT_FROM_SCRIPT: Error = Error::of("ERR This Redis command is not allowed from script");
    /// DEBUG, which `enable-debug-command` forbids.
    pub const DEBUG_DISABLED: Error = Error::of(
        "ERR DEBUG command not allowed. If the enable-debug-command option is set to \"local\", you can run it from a \
         local connection, otherwise you need to set this option in the configuration file, and then restart the server.",
    );
    /// MODULE's subcommands that load or unload, which `enable-module-command` forbids.
    pub const MODULE_DISABLED: Error = Error::of(
        "ERR MODULE command not allowed. If the enable-module-command option is set to \"local\", you can run it from a \
         local connection, otherwise you need to set this option in the configuration file, and then restart the server.",
    );
    /// Memory is full and nothing can be evicted.
    pub const OUT_OF_MEMORY: Error = Error::of("OOM command not allowed when used memory > 'maxmemory'.");
    /// A write on a replica.
    pub const READ_ONLY: Error = Error::of("READONLY You can't write against a read only replica.");
    /// A write while too few replicas are connected and close behind.
    pub const NO_REPLICAS: Error = Error::of("NOREPLICAS Not enough good replicas to write.");
    /// A replica is cut off from its master, and must not serve stale data.
    pub const MASTER_DOWN: Error =
        Error::of("MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.");
    /// The node is loading its data.
    pub const LOADING: Error = Error::of("LOADING Redis is loading the dataset in memory");
    /// A write after a failed save.
    pub const MISCONF: Error = Error::of(
        "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk. Commands that \
         may modify the data set are disabled, because this instance is configured to report errors during writes if RDB \
         snapshotting fails (stop-writes-on-bgsave-error option). Please check the Redis logs for details about the RDB \
         error.",
    );
    /// Something failed; the log has the reason.
    pub const BARE: Error = Error::of("ERR");
    /// SAVE or BGSAVE while a snapshot is being written.
    pub const SAVING: Error = Error::of("ERR Background save already in progress");
    /// BGSAVE during a rewrite of the AOF.
    pub const WRITING_ASIDE: Error = Error::of(
        "ERR Another child process is active (AOF?): can't BGSAVE right now. Use BGSAVE SCHEDULE in order to schedule a BGSAVE \
         whenever possible.",
    );
    /// A client cancelled the shutdown, or the disk rejects writes.
    pub const NO_SHUTDOWN: Error = Error::of("ERR Errors trying to SHUTDOWN. Check logs.");
    /// A script has run longer than `busy-reply-threshold`.
    pub const BUSY: Error =
        Error::of("BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.");
    /// A function has run longer than `busy-reply-threshold`.
    pub const BUSY_FUNCTION: Error =
        Error::of("BUSY Redis is busy running a script. You can only call FUNCTION KILL or SHUTDOWN NOSAVE.");
    /// CLUSTER on a node that is in none.
    pub const NO_CLUSTER: Error = Error::of("ERR This instance has cluster support disabled");
    /// An invalid database number.
    pub const DB_OUT_OF_RANGE: Error = Error::of("ERR DB index is out of range");

    /// A number is outside the range of the command.
    pub const OUT_OF_RANGE: Error = Error::of("ERR value is out of range");
    /// The payload of RESTORE is not a DUMP, or its version is unknown.
    pub const BAD_PAYLOAD: Error = Error::of("ERR DUMP payload version or checksum are wrong");
    /// A key cannot be copied or moved onto itself.
    pub const SAME_OBJECT: Error = Error::of("ERR source and destination objects are the same");
    /// The sum of integers does not fit into 64 bits.
    pub const INCREMENT_OVERFLOW: Error = Error::of("ERR increment or decrement would overflow");
    /// The sum of floats is NaN or infinite.
    pub const INCREMENT_NOT_FINITE: Error = Error::of("ERR increment would produce NaN or Infinity");

    /// A count that must be a number and must not be negative.
    pub const NOT_POSITIVE: Error = Error::of("ERR value is out of range, must be positive");
    /// An invalid number of keys.
    pub const NUMKEYS: Error = Error::of("ERR numkeys should be greater than 0");
    /// A count that must be a number above zero.
    pub const COUNT: Error = Error::of("ERR count should be greater than 0");
    /// A string that does not look like a HyperLogLog.
    pub const NOT_HYPERLOGLOG: Error = Error::of("WRONGTYPE Key is not a valid HyperLogLog string value.");
    /// A string that looks like a HyperLogLog, but has a wrong number of registers.
    pub const CORRUPTED_HYPERLOGLOG: Error = Error::of("INVALIDOBJ Corrupted HLL object detected");
    /// A limit that must be a number and must not be negative.
    pub const NEGATIVE_LIMIT: Error = Error::of("ERR LIMIT can't be negative");

    /// Makes an error with a fixed text.
    pub const fn of(text: &'static str) -> Error {
        Error(Cow::Borrowed(text))
    }

    /// A write after the AOF rejected one, because of `why`.
    pub fn misconf_log(why: &str) -> Error {
        Error(format!("MISCONF Errors writing to the AOF file: {why}").into())
    }

    /// The number of arguments is wrong; `name` is the name in the specification.
    pub fn arity(name: &str) -> Error {
        Error(format!("ERR wrong number of arguments for '{name}' command").into())
    }

    /// The command `name` is not allowed in a transaction.
    pub fn not_in_multi(name: &str, generation: Generation) -> Error {
        match generation {
            Generation::Valkey91 => {
                Error(format!("ERR Command '{name}' not allowed inside a transaction").into())
            }
            _ => Error::NOT_IN_MULTI,
        }
    }

    /// EXEC was refused, and the transaction is discarded.
    pub fn exec_aborted(why: &Error) -> Error {
        let why = why.0.strip_prefix("ERR ").unwrap_or(&why.0);
        Error(format!("EXECABORT Transaction discarded because of: {why}").into())
    }

    /// Returns the error in the words of a generation of servers.
    pub fn worded(self, generation: Generation) -> Error {
        if generation == Generation::Redis62 && self == Error::MISCONF {
            let (new, old) =
                ("it's currently unable to persist to disk", "it is currently not able to persist on disk");
            return Error(self.0.replace(new, old).into());
        }
        if !generation.is_valkey() {
            return self;
        }
        let text = match &*self.0 {
            no_file if no_file == Error::NO_ACL_FILE.0 => no_file.replace(" Redis ", " "),
            text if text.contains(" Redis is ") => {
                text.replace(" Redis is ", " Valkey is ").replace(" the Redis logs ", " the Valkey logs ")
            }
            _ => return self,
        };
        Error(text.into())
    }

    /// Returns the error for clients while a script or a function runs too long.
    pub fn busy(busy: &Busy) -> Error {
        if busy.function.is_some() { Error::BUSY_FUNCTION } else { Error::BUSY }
    }

    /// A subcommand with a wrong number of arguments, for commands that check it themselves.
    pub fn subcommand(container: &str, subcommand: &[u8]) -> Error {
        let subcommand = printable(subcommand, 128);
        let container = container.to_ascii_uppercase();
        Error(
            format!("ERR unknown subcommand or wrong number of arguments for '{subcommand}'. Try {container} HELP.")
                .into(),
        )
    }

    /// A RESP2 connection with subscriptions may only change its subscriptions.
    pub fn in_subscription(name: &str, generation: Generation) -> Error {
        let sharded = if generation == Generation::Redis62 { "" } else { "|S" };
        let allowed = format!("(P{sharded})SUBSCRIBE / (P{sharded})UNSUBSCRIBE / PING / QUIT / RESET");
        Error(format!("ERR Can't execute '{name}': only {allowed} are allowed in this context").into())
    }

    /// An integer is outside of `min` to `max`. The text names both.
    pub fn not_between(min: i64, max: i64) -> Error {
        Error(format!("ERR value is out of range, value must between {min} and {max}").into())
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
