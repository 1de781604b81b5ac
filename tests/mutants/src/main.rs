//! The two parts of a mutation test that need a parser; `run.py` does the rest.
//!
//! `mutants schemata FOLDER` reads from standard input a JSON list of mutants, in the form of
//! `cargo mutants --list --json`, with a number for each. In the copy of the workspace in that
//! folder it makes each of them a branch on a switch that is read at run time. It prints the file
//! and the place of each branch, so that an error of the compiler can be traced to its mutant.
//!
//! `mutants scripts FILE..` prints the mutants of Lua scripts.

mod schemata;
mod scripts;

use std::{collections::BTreeMap, error::Error, fs, io, path::Path};

use schemata::{Branch, Mutant};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["schemata", folder] => write_schemata(Path::new(folder)),
        ["scripts", files @ ..] => print_scripts(files),
        _ => Err("usage: mutants schemata FOLDER | mutants scripts FILE..".into()),
    }
}

fn write_schemata(folder: &Path) -> Result<(), Box<dyn Error>> {
    let all: Vec<Mutant> = serde_json::from_reader(io::stdin())?;
    let mut by_file = BTreeMap::<&str, Vec<&Mutant>>::new();
    for mutant in &all {
        by_file.entry(&mutant.file).or_default().push(mutant);
    }
    let mut branches = BTreeMap::<&str, Vec<Branch>>::new();
    for (file, mutants) in by_file {
        let path = folder.join(file);
        let text = fs::read_to_string(&path).map_err(|error| format!("{file}: {error}"))?;
        let (mutated, of_file) =
            schemata::mutate(&text, &mutants).map_err(|error| format!("{file}: {error}"))?;
        fs::write(&path, mutated)?;
        branches.insert(file, of_file);
    }
    serde_json::to_writer(io::stdout(), &branches)?;
    Ok(())
}

fn print_scripts(files: &[&str]) -> Result<(), Box<dyn Error>> {
    let mut all = BTreeMap::new();
    for file in files {
        let text = fs::read_to_string(file).map_err(|error| format!("{file}: {error}"))?;
        all.insert(file, scripts::mistakes(&text));
    }
    serde_json::to_writer(io::stdout(), &all)?;
    Ok(())
}
