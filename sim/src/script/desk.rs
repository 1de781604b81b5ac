//! What a running script has: its surroundings, what it may still spend, and where it stands.

use std::{
    any::Any,
    cell::{Cell, RefCell},
    fmt,
    rc::Rc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use mlua::{Function, Lua, RegistryKey};

use super::{Flags, failure::Failure, pattern::Fuel, random::Random};
use crate::resp::{Protocol, Reply};

/// Bytes that a library copies or compares in the time of an instruction.
pub(super) const BYTES_PER_INSTRUCTION: usize = 16;

/// Bytes that scripts may hold at once. Redis has no such limit of its own; a simulated node must
/// not take the machine's memory with it.
///
/// While there is a limit, mlua guards each value it makes with a protected call. So the limit is
/// lifted where Rust makes values, whose size has a bound of its own.
pub(super) const MEMORY_MAX: usize = 256 << 20;

/// Where scripts go by a clock, it is read once in so many instructions: at each look of the hook
/// that counts them, for it knows nothing of what they took.
const CLOCK_PERIOD: u64 = 100;

/// What a script may ask of its surroundings while it runs.
pub trait Host: Any + fmt::Debug {
    /// `redis.call`: runs a command, or answers the error that refuses it.
    fn call(&mut self, words: Vec<Bytes>) -> Reply;

    /// `redis.acl_check_cmd`: whether the command would be allowed; `None` when there is no such
    /// command.
    fn may_call(&mut self, words: &[Bytes]) -> Option<bool>;

    /// `redis.setresp`: the protocol that replies to `call` are to follow.
    fn set_protocol(&mut self, protocol: Protocol);

    /// `redis.set_repl`: whether what follows reaches the append-only file, and the replicas.
    fn set_propagation(&mut self, aof: bool, replicas: bool);
}

/// How long a script may run before others have their turn.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// Instructions, where there is no clock to go by.
    pub(super) budget: u64,
    /// Time by the machine's own clock.
    pub(super) turn: Duration,
}

/// A function as the code of a library registers it.
#[derive(Debug)]
pub(super) struct Registered {
    pub(super) name: String,
    pub(super) description: Option<Bytes>,
    pub(super) flags: Flags,
    pub(super) callback: RegistryKey,
}

/// What the functions given to Lua share with the engine.
#[derive(Default)]
pub(super) struct Desk {
    /// The surroundings of the script that runs.
    pub(super) host: RefCell<Option<Box<dyn Host>>>,
    /// The protocol it chose.
    pub(super) protocol: Cell<Protocol>,
    /// Instructions it has left before its limits are checked.
    budget: Cell<u64>,
    /// Whether it is to end where it stands.
    pub(super) killed: Cell<bool>,
    /// Leaves it where it stands until others have had their turn. Code that is loaded has no such
    /// way out, and is killed.
    pause: RefCell<Option<Rc<Function>>>,
    /// Where in it a call may stand that leaves no frame of the script.
    pub(super) tail: Cell<Tail>,
    /// The machine's own clock, where scripts run by time slices instead of a budget.
    pub(super) clock: Cell<Option<fn() -> Instant>>,
    /// How long its turn may be by that clock.
    turn: Cell<Duration>,
    /// When the turn began, by the same clock.
    began: Cell<Option<Instant>>,
    pub(super) random: Random,
    /// What the library that is being loaded has registered.
    pub(super) registered: RefCell<Vec<Registered>>,
}

/// The last `return` of a script: `return f()` leaves no frame of the script behind, and is where a
/// script mostly ends.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Tail {
    /// What the script is called in errors.
    pub(super) chunk: &'static str,
    /// The line, counted from 1.
    pub(super) line: usize,
}

impl Tail {
    /// The last one in `source`.
    pub(super) fn of(chunk: &'static str, source: &[u8]) -> Tail {
        let last = source.windows(6).rposition(|word| word == b"return").unwrap_or(0);
        Tail { chunk, line: 1 + source[..last].iter().filter(|&&b| b == b'\n').count() }
    }
}

impl Desk {
    /// The desk of an interpreter.
    pub(super) fn of(lua: &Lua) -> Rc<Desk> {
        let desk = lua.app_data_ref::<Rc<Desk>>();
        Rc::clone(&desk.expect("the desk is put there before the sandbox loads"))
    }

    /// Begins a script.
    pub(super) fn begin(&self, tail: Tail, limits: Limits, pause: Option<Rc<Function>>) {
        self.killed.set(false);
        self.pause.replace(pause);
        self.budget.set(limits.budget);
        self.protocol.set(Protocol::Resp2);
        self.tail.set(tail);
        self.begin_turn(limits.turn);
    }

    /// Begins the time in which a script has the node for itself.
    pub(super) fn begin_turn(&self, turn: Duration) {
        self.turn.set(turn);
        self.began.set(self.clock.get().map(|clock| clock()));
        if self.began.get().is_some() {
            self.budget.set(CLOCK_PERIOD);
        }
    }

    /// Takes instructions from what the script has left, for work that no instruction stands for.
    ///
    /// # Errors
    /// When the script is to end.
    pub(super) fn charge(&self, instructions: usize) -> mlua::Result<()> {
        let left = self.budget.get().saturating_sub(instructions as u64);
        self.budget.set(left);
        if left == 0 { self.see_to() } else { Ok(()) }
    }

    /// What becomes of a script that has nothing left: it goes on, if it still has time; otherwise
    /// it waits for its next turn.
    fn see_to(&self) -> mlua::Result<()> {
        if !self.killed.get() && !self.has_time() {
            // Nothing of the desk is borrowed meanwhile.
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

    /// Whether its turn is not over yet by the clock. Without a clock a script has no more than its
    /// budget.
    fn has_time(&self) -> bool {
        let (Some(clock), Some(began)) = (self.clock.get(), self.began.get()) else { return false };
        clock().duration_since(began) < self.turn.get()
    }

    /// Charges the script for bytes copied or compared.
    ///
    /// # Errors
    /// When the script is to end.
    pub(super) fn charge_bytes(lua: &Lua, bytes: usize) -> mlua::Result<()> {
        if bytes < BYTES_PER_INSTRUCTION {
            return Ok(());
        }
        Desk::of(lua).charge(bytes / BYTES_PER_INSTRUCTION)
    }

    /// Lends the steps that a script has left to a search.
    pub(super) fn search<T>(&self, seek: impl FnOnce(&mut u64) -> T) -> T {
        let mut left = self.budget.get();
        let found = seek(&mut left);
        self.budget.set(left);
        found
    }

    /// Asks the host.
    ///
    /// # Errors
    /// When there is none any more: the script is on its way out.
    pub(super) fn ask<T>(&self, question: impl FnOnce(&mut dyn Host) -> T) -> mlua::Result<T> {
        let mut host = self.host.borrow_mut();
        host.as_deref_mut().map(question).ok_or_else(Failure::killed)
    }

    /// Runs other code in between, and puts back what the script that stands in the middle has
    /// left.
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

impl Fuel for Rc<Desk> {
    fn more(&self) -> u64 {
        // What a search has used up, the script has.
        self.budget.set(0);
        if self.see_to().is_ok() { self.budget.get() } else { 0 }
    }
}
