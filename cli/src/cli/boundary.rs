//! `lockstorm boundary`: where along an axis a verdict changes.

use std::path::PathBuf;

use clap::Args;
use miette::{IntoDiagnostic, Result, bail, miette};
use serde::Serialize;

use super::{
    Exit,
    options::{Jobs, Seeds, checker_named, one_source, virtual_engines},
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

/// How near a change is found, as a part of the range, unless a file or an option says.
const WITHIN: u32 = 10_000;

/// Into how many equal parts a range is cut before bisection begins.
const PARTS: u32 = 8;

/// Find the value of a key at which a verdict changes, by bisection: exact for each seed, with an
/// interval over many
///
/// Of many seeds it prints the median of their places, and its interval by order statistics: as
/// many of the places lie below the true median as of so many coins show heads. That assumes no
/// shape of a curve, as a logistic estimate does, and approximates nothing. An isotonic one would
/// pool nothing: the place of each seed is known, so that the share of seeds that have changed
/// never falls.
#[derive(Debug, Args)]
pub(super) struct Boundary {
    /// A scenario file, on the disk or among the stock scenarios; of a file with variants, each
    /// that has a boundary
    path: PathBuf,
    /// The key to move, and between which values, such as fault.jump.clock_step.by=0s..12s; if left
    /// out, what [boundary] says
    #[arg(long, value_name = "KEY=FROM..TO")]
    axis: Option<Axis>,
    /// How near to find it; a ten-thousandth of the range if left out
    #[arg(long, value_name = "VALUE")]
    within: Option<Ticks>,
    /// Whose verdict; if left out, that of [boundary], or else the first that something is expected
    /// of
    #[arg(long, value_name = "NAME")]
    checker: Option<String>,
    /// Only this variant of the file
    #[arg(long, value_name = "NAME")]
    variant: Option<String>,
    /// Into how many equal parts to cut the range before bisection begins: a verdict that changes
    /// back within one of them is not seen
    #[arg(long, value_name = "N", default_value_t = PARTS, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    parts: u32,
    #[command(flatten)]
    seeds: Seeds,
    #[command(flatten)]
    jobs: Jobs,
    /// What moves time on
    #[arg(long, value_parser = virtual_engines(), default_value = Engine::Event.name())]
    engine: Engine,
    /// Print what was found as JSON, one line per condition
    #[arg(long)]
    json: bool,
}

/// A key and a range, as the option gives them.
#[derive(Debug, Clone)]
struct Axis {
    key: String,
    from: Ticks,
    to: Ticks,
}

impl std::str::FromStr for Axis {
    type Err = String;

    fn from_str(text: &str) -> Result<Axis, String> {
        let form = "expected key=from..to, such as fault.jump.clock_step.by=0s..12s";
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
        // The points of a sweep are told apart below, by what is not moved anyway.
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
            miette!(
                "{} says nothing of a boundary: give --axis KEY=FROM..TO, or add [boundary] to the file",
                source.file
            )
        })
    }

    /// What to look for: what the options say, and else what the file says.
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
        // A formula is about the axis and the checker of the file, and about no others.
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

/// What a file says is to be looked for, as far as it says.
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

/// The same search at each point of a sweep along other keys.
pub(super) fn at_each_point(search: Search<'_>) -> Result<Vec<Search<'_>>> {
    let points = search.source.points_of(&search.variant.of, Setting::of(search.key, search.from));
    let points = points.map_err(|error| *error)?;
    // A name may have given some points of the sweep alone.
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
        bail!("{} is no distance between {} and {}", search.within, search.from, search.to);
    }
    Ok(search)
}

/// Whose verdict: that of the checker that is named, or else of the first that something is
/// expected of.
fn judge(variant: &Variant, named: Option<&str>) -> Result<&'static Checker> {
    let name = named.or(variant.scenario.expect.keys().next().map(String::as_str));
    let Some(name) = name else { bail!("nothing is expected of any checker: give --checker NAME") };
    checker_named(name)
}

/// A boundary that a file claims, with what was found of it.
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

    /// What was found, a line each.
    pub(super) fn lines(&self) -> &[String] {
        &self.answer.lines
    }

    pub(super) fn exit(&self) -> Exit {
        self.answer.exit()
    }

    /// The same to be read by a program.
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

/// What was looked for under one condition and what was found, as a line of JSON. Values are
/// written as in files.
#[derive(Debug, Serialize)]
pub(super) struct Line<'a> {
    condition: String,
    checker: &'static str,
    key: &'a str,
    from: String,
    to: String,
    seeds: Vec<LineSeed>,
    /// The same in words, with the median over the seeds and the formula of the file.
    lines: &'a [String],
    /// Of seeds that change once, and all from the same verdict to the same other one.
    #[serde(skip_serializing_if = "Option::is_none")]
    median: Option<LineMedian>,
    /// Whether it is where the formula of the file says; none without a formula.
    #[serde(skip_serializing_if = "Option::is_none")]
    as_claimed: Option<bool>,
}

/// The median of the places at which the verdict changes, and its interval: values, or `below 0s`
/// and `over 12s` where one is not on the axis.
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

/// Where it changes: the largest value tried with the one verdict, and the least with the other.
#[derive(Debug, Serialize)]
struct LineChange {
    below: &'static str,
    last: String,
    first: String,
    above: &'static str,
}

/// What was looked for, and in how many runs.
fn heading(search: &Search<'_>, found: &[Found]) -> String {
    let Search { variant, checker, key, from, to, .. } = search;
    let runs: usize = found.iter().map(|found| found.runs).sum();
    let of = condition(variant);
    format!("{of}: {} while {key} goes from {from} to {to} ({runs} runs)", checker.name)
}

/// What a condition is called behind the name of its file, without the value of the axis.
fn condition(variant: &Variant) -> String {
    let at = variant.point.iter().map(|at| format!("{}={}", at.axis, at.value));
    let of: Vec<String> =
        Some(variant.of.clone()).filter(|of| !of.is_empty()).into_iter().chain(at).collect();
    if of.is_empty() { String::new() } else { format!("#{}", of.join(",")) }
}

/// What was found, a line each, and whether it is what the file claims: one change at the least,
/// where the formula says if there is one.
struct Answer {
    lines: Vec<String>,
    as_claimed: bool,
    /// Whether any verdict was found on the axis.
    is_decided: bool,
    has_formula: bool,
    /// The median over so many seeds, if they can be compared.
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
            // Two values a step apart have the change between them; of seeds that differ, their
            // median's interval has it.
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

/// So many lines of single seeds are printed; JSON has the rest.
const SEEDS_TOLD: usize = 16;

/// What was found for each seed, and the median over those that can be compared, with how many
/// these are.
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
        lines.push(format!("and {left_out} lines more of other seeds: --json has them all"));
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
            "of {all} seeds {before} are {above} from {} on, and {beyond} are {below} up to {}",
            search.from, search.to
        ));
    }
    if others > 0 {
        lines.push(format!("{others} of {all} seeds change otherwise, and are left out"));
    }
    (lines, middle.map(|of| (of, counted)))
}

/// A value of the axis, or on which side of it.
fn place_in_words(search: &Search<'_>, place: Place) -> String {
    match place {
        Place::Below => format!("below {}", search.from),
        Place::At(value) => value.to_string(),
        Place::Above => format!("over {}", search.to),
    }
}
