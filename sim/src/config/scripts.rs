//! The limits of scripts, in milliseconds or in instructions.

/// The limits after which a script counts as endless.
#[derive(Debug, Clone)]
pub struct ScriptOptions {
    /// `busy-reply-threshold`: the time in milliseconds after which other clients get BUSY during a
    /// script.
    pub busy_reply_threshold: u64,
    /// The number of Lua instructions after which a script counts as endless and the node as busy,
    /// if scripts do not run by a clock; see [`Env::script_clock`](crate::env::Env::script_clock).
    /// Not an option of Redis, which counts time: in the simulator a script takes no time, and a
    /// number of instructions is the same on every machine.
    pub budget: u64,
}

impl Default for ScriptOptions {
    fn default() -> ScriptOptions {
        ScriptOptions { busy_reply_threshold: 5000, budget: 100_000_000 }
    }
}
