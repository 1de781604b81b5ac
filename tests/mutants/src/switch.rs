//! Chooses the active mutant. `run.py` puts this file into each crate of the copy; the original has
//! none.
//!
//! `LOCKSTORM_MUTANT=7` activates the mutant 7. `LOCKSTORM_MUTANTS_REACHED=FILE` appends the number
//! of each reached branch and the path of each used script to a file instead.
//! `LOCKSTORM_MUTANT_SCRIPT=FOLDER` replaces the folder's text `find` by its text `replace` in
//! every script that contains it.
//!
//! The environment is read once: the code under test can depend on it only through the mutant
//! itself.

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

/// Returns true if this mutant is active.
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

/// Writes one line in one write, because other processes of a test append to the same file.
fn write(line: &str) {
    if let Some(mut file) = trace_file() {
        file.write_all(format!("{line}\n").as_bytes()).expect("the trace can be written");
    }
}

/// The text to send in place of this script; `None` to send the script itself.
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

/// Our scripts; `run.py` fills in the list.
const SCRIPTS: &[(&str, &str)] = &[/* scripts */];
