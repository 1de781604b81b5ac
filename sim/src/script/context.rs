//! State of a running script: its host, its remaining budget and its position.

use std::{
    any::Any,
    borrow::Cow,
    cell::{Cell, RefCell},
    fmt,
    rc::Rc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use mlua::{Function, Lua, RegistryKey};

use super::{Flags, dialect::Dialect, failure::Failure, pattern::Fuel, random::Random};
use crate::{
    generation::Generation,
    resp::{Protocol, Reply},
};

/// Bytes that a library copies or compares in the time of one instruction.
pub(super) const BYTES_PER_INSTRUCTION: usize = 16;

/// Instructions in a second of processor time.
const INSTRUCTIONS_PER_SECOND: f64 = 1e8;

/// Maximum bytes that scripts hold at once. Redis has no such limit; a simulated node must not
/// exhaust the machine's memory.
///
/// With a limit set, mlua makes each value in a protected call. So the limit is lifted where Rust
/// makes values, whose size has its own bound.
pub(super) const MEMORY_MAX: usize = 256 << 20;

/// If a clock limits scripts, it is read once in this many instructions: each time the hook that
/// counts instructions runs, because a count does not show their duration.
const CLOCK_PERIOD: u64 = 100;

/// The surroundings that a running script may use.
pub trait Host: Any + fmt::Debug {
    /// `redis.call`: runs a command and returns its reply.
    ///
    /// # Errors
    /// The error that refuses it.
    fn call(&mut self, words: Vec<Bytes>) -> Result<Reply, Cow<'static, str>>;

    /// `redis.acl_check_cmd`: returns true if the user may run the command. `None` if the command
    /// does not exist.
    fn may_call(&mut self, words: &[Bytes]) -> Option<bool>;

    /// `redis.setresp`: sets the protocol for the replies to `call`.
    fn set_protocol(&mut self, protocol: Protocol);

    /// `redis.set_repl`: decides if later writes reach the AOF and the replicas.
    fn set_propagation(&mut self, aof: bool, replicas: bool);
}

/// Limits of a script's run before it must let others run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// Instructions, used without a clock.
    pub(super) budget: u64,
    /// Time by the machine's own clock.
    pub(super) turn: Duration,
}

/// A function as library code registers it.
#[derive(Debug)]
pub(super) struct Registered {
    pub(super) name: String,
    pub(super) description: Option<Bytes>,
    pub(super) flags: Flags,
    pub(super) callback: RegistryKey,
}

/// State that the functions given to Lua share with the engine.
#[derive(Default)]
pub(super) struct ScriptContext {
    /// Host of the running script.
    pub(super) host: RefCell<Option<Box<dyn Host>>>,
    /// The generation whose errors and numbers the functions have.
    pub(super) generation: Cell<Generation>,
    /// Protocol that the script chose.
    pub(super) protocol: Cell<Protocol>,
    /// Instructions until the limits are checked.
    budget: Cell<u64>,
    /// Instructions of all scripts so far, which `os.clock` shows as processor time.
    charged: Cell<u64>,
    /// Set if the script must end at its next check.
    pub(super) killed: Cell<bool>,
    /// Suspends the script until it is resumed. `None` while library code loads: it is killed
    /// instead.
    pause: RefCell<Option<Rc<Function>>>,
    /// Assumed position of a call that leaves no frame of the script.
    pub(super) tail: Cell<Tail>,
    /// The machine's own clock. `None` if an instruction budget limits scripts.
    pub(super) clock: Cell<Option<fn() -> Instant>>,
    /// Length of the time slice by that clock.
    turn: Cell<Duration>,
    /// Start of the time slice by that clock.
    began: Cell<Option<Instant>>,
    pub(super) random: Random,
    /// Functions registered so far by the library that is loading.
    pub(super) registered: RefCell<Vec<Registered>>,
}

/// The last `return` of a script: `return f()` leaves no frame of the script behind, and most
/// scripts end there.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Tail {
    /// Name of the script's code in errors.
    pub(super) chunk: &'static str,
    /// The line, counted from 1.
    pub(super) line: usize,
}

impl Tail {
    /// Finds the last `return` in `source`.
    pub(super) fn of(chunk: &'static str, source: &[u8]) -> Tail {
        let last = source.windows(6).rposition(|word| word == b"return").unwrap_or(0);
        Tail { chunk, line: 1 + source[..last].iter().filter(|&&b| b == b'\n').count() }
    }
}

impl ScriptContext {
    /// Returns the context of an interpreter.
    pub(super) fn of(lua: &Lua) -> Rc<ScriptContext> {
        let context = lua.app_data_ref::<Rc<ScriptContext>>();
        Rc::clone(&context.expect("the context is put there before the sandbox loads"))
    }

    /// Returns the error raised in an endless script or function when it is killed.
    pub(super) fn killed_text(&self) -> &'static str {
        let is_function = self.tail.get().chunk == Dialect::Functions.chunk();
        match (self.generation.get().is_valkey(), is_function) {
            (false, _) => "ERR Script killed by user with SCRIPT KILL...",
            (true, false) => "ERR Script killed by user with SCRIPT KILL.",
            (true, true) => "ERR Script killed by user with FUNCTION KILL.",
        }
    }

    /// Resets the state for a new script.
    pub(super) fn begin(&self, tail: Tail, limits: Limits, pause: Option<Rc<Function>>) {
        self.killed.set(false);
        self.pause.replace(pause);
        self.budget.set(limits.budget);
        self.protocol.set(Protocol::Resp2);
        self.tail.set(tail);
        self.begin_turn(limits.turn);
    }

    /// Begins a time slice, in which the script has the node for itself.
    pub(super) fn begin_turn(&self, turn: Duration) {
        self.turn.set(turn);
        self.began.set(self.clock.get().map(|clock| clock()));
        if self.began.get().is_some() {
            self.budget.set(CLOCK_PERIOD);
        }
    }

    /// Charges the script's budget for work that is not an instruction.
    ///
    /// # Errors
    /// [`Failure::Killed`] if the script must end.
    pub(super) fn charge(&self, instructions: usize) -> mlua::Result<()> {
        self.charged.set(self.charged.get() + instructions as u64);
        let left = self.budget.get().saturating_sub(instructions as u64);
        self.budget.set(left);
        if left == 0 { self.see_to() } else { Ok(()) }
    }

    /// Returns the processor time of all scripts so far in seconds, counted in instructions.
    pub(super) fn processor_time(&self) -> f64 {
        self.charged.get() as f64 / INSTRUCTIONS_PER_SECOND
    }

    /// Handles a used-up budget: continues if the time slice is not over, and suspends the script
    /// otherwise.
    fn see_to(&self) -> mlua::Result<()> {
        if !self.killed.get() && !self.has_time() {
            // Clone the function, so that no borrow of the context lasts while the script is
            // suspended.
            let pause = self.pause.borrow().clone();
            match pause {
                Some(pause) => pause.call::<()>(())?,
                None => self.killed.set(true),
            }
        }
        if self.killed.get() {
            return Err(Failure::killed());
        }
        self.budget.set(CLOCK_PERIOD);
        Ok(())
    }

    /// Returns true if the time slice is not over. Without a clock the script has only its budget.
    fn has_time(&self) -> bool {
        let (Some(clock), Some(began)) = (self.clock.get(), self.began.get()) else { return false };
        clock().duration_since(began) < self.turn.get()
    }

    /// Charges the script for bytes copied or compared.
    ///
    /// # Errors
    /// [`Failure::Killed`] if the script must end.
    pub(super) fn charge_bytes(lua: &Lua, bytes: usize) -> mlua::Result<()> {
        if bytes < BYTES_PER_INSTRUCTION {
            return Ok(());
        }
        ScriptContext::of(lua).charge(bytes / BYTES_PER_INSTRUCTION)
    }

    /// Runs a search with the script's remaining budget as its steps, and stores the rest.
    pub(super) fn search<T>(&self, seek: impl FnOnce(&mut u64) -> T) -> T {
        let mut left = self.budget.get();
        let found = seek(&mut left);
        self.budget.set(left);
        found
    }

    /// Calls the host.
    ///
    /// # Errors
    /// [`Failure::Killed`] if the host is gone, because the script is ending.
    pub(super) fn ask<T>(&self, question: impl FnOnce(&mut dyn Host) -> T) -> mlua::Result<T> {
        let mut host = self.host.borrow_mut();
        host.as_deref_mut().map(question).ok_or_else(Failure::killed)
    }

    /// Runs other code in the middle of a script, and then restores the script's state.
    pub(super) fn aside<T>(&self, other: impl FnOnce() -> T) -> T {
        let pause = self.pause.borrow().clone();
        let (budget, killed, protocol) = (self.budget.get(), self.killed.get(), self.protocol.get());
        let (tail, turn, began) = (self.tail.get(), self.turn.get(), self.began.get());
        let result = other();
        self.pause.replace(pause);
        self.budget.set(budget);
        self.killed.set(killed);
        self.protocol.set(protocol);
        self.tail.set(tail);
        self.turn.set(turn);
        self.began.set(began);
        result
    }
}

impl Fuel for Rc<ScriptContext> {
    fn more(&self) -> u64 {
        // The search has used up the script's budget.
        self.budget.set(0);
        if self.see_to().is_ok() { self.budget.get() } else { 0 }
    }
}
