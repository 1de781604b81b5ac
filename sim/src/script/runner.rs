//! Runs the scripts of an interpreter on their own stack. A script can be suspended inside any
//! nested call, while the node handles others, and resumed later.
//!
//! Lua's own coroutines cannot do that: Lua 5.1 cannot yield across `pcall`, a metamethod or an
//! iterator.

use std::rc::Rc;

use corosensei::{Coroutine, CoroutineResult, Yielder, stack::DefaultStack};
use mlua::{Function, Lua, Table, Value};

use super::context::ScriptContext;

/// Bytes of the stack; only used pages take memory. Lua recurses through C at most 200 deep, and
/// code that follows the nesting of a value or of a pattern has its own stack.
const STACK: usize = 4 << 20;

/// Result of a script: true and its return value, or false and its error.
pub(super) type Ended = mlua::Result<(bool, Value)>;

/// A script or a function to run.
pub(super) struct Job {
    pub(super) function: Function,
    /// Table of the keys.
    pub(super) keys: Table,
    /// Table of the other arguments.
    pub(super) args: Table,
}

enum Order {
    /// Begins this script.
    Begin(Job),
    /// Resumes the suspended script.
    ResumeScript,
    /// Ends the coroutine: no more scripts follow.
    Close,
}

enum Pause {
    /// No script has begun yet. The function suspends a running script.
    Ready(Function),
    /// A script was suspended.
    Suspended,
    /// A script has ended.
    Ended(Ended),
}

/// Runs one script after the other.
pub(super) struct Runner {
    context: Rc<ScriptContext>,
    stack: Coroutine<Order, Pause, ()>,
    /// Suspends the running script.
    pub(super) pause: Rc<Function>,
    /// Set while a script is suspended.
    is_left: bool,
}

impl Runner {
    /// Makes a runner that passes each script to `call`, which returns its result.
    pub(super) fn new(lua: &Lua, context: &Rc<ScriptContext>, call: Function) -> mlua::Result<Runner> {
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
                Ok(Runner { context: Rc::clone(context), stack, pause: Rc::new(pause), is_left: false })
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
            // Kill the suspended script, so that it leaves the stack.
            self.context.killed.set(true);
            self.resume();
        }
        // A panic has emptied the stack already.
        if !self.stack.done() {
            self.switch(Order::Close);
        }
    }
}
