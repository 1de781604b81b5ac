//! The options that have a sweep drawn.

use std::{fs, path::PathBuf};

use clap::Args;
use miette::{IntoDiagnostic, Result, WrapErr, bail, miette};

use super::out::errln;
use crate::{plot::Plot, runner::Runner, tally::Tally};

/// A picture of a sweep.
#[derive(Debug, Clone, Args)]
pub(super) struct Picture {
    /// Draw how often a checker was violated: two axes of a sweep as a heat map, one as a curve with its band
    #[arg(long, value_name = "FILE.svg", conflicts_with = "real")]
    plot: Option<PathBuf>,
    /// The checker to draw; the first that was violated if left out
    #[arg(long, value_name = "CHECKER", requires = "plot")]
    plot_checker: Option<String>,
}

impl Picture {
    /// Draws the runs of one file, if a picture was asked for.
    pub(super) fn draw(&self, trial: &Runner<'_>, tallies: &[Tally<'_>]) -> Result<()> {
        let Some(path) = &self.plot else { return Ok(()) };
        let [source] = trial.sources() else {
            bail!("--plot draws one file, and there are {}", trial.sources().len())
        };
        let mut variants = tallies.chunk_by(|one, other| one.variant.of == other.variant.of);
        let (Some(points), None) = (variants.next(), variants.next()) else {
            bail!(
                "--plot draws one variant, and {0} has several: name one, as in {0}#{1}",
                source.file,
                tallies[0].variant.of
            );
        };
        let violated = || points.iter().flat_map(|tally| &tally.rows).find(|row| row.violated.yes > 0);
        let checker = self.plot_checker.as_deref().or(violated().map(|row| &*row.checker));
        let Some(checker) = checker else {
            bail!("nothing was violated: say what to draw with --plot-checker")
        };
        let plot = Plot::of(&source.file, points, checker).map_err(|error| miette!("--plot: {error}"))?;
        let written = fs::write(path, plot.svg()).into_diagnostic();
        written.wrap_err_with(|| format!("{} cannot be written", path.display()))?;
        errln!("{} shows how often {checker} was violated", path.display());
        Ok(())
    }
}
