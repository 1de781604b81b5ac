//! From a file to scenarios: parsing, laying variants over the whole, checking that every name stands for something.

use std::{cell::LazyCell, path::Path};

use serde::Deserialize;
use sha2::{Digest, Sha256};
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use super::{
    Scenario,
    error::{Mistake, ScenarioError, nearest},
    form, lock,
    merge::overlay,
    places::Places,
    validate::validate,
};

/// A scenario file: its text, and every variant of it ready to be planned.
#[derive(Debug, Clone)]
pub struct Source {
    /// The file as it was named.
    pub file: String,
    /// The first eight hexadecimal digits of the SHA-256 of its text, to notice that a file has changed.
    pub digest: String,
    /// The variants in the order of the file; one without a name if the file has none.
    pub variants: Vec<Variant>,
}

/// One condition of an experiment.
#[derive(Debug, Clone)]
pub struct Variant {
    /// Its name; empty when the file has no variants.
    pub name: String,
    /// The whole scenario under this condition.
    pub scenario: Scenario,
}

impl Source {
    /// A scenario that is in no file, under a name.
    ///
    /// # Errors
    /// When it is not one that can run, as a file that says the same would not be.
    pub fn of(name: &str, scenario: Scenario) -> Result<Source, Box<ScenarioError>> {
        let checked = validate(&scenario, &Places::of(&DeTable::new()));
        checked.map_err(|mistake| Box::new(mistake.in_file(name, "")))?;
        let variants = vec![Variant { name: String::new(), scenario }];
        Ok(Source { file: name.to_owned(), digest: digest(""), variants })
    }
}

/// Reads a scenario file.
///
/// # Errors
/// When it cannot be read, or is not a scenario: with line, column, what was expected and the nearest name.
pub fn load(path: &Path) -> Result<Source, Box<ScenarioError>> {
    let file = path.display().to_string();
    match std::fs::read_to_string(path) {
        Ok(text) => parse(&file, &text),
        Err(error) => Err(Box::new(Mistake::at(0..0, format!("cannot be read: {error}")).in_file(&file, ""))),
    }
}

/// Reads a scenario from a text; `file` is what errors call it.
///
/// # Errors
/// When it is not a scenario: with line, column, what was expected and the nearest name.
pub fn parse(file: &str, text: &str) -> Result<Source, Box<ScenarioError>> {
    variants(text)
        .map(|variants| Source { file: file.to_owned(), digest: digest(text), variants })
        .map_err(|mistake| Box::new(mistake.in_file(file, text)))
}

fn digest(text: &str) -> String {
    Sha256::digest(text).iter().take(4).map(|byte| format!("{byte:02x}")).collect()
}

fn variants(text: &str) -> Result<Vec<Variant>, Mistake> {
    let mut root = DeTable::parse(text).map_err(|error| Mistake::of_toml(&error))?;
    let span = root.span();
    let variants = root.get_mut().remove("variant");
    let mut plain = root.clone();
    name_locks(plain.get_mut())?;
    let base = read(plain.clone())?;
    let Some(variants) = variants else {
        validate(&base, &Places::of(plain.get_ref()))?;
        return Ok(vec![Variant { name: String::new(), scenario: base }]);
    };
    let place = variants.span();
    let DeValue::Table(variants) = variants.into_inner() else {
        return Err(Mistake::at(place, "expected a table of variants: [variant.some-name]"));
    };
    let mut all = Vec::new();
    for (name, over) in variants {
        let place = over.span();
        let DeValue::Table(over) = over.into_inner() else {
            return Err(Mistake::at(place, format!("expected a table: [variant.{}]", name.get_ref())));
        };
        if let Some(nested) = over.get("variant") {
            return Err(Mistake::at(nested.span(), "a variant cannot have variants"));
        }
        let mut table = root.get_ref().clone();
        if over.contains_key("expect") {
            table.remove("expect");
        }
        overlay(&mut table, over);
        name_locks(&mut table)?;
        let scenario = read(Spanned::new(span.clone(), table.clone()))?;
        validate(&scenario, &Places::of(&table))?;
        all.push(Variant { name: name.get_ref().to_string(), scenario });
    }
    Ok(all)
}

/// Gives each lock a table of its own, with what `[lock]` says of all of them.
fn name_locks(root: &mut DeTable<'_>) -> Result<(), Mistake> {
    let Some(locks) = root.get_mut("lock") else { return Ok(()) };
    let span = locks.span();
    let DeValue::Table(locks) = locks.get_mut() else { return Ok(()) };
    // Read off the schema, which few files need.
    let keys = LazyCell::new(|| form::keys("Lock").may);
    let is_key = |name: &str| keys.iter().any(|key| key == name);
    let (mut common, mut named) = (DeTable::new(), Vec::new());
    for (key, value) in std::mem::take(locks) {
        match value.get_ref() {
            DeValue::Table(own)
                if !(lock::OWN_TABLES.contains(&&**key.get_ref()) || is_key(key.get_ref())) =>
            {
                // Where it says nothing that a lock's table says, it is more likely a misspelt key than a lock of that name.
                let is_of_lock = !own.is_empty() && own.keys().all(|key| is_key(key.get_ref()));
                if !is_of_lock && let Some(near) = nearest(key.get_ref(), lock::OWN_TABLES.iter().copied()) {
                    let message = format!("neither a key of [lock] nor a lock: `{}`", key.get_ref());
                    let help = Some(format!("did you mean `{near}`?"));
                    return Err(Mistake { span: key.span(), message, help });
                }
                named.push((key, value.span(), own.clone()));
            }
            _ => drop(common.insert(key, value)),
        }
    }
    if named.is_empty() {
        let name = Spanned::new(span.clone(), lock::ONLY.into());
        locks.insert(name, Spanned::new(span, DeValue::Table(common)));
        return Ok(());
    }
    for (name, span, own) in named {
        let mut whole = common.clone();
        overlay(&mut whole, own);
        locks.insert(name, Spanned::new(span, DeValue::Table(whole)));
    }
    Ok(())
}

fn read(table: Spanned<DeTable<'_>>) -> Result<Scenario, Mistake> {
    Scenario::deserialize(toml::Deserializer::from(table)).map_err(|error| Mistake::of_toml(&error))
}
