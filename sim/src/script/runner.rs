//! Where the scripts of an interpreter run: on a stack of their own. A script can so be left where
//! it stands, in the middle of whatever it has called, while the node turns to others, and go on
//! from there.
//!
//! Lua's own coroutines cannot do that: Lua 5.1 cannot yield across `pcall`, a metamethod or an
//! iterator.

use std::rc::Rc;

use corosensei::{Coroutine, CoroutineResult, Yielder, stack::DefaultStack};
use mlua::{Function, Lua, Table, Value};

use super::desk::Desk;

/// Bytes of the stack, of which only those that are used take memory. Lua calls itself through C no
/// deeper than 200 times, and what follows the nesting of a value or of a pattern has a stack of
/// its own.
const STACK: usize = 4 << 20;

/// How a script ended: whether it went well, and what it answers or why it failed.
pub(super) type Ended = mlua::Result<(bool, Value)>;

/// A script or a function to be run.
pub(super) struct Job {
    /// What to call.
    pub(super) function: Function,
    /// With which keys.
    pub(super) keys: Table,
    /// With which other arguments.
    pub(super) args: Table,
}

enum Order {
    /// Begin with this script.
    Begin(Job),
    /// Go on where the last one was left.
    ResumeScript,
    /// There are no more scripts.
    Close,
}

enum Pause {
    /// No script has begun yet, and this leaves one where it stands.
    Ready(Function),
    /// A script was left where it stands.
    Suspended,
    /// A script has ended.
    Ended(Ended),
}

/// Runs one script after the other.
pub(super) struct Runner {
    desk: Rc<Desk>,
    stack: Coroutine<Order, Pause, ()>,
    /// Leaves the script that runs where it stands.
    pub(super) pause: Rc<Function>,
    /// There is a script to go on with.
    is_left: bool,
}

impl Runner {
    /// A runner that gives each script to `call`, which answers how it ended.
    pub(super) fn new(lua: &Lua, desk: &Rc<Desk>, call: Function) -> mlua::Result<Runner> {
        let lua = lua.clone();
        let room = DefaultStack::new(STACK).map_err(mlua::Error::external)?;
        let mut stack = Coroutine::with_stack(room, move |yielder: &Yielder<Order, Pause>, _| {
            let closed = lua.scope(|scope| {
                let pause = scope.create_function(|_, ()| {
                    yielder.suspend(Pause::Suspended);
                    Ok(())
                })?;
                let mut order = yielder.suspend(Pause::Ready(pause));
                while let Order::Begin(Job { function, keys, args }) = order {
                    let ended = call.call((function, keys, args));
                    order = yielder.suspend(Pause::Ended(ended));
                }
                Ok(())
            });
            closed.expect("a function of the runner's own fits in memory");
        });
        match stack.resume(Order::ResumeScript) {
            CoroutineResult::Yield(Pause::Ready(pause)) => {
                Ok(Runner { desk: Rc::clone(desk), stack, pause: Rc::new(pause), is_left: false })
            }
            _ => unreachable!("a runner waits for its first script"),
        }
    }

    /// Runs a script; `None` if it was suspended.
    pub(super) fn begin(&mut self, job: Job) -> Option<Ended> {
        assert!(!self.is_left, "one script at a time");
        self.switch(Order::Begin(job))
    }

    /// Resumes the suspended script.
    pub(super) fn resume(&mut self) -> Option<Ended> {
        assert!(self.is_left, "a script is suspended");
        self.switch(Order::ResumeScript)
    }

    /// Runs on the stack of the script until it ends or is suspended.
    fn switch(&mut self, order: Order) -> Option<Ended> {
        // A panic leaves nothing to resume.
        self.is_left = false;
        match self.stack.resume(order) {
            CoroutineResult::Yield(Pause::Ended(ended)) => Some(ended),
            CoroutineResult::Yield(_) => {
                self.is_left = true;
                None
            }
            CoroutineResult::Return(()) => None,
        }
    }
}

impl Drop for Runner {
    fn drop(&mut self) {
        if self.is_left {
            // It leaves the stack as a script does that is killed.
            self.desk.killed.set(true);
            self.resume();
        }
        // A panic has emptied the stack already.
        if !self.stack.done() {
            self.switch(Order::Close);
        }
    }
}
