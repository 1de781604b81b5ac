//! `lockstorm boundary`: finds the values of a key at which a verdict changes.

use std::path::PathBuf;

use clap::Args;
use miette::{IntoDiagnostic, Result, bail, miette};
use serde::Serialize;

use super::{
    Exit,
    options::{Jobs, ONE_ENGINE, Seeds, checker_named, one_source, virtual_engines},
    out::outln,
    progress::Progress,
};
use crate::study::boundary::{Change, Found, Median, Place, Sample, Search, median, sample};
use lockstorm::{
    file::scenario::{Boundary as Written, Setting, Source, Ticks, Variant},
    judge::{
        checker::Checker,
        verdict::{CONFIDENCE, percent},
    },
    run::Engine,
};

/// The default precision is the range divided by this number.
const WITHIN: u32 = 10_000;

/// The default number of equal parts of a range before bisection.
const PARTS: u32 = 8;

/// Find the value of a key at which a verdict changes, by bisection
///
/// Finds the exact value for each seed. For six seeds or more, also prints the median of their
/// values with its 95% interval. The tutorial in the book explains the method.
#[derive(Debug, Args)]
pub(super) struct Boundary {
    /// Scenario file, on disk or among the stock scenarios; every variant with a [boundary] is
    /// searched, and with --axis every variant
    path: PathBuf,
    /// Key to vary and its range, instead of [boundary] in the file, such as
    /// fault.jump.clock_step.by=0s..12s
    #[arg(long, value_name = "KEY=FROM..TO")]
    axis: Option<Axis>,
    /// Precision of the value [default: as in [boundary], or else 1/10000 of the range]
    #[arg(long, value_name = "VALUE")]
    within: Option<Ticks>,
    /// Checker whose verdict changes [default: as in [boundary], or else the first in [expect]]
    #[arg(long, value_name = "NAME")]
    checker: Option<String>,
    /// Search only this variant
    #[arg(long, value_name = "NAME")]
    variant: Option<String>,
    /// Number of equal parts of the range, each tested before bisection; two changes of the verdict
    /// within one part are not found
    #[arg(long, value_name = "N", default_value_t = PARTS, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    parts: u32,
    #[command(flatten)]
    seeds: Seeds,
    #[command(flatten)]
    jobs: Jobs,
    /// Engine that advances virtual time
    #[arg(long, value_parser = virtual_engines(), default_value = Engine::Event.name())]
    #[arg(hide = ONE_ENGINE, hide_short_help = true)]
    engine: Engine,
    /// Print the results as JSON, one line per variant or sweep point
    #[arg(long)]
    json: bool,
}

/// The value of `--axis`: a key and its range.
#[derive(Debug, Clone)]
struct Axis {
    key: String,
    from: Ticks,
    to: Ticks,
}

impl std::str::FromStr for Axis {
    type Err = String;

    fn from_str(text: &str) -> Result<Axis, String> {
        let form = "expected KEY=FROM..TO, such as fault.jump.clock_step.by=0s..12s";
        let (key, range) = text.split_once('=').ok_or(form)?;
        let (from, to) = range.split_once("..").ok_or(form)?;
        let (from, to): (Ticks, Ticks) = (from.parse()?, to.parse()?);
        if from.is_like(to) && from < to {
            Ok(Axis { key: key.trim().to_owned(), from, to })
        } else {
            Err("a range goes from a smaller value to a larger one of the same kind".to_owned())
        }
    }
}

impl Boundary {
    pub(super) fn run(self) -> Result<Exit> {
        let source = one_source(&self.path)?;
        // Take each variant once here. `at_each_point` adds the points of its sweep.
        let mut variants = source.conditions();
        if let Some(wanted) = &self.variant {
            variants.retain(|variant| variant.of == *wanted);
            if variants.is_empty() {
                return Err(source.no_variant(wanted).into());
            }
        }
        let mut exit = None;
        for variant in variants {
            let Some(search) = self.search(&source, variant)? else { continue };
            for search in at_each_point(search)? {
                let one = self.print(&search)?;
                exit = exit.max(Some(one));
            }
        }
        exit.ok_or_else(|| {
            miette!("{} has no [boundary]: add one to the file, or give --axis KEY=FROM..TO", source.file)
        })
    }

    /// Builds the search from the options and the file's `[boundary]`. Returns `None` if neither
    /// has an axis.
    fn search<'a>(&'a self, source: &'a Source, variant: &'a Variant) -> Result<Option<Search<'a>>> {
        let Some(axis) = &self.axis else {
            let Some(written) = &variant.scenario.boundary else { return Ok(None) };
            let mut search = search_of(source, variant, written, self.engine)?;
            search.parts = self.parts;
            search.within = self.within.unwrap_or(search.within);
            if let Some(name) = &self.checker {
                search.checker = checker_named(name)?;
            }
            return checked(search).map(Some);
        };
        let Axis { key, from, to } = axis;
        let (from, to, parts, engine) = (*from, *to, self.parts, self.engine);
        let within = self.within.unwrap_or_else(|| least(from, to));
        let checker = judge(variant, self.checker.as_deref())?;
        checked(Search { source, variant: variant.clone(), key, from, to, within, parts, checker, engine })
            .map(Some)
    }

    fn print(&self, search: &Search<'_>) -> Result<Exit> {
        let scenario = &search.variant.scenario;
        let seeds = self.seeds.given().unwrap_or(0..scenario.run.seeds);
        let progress = Progress::new(usize::try_from(seeds.end - seeds.start).unwrap_or(usize::MAX));
        let found = search.of(seeds, self.jobs.count(), &|_| progress.step(0.0)).map_err(|error| *error)?;
        progress.finish();
        // The file's formula applies only to its own axis and checker.
        let is_of_file = self.axis.is_none() && self.checker.is_none();
        let written = scenario.boundary.as_ref().filter(|_| is_of_file);
        let answer = answer(search, &found, written);
        let claimed = Claimed { search: search.clone(), found, answer };
        if self.json {
            outln!("{}", serde_json::to_string(&claimed.json()).into_diagnostic()?);
        } else {
            outln!("{}{}", search.source.file, claimed.heading());
            for line in claimed.lines() {
                outln!("  {line}");
            }
        }
        Ok(claimed.exit())
    }
}

/// Builds the search of a file's `[boundary]`, with defaults for missing keys.
pub(super) fn search_of<'a>(
    source: &'a Source,
    variant: &'a Variant,
    written: &'a Written,
    engine: Engine,
) -> Result<Search<'a>> {
    let Written { key, from, to, within, checker, .. } = written;
    let checker = judge(variant, checker.as_deref())?;
    let within = within.unwrap_or_else(|| least(*from, *to));
    Ok(Search {
        source,
        variant: variant.clone(),
        key,
        from: *from,
        to: *to,
        within,
        parts: PARTS,
        checker,
        engine,
    })
}

/// Repeats a search at each point of the sweep along other keys.
pub(super) fn at_each_point(search: Search<'_>) -> Result<Vec<Search<'_>>> {
    let points = search.source.points_of(&search.variant.of, Setting::of(search.key, search.from));
    let points = points.map_err(|error| *error)?;
    // FILE#VARIANT may have selected only some points of the sweep.
    let is_meant = |point: &Variant| {
        let is_at = |variant: &Variant| point.point.iter().all(|at| variant.point.contains(at));
        search.source.variants.iter().any(|variant| variant.of == point.of && is_at(variant))
    };
    let points = points.into_iter().filter(is_meant);
    Ok(points.map(|variant| Search { variant, ..search.clone() }).collect())
}

fn least(from: Ticks, to: Ticks) -> Ticks {
    from.distance(from.part(to, 1, WITHIN))
}

fn checked(search: Search<'_>) -> Result<Search<'_>> {
    if !search.within.is_like(search.from) {
        bail!(
            "the precision {} does not fit the range {}..{}: expected a value of the same kind",
            search.within,
            search.from,
            search.to
        );
    }
    Ok(search)
}

/// Returns the checker of this name, or else the first in `[expect]`.
fn judge(variant: &Variant, named: Option<&str>) -> Result<&'static Checker> {
    let name = named.or(variant.scenario.expect.keys().next().map(String::as_str));
    let Some(name) = name else { bail!("[expect] names no checker: give --checker NAME") };
    checker_named(name)
}

/// A search with its results, compared with the claim of the file.
pub(super) struct Claimed<'a> {
    pub(super) search: Search<'a>,
    pub(super) found: Vec<Found>,
    answer: Answer,
}

impl<'a> Claimed<'a> {
    pub(super) fn of(search: Search<'a>, found: Vec<Found>) -> Self {
        let answer = answer(&search, &found, search.variant.scenario.boundary.as_ref());
        Claimed { search, found, answer }
    }

    pub(super) fn heading(&self) -> String {
        heading(&self.search, &self.found)
    }

    /// The results in words.
    pub(super) fn lines(&self) -> &[String] {
        &self.answer.lines
    }

    pub(super) fn exit(&self) -> Exit {
        self.answer.exit()
    }

    /// The results as a line of JSON.
    pub(super) fn json(&self) -> Line<'_> {
        let Search { variant, checker, key, from, to, .. } = &self.search;
        let change = |change: &Change| LineChange {
            below: change.below,
            last: change.last.to_string(),
            first: change.first.to_string(),
            above: change.above,
        };
        let seed = |found: &Found| LineSeed {
            seed: found.seed,
            start: found.start,
            changes: found.changes.iter().map(change).collect(),
        };
        Line {
            condition: format!("{}{}", self.search.source.file, condition(variant)),
            checker: checker.name,
            key,
            from: from.to_string(),
            to: to.to_string(),
            seeds: self.found.iter().map(seed).collect(),
            lines: self.lines(),
            median: self.answer.middle.as_ref().map(|(of, seeds)| LineMedian {
                middle: place_in_words(&self.search, of.middle),
                low: place_in_words(&self.search, of.low),
                high: place_in_words(&self.search, of.high),
                confidence: CONFIDENCE,
                seeds: *seeds,
            }),
            as_claimed: self.answer.has_formula.then_some(self.answer.as_claimed),
        }
    }
}

/// The search under one condition and its results, as a line of JSON. Values have the notation of
/// scenario files.
#[derive(Debug, Serialize)]
pub(super) struct Line<'a> {
    condition: String,
    checker: &'static str,
    key: &'a str,
    from: String,
    to: String,
    seeds: Vec<LineSeed>,
    /// The results in words, with the median over the seeds and the formula of the file.
    lines: &'a [String],
    /// The median over the seeds with the most frequent change. `None` for too few seeds.
    #[serde(skip_serializing_if = "Option::is_none")]
    median: Option<LineMedian>,
    /// True if the change is where the file's formula says. `None` without a formula.
    #[serde(skip_serializing_if = "Option::is_none")]
    as_claimed: Option<bool>,
}

/// The median of the values at which the verdict changes, and its interval. A value outside of the
/// axis is written as `below 0s` or `over 12s`.
#[derive(Debug, Serialize)]
struct LineMedian {
    middle: String,
    low: String,
    high: String,
    confidence: f64,
    seeds: usize,
}

/// The verdict of one seed along the axis.
#[derive(Debug, Serialize)]
struct LineSeed {
    seed: u64,
    start: &'static str,
    changes: Vec<LineChange>,
}

/// A change: the largest tried value with one verdict, and the least with the other.
#[derive(Debug, Serialize)]
struct LineChange {
    below: &'static str,
    last: String,
    first: String,
    above: &'static str,
}

/// Describes a search and its number of runs.
fn heading(search: &Search<'_>, found: &[Found]) -> String {
    let Search { variant, checker, key, from, to, .. } = search;
    let runs: usize = found.iter().map(|found| found.runs).sum();
    let of = condition(variant);
    format!("{of}: {} while {key} goes from {from} to {to} ({runs} runs)", checker.name)
}

/// Formats a condition as it follows the name of its file, without the value of the axis.
fn condition(variant: &Variant) -> String {
    let at = variant.point.iter().map(|at| format!("{}={}", at.axis, at.value));
    let of: Vec<String> =
        Some(variant.of.clone()).filter(|of| !of.is_empty()).into_iter().chain(at).collect();
    if of.is_empty() { String::new() } else { format!("#{}", of.join(",")) }
}

/// The results in words, compared with the claim of the file: a change for each seed, and at the
/// value of the formula if the file has one.
struct Answer {
    lines: Vec<String>,
    as_claimed: bool,
    /// Set if any run on the axis is decided.
    is_decided: bool,
    has_formula: bool,
    /// The median, and the number of its seeds. `None` for too few comparable seeds.
    middle: Option<(Median, usize)>,
}

impl Answer {
    fn exit(&self) -> Exit {
        match (self.as_claimed, self.is_decided) {
            (true, _) => Exit::Expected,
            (false, true) => Exit::Unexpected,
            (false, false) => Exit::Undecided,
        }
    }
}

fn answer(search: &Search<'_>, found: &[Found], written: Option<&Written>) -> Answer {
    let (mut lines, middle) = found_lines(search, found);
    let has_formula = written.is_some_and(|written| written.formula.is_some());
    let is_decided = found.iter().any(|found| found.start != "undecided" || !found.changes.is_empty());
    let Some(formula) = written.and_then(|written| written.formula.as_ref()) else {
        let as_claimed = found.iter().all(|found| !found.changes.is_empty());
        return Answer { lines, as_claimed, is_decided, has_formula, middle };
    };
    let (line, as_claimed) = match formula.bounds(&search.variant.scenario) {
        Err(error) => (format!("formula  {formula}: {error}"), false),
        Ok(bounds) => {
            // The formula must lie between the two values around the change of every seed, or in
            // the interval of the median.
            let exact = found.iter().all(|found| {
                matches!(found.changes[..], [change] if change.last <= bounds.high && bounds.low <= change.first)
            });
            let about = middle
                .as_ref()
                .is_some_and(|(of, _)| of.low <= Place::At(bounds.high) && Place::At(bounds.low) <= of.high);
            let as_claimed = exact || about;
            let word = if as_claimed { "as found" } else { "NOT AS FOUND" };
            (format!("formula  {formula} = {bounds}, {word}"), as_claimed)
        }
    };
    lines.push(line);
    Answer { lines, as_claimed, is_decided, has_formula, middle }
}

/// The most lines about single seeds that are printed. JSON has all seeds.
const SEEDS_TOLD: usize = 16;

/// Describes the changes of each seed, and the median over comparable seeds. Returns the median
/// with the number of its seeds.
fn found_lines(search: &Search<'_>, found: &[Found]) -> (Vec<String>, Option<(Median, usize)>) {
    let mut lines = Vec::new();
    for alike in found.chunk_by(|one, other| (one.start, &one.changes) == (other.start, &other.changes)) {
        let seeds = match (alike, alike.len() == found.len()) {
            ([one], _) => format!("seed {}", one.seed),
            (_, true) => format!("each of {} seeds", alike.len()),
            _ => format!("seeds {} to {}", alike[0].seed, alike[alike.len() - 1].seed),
        };
        let one = &alike[0];
        if one.changes.is_empty() {
            lines.push(format!("{seeds}: {} all the way", one.start));
        }
        for Change { below, last, first, above } in &one.changes {
            lines.push(format!("{seeds}: {below} up to {last}, {above} from {first}"));
        }
    }
    let left_out = lines.len().saturating_sub(SEEDS_TOLD);
    if left_out > 0 {
        lines.truncate(SEEDS_TOLD);
        lines.push(format!("and {left_out} more lines about other seeds: --json prints all"));
    }
    let Some(sample) = sample(found).filter(|sample| sample.places.len() > 1) else { return (lines, None) };
    let Sample { below, above, places, others } = sample;
    let (all, counted) = (found.len(), places.len());
    let outside = |wanted: Place| places.iter().filter(|place| **place == wanted).count();
    let (before, beyond) = (outside(Place::Below), outside(Place::Above));
    let middle = median(places, CONFIDENCE);
    lines.push(match &middle {
        Some(of) => format!(
            "over {counted} seeds: median {} ({} to {} with {} confidence)",
            place_in_words(search, of.middle),
            place_in_words(search, of.low),
            place_in_words(search, of.high),
            percent(CONFIDENCE),
        ),
        None => "over seeds: too few for an interval; try more than five".to_owned(),
    });
    if before + beyond > 0 {
        lines.push(format!(
            "of {all} seeds {before} have the verdict {above} over the whole range, and {beyond} the verdict {below}"
        ));
    }
    if others > 0 {
        lines.push(format!("{others} of {all} seeds change in another way, and do not count"));
    }
    (lines, middle.map(|of| (of, counted)))
}

/// Formats a value of the axis, or the side on which it is outside.
fn place_in_words(search: &Search<'_>, place: Place) -> String {
    match place {
        Place::Below => format!("below {}", search.from),
        Place::At(value) => value.to_string(),
        Place::Above => format!("over {}", search.to),
    }
}
