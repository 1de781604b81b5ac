//! The script interpreters of a node: compiles scripts, finds them by SHA-1, and runs them.

use std::{
    borrow::Cow,
    cell::{Cell, RefCell},
    fmt,
    rc::Rc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use mlua::{Either, Lua, RegistryKey, Table, Value};

use super::{
    Flags, Host, Library, LibraryFunction, ShebangError,
    context::{Limits, MEMORY_MAX, ScriptContext, Tail},
    convert::{text_field, to_reply},
    dialect::Dialect,
    error_table::is_counted,
    library::Header,
    register_function::check_all,
    registry::keep,
    runner::{Ended, Job},
    sha1::sha1_hex,
    shebang,
    vm::Vm,
    word::Word,
};
use crate::{
    generation::{Feature, Generation},
    keyspace::Dict,
    resp::{Protocol, Reply, quotable},
    script::ScriptErrors,
};

/// Limits of a library's code while it loads.
const LOAD_LIMITS: Limits = Limits { budget: 50_000_000, turn: Duration::from_millis(500) };

/// A compiled script of the cache, found by its SHA-1.
#[derive(Debug)]
pub struct Script {
    /// SHA-1 of the script: 40 lower-case hex digits.
    pub sha: String,
    /// Flags from the script's first line.
    pub flags: Flags,
    /// The script's text.
    pub body: Bytes,
    function: RegistryKey,
    tail: Tail,
    /// The use that counts for eviction; `None` for a script that is not evicted.
    used: Cell<Option<u64>>,
}

/// The most scripts that EVAL keeps in a generation that evicts them.
const BY_EVAL_MAX: usize = 500;

/// The command that loads a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoadedBy {
    /// EVAL, which replies with the result and not with the SHA-1.
    Eval,
    /// SCRIPT LOAD.
    ScriptLoad,
}

/// A script or a function to run.
#[derive(Debug, Clone, Copy)]
pub enum Callee<'a> {
    /// A script, called by EVAL or EVALSHA.
    Script(&'a Script),
    /// A function of a library, called by FCALL.
    Function(&'a LibraryFunction),
}

impl<'a> Callee<'a> {
    /// Returns the flags that the script or function declares.
    pub fn flags(self) -> Flags {
        match self {
            Callee::Script(script) => script.flags,
            Callee::Function(function) => function.flags,
        }
    }

    /// Name in errors.
    fn name(self) -> &'a str {
        match self {
            Callee::Script(script) => &script.sha,
            Callee::Function(function) => &function.name,
        }
    }

    fn parts(self) -> (Dialect, &'a RegistryKey, Tail) {
        match self {
            Callee::Script(script) => (Dialect::Scripts, &script.function, script.tail),
            Callee::Function(function) => (Dialect::Functions, &function.callback, function.tail),
        }
    }
}

/// One run of a script or a function.
pub struct Run<'a> {
    /// The script or function to run.
    pub callee: Callee<'a>,
    /// The keys, which the script reads as `KEYS`.
    pub keys: &'a [Bytes],
    /// The other arguments, which the script reads as `ARGV`.
    pub args: &'a [Bytes],
    /// Instructions until the script is suspended, if the node has no clock for scripts.
    pub budget: u64,
    /// Time until the script is suspended, if the node has such a clock; see [`Engine::set_clock`].
    pub turn: Duration,
    /// Protocol of the client that gets the reply.
    pub client_protocol: Protocol,
}

/// Result of a run or of a time slice.
#[derive(Debug)]
pub enum Outcome {
    /// The script returned or failed. The reply may contain errors.
    Reply(Reply, ScriptErrors),
    /// The script has used up its limits, so that others can run.
    Suspended(Suspended),
}

/// A suspended script.
pub struct Suspended {
    vm: Rc<Vm>,
    /// Name in errors.
    name: String,
    client_protocol: Protocol,
}

impl fmt::Debug for Suspended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Suspended").field("name", &self.name).finish_non_exhaustive()
    }
}

type Lazily<T> = Rc<RefCell<Option<Rc<T>>>>;

/// The interpreters of a node. Each is made at first use.
#[derive(Default, Clone)]
pub struct Engine {
    context: Rc<ScriptContext>,
    scripts: Lazily<Vm>,
    functions: Lazily<Vm>,
    known: Rc<RefCell<Dict<Rc<Script>>>>,
    generation: Generation,
    /// The scripts of EVAL that may be evicted, at most [`BY_EVAL_MAX`].
    by_eval: Rc<RefCell<Vec<Rc<Script>>>>,
    /// Counts the uses of scripts that may be evicted.
    uses: Rc<Cell<u64>>,
    /// Counts the evicted scripts since the start.
    evicted: Rc<Cell<u64>>,
    /// Text to replace in every script, and its replacement, which is compiled instead.
    edit: Option<Rc<(String, String)>>,
    idle: Rc<RefCell<Option<Box<dyn Host>>>>,
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").field("scripts", &self.len()).finish()
    }
}

impl Engine {
    /// Makes the interpreters of a generation. They compile `edit.1` instead of `edit.0` wherever a
    /// script has that text. The script keeps the SHA-1 of its original text.
    pub fn new(generation: Generation, edit: Option<(String, String)>) -> Engine {
        let engine = Engine { generation, edit: edit.map(Rc::new), ..Engine::default() };
        engine.context.generation.set(generation);
        engine
    }

    /// Returns the text that is compiled for `source`.
    fn edited<'a>(&self, source: &'a [u8]) -> Cow<'a, [u8]> {
        match (self.edit.as_deref(), std::str::from_utf8(source)) {
            (Some((find, replace)), Ok(text)) if text.contains(find) => {
                Cow::Owned(text.replace(find, replace).into_bytes())
            }
            _ => Cow::Borrowed(source),
        }
    }

    fn vm(&self, dialect: Dialect) -> Rc<Vm> {
        let mut vm = match dialect {
            Dialect::Scripts => self.scripts.borrow_mut(),
            Dialect::Functions => self.functions.borrow_mut(),
        };
        // A failure here would be a bug in the sandbox, not caused by a client.
        let made = || Rc::new(Vm::new(&self.context, dialect, self.generation).expect("the sandbox loads"));
        Rc::clone(vm.get_or_insert_with(made))
    }

    /// Returns the number of known scripts.
    pub fn len(&self) -> usize {
        self.known.borrow().len()
    }

    /// Returns true if no script is known.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the length of each script's text, in bytes.
    pub fn lens(&self) -> Vec<usize> {
        self.known.borrow().iter().map(|(_, script)| script.body.len()).collect()
    }

    /// Finds a script by its SHA-1, in hex digits of either case.
    pub fn script(&self, sha: &[u8]) -> Option<Rc<Script>> {
        let mut name: [u8; 40] = sha.try_into().ok()?;
        name.make_ascii_lowercase();
        self.known.borrow().get(&name).map(Rc::clone)
    }

    /// Returns the number of scripts that were evicted since the start.
    pub fn evicted(&self) -> u64 {
        self.evicted.get()
    }

    /// Sets the number of evicted scripts to zero.
    pub fn reset_evicted(&self) {
        self.evicted.set(0);
    }

    /// Records that a script which may be evicted was used, so that others are evicted before it.
    pub fn note_use(&self, script: &Script) {
        if script.used.get().is_some() {
            self.uses.set(self.uses.get() + 1);
            script.used.set(Some(self.uses.get()));
        }
    }

    /// Makes room for one more script of EVAL. Evicts the one whose last use is longest ago.
    fn evict(&self) {
        let mut by_eval = self.by_eval.borrow_mut();
        if by_eval.len() < BY_EVAL_MAX {
            return;
        }
        let oldest = by_eval.iter().enumerate().min_by_key(|(_, script)| script.used.get());
        if let Some((at, _)) = oldest {
            let script = by_eval.swap_remove(at);
            self.known.borrow_mut().remove(script.sha.as_bytes());
            self.evicted.set(self.evicted.get() + 1);
        }
    }

    /// Compiles a script, unless it is known already.
    ///
    /// # Errors
    /// The error reply for an invalid first line or body.
    pub fn load(&self, body: &[u8], by: LoadedBy) -> Result<Rc<Script>, ShebangError> {
        let sha = sha1_hex(body);
        if let Some(script) = self.script(sha.as_bytes()) {
            if by == LoadedBy::ScriptLoad && self.generation.has(Feature::LoadedScriptsStay) {
                script.used.set(None);
                self.by_eval.borrow_mut().retain(|other| !Rc::ptr_eq(other, &script));
            }
            return Ok(script);
        }
        let (flags, source) = match self.generation {
            Generation::Redis62 => (Flags::COMPAT, body),
            _ => shebang::read(body).map_err(|error| self.unknown_engine(error))?,
        };
        let vm = self.vm(Dialect::Scripts);
        let compiled = match self.generation {
            // The function that Redis 6.2 puts around a script takes no arguments.
            Generation::Redis62 => {
                let around = [format!("function f_{sha}() ").as_bytes(), source, b"\nend"].concat();
                vm.compile(&around).and_then(|_| vm.compile(source))
            }
            _ => vm.compile(&self.edited(source)),
        };
        let function = compiled
            .and_then(|function| keep(&vm.lua, function).map_err(|error| error.to_string()))
            .map_err(|text| match source.first() {
                // Redis reads a compiled chunk as text, and fails at its first byte.
                Some(0x1b) => "user_script:1: unexpected symbol near 'char(27)'".to_string(),
                _ => text.to_string(),
            })
            .map_err(|text| ShebangError(format!("ERR Error compiling script (new function): {text}")))?;
        let tail = Tail::of(Dialect::Scripts.chunk(), source);
        let is_evicted = by == LoadedBy::Eval && self.generation.has(Feature::ScriptEviction);
        if is_evicted {
            self.evict();
        }
        let used = Cell::new(is_evicted.then_some(0));
        let script = Rc::new(Script {
            sha: sha.clone(),
            flags,
            body: Bytes::copy_from_slice(body),
            function,
            tail,
            used,
        });
        if is_evicted {
            self.by_eval.borrow_mut().push(Rc::clone(&script));
        }
        self.note_use(&script);
        self.known.borrow_mut().insert(Bytes::from(sha), Rc::clone(&script));
        Ok(script)
    }

    /// Returns the error for a first line in the words of Valkey, which may have other engines.
    fn unknown_engine(&self, error: ShebangError) -> ShebangError {
        match error.0.strip_prefix("ERR Unexpected engine in script shebang: #!") {
            Some(engine) if self.generation.is_valkey() => {
                ShebangError(format!("ERR Could not find scripting engine '{engine}'"))
            }
            _ => error,
        }
    }

    /// Compiles a library's code and runs it to collect its functions. Changes nothing else.
    ///
    /// # Errors
    /// The text of the error reply, without its code.
    pub fn load_library(&self, code: &Bytes, header: &Header) -> Result<Library, String> {
        // A script may be running: it can call a command that reloads the data.
        self.context.aside(|| self.loaded_library(code, header))
    }

    fn loaded_library(&self, code: &Bytes, header: &Header) -> Result<Library, String> {
        let source = &code[header.len..];
        let vm = self.vm(Dialect::Functions);
        let chunk = vm.compile(source).map_err(|text| format!("Error compiling function: {text}"))?;
        self.context.begin(Tail::of(Dialect::Functions.chunk(), source), LOAD_LIMITS, None);
        self.context.registered.borrow_mut().clear();
        let loaded = vm.load(chunk);
        let registered = self.context.registered.take();
        let failed = match loaded {
            Ok((true, _)) => {
                if self.generation.is_valkey() {
                    check_all(&registered)?;
                }
                return Ok(Library::new(
                    header.name.clone(),
                    code.clone(),
                    registered,
                    self.context.tail.get(),
                ));
            }
            _ if self.context.killed.get() => Ok("ERR FUNCTION LOAD timeout".into()),
            Ok((false, Value::Table(error))) => error_text(&error),
            Ok((false, error)) => error.to_string().map(|text| format!("ERR {text}")),
            Err(error) => Err(error),
        };
        let mut why = failed.unwrap_or_else(|error| format!("ERR {error}"));
        if self.generation.is_valkey() {
            why = why.replace("redis.register_function", "server.register_function");
        }
        Err(format!("Error registering functions: {why}"))
    }

    /// Sets the clock that measures a script's run time; see
    /// [`Env::script_clock`](crate::env::Env::script_clock).
    pub fn set_clock(&self, clock: Option<fn() -> Instant>) {
        self.context.clock.set(clock);
    }

    /// Forgets every script, and drops the interpreter with the state that scripts left in it.
    pub fn flush(&self) {
        self.known.replace(Dict::default());
        self.by_eval.take();
        self.scripts.replace(None);
    }

    /// Returns the host of the last run for reuse: a host is large, and runs are frequent.
    pub fn idle_host(&self) -> Option<Box<dyn Host>> {
        self.idle.take()
    }

    /// Keeps a host for the next run, which gets it from [`Engine::idle_host`].
    pub fn keep_host(&self, host: Box<dyn Host>) {
        self.idle.replace(Some(host));
    }

    /// Runs a script or a function. Borrows the host for the run, and returns it with its changes.
    pub fn run(&self, host: Box<dyn Host>, run: &Run<'_>) -> (Box<dyn Host>, Outcome) {
        let (dialect, function, tail) = run.callee.parts();
        let vm = self.vm(dialect);
        let pause = Rc::clone(&vm.runner.borrow().pause);
        let limits = Limits { budget: run.budget, turn: run.turn };
        self.context.begin(tail, limits, Some(pause));
        let job = words(&vm.lua, run.keys).and_then(|keys| {
            let args = words(&vm.lua, run.args)?;
            vm.lua.set_memory_limit(MEMORY_MAX)?;
            let function = vm.lua.registry_value(function)?;
            Ok(Job { function, keys, args })
        });
        let begin = |vm: &Vm| match job {
            Ok(job) => vm.runner.borrow_mut().begin(job),
            Err(error) => Some(Err(error)),
        };
        self.turn(vm, host, run.callee.name(), run.client_protocol, begin)
    }

    /// Resumes a suspended script for a time slice of length `turn`.
    pub fn resume(&self, host: Box<dyn Host>, left: Suspended, turn: Duration) -> (Box<dyn Host>, Outcome) {
        self.context.begin_turn(turn);
        self.turn(left.vm, host, &left.name, left.client_protocol, |vm| vm.runner.borrow_mut().resume())
    }

    /// Kills a suspended script: resuming it raises an error that it cannot catch.
    pub fn kill(&self, _: &Suspended) {
        self.context.killed.set(true);
    }

    fn turn(
        &self,
        vm: Rc<Vm>,
        host: Box<dyn Host>,
        name: &str,
        client_protocol: Protocol,
        take: impl FnOnce(&Vm) -> Option<Ended>,
    ) -> (Box<dyn Host>, Outcome) {
        self.context.host.replace(Some(host));
        let ended = take(&vm);
        let host = self.context.host.take().expect("the host was put there above");
        let outcome = match ended {
            Some(ended) => {
                let (reply, errors) = self.reply(&vm, name, client_protocol, ended);
                Outcome::Reply(reply, errors)
            }
            None => Outcome::Suspended(Suspended { vm, name: name.to_owned(), client_protocol }),
        };
        (host, outcome)
    }

    /// Returns the reply to the client of a script, and the errors in it.
    fn reply(&self, vm: &Vm, name: &str, client_protocol: Protocol, ended: Ended) -> (Reply, ScriptErrors) {
        let _ = vm.lua.set_memory_limit(0);
        let failed = match ended {
            Ok((true, value)) => {
                match to_reply(&vm.lua, &value, self.context.protocol.get(), client_protocol) {
                    Ok((mut reply, errors)) => {
                        if self.generation.has(Feature::ShortDoubles) {
                            reply.shorten_doubles();
                        }
                        return (reply, errors);
                    }
                    Err(error) => Err(error),
                }
            }
            // The kill may also come while the sandbox runs, as the script ends.
            ended if self.context.killed.get() => {
                let located = match ended {
                    Ok((_, Value::Table(error))) => failed(self.generation, name, &error).ok(),
                    _ => None,
                };
                let Tail { chunk, line } = self.context.tail.get();
                Ok(located.unwrap_or_else(|| {
                    (
                        self.generation.placed(self.context.killed_text(), name, &format!("@{chunk}"), line),
                        false,
                    )
                }))
            }
            // The error handler returns a table.
            Ok((false, Value::Table(error))) => failed(self.generation, name, &error),
            // Without memory Lua calls no error handler.
            Ok((false, error)) => {
                error.to_string().map(|text| (format!("ERR {}", quotable(text.as_bytes())), false))
            }
            Err(error) => Err(error),
        };
        let (text, is_counted) = failed.unwrap_or_else(|error| (format!("ERR {error}"), false));
        let mut errors = ScriptErrors::default();
        errors.note(&text, is_counted);
        (Reply::Error(text.into()), errors)
    }
}

/// Returns the text of an error table.
fn error_text(error: &Table) -> mlua::Result<String> {
    Ok(text_field(error, "err")?.map_or_else(|| "ERR unknown error".into(), |text| quotable(&text)))
}

/// Returns the error reply of a failed script or function, and true if it has been counted.
fn failed(generation: Generation, name: &str, error: &Table) -> mlua::Result<(String, bool)> {
    let text = error_text(error)?;
    let source = text_field(error, "source")?.map_or_else(String::new, |source| quotable(&source));
    let line = text_field(error, "line")?.map_or_else(String::new, |line| quotable(&line));
    let is_counted = is_counted(error)?;
    Ok((generation.placed(&text, name, &source, line), is_counted))
}

/// Converts words to a Lua table.
fn words(lua: &Lua, words: &[Bytes]) -> mlua::Result<Table> {
    // Text goes straight onto Lua's stack; other bytes first become a Lua value that Rust holds.
    lua.create_sequence_from(words.iter().map(|word| match std::str::from_utf8(word) {
        Ok(text) => Either::Left(text),
        Err(_) => Either::Right(Word(word)),
    }))
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    /// A host whose commands all panic.
    #[derive(Debug)]
    struct Broken;

    impl Host for Broken {
        fn call(&mut self, _: Vec<Bytes>) -> Result<Reply, Cow<'static, str>> {
            panic!("a bug in a command")
        }

        fn may_call(&mut self, _: &[Bytes]) -> Option<bool> {
            None
        }

        fn set_protocol(&mut self, _: Protocol) {}

        fn set_propagation(&mut self, _: bool, _: bool) {}
    }

    #[test]
    fn no_script_catches_a_bug() {
        for body in [
            "return redis.call('x')",
            "return redis.pcall('x')",
            "return pcall(redis.call, 'x')",
            "return pcall(pcall, pcall, redis.call, 'x')",
            "return xpcall(function() redis.call('x') end, function(err) return 1 end)",
            "return xpcall(function() redis.call('x') end, function(err) error(err) end)",
            "return xpcall(function() error('x') end, function(err) redis.call('x') end)",
            "return coroutine.resume(coroutine.create(function() redis.call('x') end))",
            "return coroutine.wrap(function() redis.call('x') end)()",
            "return pcall(string.gsub, 'a', 'a', function() redis.call('x') end)",
            "return pcall(table.sort, {1, 2, 3}, function() redis.call('x') end)",
        ] {
            let engine = Engine::default();
            let script = engine.load(body.as_bytes(), LoadedBy::Eval).expect("it compiles");
            let run = Run {
                callee: Callee::Script(&script),
                keys: &[],
                args: &[],
                budget: 1_000_000,
                turn: Duration::ZERO,
                client_protocol: Protocol::Resp2,
            };
            let caught = catch_unwind(AssertUnwindSafe(|| engine.run(Box::new(Broken), &run).1));
            let panic = caught.expect_err(body);
            assert_eq!(panic.downcast_ref::<&str>(), Some(&"a bug in a command"), "{body}");
        }
    }
}
