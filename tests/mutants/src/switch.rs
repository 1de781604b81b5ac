//! Which mutant is on. `run.py` puts this file into each crate of the copy; the original has none.
//!
//! `LOCKSTORM_MUTANT=7` is the mutant 7. `LOCKSTORM_MUTANTS_REACHED=FILE` has the number of each
//! branch that is reached written to a file instead, and the path of each script that is used.
//! `LOCKSTORM_MUTANT_SCRIPT=FOLDER` has `replace` of that folder sent wherever a script has `find`.
//!
//! The environment is read once: nothing that runs can depend on it but by the mutant itself.

use std::{
    fs::{File, OpenOptions},
    io::Write,
    sync::{
        OnceLock,
        atomic::{AtomicU32, AtomicU64, Ordering::Relaxed},
    },
};

const UNREAD: u32 = u32::MAX;
const TRACING: u32 = u32::MAX - 1;

static CHOSEN: AtomicU32 = AtomicU32::new(UNREAD);
static REACHED: [AtomicU64; 1024] = [const { AtomicU64::new(0) }; 1024];

/// Whether this mutant is on.
#[inline]
pub fn on(id: u32) -> bool {
    match CHOSEN.load(Relaxed) {
        TRACING => trace(id),
        UNREAD => {
            let chosen = std::env::var("LOCKSTORM_MUTANT").ok().and_then(|id| id.parse().ok()).unwrap_or(0);
            CHOSEN.store(if trace_file().is_some() { TRACING } else { chosen }, Relaxed);
            on(id)
        }
        chosen => chosen == id,
    }
}

#[cold]
fn trace(id: u32) -> bool {
    let bit = 1 << (id % 64);
    if REACHED[id as usize / 64].fetch_or(bit, Relaxed) & bit == 0 {
        write(&id.to_string());
    }
    false
}

fn trace_file() -> Option<&'static File> {
    static FILE: OnceLock<Option<File>> = OnceLock::new();
    let open = || {
        let path = std::env::var_os("LOCKSTORM_MUTANTS_REACHED")?;
        Some(OpenOptions::new().append(true).create(true).open(path).expect("a file to trace to"))
    };
    FILE.get_or_init(open).as_ref()
}

/// One line in one write, as other processes of a test append to the same file.
fn write(line: &str) {
    if let Some(mut file) = trace_file() {
        file.write_all(format!("{line}\n").as_bytes()).expect("the trace can be written");
    }
}

/// What is sent in the place of this script, if something else is.
pub fn script(text: &str) -> Option<String> {
    static EDIT: OnceLock<Option<(String, String)>> = OnceLock::new();
    if trace_file().is_some() {
        SCRIPTS.iter().filter(|(_, original)| text.contains(original)).for_each(|(path, _)| write(path));
    }
    let read = || {
        let folder = std::env::var("LOCKSTORM_MUTANT_SCRIPT").ok()?;
        let read = |name: &str| std::fs::read_to_string(format!("{folder}/{name}")).expect("a mutant");
        Some((read("find"), read("replace")))
    };
    let (find, replace) = EDIT.get_or_init(read).as_ref()?;
    text.contains(find).then(|| text.replace(find, replace))
}

/// Our scripts, which `run.py` fills in.
const SCRIPTS: &[(&str, &str)] = &[/* scripts */];
