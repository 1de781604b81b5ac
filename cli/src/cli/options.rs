//! Options that several subcommands share.

use std::{
    collections::BTreeMap,
    ops::Range,
    path::{Path, PathBuf},
};

use clap::{
    Args,
    builder::{PossibleValue, PossibleValuesParser, TypedValueParser},
};
use lockstorm_world::TraceRetention;
use miette::{IntoDiagnostic, Result, WrapErr, bail, miette};

use super::{interrupts, out::errln};
use lockstorm::{
    file::{
        library,
        scenario::{Setting, Source, Variant, load, nearest, parse},
        server::{Server, Servers},
    },
    judge::{
        checker::{self, Checker},
        verdict::Match,
    },
    run::Engine,
    run::runner::{Case, Judged, Runner, Token, judge, parse_seeds},
};

/// The scenarios of a command, and overrides of their keys.
#[derive(Debug, Clone, Args)]
pub(super) struct Files {
    /// Scenario files or folders, on disk or among the stock scenarios (`lockstorm list
    /// scenarios`); FILE#VARIANT selects one variant
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Override a scenario key, such as network.latency=5ms; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<Setting>,
}

impl Files {
    /// Loads the scenarios, and applies the overrides.
    pub(super) fn sources(&self) -> Result<Vec<Source>> {
        let mut sources = sources(&self.paths)?;
        with_settings(&mut sources, &self.set)?;
        Ok(sources)
    }
}

/// The seeds of a command.
#[derive(Debug, Clone, Args)]
pub(super) struct Seeds {
    /// Run a single seed
    #[arg(long, value_name = "N", conflicts_with = "seeds", env = "LOCKSTORM_SEED")]
    seed: Option<u64>,
    /// Range of seeds, excluding B [default: 0..run.seeds, as set in the file]
    #[arg(long, value_name = "A..B", value_parser = parse_seeds, env = "LOCKSTORM_SEEDS")]
    seeds: Option<Range<u64>>,
}

impl Seeds {
    /// Returns the requested seeds, or `None` for the default.
    pub(super) fn given(&self) -> Option<Range<u64>> {
        self.seed.map(|seed| seed..seed.saturating_add(1)).or_else(|| self.seeds.clone())
    }
}

/// The real servers of a command.
#[derive(Debug, Clone, Args)]
pub(super) struct RealServers {
    /// Server program for the nodes: Redis from 6.2 or Valkey, or a folder of such programs; with
    /// several, everything runs on each [default: redis-server on the PATH]
    #[arg(long = "server", value_name = "PATH")]
    servers: Vec<PathBuf>,
}

impl RealServers {
    /// Asks every server, and returns one set for each: with that server as the default, and the
    /// others for the nodes that ask for them.
    pub(super) fn find(&self) -> Result<Vec<Servers>> {
        // A signal that comes while a server is asked must end the server, too.
        interrupts::end_real_runs();
        if self.servers.is_empty() {
            let found = Server::on_path();
            let hint = "--server PATH names one, and `trials/setup servers` installs those of today";
            let found = found.map_err(|why| miette!("runs in real time need a server: {why}; {hint}"))?;
            return Ok(vec![Servers::new(found, Vec::new())]);
        }
        let mut all: Vec<Server> = Vec::new();
        for path in &self.servers {
            let found = Server::all_at(path).map_err(|why| miette!("--server {why}"))?;
            for server in found {
                let place = |server: &Server| std::fs::canonicalize(&server.program).ok();
                if !all.iter().any(|other| place(other) == place(&server)) {
                    all.push(server);
                }
            }
        }
        Ok(all.iter().map(|server| Servers::new(server.clone(), all.clone())).collect())
    }
}

/// The number of runs at a time.
#[derive(Debug, Clone, Args)]
pub(super) struct Jobs {
    /// Number of runs at a time [default: number of processors]
    #[arg(long, value_name = "N", env = "LOCKSTORM_JOBS")]
    jobs: Option<usize>,
}

impl Jobs {
    /// Returns the requested number, or `None` for the default.
    pub(super) fn given(&self) -> Option<usize> {
        self.jobs
    }

    /// Returns the requested number, or else the number of processors.
    pub(super) fn count(&self) -> usize {
        self.jobs.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from)).max(1)
    }
}

/// True if there is only one engine of virtual time. Then help texts hide `--engine`.
pub(super) const ONE_ENGINE: bool = cfg!(not(feature = "turmoil"));

/// Parses the name of an engine of virtual time. Real time has an option of its own, `--real`.
pub(super) fn virtual_engines() -> impl TypedValueParser<Value = Engine> {
    let about = [
        (Engine::Event, "Jump from event to event"),
        #[cfg(feature = "turmoil")]
        (
            Engine::Turmoil,
            "Run every host once per millisecond, with the `turmoil` crate: slower, a check of the other engine",
        ),
    ];
    let names = about.map(|(engine, about)| PossibleValue::new(engine.name()).help(about));
    PossibleValuesParser::new(names).map(|name| Engine::named(&name).expect("a possible value is an engine"))
}

/// Loads the scenarios of files and folders, or one variant of a file (`FILE#VARIANT`). A path that
/// is not on disk names stock scenarios.
pub(super) fn sources(paths: &[PathBuf]) -> Result<Vec<Source>> {
    let mut gathered = Gathered::default();
    for path in paths {
        if let Some(token) =
            path.to_str().filter(|_| !path.exists()).and_then(|path| path.parse::<Token>().ok())
        {
            bail!(
                "{} names one run: use `lockstorm replay {}`, or leave out the seed and give --seed {}",
                path.display(),
                path.display(),
                token.seed
            );
        }
        let named = path.to_str().filter(|_| !path.exists()).and_then(|path| path.rsplit_once('#'));
        if let Some((file, variant)) = named {
            gathered.add(of_variant(one_source(Path::new(file))?, variant)?);
            continue;
        }
        if path.is_dir() {
            let mut files = Vec::new();
            collect(path, &mut files)?;
            if files.is_empty() {
                bail!("{} has no scenario in it: expected files that end in .toml", path.display());
            }
            files.sort();
            for file in files {
                gathered.add(load(&file).map_err(|error| *error)?);
            }
            continue;
        }
        let mut stock = library::below(path).filter(|_| !path.exists()).peekable();
        if stock.peek().is_none() {
            gathered.add(library::load(path).map_err(|error| *error)?);
        }
        for stock in stock {
            gathered.add(parse(stock.path, stock.text).map_err(|error| *error)?);
        }
    }
    Ok(gathered.sources)
}

/// The loaded files. A file is loaded once, even if the command line names it and its folder.
#[derive(Default)]
struct Gathered {
    sources: Vec<Source>,
    /// The index of each file by its canonical path, or by its name for a stock scenario.
    places: BTreeMap<PathBuf, usize>,
}

impl Gathered {
    /// Adds a file, or those of its variants that an earlier argument did not name.
    fn add(&mut self, mut source: Source) {
        let place = std::fs::canonicalize(&source.file).unwrap_or_else(|_| PathBuf::from(&source.file));
        let at = *self.places.entry(place).or_insert(self.sources.len());
        let Some(there) = self.sources.get_mut(at) else {
            self.sources.push(source);
            return;
        };
        source.variants.retain(|variant| !there.variants.iter().any(|known| known.name == variant.name));
        there.variants.append(&mut source.variants);
    }
}

/// Returns a file with only one of its variants, at the points of its sweep that the name selects,
/// or at all of them.
fn of_variant(mut source: Source, name: &str) -> Result<Source> {
    let mut variants: Vec<Variant> =
        source.meant(name).into_iter().map(|at| source.variants[at].clone()).collect();
    if variants.is_empty() {
        let named = source.named(name).map_err(|error| *error)?;
        let (source, at) = named.ok_or_else(|| source.no_variant(name))?;
        variants.push(source.variants[at].clone());
    }
    source.variants = variants;
    Ok(source)
}

/// Overrides keys of the files. Each file keeps only the variants that were selected.
fn with_settings(sources: &mut [Source], settings: &[Setting]) -> Result<()> {
    for source in sources.iter_mut().filter(|_| !settings.is_empty()) {
        let mut all = source.with(settings).map_err(|error| *error)?;
        all.variants.retain(|new| source.variants.iter().any(|old| old.of == new.of));
        *source = all;
    }
    Ok(())
}

/// Collects the scenario files in a folder and its subfolders.
fn collect(folder: &std::path::Path, files: &mut Vec<PathBuf>) -> Result<()> {
    let entries = std::fs::read_dir(folder).into_diagnostic();
    for entry in entries.wrap_err_with(|| format!("{} cannot be read", folder.display()))? {
        let path = entry.into_diagnostic()?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "toml") {
            files.push(path);
        }
    }
    Ok(())
}

/// The case that a token names, with its file.
pub(super) struct OneCase {
    sources: Vec<Source>,
    pub(super) case: Case,
    pub(super) engine: Engine,
}

/// Finds the case that a token names. Warns if its file has changed since the token was printed.
pub(super) fn one_case(token: &str) -> Result<OneCase> {
    let token: Token = token.parse().map_err(|error| miette!("{error}"))?;
    let source = one_source(&PathBuf::from(&token.file))?;
    if token.digest.as_ref().is_some_and(|digest| *digest != source.digest) {
        errln!("{} has changed since this case was printed: it may be another experiment", token.file);
    }
    let named = source.named(&token.variant).map_err(|error| *error)?;
    let (source, variant) = named.ok_or_else(|| source.no_variant(&token.variant))?;
    let case = Case { source: 0, variant, seed: token.seed };
    Ok(OneCase { sources: vec![source], case, engine: token.engine })
}

/// Loads the one scenario that a path names.
pub(super) fn one_source(path: &Path) -> Result<Source> {
    let mut sources = sources(&[path.to_owned()])?;
    match (sources.pop(), sources.len()) {
        (Some(source), 0) => Ok(source),
        _ => bail!("{} is a folder; expected one file", path.display()),
    }
}

impl OneCase {
    /// Returns a runner of this case only.
    pub(super) fn trial(&self) -> Runner<'_> {
        Runner::new(&self.sources)
            .seeds(Some(self.case.seed..self.case.seed.saturating_add(1)))
            .engine(self.engine)
    }

    pub(super) fn source(&self) -> &Source {
        &self.sources[self.case.source]
    }

    pub(super) fn variant(&self) -> &Variant {
        &self.source().variants[self.case.variant]
    }

    pub(super) fn judged(&self) -> Judged {
        judge(self.variant(), self.case, &self.trial().outcome(self.case, TraceRetention::Nothing))
    }
}

/// Refuses a file that exists, unless `--force` is given. Commands call it before their work, which
/// may take long.
pub(super) fn refuse_existing(path: Option<&Path>, force: bool) -> Result<()> {
    match path.filter(|path| path.exists() && !force) {
        Some(path) => bail!("{} already exists: choose another name, or give --force", path.display()),
        None => Ok(()),
    }
}

/// Writes a file. The error names it.
pub(super) fn write_file(path: &Path, text: impl AsRef<[u8]>) -> Result<()> {
    let written = std::fs::write(path, text).into_diagnostic();
    written.wrap_err_with(|| format!("{} cannot be written", path.display()))
}

/// Finds a checker by its name. For an unknown name the error suggests the nearest one.
pub(super) fn checker_named(name: &str) -> Result<&'static Checker> {
    let known = || checker::LIST.iter().map(|checker| checker.name);
    let near = nearest(name, known()).map_or(String::new(), |near| format!("; did you mean {near}?"));
    Checker::named(name)
        .ok_or_else(|| miette!("there is no checker {name}{near} (`lockstorm list checkers`)"))
}

/// Returns the checker of this name, or else the one that [`violation`] chooses.
pub(super) fn violated_checker(
    name: Option<&str>,
    judged: &Judged,
    variant: &Variant,
) -> Result<Option<&'static Checker>> {
    name.map_or_else(|| Ok(violation(judged, variant)), |name| checker_named(name).map(Some))
}

/// Returns the violated checker that matters most, or `None` if nothing is violated: the first one
/// whose violation is unexpected, or else the first one in `[expect]`, or else the first one.
pub(super) fn violation(judged: &Judged, variant: &Variant) -> Option<&'static Checker> {
    let violated = || judged.findings.iter().filter(|one| one.verdict.witness().is_some());
    let expected = |one: &str| variant.scenario.expect.get(one);
    let surprising = violated().find(|one| {
        expected(one.checker).is_some_and(|expected| matches!(expected.matches(one), Match::Otherwise(_)))
    });
    let wanted = violated().find(|one| expected(one.checker).is_some());
    let chosen = surprising.or(wanted).or_else(|| violated().next());
    chosen.and_then(|one| Checker::named(one.checker))
}
