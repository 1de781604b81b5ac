//! The files of the repository, as text.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// The folders of the crates.
pub(crate) const CRATES: &[&str] = &["world", "sim", "client", "scenarios", "cli"];

/// A file, with its path from the root of the repository.
pub(crate) struct Source {
    pub(crate) path: String,
    pub(crate) text: String,
}

pub(crate) fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// The text of one file.
pub(crate) fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Every file below a folder with one of these endings, sorted by path.
pub(crate) fn below(folder: &str, endings: &[&str]) -> Vec<Source> {
    let mut found = Vec::new();
    collect(&root().join(folder), endings, &mut found);
    found.sort();
    let sources = found.into_iter().map(|path| {
        let short = path.strip_prefix(root()).expect("found below the root");
        Source {
            path: short.to_string_lossy().replace('\\', "/"),
            text: fs::read_to_string(&path).expect("text"),
        }
    });
    sources.collect()
}

/// The names of a folder's files without their ending, and of its folders; sorted.
pub(crate) fn names_in(folder: &str, ending: &str) -> Vec<String> {
    let entries = fs::read_dir(root().join(folder)).unwrap_or_else(|error| panic!("{folder}: {error}"));
    let mut names: Vec<String> = entries
        .filter_map(|entry| {
            let path = entry.expect("a folder that can be read").path();
            let name = path.file_name()?.to_string_lossy().into_owned();
            if path.is_dir() { Some(name) } else { name.strip_suffix(ending).map(str::to_owned) }
        })
        .collect();
    names.sort();
    names
}

/// The sources of all crates, tests and benches.
pub(crate) fn all(endings: &[&str]) -> Vec<Source> {
    let folders = ["world", "sim", "client", "scenarios", "cli", "tests", "benches"];
    folders
        .iter()
        .filter(|folder| root().join(folder).is_dir())
        .flat_map(|folder| below(folder, endings))
        .collect()
}

/// The files in the root folder.
pub(crate) fn top(endings: &[&str]) -> Vec<Source> {
    let mut found = Vec::new();
    for entry in fs::read_dir(root()).expect("the root") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        if path.is_file() && endings.iter().any(|ending| name.ends_with(ending)) {
            found.push(Source { path: name, text: fs::read_to_string(&path).expect("text") });
        }
    }
    found.sort_by(|one, other| one.path.cmp(&other.path));
    found
}

fn collect(folder: &Path, endings: &[&str], found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder that can be read") {
        let path = entry.expect("a folder that can be read").path();
        if path.is_dir() {
            if path.file_name().is_some_and(|name| name != "target") {
                collect(&path, endings, found);
            }
        } else if endings.iter().any(|ending| path.to_string_lossy().ends_with(ending)) {
            found.push(path);
        }
    }
}
