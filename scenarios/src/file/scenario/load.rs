//! Loads scenario files: parses them, lays each variant over the common part, and checks that every
//! name refers to something.

use std::{cell::LazyCell, path::Path};

use serde::Deserialize;
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use super::{
    Claim, Scenario,
    error::{Mistake, ScenarioError, nearest},
    form, hunt, lock,
    merge::{leave_out, overlay},
    places::Places,
    sweep::{self, Coordinate, Setting},
    validate::validate,
};
use crate::judge::digest::sha256;

/// A scenario file: its text, and all of its variants, ready to be planned.
#[derive(Debug, Clone)]
pub struct Source {
    /// The path of the file, as the caller gave it.
    pub file: String,
    /// The first eight hexadecimal digits of the SHA-256 of its text, by which a changed file is
    /// noticed.
    pub digest: String,
    /// Its text; empty for a scenario without a file.
    pub text: String,
    /// The variants in the order of the file, each at every point of the sweep. A file with neither
    /// has one variant without a name.
    pub variants: Vec<Variant>,
    /// The keys that [`Source::with`] has set, which are set in every variant built later, too.
    settings: Vec<Setting>,
}

/// One condition of an experiment.
#[derive(Debug, Clone)]
pub struct Variant {
    /// Its name, such as `lossy,by=5s`: the variant of the file and the point of the sweep. Empty
    /// if the file has neither variants nor a sweep.
    pub name: String,
    /// The name of the variant in the file, without the point.
    pub of: String,
    /// The coordinates of its point on the axes of the sweep; empty without a sweep.
    pub point: Vec<Coordinate>,
    /// The whole scenario under this condition.
    pub scenario: Scenario,
}

/// The name of the only variant of a file without variants.
const AS_DESCRIBED: &str = "as described";

impl Variant {
    /// Returns its name for people, such as `lossy,by=5s`.
    pub fn title(&self) -> &str {
        if self.name.is_empty() { AS_DESCRIBED } else { &self.name }
    }

    /// Returns the name for people of the variant in the file, without the point.
    pub fn condition(&self) -> &str {
        if self.of.is_empty() { AS_DESCRIBED } else { &self.of }
    }
}

impl Source {
    /// Returns the claim that the file decides, if any.
    pub fn claim(&self) -> Option<&Claim> {
        self.variants.first()?.scenario.claim.as_ref()
    }

    /// Returns the outcome that differs from what was expected, and the reason, if the author
    /// states one.
    pub fn finding(&self) -> Option<&str> {
        self.variants.first()?.scenario.finding.as_deref()
    }

    /// Returns the variants of the file, each at the first point of its sweep, in the order of the
    /// file.
    pub fn conditions(&self) -> Vec<&Variant> {
        let mut all: Vec<&Variant> = self.variants.iter().collect();
        all.dedup_by_key(|variant| &variant.of);
        all
    }

    /// Makes a source of a scenario without a file, under a name.
    ///
    /// # Errors
    /// When the scenario cannot run. A file with the same content has the same errors.
    pub fn of(name: &str, mut scenario: Scenario) -> Result<Source, Box<ScenarioError>> {
        scenario.name_servers();
        let checked = validate(&scenario, &Places::of(&DeTable::new()));
        checked.map_err(|mistake| Box::new(mistake.in_file(name, "")))?;
        let (file, text) = (name.to_owned(), String::new());
        let variants = vec![Variant { name: String::new(), of: String::new(), point: Vec::new(), scenario }];
        Ok(Source { file, digest: digest(&text), text, variants, settings: Vec::new() })
    }

    /// Returns the same file with other values for some keys, in every variant. A sweep no longer
    /// moves along these keys.
    ///
    /// # Errors
    /// When the format has no such key, when the scenario is not valid with that value, and when it
    /// has no file (see [`Source::of`]).
    pub fn with(&self, settings: &[Setting]) -> Result<Source, Box<ScenarioError>> {
        match self.built(settings, Wanted::All) {
            Ok(variants) => Ok(Source { variants, settings: self.and(settings), ..self.clone() }),
            Err(mistake) => Err(Box::new(self.mistaken(mistake, settings))),
        }
    }

    /// Returns one variant of the file with other values for some keys. A sweep no longer moves
    /// along these keys; on the other axes it stays at the point of `condition`. Nothing else of
    /// the file is built.
    ///
    /// # Errors
    /// Those of [`Source::with`], and when the file has no such variant.
    pub fn variant_with(
        &self,
        condition: &Variant,
        settings: &[Setting],
    ) -> Result<Variant, Box<ScenarioError>> {
        let built = self.built(settings, Wanted::One(condition));
        let built = built.map_err(|mistake| self.mistaken(mistake, settings))?;
        built.into_iter().next().ok_or_else(|| Box::new(self.no_variant(&condition.of)))
    }

    /// Returns the variants with this name in the file, with another value for a key: one for each
    /// point of a sweep along the other axes.
    ///
    /// # Errors
    /// Those of [`Source::with`].
    pub fn points_of(&self, of: &str, setting: Setting) -> Result<Vec<Variant>, Box<ScenarioError>> {
        let settings = [setting];
        let built = self.built(&settings, Wanted::Of(of));
        built.map_err(|mistake| Box::new(self.mistaken(mistake, &settings)))
    }

    /// Builds variants of the file with these settings.
    fn built(&self, settings: &[Setting], wanted: Wanted<'_>) -> Result<Vec<Variant>, Mistake> {
        // No file is empty: a scenario has a node and a client at least.
        if self.text.is_empty() {
            return Err(Mistake::at(0..0, "the scenario has no file whose keys can be set"));
        }
        variants(&self.text, &self.and(settings), wanted)
    }

    /// Returns the settings of the source and these, of which one replaces an older one of its key.
    fn and(&self, settings: &[Setting]) -> Vec<Setting> {
        let is_kept = |old: &&Setting| !settings.iter().any(|new| new.is_of_same_key(old));
        self.settings.iter().filter(is_kept).chain(settings).cloned().collect()
    }

    /// Makes the error for a mistake that the file has only with these settings. If the mistake is
    /// at no place of the file, the settings contain it.
    fn mistaken(&self, mut mistake: Mistake, settings: &[Setting]) -> ScenarioError {
        let laid: Vec<String> = settings.iter().map(Setting::to_string).collect();
        mistake.message = format!("with {}: {}", laid.join(" and "), mistake.message);
        if mistake.span.is_empty() {
            mistake.without_place(&self.file)
        } else {
            mistake.in_file(&self.file, &self.text)
        }
    }

    /// Makes the error that the file has no variant of this name. It lists the variants, or the
    /// points of the sweep to choose from.
    pub fn no_variant(&self, name: &str) -> ScenarioError {
        let known: Vec<&str> = self.conditions().into_iter().map(|variant| variant.of.as_str()).collect();
        let point = self.variants.iter().find(|variant| !variant.point.is_empty());
        let message = match (name, &known[..]) {
            (name, _) if point.is_some() && (name.is_empty() || self.names_axes(name)) => {
                let axes: Vec<String> = self
                    .axes()
                    .iter()
                    .map(|(axis, values)| format!("{axis} is one of {}", values.join(" ")))
                    .collect();
                let example = point.map_or("", |variant| &variant.name);
                format!("there is no one point {name:?} in the sweep: {}; as in {example:?}", axes.join(", "))
            }
            (name, [""]) => format!("there is no variant {name:?}: the file has no variants"),
            ("", known) => format!("say which one: {}", known.join(", ")),
            (name, known) => format!("there is no variant {name:?}, but: {}", known.join(", ")),
        };
        Mistake::at(0..0, message).without_place(&self.file)
    }

    /// Returns the axes of the sweep in their order, each with its values.
    fn axes(&self) -> Vec<(&str, Vec<&str>)> {
        let mut axes: Vec<(&str, Vec<&str>)> = Vec::new();
        for Coordinate { axis, value, .. } in self.variants.iter().flat_map(|variant| &variant.point) {
            match axes.iter_mut().find(|(known, _)| known == axis) {
                None => axes.push((axis, vec![value])),
                Some((_, values)) if values.contains(&value.as_str()) => {}
                Some((_, values)) => values.push(value),
            }
        }
        axes
    }

    /// Returns true if the name gives values to axes of the sweep only, and not to other keys.
    fn names_axes(&self, name: &str) -> bool {
        let is_axis = |given: &str| self.axes().iter().any(|(axis, _)| *axis == given);
        name.contains('=') && coordinates(name).all(|(given, _)| is_axis(given))
    }

    /// Returns the numbers of the variants that match a name such as `lossy,by=5s`: the variant of
    /// the file, at the points of its sweep that have these values. The name may give some axes or
    /// all, in any order.
    pub fn meant(&self, name: &str) -> Vec<usize> {
        let of: Vec<&str> = name.split(',').filter(|part| !part.contains('=')).collect();
        let is_there = |variant: &Variant| {
            let has = |(axis, value)| variant.point.iter().any(|at| at.axis == axis && at.value == value);
            variant.of == of.join(",") && coordinates(name).all(has)
        };
        let all = self.variants.iter().enumerate().filter(|(_, variant)| is_there(variant));
        all.map(|(number, _)| number).collect()
    }

    /// Finds a variant by its name, which may set other values for keys than the file:
    /// `lossy,network.latency=5ms`. Returns the file with these values, and the number of the
    /// variant in it; `None` if no variant has this name.
    ///
    /// # Errors
    /// Those of [`Source::with`].
    pub fn named(&self, name: &str) -> Result<Option<(Source, usize)>, Box<ScenarioError>> {
        let at = |source: &Source| source.variants.iter().position(|variant| variant.name == name);
        if let Some(at) = at(self) {
            return Ok(Some((self.clone(), at)));
        }
        if self.names_axes(name) {
            let meant = self.meant(name);
            return Ok(meant.first().filter(|_| meant.len() == 1).map(|at| (self.clone(), *at)));
        }
        let settings: Vec<Setting> = name.split(',').filter_map(|part| part.parse().ok()).collect();
        let source = if settings.is_empty() { return Ok(None) } else { self.with(&settings)? };
        Ok(at(&source).map(|at| (source, at)))
    }
}

/// Returns the parts of a variant's name that are coordinates of its point.
fn coordinates(name: &str) -> impl Iterator<Item = (&str, &str)> {
    name.split(',').filter_map(|part| part.split_once('='))
}

/// Reads a scenario file.
///
/// # Errors
/// When it cannot be read, or is not a scenario. The error has line, column, the expected input and
/// the nearest name.
pub fn load(path: &Path) -> Result<Source, Box<ScenarioError>> {
    let file = path.display().to_string();
    match std::fs::read_to_string(path) {
        Ok(text) => parse(&file, &text),
        Err(error) => Err(Box::new(Mistake::at(0..0, format!("cannot be read: {error}")).in_file(&file, ""))),
    }
}

/// Reads a scenario from a text. Errors name `file` as its file.
///
/// # Errors
/// When it is not a scenario. The error has line, column, the expected input and the nearest name.
pub fn parse(file: &str, text: &str) -> Result<Source, Box<ScenarioError>> {
    variants(text, &[], Wanted::All)
        .and_then(|variants| hunt::check_claim(text, &variants).map(|()| variants))
        .map(|variants| Source {
            file: file.to_owned(),
            digest: digest(text),
            text: text.to_owned(),
            variants,
            settings: Vec::new(),
        })
        .map_err(|mistake| Box::new(mistake.in_file(file, text)))
}

fn digest(text: &str) -> String {
    sha256(text)[..8].to_owned()
}

/// The variants to build.
#[derive(Debug, Clone, Copy)]
enum Wanted<'a> {
    /// All of them, each at every point of its sweep.
    All,
    /// The variant with this name in the file, at every point of its sweep.
    Of(&'a str),
    /// The variant with the same name in the file, at the same point.
    One(&'a Variant),
}

impl Wanted<'_> {
    /// Returns true if the variant with this name in the file is among them.
    fn has(self, name: &str) -> bool {
        match self {
            Wanted::All => true,
            Wanted::Of(of) => of == name,
            Wanted::One(one) => one.of == name,
        }
    }
}

fn variants(text: &str, settings: &[Setting], wanted: Wanted<'_>) -> Result<Vec<Variant>, Mistake> {
    let mut root = DeTable::parse(text).map_err(|error| Mistake::of_toml(&error))?;
    let span = root.span();
    let variants = root.get_mut().remove("variant");
    let root = root.into_inner();
    let mut all = Vec::new();
    let Some(variants) = variants else {
        if wanted.has("") {
            condition("", root, &span, settings, wanted, &mut all)?;
        }
        return Ok(all);
    };
    if matches!(wanted, Wanted::All) {
        let mut plain = root.clone();
        plain.remove("sweep");
        name_locks(&mut plain)?;
        read(Spanned::new(span.clone(), plain))?;
    }
    let place = variants.span();
    let DeValue::Table(variants) = variants.into_inner() else {
        return Err(Mistake::at(place, "expected a table of variants: [variant.some-name]"));
    };
    for (name, over) in variants {
        let place = over.span();
        let DeValue::Table(mut over) = over.into_inner() else {
            return Err(Mistake::at(place, format!("expected a table: [variant.{}]", name.get_ref())));
        };
        if let Some(nested) = over.get("variant") {
            return Err(Mistake::at(nested.span(), "a variant cannot have variants"));
        }
        if !wanted.has(name.get_ref()) {
            continue;
        }
        let mut table = root.clone();
        if over.contains_key("expect") {
            table.remove("expect");
            table.remove("real");
        }
        if let Some(without) = over.remove("without") {
            leave_out(&mut table, without)?;
        }
        overlay(&mut table, over);
        condition(name.get_ref(), table, &span, settings, wanted, &mut all)?;
    }
    Ok(all)
}

/// Builds one variant of the experiment at every point of its sweep.
fn condition(
    of: &str,
    mut table: DeTable<'_>,
    span: &std::ops::Range<usize>,
    settings: &[Setting],
    wanted: Wanted<'_>,
    all: &mut Vec<Variant>,
) -> Result<(), Mistake> {
    let mut axes = sweep::take(&mut table)?;
    axes.retain(|axis| !settings.iter().any(|setting| setting.is_of(axis)));
    for point in sweep::points(&axes) {
        let at: Vec<Coordinate> = axes.iter().zip(&point).map(|(axis, at)| axis.coordinate(*at)).collect();
        if matches!(wanted, Wanted::One(one) if !at.iter().all(|at| one.point.contains(at))) {
            continue;
        }
        let mut table = table.clone();
        settings.iter().try_for_each(|setting| setting.lay(&mut table))?;
        axes.iter().zip(&point).try_for_each(|(axis, at)| axis.lay(*at, &mut table))?;
        name_locks(&mut table)?;
        let scenario = read(Spanned::new(span.clone(), table.clone()))?;
        validate(&scenario, &Places::of(&table))?;
        let laid = settings.iter().map(Setting::to_string);
        let laid = laid.chain(at.iter().map(|at| format!("{}={}", at.axis, at.value)));
        let name: Vec<String> = [of.to_owned()].into_iter().filter(|of| !of.is_empty()).chain(laid).collect();
        all.push(Variant { name: name.join(","), of: of.to_owned(), point: at, scenario });
    }
    Ok(())
}

/// Gives each lock a separate table, which includes the common keys of `[lock]`.
fn name_locks(root: &mut DeTable<'_>) -> Result<(), Mistake> {
    let Some(locks) = root.get_mut("lock") else { return Ok(()) };
    let span = locks.span();
    let DeValue::Table(locks) = locks.get_mut() else { return Ok(()) };
    // Read from the schema, which few files need.
    let keys = LazyCell::new(|| form::keys("Lock").may);
    let is_key = |name: &str| keys.iter().any(|key| key == name);
    let (mut common, mut named) = (DeTable::new(), Vec::new());
    for (key, value) in std::mem::take(locks) {
        match value.get_ref() {
            DeValue::Table(own)
                if !(lock::OWN_TABLES.contains(&&**key.get_ref()) || is_key(key.get_ref())) =>
            {
                // A table without keys of a lock is more likely a misspelt key than a lock of that
                // name.
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
    let mut scenario =
        Scenario::deserialize(toml::Deserializer::from(table)).map_err(|error| Mistake::of_toml(&error))?;
    scenario.name_servers();
    Ok(scenario)
}
