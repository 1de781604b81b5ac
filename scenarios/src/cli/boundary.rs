//! `lockstorm boundary`: where along an axis a verdict changes.

use std::path::PathBuf;

use clap::Args;
use miette::{Result, bail, miette};

use super::{
    Exit,
    options::{Jobs, Seeds, checker_named, one_source, virtual_engines},
    out::outln,
    progress::Progress,
};
use crate::{
    boundary::{Change, Found, Search, median},
    checker::Checker,
    run::Engine,
    scenario::{Boundary as Written, Source, Ticks, Variant},
    verdict::{CONFIDENCE, percent},
};

/// How near a change is found, as a part of the range, unless a file or an option says.
const WITHIN: u32 = 10_000;

/// Find the value of a key at which a verdict changes, by bisection: exact for each seed, with an interval over many
#[derive(Debug, Args)]
pub(super) struct Boundary {
    /// A scenario file, on the disk or among the stock scenarios; of a file with variants, each that has a boundary
    path: PathBuf,
    /// The key to move, and between which values, such as fault.jump.clock_step.by=0s..12s; if left out, what [boundary] says
    #[arg(long, value_name = "KEY=FROM..TO")]
    axis: Option<Axis>,
    /// How near to find it; a ten-thousandth of the range if left out
    #[arg(long, value_name = "VALUE")]
    within: Option<Ticks>,
    /// Whose verdict; if left out, that of [boundary], or else the first that something is expected of
    #[arg(long, value_name = "NAME")]
    checker: Option<String>,
    /// Only this variant of the file
    #[arg(long, value_name = "NAME")]
    variant: Option<String>,
    /// Into how many equal parts to cut the range before bisection begins: a verdict that changes back within one of them is not
    /// seen
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    parts: u32,
    #[command(flatten)]
    seeds: Seeds,
    #[command(flatten)]
    jobs: Jobs,
    /// What moves time on
    #[arg(long, value_parser = virtual_engines(), default_value = Engine::Event.name())]
    engine: Engine,
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
        // The points of a sweep differ only in what moves anyway.
        let mut variants: Vec<&Variant> = source.variants.iter().collect();
        variants.dedup_by_key(|variant| &variant.of);
        if let Some(wanted) = &self.variant {
            variants.retain(|variant| variant.of == *wanted);
            if variants.is_empty() {
                return Err(source.no_variant(wanted).into());
            }
        }
        let mut exit = None;
        for variant in variants {
            let Some(search) = self.search(&source, variant)? else { continue };
            let one = self.print(&search, variant)?;
            exit = exit.max(Some(one));
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
        let written = variant.scenario.boundary.as_ref();
        let (key, from, to) = match (&self.axis, written) {
            (Some(axis), _) => (&*axis.key, axis.from, axis.to),
            (None, Some(written)) => (&*written.key, written.from, written.to),
            (None, None) => return Ok(None),
        };
        let within = self.within.or(written.filter(|_| self.axis.is_none()).and_then(|of| of.within));
        let within = within.unwrap_or_else(|| from.distance(from.part(to, 1, WITHIN)));
        if !within.is_like(from) {
            bail!("{within} is no distance between {from} and {to}");
        }
        let checker = self.checker(variant, written)?;
        let (parts, engine) = (self.parts, self.engine);
        Ok(Some(Search { source, variant: &variant.of, key, from, to, within, parts, checker, engine }))
    }

    fn checker(&self, variant: &Variant, written: Option<&Written>) -> Result<&'static Checker> {
        let named = self.checker.as_deref().or(written.and_then(|written| written.checker.as_deref()));
        let name = named.or(variant.scenario.expect.keys().next().map(String::as_str));
        let Some(name) = name else { bail!("nothing is expected of any checker: give --checker NAME") };
        checker_named(name)
    }

    fn print(&self, search: &Search<'_>, variant: &Variant) -> Result<Exit> {
        let seeds = self.seeds.given().unwrap_or(0..variant.scenario.run.seeds);
        let progress = Progress::new(usize::try_from(seeds.end - seeds.start).unwrap_or(usize::MAX));
        let found = search.of(seeds, self.jobs.count(), &|_| progress.step(0.0)).map_err(|error| *error)?;
        progress.finish();
        let of = if variant.of.is_empty() { String::new() } else { format!("#{}", variant.of) };
        let runs: usize = found.iter().map(|found| found.runs).sum();
        outln!(
            "{}{of}: {} while {} goes from {} to {} ({runs} runs)",
            search.source.file,
            search.checker.name,
            search.key,
            search.from,
            search.to
        );
        print_found(search, &found);
        if let Some(formula) = variant.scenario.boundary.as_ref().and_then(|written| written.formula.as_ref())
        {
            match formula.value(&variant.scenario) {
                Ok(value) => outln!("  formula  {formula} = {value}"),
                Err(error) => outln!("  formula  {formula}: {error}"),
            }
        }
        let changes = found.iter().all(|found| !found.changes.is_empty());
        Ok(if changes { Exit::Expected } else { Exit::Unexpected })
    }
}

fn print_found(search: &Search<'_>, found: &[Found]) {
    for alike in found.chunk_by(|one, other| (one.start, &one.changes) == (other.start, &other.changes)) {
        let seeds = match (alike, alike.len() == found.len()) {
            ([one], _) => format!("seed {}", one.seed),
            (_, true) => format!("each of {} seeds", alike.len()),
            _ => format!("seeds {} to {}", alike[0].seed, alike[alike.len() - 1].seed),
        };
        let one = &alike[0];
        if one.changes.is_empty() {
            outln!("  {seeds}: {} all the way", one.start);
        }
        for Change { below, last, first, above } in &one.changes {
            outln!("  {seeds}: {below} up to {last}, {above} from {first}");
        }
    }
    let single: Vec<&Change> = found
        .iter()
        .filter_map(|found| if let [change] = &found.changes[..] { Some(change) } else { None })
        .collect();
    if single.len() < 2 {
        return;
    }
    match median(single.iter().map(|change| change.first).collect(), CONFIDENCE) {
        Some(of) => outln!(
            "  over seeds: median {} ({}..{} with {} confidence), from {} to {}",
            of.middle,
            of.low,
            of.high,
            percent(CONFIDENCE),
            of.least,
            of.most
        ),
        None => outln!("  over seeds: too few of them change once for an interval; try more than five"),
    }
    if single.len() < found.len() {
        outln!(
            "  {} of {} seeds change once between {} and {}",
            single.len(),
            found.len(),
            search.from,
            search.to
        );
    }
}
