//! The options `--plot` and `--plot-holds`: pictures of many runs.

use std::{
    fs,
    path::{Path, PathBuf},
};

use clap::Args;
use miette::{IntoDiagnostic, Result, WrapErr, bail, miette};

use super::{options::checker_named, out::errln};
use crate::study::plot::{self, Plot, Survival};
use lockstorm::{
    judge::checker::{Hold, many},
    run::{runner::Runner, tally::Tally},
};

/// Pictures of many runs.
#[derive(Debug, Clone, Args)]
pub(super) struct Picture {
    /// Draw how often a checker is violated over a sweep: a curve with its interval for one axis, a
    /// heat map for two
    #[arg(long, value_name = "FILE.svg", conflicts_with = "real", value_parser = svg)]
    plot: Option<PathBuf>,
    /// Checker to draw [default: `plot` in the file, or else the first violated one]
    #[arg(long, value_name = "CHECKER", requires = "plot")]
    plot_checker: Option<String>,
    /// Draw the survival of holds: the share of holds that still exist on the servers, at each time
    /// after the owner began to believe in its hold
    #[arg(long, value_name = "FILE.svg", conflicts_with = "real", value_parser = svg)]
    plot_holds: Option<PathBuf>,
}

/// Parses the file name of a picture, which must end in `.svg`.
fn svg(name: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(name);
    let is_svg = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("svg"));
    if is_svg { Ok(path) } else { Err("pictures are SVG: expected a name that ends in .svg".to_owned()) }
}

impl Picture {
    /// Checks that the checker to draw exists.
    pub(super) fn check(&self) -> Result<()> {
        self.plot_checker.as_deref().map_or(Ok(()), |name| checker_named(name).map(drop))
    }

    /// Draws the runs of one file, with `--plot`.
    pub(super) fn draw(&self, trial: &Runner<'_>, tallies: &[Tally<'_>]) -> Result<()> {
        let Some(path) = &self.plot else { return Ok(()) };
        let [source] = trial.sources() else {
            bail!("--plot draws one file, but the command has {}", trial.sources().len())
        };
        let mut variants = tallies.chunk_by(|one, other| one.variant.of == other.variant.of);
        let (Some(points), None) = (variants.next(), variants.next()) else {
            bail!(
                "--plot draws one variant, but {0} has several: name one, as in {0}#{1}",
                source.file,
                tallies[0].variant.of
            );
        };
        let Some(checker) = self.plot_checker.as_deref().or_else(|| plot::checker(points)) else {
            bail!("nothing is violated: name a checker with --plot-checker, or as `plot` in the file")
        };
        let plot = Plot::of(&source.file, points, checker).map_err(|error| miette!("--plot: {error}"))?;
        write(path, &plot.svg())?;
        errln!("{} shows how often {checker} was violated", path.display());
        Ok(())
    }

    /// Returns true with `--plot-holds`.
    pub(super) fn shows_holds(&self) -> bool {
        self.plot_holds.is_some()
    }

    /// Draws the holds of all runs, with `--plot-holds`.
    pub(super) fn draw_holds(&self, trial: &Runner<'_>, holds: Vec<Hold>, runs: usize) -> Result<()> {
        let Some(path) = &self.plot_holds else { return Ok(()) };
        let files: Vec<&str> = trial.sources().iter().map(|source| &*source.file).collect();
        let Some(svg) = survival(holds, runs, &files.join(", "), 1) else {
            bail!("--plot-holds: no owner ever believed that it held a lock")
        };
        write(path, &svg)?;
        errln!("{} shows how long holds survived", path.display());
        Ok(())
    }
}

/// Draws the survival of the holds of this number of runs; `of` names the runs in the title.
/// Returns `None` for fewer holds than `least`.
pub(super) fn survival(holds: Vec<Hold>, runs: usize, of: &str, least: usize) -> Option<String> {
    let title = format!("{of}, {}", many(runs, "run"));
    (holds.len() >= least).then(|| Survival::of(holds).svg(&title))
}

fn write(path: &Path, svg: &str) -> Result<()> {
    let written = fs::write(path, svg).into_diagnostic();
    written.wrap_err_with(|| format!("{} cannot be written", path.display()))
}
