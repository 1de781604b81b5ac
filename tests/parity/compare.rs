//! Transcripts of Redis 7.0 on another generation: its real server records the replies, and the
//! simulator as that generation must give the same.
//!
//! `generations/differences.txt` lists the known differences:
//!
//! ```text
//! redis-8.2 valkey-9.1: the reason
//!   server/info > INFO replication      a step that occurs once in the transcript
//!   generic/floats > SORT l #3,5-9      the third, and the fifth to ninth step with this text
//!   list/events watch< end              replies that are left on connection `watch` at the end
//!   ? stream/xinfo > XINFO GROUPS lag   a step that may be answered the same by chance
//!   from server/acl 7> PING             a step, and all after it on connection `7`
//!   connection/output_limit             a transcript that is not played
//! ```
//!
//! A step that is not listed must be answered the same, and a listed one must differ. Its text is
//! that of the transcript, except where [`adapted`] changes it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use libtest_mimic::{Failed, Trial};
use lockstorm_sim::generation::{Feature, Generation};

use crate::{
    Place, at_last_alone, differences_of, generation_of, options, read, record_from,
    servers::{START_MS, Simulated},
    steps_of,
    transcript::{Action, Step},
};

/// Time after which a reply of the real server counts as missing. Without the reply the steps of
/// another generation may wait for nothing.
const PATIENCE: Duration = Duration::from_secs(15);

/// A known difference of one generation.
struct Known {
    transcript: String,
    /// The text of the step and its occurrences; `None` if the transcript is not played.
    step: Option<String>,
    extent: Extent,
}

/// The steps that a known difference excuses.
#[derive(Clone, Copy, PartialEq)]
enum Extent {
    /// The step, which must differ.
    Step,
    /// The step, which may differ.
    Chance,
    /// The step, which must differ, and all steps after it on its connection.
    Onward,
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
                at_last_alone(|| compare(&path, &transcript, generation, &known))
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
            let (names, reason) = line.split_once(": ").unwrap_or_default();
            let named: Option<Vec<_>> = names.split(' ').map(Generation::named).collect();
            is_meant = named.ok_or_else(|| format!("no generations: {line}"))?.contains(&generation);
            if reason.is_empty() {
                return Err(format!("no reason: {line}"));
            }
            continue;
        };
        if entry.ends_with("...") {
            return Err(format!("not one step: {entry}"));
        }
        if !is_meant {
            continue;
        }
        let marks = [("? ", Extent::Chance), ("from ", Extent::Onward), ("", Extent::Step)];
        let (entry, extent) = marks
            .into_iter()
            .find_map(|(mark, extent)| Some((entry.strip_prefix(mark)?, extent)))
            .expect("every entry begins with the empty mark");
        let (transcript, step) = match entry.split_once(' ') {
            Some((transcript, step)) => (transcript, Some(step.to_owned())),
            None if extent == Extent::Step => (entry, None),
            None => return Err(format!("no step: {line}")),
        };
        known.push(Known { transcript: transcript.to_owned(), step, extent });
    }
    Ok(known)
}

/// The keys of a transcript's steps in their order, then those of what is left on its connections.
/// A key is the text of the step, and its occurrence if there are several.
struct Keys {
    /// Each with the name of its connection.
    places: Vec<(Place, String, String)>,
    occurrences: BTreeMap<String, usize>,
}

impl Keys {
    fn of(steps: &[Step]) -> Keys {
        let exchanges = || {
            steps.iter().filter_map(|step| match &step.action {
                Action::Send(name, _) | Action::Receive(name) | Action::Follow(name) => Some((step, name)),
                _ => None,
            })
        };
        let mut occurrences: BTreeMap<String, usize> = BTreeMap::new();
        for (step, _) in exchanges() {
            *occurrences.entry(step.text.clone()).or_default() += 1;
        }
        let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
        let mut places = Vec::new();
        for (step, name) in exchanges() {
            let occurrence = seen.entry(&step.text).or_default();
            *occurrence += 1;
            let key = match occurrences[&step.text] {
                1 => step.text.clone(),
                _ => format!("{} #{occurrence}", step.text),
            };
            places.push((Place::Line(step.line), name.clone(), key));
        }
        let names: BTreeSet<&String> = exchanges().map(|(_, name)| name).collect();
        places.extend(
            names.into_iter().map(|name| (Place::End(name.clone()), name.clone(), format!("{name}< end"))),
        );
        Keys { places, occurrences }
    }

    /// Returns the keys of an entry, which ends with occurrences if its text has several.
    fn listed(&self, entry: &str) -> Result<Vec<String>, String> {
        let is_key = |key: &String| self.places.iter().any(|(_, _, one)| one == key);
        let keys = match entry.rsplit_once(" #") {
            Some((text, numbers)) if self.occurrences.get(text).is_some_and(|times| *times > 1) => {
                numbers_of(numbers)?.into_iter().map(|number| format!("{text} #{number}")).collect()
            }
            _ => vec![entry.to_owned()],
        };
        match (keys.iter().find(|key| !is_key(key)), self.occurrences.get(entry)) {
            (None, _) => Ok(keys),
            (Some(_), Some(times)) => Err(format!("occurs {times} times, so name them: #1,3-5")),
            (Some(key), None) => Err(format!("no such step: {key}")),
        }
    }
}

/// Reads numbers and ranges, such as `1,3-5`.
fn numbers_of(text: &str) -> Result<Vec<usize>, String> {
    let mut numbers = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        match (first.parse::<usize>(), last.parse::<usize>()) {
            (Ok(first), Ok(last)) if first <= last => numbers.extend(first..=last),
            _ => return Err(format!("no numbers: {text}")),
        }
    }
    Ok(numbers)
}

/// Returns a transcript as a generation can play it: one that lacks the class `n` of keyspace
/// events is asked for those of `A` without it, so that its events are compared.
fn adapted(text: &str, generation: Generation) -> String {
    let mut adapted = String::with_capacity(text.len());
    for line in text.lines() {
        let classes = line.split_once("CONFIG SET notify-keyspace-events ").map(|(_, classes)| classes);
        let is_meant = !generation.has(Feature::NewKeyEvents)
            && classes.is_some_and(|classes| classes.contains('A') && classes.ends_with('n'));
        adapted.push_str(line.strip_suffix('n').filter(|_| is_meant).unwrap_or(line));
        adapted.push('\n');
    }
    adapted
}

/// Plays a transcript on both servers; the error has the differences that are not known, the known
/// ones that are gone, and the entries of the list that are wrong.
fn compare(path: &Path, transcript: &str, generation: Generation, known: &[Known]) -> Result<(), Failed> {
    let text = adapted(&std::fs::read_to_string(path)?, generation);
    let mut steps = steps_of(path, &record_from(path, steps_of(path, &text)?, generation, PATIENCE)?)?;
    // The recorded steps are those of the transcript, whose lines a person looks for.
    for (step, original) in steps.iter_mut().zip(read(path)?) {
        step.line = original.line;
    }
    let keys = Keys::of(&steps);
    let mut told = String::new();
    let mut tell = |what: &str, why: &str| {
        let _ = writeln!(told, "  {transcript} {what}\n{why}");
    };
    let mut listed = BTreeMap::new();
    for Known { step, extent, .. } in known.iter().filter(|known| known.transcript == transcript) {
        let entry = step.as_deref().unwrap_or_default();
        match keys.listed(entry) {
            Err(why) => tell(entry, &why),
            Ok(keys) => {
                for key in keys {
                    if listed.insert(key.clone(), *extent).is_some() {
                        tell(&key, "listed twice");
                    }
                }
            }
        }
    }
    let mut server = Simulated::start_as(generation, START_MS, &options(path)?);
    let found = differences_of(path, steps, &mut server)?;
    let mut out_of_step = BTreeSet::new();
    for (at, name, key) in &keys.places {
        let here: String = found.iter().filter(|one| one.at == *at).map(|one| one.told.as_str()).collect();
        let extent = listed.get(key);
        if out_of_step.contains(name) {
            if extent.is_some() {
                tell(key, "is out of step already");
            }
            continue;
        }
        match extent {
            None if !here.is_empty() => tell(key, &here),
            Some(Extent::Step | Extent::Onward) if here.is_empty() => tell(key, "differs no longer"),
            _ => {}
        }
        if extent == Some(&Extent::Onward) {
            out_of_step.insert(name);
        }
    }
    if told.is_empty() { Ok(()) } else { Err(format!("\n{told}").into()) }
}
