//! What a running script has: its surroundings, what it may still spend, and where it stands.

use std::{
    any::Any,
    cell::{Cell, RefCell},
    rc::Rc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use mlua::Lua;

use super::{failure::Failure, random::Random, register::Registered};
use crate::resp::{Protocol, Reply};

/// Bytes that a library copies or compares in the time of an instruction.
const BYTES_PER_INSTRUCTION: usize = 16;

/// What a script may ask of its surroundings while it runs.
pub trait Host: Any {
    /// `redis.call`: runs a command, or answers the error that refuses it.
    fn call(&mut self, words: Vec<Bytes>) -> Reply;

    /// `redis.acl_check_cmd`: whether the command would be allowed; `None` when there is no such command.
    fn may_call(&mut self, words: &[Bytes]) -> Option<bool>;

    /// `redis.setresp`: the protocol that replies to `call` are to follow.
    fn set_protocol(&mut self, protocol: Protocol);

    /// `redis.set_repl`: whether what follows reaches the append-only file, and the replicas.
    fn set_propagation(&mut self, aof: bool, replicas: bool);
}

/// What the functions given to Lua share with the engine.
#[derive(Default)]
pub(super) struct Desk {
    /// The surroundings of the script that runs.
    pub(super) host: RefCell<Option<Box<dyn Host>>>,
    /// The protocol it chose.
    pub(super) protocol: Cell<Protocol>,
    /// Instructions it has left.
    pub(super) budget: Cell<u64>,
    /// Where in it a call may stand that leaves no frame of the script.
    pub(super) tail: Cell<Tail>,
    /// How much real time a script may take, where that is limited.
    pub(super) patience: Cell<Option<Duration>>,
    /// When it began, by the machine's own clock.
    began: Cell<Option<Instant>>,
    pub(super) random: Random,
    /// What the library that is being loaded has registered.
    pub(super) registered: RefCell<Vec<Registered>>,
}

/// The last `return` of a script: `return f()` leaves no frame of the script behind, and is where a script mostly ends.
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

    /// Begins a script that may take so many instructions.
    pub(super) fn begin(&self, tail: Tail, budget: u64) {
        self.budget.set(budget);
        self.protocol.set(Protocol::Resp2);
        self.tail.set(tail);
        self.began.set(None);
    }

    /// Takes instructions from what the script has left, for work that no instruction stands for.
    ///
    /// # Errors
    /// When nothing is left.
    pub(super) fn charge(&self, instructions: usize) -> mlua::Result<()> {
        let left = self.budget.get().saturating_sub(instructions as u64);
        self.budget.set(left);
        if left == 0 { Err(Failure::endless()) } else { Ok(()) }
    }

    /// The same, for bytes copied or compared.
    ///
    /// # Errors
    /// When nothing is left.
    pub(super) fn charge_bytes(lua: &Lua, bytes: usize) -> mlua::Result<()> {
        if bytes < BYTES_PER_INSTRUCTION {
            return Ok(());
        }
        Desk::of(lua).charge(bytes / BYTES_PER_INSTRUCTION)
    }

    /// Whether the script has run for longer than any script may, since this was first asked.
    pub(super) fn is_overdue(&self) -> bool {
        let Some(patience) = self.patience.get() else { return false };
        let began = self.began.get().unwrap_or_else(machine_time);
        self.began.set(Some(began));
        began.elapsed() > patience
    }

    /// Asks the host. Functions of the sandbox only run while a script does.
    pub(super) fn ask<T>(&self, question: impl FnOnce(&mut dyn Host) -> T) -> T {
        let mut host = self.host.borrow_mut();
        question(host.as_deref_mut().expect("a host is there while a script runs"))
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "only nodes that serve strangers ask; see Env::script_patience"
)]
fn machine_time() -> Instant {
    Instant::now()
}
