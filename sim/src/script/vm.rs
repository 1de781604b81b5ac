//! One interpreter with its sandbox. Scripts have one, functions another.

use std::{cell::RefCell, rc::Rc, sync::OnceLock};

use mlua::{
    Function, HookTriggers, Lua, LuaOptions, StdLib, Table, Value, VmState,
    chunk::ChunkMode,
    state::{GcIncParams, GcMode},
};

use super::{
    api,
    context::{MEMORY_MAX, ScriptContext},
    dialect::Dialect,
    position::SANDBOX,
    runner::Runner,
};
use crate::generation::Generation;

/// Instructions between two runs of the counting hook. A single instruction can be expensive: `..`
/// copies its strings, and `<` compares them, without calling the hook. With strings of
/// [`MEMORY_MAX`] a hundred instructions take some seconds.
const HOOK_PERIOD: u32 = 100;

/// Work of one collector step, in percent of Lua's own measure: a whole cycle, for a sandbox of
/// usual size. With small steps, one per allocation, the garbage of a script that makes large texts
/// would exceed the memory limit.
const GC_STEP: i32 = 100_000;

/// Bytecode of the sandbox, with line numbers. Compiling it takes longer than all other steps of
/// making an interpreter, and a short run makes one for each server start. A throwaway interpreter
/// compiles it, so that `collectgarbage` reports the same memory in each interpreter that scripts
/// use.
static COMPILED: OnceLock<Vec<u8>> = OnceLock::new();

fn sandbox(lua: &Lua) -> mlua::Result<Function> {
    let name = format!("={SANDBOX}");
    let compiled = COMPILED.get_or_init(|| {
        let text = Lua::new();
        let code = text.load(include_str!("sandbox.lua")).set_name(&name).into_function();
        code.expect("the sandbox is Lua").dump(false)
    });
    lua.load(compiled).set_name(name.as_str()).set_mode(ChunkMode::Binary).into_function()
}

pub(super) struct Vm {
    pub(super) lua: Lua,
    dialect: Dialect,
    /// Runs functions with keys and arguments, and reports the position of a failure.
    pub(super) runner: RefCell<Runner>,
    /// Runs the code of a library, which may do little more than register functions.
    load: Function,
}

impl Vm {
    pub(super) fn new(
        context: &Rc<ScriptContext>,
        dialect: Dialect,
        generation: Generation,
    ) -> mlua::Result<Vm> {
        let libraries = StdLib::TABLE | StdLib::STRING | StdLib::MATH;
        // No option against caught panics is needed: the sandbox's `pcall` hands every error to
        // Rust before a script sees it, and Rust resumes a panic.
        let lua = Lua::new_with(libraries, LuaOptions::new())?;
        lua.gc_set_mode(GcMode::Incremental(GcIncParams::default().step_multiplier(GC_STEP)));
        lua.set_app_data(Rc::clone(context));
        let rust = api::functions(&lua, context, dialect, generation)?;
        let (globals, run, load): (Table, Function, Function) =
            sandbox(&lua)?.call((rust, dialect == Dialect::Functions))?;
        lua.set_globals(globals)?;
        let runner = RefCell::new(Runner::new(&lua, context, run)?);
        let context = Rc::clone(context);
        lua.set_global_hook(HookTriggers::new().every_nth_instruction(HOOK_PERIOD), move |_, _| {
            context.charge(HOOK_PERIOD as usize).map(|()| VmState::Continue)
        })?;
        Ok(Vm { lua, dialect, runner, load })
    }

    /// Compiles source code. The error text is Lua's.
    pub(super) fn compile(&self, source: &[u8]) -> Result<Function, String> {
        let name = format!("@{}", self.dialect.chunk());
        let chunk = self.lua.load(source).set_name(name).set_mode(ChunkMode::Text);
        chunk.into_function().map_err(|error| match error {
            mlua::Error::SyntaxError { message, .. } => message,
            other => other.to_string(),
        })
    }

    /// Runs the code of a library. If it fails, returns false and a table that describes the error.
    pub(super) fn load(&self, code: Function) -> mlua::Result<(bool, Value)> {
        let before = self.lua.set_memory_limit(MEMORY_MAX)?;
        let loaded = self.load.call(code);
        self.lua.set_memory_limit(before)?;
        loaded
    }
}
