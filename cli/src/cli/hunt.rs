//! `lockstorm hunt`: searches for the faults that violate a scenario.

use std::path::PathBuf;

use clap::Args;
use miette::{IntoDiagnostic, Result, bail, miette};
use serde_json::{Value, json};

use super::{
    Exit,
    options::{Jobs, checker_named, one_source, refuse_existing, write_file},
    out::{errln, out, outln},
    progress::Progress,
};
use crate::study::shrink::{Shrink, Shrunk};
use lockstorm::{
    file::scenario::{self, HuntedKind, Variant},
    judge::{checker::Checker, verdict::Match},
    run::{
        Engine,
        hunt::{BUDGET, Found, Hunted, LeftOut, Search},
    },
};

/// Search for the faults that violate a scenario, and say what was excluded if there are none
///
/// Plays the scenario without its faults, and then with those that its [hunt] allows, at every
/// event of the run. Ends at the first violation, and prints it as a scenario with the
/// simplest such faults.
#[derive(Debug, Args)]
pub(super) struct Hunt {
    /// Scenario file, on disk or among the stock scenarios; FILE#VARIANT selects one variant
    #[arg(value_name = "FILE")]
    path: PathBuf,
    /// Seed of all runs
    #[arg(long, value_name = "N", default_value_t = 0, env = "LOCKSTORM_SEED")]
    seed: u64,
    /// Maximum number of faults in one run, 1 or 2 [default: hunt.faults, as set in the file, or 1]
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(1..=2))]
    faults: Option<u32>,
    /// Kinds of faults, separated by commas, such as pause,reorder [default: hunt.kinds, as set in
    /// the file, or pause,crash,cut,clock_step]
    #[arg(long, value_name = "KINDS", value_delimiter = ',', value_parser = kind_named)]
    kinds: Vec<HuntedKind>,
    /// Maximum number of runs
    #[arg(long, value_name = "RUNS", default_value_t = BUDGET)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    budget: u64,
    /// Checker whose violation to search for; may be repeated [default: those that [expect] says
    /// hold, or else those that it says are violated]
    #[arg(long = "checker", value_name = "NAME")]
    checkers: Vec<String>,
    #[command(flatten)]
    jobs: Jobs,
    /// Play every run from its beginning, in threads, instead of forking where a fault begins
    #[arg(long)]
    no_share: bool,
    /// Print the result as one JSON object
    #[arg(long)]
    json: bool,
    /// Write the scenario with the violation to this file
    #[arg(long, short, value_name = "FILE.toml")]
    out: Option<PathBuf>,
    /// Overwrite an existing file
    #[arg(long, requires = "out")]
    force: bool,
}

/// Returns the kind with a name of the file.
fn kind_named(name: &str) -> Result<HuntedKind, String> {
    serde_json::from_value(name.into()).map_err(|error| error.to_string())
}

impl Hunt {
    pub(super) fn run(self) -> Result<Exit> {
        refuse_existing(self.out.as_deref(), self.force)?;
        let source = one_source(&self.path)?;
        let [variant] = &source.variants[..] else { return Err(source.no_variant("").into()) };
        let checkers: Vec<&'static Checker> =
            self.checkers.iter().map(|name| checker_named(name)).collect::<Result<_>>()?;
        let mut search =
            Search::new(&variant.scenario, self.seed).jobs(self.jobs.count()).budget(self.budget);
        if let Some(faults) = self.faults {
            search = search.faults(faults);
        }
        if !self.kinds.is_empty() {
            let hunt = variant.scenario.hunt.clone().unwrap_or_default();
            let hunt = scenario::Hunt { kinds: self.kinds.clone(), ..hunt };
            hunt.check(&variant.scenario).map_err(|wrong| miette!("--kinds: {wrong}"))?;
            search = search.kinds(hunt.kinds);
        }
        if !checkers.is_empty() {
            search = search.checkers(checkers);
        }
        let progress = Progress::new(usize::try_from(self.budget).unwrap_or(usize::MAX));
        let told = |simulated| progress.step(simulated);
        // This process has no other thread yet, so it can be forked.
        let hunted =
            if self.no_share { search.run(&told) } else { search.run_shared(&told).into_diagnostic()? };
        let speed = progress.finish();
        let of = if variant.name.is_empty() { String::new() } else { format!("#{}", variant.name) };
        let name = format!("{}{of}", source.file);
        let text = hunted.found().map(|found| self.written(&name, &source.text, found)).transpose()?;
        if let (Some(path), Some(text)) = (&self.out, &text) {
            write_file(path, text)?;
        }
        if self.json {
            self.print_json(&name, &hunted, text.as_deref())?;
        } else {
            errln!("{speed}");
            self.print(&name, &hunted, text.as_deref());
        }
        Ok(exit(&hunted, variant))
    }

    /// Returns the command that runs the violation.
    fn replay(&self) -> String {
        let path = self.out.as_ref().map_or("FILE.toml".to_owned(), |path| path.display().to_string());
        format!("lockstorm run {path} --seed {}", self.seed)
    }

    /// Simplifies the faults of the violation, and returns the scenario with them as a file.
    fn written(&self, name: &str, text: &str, found: &Found) -> Result<String> {
        let checker = checker_named(found.checker)?;
        let shrink = Shrink { seed: self.seed, engine: Engine::Event, checker };
        let shrunk = shrink.faults_of(&found.scenario, text).into_diagnostic()?;
        let Some(Shrunk { text, .. }) = shrunk else {
            bail!("{name}: {} was violated, and is not in a second run of the same plan", found.checker);
        };
        Ok(format!("# {name}: faults that violate {} with seed {}.\n{text}", checker.name, self.seed))
    }

    fn print(&self, name: &str, hunted: &Hunted, text: Option<&str>) {
        let checkers = hunted.checkers.join(", ");
        outln!("{name}: hunt for a violation of {checkers}, seed {}", hunted.seed);
        outln!("  bound       {}", hunted.bound());
        outln!("  instants    {}, {} of them in chains of good outcomes", hunted.instants, hunted.in_chains);
        outln!(
            "  placements  {}: {} run, {} left out",
            hunted.placements,
            hunted.tried,
            hunted.left_out.all()
        );
        for (count, why) in reasons(&hunted.left_out) {
            outln!("    {count:>8} {why}");
        }
        outln!("  runs        {}", hunted.runs);
        if hunted.given_up > 0 {
            outln!("  given up    {}", hunted.given_up);
        }
        if !hunted.untested.is_empty() {
            outln!("  untested    {}", hunted.untested.join(", "));
        }
        outln!("{}", hunted.sentence());
        for placement in hunted.found().into_iter().flat_map(|found| &found.placed) {
            outln!("  {placement}");
        }
        if let Some(text) = text {
            if self.out.is_none() {
                outln!("");
                out!("{text}");
                outln!("");
            }
            outln!("replay: {}", self.replay());
        }
    }

    fn print_json(&self, name: &str, hunted: &Hunted, text: Option<&str>) -> Result<()> {
        let mut all = as_json(hunted)?;
        all["scenario"] = json!(name);
        if let Some(text) = text {
            all["file"] = json!(text);
            all["replay"] = json!(self.replay());
        }
        outln!("{all}");
        Ok(())
    }
}

/// Returns the result as JSON, with its bound in words.
pub(super) fn as_json(hunted: &Hunted) -> Result<Value> {
    let mut all = serde_json::to_value(hunted).into_diagnostic()?;
    all["bound"] = json!(hunted.bound());
    Ok(all)
}

/// Returns the numbers of placements left out, each with the reason why that is sound.
fn reasons(left_out: &LeftOut) -> impl Iterator<Item = (u64, &'static str)> {
    let LeftOut { same_gap, unseen, same_end, same_state } = *left_out;
    let all = [
        (unseen, "prevent nothing: no software runs in the pause, no message arrives over the cut"),
        (same_gap, "equal an earlier one: nothing happens in between"),
        (same_end, "equal a shorter one: the storm ends both at the same instant"),
        (same_state, "begin in a state seen before: all hosts had the same inputs in another run"),
    ];
    all.into_iter().filter(|(count, _)| *count > 0)
}

fn exit(hunted: &Hunted, variant: &Variant) -> Exit {
    match hunted.verdict(&variant.scenario) {
        Match::AsExpected => Exit::Expected,
        Match::Otherwise(_) => Exit::Unexpected,
        Match::Undecided(_) => Exit::Undecided,
    }
}
