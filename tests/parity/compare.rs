//! Transcripts of Redis 7.0 on another generation: its real server records the replies, and the
//! simulator as that generation must give the same.
//!
//! `generations/differences.txt` lists the known differences:
//!
//! ```text
//! redis-8.2 valkey-9.1: the reason
//!   server/info > INFO replication      a step of a transcript
//!   server/acl_setuser > ACL GETUSER... all steps that begin like this
//!   ? stream/xinfo > XINFO GROUPS lag   a step that may be answered the same by chance
//!   connection/output_limit             a transcript that is not played
//! ```
//!
//! A step that is not listed must be answered the same, and a listed one must differ.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, PoisonError},
    time::Duration,
};

use libtest_mimic::{Failed, Trial};
use lockstorm_sim::generation::Generation;

use crate::{
    MACHINE, PLAYS, differences_of, generation_of, options, record_from,
    servers::{START_MS, Simulated},
    steps_of,
};

/// Time after which a reply of the real server counts as missing. Without the reply the steps of
/// another generation may wait for nothing.
const PATIENCE: Duration = Duration::from_secs(5);

/// A known difference of one generation.
struct Known {
    transcript: String,
    /// The text of the step, or its beginning and `...`; `None` if the transcript is not played.
    step: Option<String>,
    /// Set if the step differs each time.
    is_certain: bool,
}

impl Known {
    fn covers(&self, step: &str) -> bool {
        let Some(listed) = &self.step else { return true };
        listed.strip_suffix("...").map_or(listed == step, |beginning| step.starts_with(beginning))
    }
}

/// Returns a trial for each transcript and each generation of `names`, which commas separate.
pub(crate) fn trials(names: &str, root: &Path, files: &[PathBuf]) -> Vec<Trial> {
    let list = std::fs::read_to_string(root.join("generations/differences.txt")).expect("the list is there");
    let transcripts: Vec<_> = files.iter().filter(|path| generation_of(path).is_none()).collect();
    let name_of = |path: &Path| {
        let name = path.strip_prefix(root).unwrap_or(path).with_extension("");
        name.display().to_string()
    };
    let mut trials = Vec::new();
    for name in names.split(',') {
        let generation = Generation::named(name).expect("LOCKSTORM_COMPARE names generations");
        let known = Arc::new(known(generation, &list).unwrap_or_else(|why| panic!("{why}")));
        for Known { transcript, .. } in known.iter() {
            let is_there = transcripts.iter().any(|path| name_of(path) == *transcript);
            assert!(is_there, "no transcript of the known difference: {transcript}");
        }
        let is_played = |path: &&PathBuf| {
            !known.iter().any(|known| known.step.is_none() && known.transcript == name_of(path))
        };
        for path in transcripts.iter().copied().filter(is_played) {
            let (path, transcript, known) = (path.clone(), name_of(path), Arc::clone(&known));
            trials.push(Trial::test(format!("{name}::{transcript}"), move || {
                let mut compared = {
                    let _machine = MACHINE.read().unwrap_or_else(PoisonError::into_inner);
                    compare(&path, &transcript, generation, &known)
                };
                for _ in 1..PLAYS {
                    if compared.is_ok() {
                        break;
                    }
                    let _machine = MACHINE.write().unwrap_or_else(PoisonError::into_inner);
                    compared = compare(&path, &transcript, generation, &known);
                }
                compared
            }));
        }
    }
    trials
}

/// Reads the known differences of a generation from the list.
fn known(generation: Generation, list: &str) -> Result<Vec<Known>, String> {
    let mut known: Vec<Known> = Vec::new();
    let mut is_meant = false;
    for line in list.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let Some(entry) = line.strip_prefix("  ") else {
            let (names, _) = line.split_once(": ").ok_or_else(|| format!("no reason: {line}"))?;
            let named: Option<Vec<_>> = names.split(' ').map(Generation::named).collect();
            is_meant = named.ok_or_else(|| format!("no generations: {line}"))?.contains(&generation);
            continue;
        };
        if !is_meant {
            continue;
        }
        let certain = entry.strip_prefix("? ");
        let is_certain = certain.is_none();
        let entry = certain.unwrap_or(entry);
        let (transcript, step) = match entry.split_once(' ') {
            Some((transcript, step)) => (transcript, Some(step.to_owned())),
            None => (entry, None),
        };
        if known.iter().any(|one| one.transcript == transcript && one.step == step) {
            return Err(format!("listed twice for {generation}: {entry}"));
        }
        known.push(Known { transcript: transcript.to_owned(), step, is_certain });
    }
    Ok(known)
}

/// Plays a transcript on both servers; the error has the differences that are not known, and the
/// known ones that are gone.
fn compare(path: &Path, transcript: &str, generation: Generation, known: &[Known]) -> Result<(), Failed> {
    let recorded = record_from(path, generation, PATIENCE)?;
    let mut server = Simulated::start_as(generation, START_MS, &options(path)?);
    let found = differences_of(path, steps_of(path, &recorded)?, &mut server)?;
    let listed = || known.iter().filter(|known| known.transcript == transcript);
    let new = found.iter().filter(|one| !listed().any(|known| known.covers(&one.step)));
    let gone = listed().filter(|known| known.is_certain && !found.iter().any(|one| known.covers(&one.step)));
    let told: String = new
        .map(|one| one.told.clone())
        .chain(gone.map(|known| {
            let step = known.step.as_deref().unwrap_or_default();
            format!("{transcript} {step}\n  differs no longer\n")
        }))
        .collect();
    if told.is_empty() { Ok(()) } else { Err(format!("\n{told}").into()) }
}
