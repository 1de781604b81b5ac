//! The interpreter of a node: scripts by their SHA-1, and running one of them.

use std::{
    any::Any,
    cell::{Cell, RefCell},
    fmt,
    rc::Rc,
};

use bytes::Bytes;
use mlua::{Function, HookTriggers, Lua, LuaOptions, StdLib, Table, Value, VmState};
use sha1::{Digest, Sha1};

use super::{
    Flags, ShebangError, api,
    convert::{Word, lossy, text_field, to_reply},
    failure::{Failure, SANDBOX},
    random::Random,
    shebang,
};
use crate::{
    keyspace::Dict,
    resp::{Protocol, Reply},
};

/// Bytes that scripts may hold at once. Redis has no such limit of its own; a simulated node must not take the machine's
/// memory with it.
///
/// While there is a limit, mlua guards each value it makes with a protected call. So the limit is lifted where Rust makes
/// values, whose size has a bound of its own.
pub(super) const MEMORY_MAX: usize = 256 << 20;

/// The hook that counts instructions runs once in so many.
const HOOK_PERIOD: u32 = 10_000;

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

/// A compiled script.
#[derive(Debug)]
pub struct Script {
    /// Its name: 40 lower-case hex digits.
    pub sha: String,
    /// What it declares in its first line.
    pub flags: Flags,
    function: Function,
}

/// One run of a script.
pub struct Run<'a> {
    /// What to run.
    pub script: &'a Script,
    /// `KEYS`
    pub keys: &'a [Bytes],
    /// `ARGV`
    pub args: &'a [Bytes],
    /// Instructions after which it counts as endless.
    pub budget: u64,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// The script answered, perhaps with an error.
    Reply(Reply),
    /// It used up its budget, and is taken to run for ever.
    Endless {
        /// The error that its client gets if it is killed after all.
        killed: String,
    },
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
    pub(super) random: Random,
}

impl Desk {
    /// Asks the host. Functions of the sandbox only run while a script does.
    pub(super) fn ask<T>(&self, question: impl FnOnce(&mut dyn Host) -> T) -> T {
        let mut host = self.host.borrow_mut();
        question(host.as_deref_mut().expect("a host is there while a script runs"))
    }
}

/// The interpreter of a node. It is made when it is first needed.
#[derive(Default, Clone)]
pub struct Engine {
    desk: Rc<Desk>,
    vm: Rc<RefCell<Option<Rc<Vm>>>>,
    idle: Rc<RefCell<Option<Box<dyn Host>>>>,
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").field("scripts", &self.len()).finish()
    }
}

struct Vm {
    lua: Lua,
    /// Runs a function with `KEYS` and `ARGV`, and says where it failed.
    run: Function,
    scripts: RefCell<Dict<Rc<Script>>>,
}

impl Vm {
    fn new(desk: &Rc<Desk>) -> mlua::Result<Vm> {
        let libraries = StdLib::TABLE | StdLib::STRING | StdLib::MATH;
        // A panic in Rust passes through: the sandbox's own `pcall` hands every error to Rust before a script sees it.
        let lua = Lua::new_with(libraries, LuaOptions::new().catch_rust_panics(false))?;
        let rust = api::functions(&lua, desk)?;
        let sandbox = lua.load(include_str!("sandbox.lua")).set_name(format!("={SANDBOX}"));
        let (globals, run): (Table, Function) = sandbox.call(rust)?;
        lua.set_globals(globals)?;
        let budget = Rc::clone(desk);
        lua.set_global_hook(HookTriggers::new().every_nth_instruction(HOOK_PERIOD), move |_, _| {
            let left = budget.budget.get().saturating_sub(u64::from(HOOK_PERIOD));
            budget.budget.set(left);
            if left == 0 { Err(mlua::Error::external(Failure::Endless)) } else { Ok(VmState::Continue) }
        })?;
        Ok(Vm { lua, run, scripts: RefCell::default() })
    }
}

/// The SHA-1 of a script as lower-case hex digits.
pub(super) fn sha1_hex(bytes: &[u8]) -> String {
    Sha1::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Engine {
    fn vm(&self) -> Rc<Vm> {
        let mut vm = self.vm.borrow_mut();
        // Failing here would mean that the sandbox itself is wrong, whatever a client sent.
        Rc::clone(vm.get_or_insert_with(|| Rc::new(Vm::new(&self.desk).expect("the sandbox loads"))))
    }

    /// How many scripts are known.
    pub fn len(&self) -> usize {
        self.vm.borrow().as_ref().map_or(0, |vm| vm.scripts.borrow().len())
    }

    /// Whether no script is known.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A script by its name, in digits of either case.
    pub fn script(&self, sha: &[u8]) -> Option<Rc<Script>> {
        let mut name: [u8; 40] = sha.try_into().ok()?;
        name.make_ascii_lowercase();
        self.vm.borrow().as_ref()?.scripts.borrow().get(&name).map(Rc::clone)
    }

    /// Compiles a script, unless it is known already.
    ///
    /// # Errors
    /// The error reply for a first line or a body that is wrong.
    pub fn load(&self, body: &[u8]) -> Result<Rc<Script>, ShebangError> {
        let sha = sha1_hex(body);
        if let Some(script) = self.script(sha.as_bytes()) {
            return Ok(script);
        }
        let (flags, source) = shebang::read(body)?;
        let vm = self.vm();
        let chunk = vm.lua.load(source).set_name("@user_script").set_mode(mlua::chunk::ChunkMode::Text);
        let function = chunk.into_function().map_err(|error| {
            let text = match error {
                mlua::Error::SyntaxError { message, .. } => message,
                other => other.to_string(),
            };
            ShebangError(format!("ERR Error compiling script (new function): {text}"))
        })?;
        let script = Rc::new(Script { sha: sha.clone(), flags, function });
        vm.scripts.borrow_mut().insert(Bytes::from(sha), Rc::clone(&script));
        Ok(script)
    }

    /// Forgets every script, and the interpreter with whatever scripts left in it.
    pub fn flush(&self) {
        self.vm.replace(None);
    }

    /// The host of the last run, to be used again: it is large, and runs are many.
    pub fn idle_host(&self) -> Option<Box<dyn Host>> {
        self.idle.take()
    }

    /// Keeps a host for [`Engine::idle_host`].
    pub fn keep_host(&self, host: Box<dyn Host>) {
        self.idle.replace(Some(host));
    }

    /// Runs a script. The host is lent for the time of the run, and handed back as it was left.
    pub fn run(&self, host: Box<dyn Host>, run: &Run<'_>) -> (Box<dyn Host>, Outcome) {
        let vm = self.vm();
        self.desk.budget.set(run.budget);
        self.desk.protocol.set(Protocol::Resp2);
        self.desk.host.replace(Some(host));
        let outcome = self.ran(&vm, run);
        let host = self.desk.host.take().expect("the host was put there above");
        (host, outcome)
    }

    fn ran(&self, vm: &Vm, run: &Run<'_>) -> Outcome {
        let result = words(&vm.lua, run.keys).and_then(|keys| {
            let args = words(&vm.lua, run.args)?;
            vm.lua.set_memory_limit(MEMORY_MAX)?;
            vm.run.call::<(bool, Value)>((&run.script.function, keys, args))
        });
        let _ = vm.lua.set_memory_limit(0);
        let reply = match result {
            Ok((true, value)) => to_reply(&value, self.desk.protocol.get()),
            // The handler answers a table.
            Ok((false, Value::Table(error))) if self.desk.budget.get() == 0 => {
                match failed(run.script, &error) {
                    Ok(killed) => return Outcome::Endless { killed },
                    Err(error) => Err(error),
                }
            }
            Ok((false, Value::Table(error))) => {
                failed(run.script, &error).map(|text| Reply::Error(text.into()))
            }
            // Without memory Lua calls no handler.
            Ok((false, error)) => error.to_string().map(|text| Reply::Error(format!("ERR {text}").into())),
            Err(error) => Err(error),
        };
        Outcome::Reply(reply.unwrap_or_else(|error| Reply::Error(format!("ERR {error}").into())))
    }
}

/// The error reply of a script that failed.
fn failed(script: &Script, error: &Table) -> mlua::Result<String> {
    let text = text_field(error, "err")?.map_or_else(|| "ERR unknown error".into(), |text| lossy(&text));
    let source = text_field(error, "source")?.map_or_else(String::new, |source| lossy(&source));
    let line = text_field(error, "line")?.map_or_else(String::new, |line| lossy(&line));
    Ok(format!("{text} script: {}, on {source}:{line}.", script.sha))
}

/// Words as a Lua table.
fn words(lua: &Lua, words: &[Bytes]) -> mlua::Result<Table> {
    lua.create_sequence_from(words.iter().map(|word| Word(word)))
}
