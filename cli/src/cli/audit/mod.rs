//! `lockstorm audit`: says what the locks of a server in production do.

mod line;
mod live;
#[cfg(feature = "metrics")]
mod metrics;
mod rows;
mod scenario;
mod view;

use std::{
    fs::{self, File},
    io::{BufRead, BufReader, BufWriter, stdin},
    path::{Path, PathBuf},
};

use clap::Args;
use lockstorm::{
    audit::{Audit as Auditor, Certificates, Settings, aof::Aof, capture::Capture, patterns::Patterns},
    run::real,
    units::Span,
};
use lockstorm_sim::durability::Manifest;
use miette::{IntoDiagnostic, Result, WrapErr, miette};

use super::{
    Exit, interrupts,
    out::{errln, out, outln},
    table::Target,
};

/// The size of reads from a capture.
const READ: usize = 1 << 18;

/// Say what the locks of a server in production do, and who took a lock away, from the commands
/// that MONITOR shows
///
/// Reads captures of `redis-cli monitor` and append-only files, or connects to servers and sends
/// them MONITOR and nothing that changes data. Sentinels and clusters are asked for their masters,
/// and failovers are followed. Values and tokens are hashed in all output unless --reveal is given.
///
/// Exit status: 0 without findings, 1 with findings, 2 without locks, 64 wrong usage or a file that
/// cannot be read.
#[derive(Debug, Args)]
pub(super) struct Audit {
    /// Capture files of one node each, `-` for standard input; an append-only file or its folder
    /// `appendonlydir`; or servers: redis://user:password@host:port, rediss:// for TLS,
    /// redis+sentinel://host,host/name or redis+cluster://host,host
    #[arg(value_name = "FILE|URL", required_unless_present = "node")]
    sources: Vec<String>,
    /// Capture of a node with a name; may be repeated. The captures of all nodes are merged by time
    #[arg(long, value_name = "NAME=FILE")]
    node: Vec<String>,
    /// End the audit of a server after this time [default: at Ctrl-C]
    #[arg(long = "for", value_name = "TIME")]
    length: Option<Span>,
    /// Audit servers by keyspace events and a few reads, without MONITOR. The server must send the
    /// events: notify-keyspace-events Kg$hxe. Locks that are no hashes of Redisson need --lock or
    /// --patterns
    #[arg(long, conflicts_with_all = ["history", "scenario"])]
    gentle: bool,
    /// Interval at which to read the keys that have changed
    #[arg(long, value_name = "TIME", default_value = "500ms", requires = "gentle")]
    poll: Span,
    /// Audit only locks whose keys fit this pattern, with * and ?; may be repeated
    #[arg(long, value_name = "PATTERN")]
    lock: Vec<String>,
    /// Take the kinds of locks from this file, for keys whose commands do not show them
    #[arg(long, value_name = "FILE.toml")]
    patterns: Option<PathBuf>,
    /// Note renewals that come after this share of the lease
    #[arg(long, value_name = "PERCENT", default_value_t = 80)]
    late: u8,
    /// Trust the certificate authorities in this file instead of those of the system
    #[cfg(feature = "tls")]
    #[arg(long, value_name = "FILE.pem")]
    cacert: Option<PathBuf>,
    /// Show this certificate to servers that ask for one
    #[cfg(feature = "tls")]
    #[arg(long, value_name = "FILE.pem", requires = "key")]
    cert: Option<PathBuf>,
    /// Private key of the certificate
    #[cfg(feature = "tls")]
    #[arg(long, value_name = "FILE.pem", requires = "cert")]
    key: Option<PathBuf>,
    /// Show values and tokens instead of their hashes
    #[arg(long)]
    reveal: bool,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
    /// Write an HTML page about the findings
    #[arg(long, value_name = "FILE.html")]
    report: Option<PathBuf>,
    /// Write the history of the locks, for `lockstorm check`
    #[arg(long, value_name = "FILE.jsonl")]
    history: Option<PathBuf>,
    /// Write a table with a row per finding and the commands that prove it; Parquet needs a build
    /// with the feature `parquet`
    #[arg(long, value_name = "FILE.parquet|FILE.csv")]
    results: Option<Target>,
    #[command(flatten)]
    view: view::Options,
    #[command(flatten)]
    scenario: scenario::Options,
}

/// A source of commands.
enum Source {
    File(String, PathBuf),
    Stdin(String),
    Live(String),
}

impl Audit {
    pub(super) fn run(self) -> Result<Exit> {
        self.scenario.check()?;
        let mut audit = Auditor::new(Settings {
            locks: self.lock.clone(),
            patterns: self.patterns()?,
            reveal: self.reveal,
            late_percent: self.late.into(),
            history: self.history.is_some(),
        });
        let sources = self.sources()?;
        let rows = self.results.as_ref().map(rows::Table::create).transpose()?;
        interrupts::end_real_runs();
        let url = |source: &Source| match source {
            Source::Live(url) => Some(url.clone()),
            _ => None,
        };
        let urls: Vec<String> = sources.iter().filter_map(url).collect();
        if urls.is_empty() {
            self.read(&mut audit, &sources)?;
        } else {
            let poll = self.gentle.then_some(self.poll.0);
            let manner = live::Manner { length: self.length.map(|span| span.0), poll };
            live::watch(&mut audit, &urls, &self.certificates()?, manner, &self.view)?;
        }
        audit.finish();
        let summary = audit.summary();
        if self.json {
            outln!("{}", serde_json::to_string_pretty(&summary).into_diagnostic()?);
        } else {
            out!("{}", summary.text());
        }
        if let Some(path) = &self.report {
            let name = path.display();
            fs::write(path, summary.html())
                .into_diagnostic()
                .wrap_err_with(|| format!("{name} cannot be written"))?;
        }
        if let (Some(path), Some(history)) = (&self.history, audit.history()) {
            let name = path.display();
            let written = File::create(path).and_then(|file| history.write(BufWriter::new(file)));
            written.into_diagnostic().wrap_err_with(|| format!("{name} cannot be written"))?;
        }
        if let Some(rows) = rows {
            rows.write(&summary.findings)?;
        }
        if summary.problems.count > 0 {
            errln!("{} places could not be read; the rest was", summary.problems.count);
        }
        if let Some(exit) = self.scenario.write(&audit)? {
            return Ok(exit);
        }
        Ok(match summary.has_findings() {
            true => Exit::Unexpected,
            false if summary.has_locks() => Exit::Expected,
            false => Exit::Undecided,
        })
    }

    /// Reads the file of patterns.
    fn patterns(&self) -> Result<Patterns> {
        let Some(path) = &self.patterns else { return Ok(Patterns::default()) };
        let shown = path.display();
        let text =
            fs::read_to_string(path).into_diagnostic().wrap_err_with(|| format!("{shown} cannot be read"))?;
        Patterns::parse(&text).map_err(|error| miette!("{shown}: {error}"))
    }

    /// Reads captures together by time, then each append-only file.
    fn read(&self, audit: &mut Auditor, sources: &[Source]) -> Result<()> {
        let (mut captures, mut files) = (Vec::new(), Vec::new());
        for source in sources {
            match open(source)? {
                Opened::Capture(capture) => captures.push(capture),
                Opened::Aof(aof) => files.push(aof),
            }
        }
        if self.history.is_some() && !files.is_empty() {
            return Err(miette!("--history: an append-only file has neither senders nor refused requests"));
        }
        let read = audit.read(captures, || !real::interrupted());
        read.into_diagnostic().wrap_err("a capture cannot be read")?;
        for aof in files {
            let read = audit.read_aof(aof, || !real::interrupted());
            read.into_diagnostic().wrap_err("an append-only file cannot be read")?;
        }
        Ok(())
    }

    #[cfg(feature = "tls")]
    fn certificates(&self) -> Result<Certificates> {
        let read = |path: &PathBuf| {
            let shown = path.display();
            fs::read(path).into_diagnostic().wrap_err_with(|| format!("{shown} cannot be read"))
        };
        let client = match (&self.cert, &self.key) {
            (Some(cert), Some(key)) => Some((read(cert)?, read(key)?)),
            _ => None,
        };
        Ok(Certificates { authorities: self.cacert.as_ref().map(read).transpose()?, client })
    }

    #[cfg(not(feature = "tls"))]
    #[expect(clippy::unused_self, clippy::unnecessary_wraps, reason = "with TLS it reads files")]
    fn certificates(&self) -> Result<Certificates> {
        Ok(Certificates::default())
    }

    /// Returns the sources that the command line names.
    fn sources(&self) -> Result<Vec<Source>> {
        let of_text = |name: &str, text: &str| match text {
            "-" => Source::Stdin(name.to_owned()),
            path => Source::File(name.to_owned(), path.into()),
        };
        let mut sources = Vec::new();
        for text in &self.sources {
            if text.contains("://") {
                sources.push(Source::Live(text.clone()));
            } else {
                sources.push(of_text(if text == "-" { "stdin" } else { text }, text));
            }
        }
        for text in &self.node {
            let (name, file) =
                text.split_once('=').ok_or_else(|| miette!("--node {text} has no `=`: write NAME=FILE"))?;
            sources.push(of_text(name, file));
        }
        let count = |is: fn(&Source) -> bool| sources.iter().filter(|source| is(source)).count();
        let servers = count(|source| matches!(source, Source::Live(_)));
        if servers > 0 && servers < sources.len() {
            return Err(miette!("servers and files are audited apart"));
        }
        if count(|source| matches!(source, Source::Stdin(_))) > 1 {
            return Err(miette!("standard input is one capture"));
        }
        if self.length.is_some() && count(|source| matches!(source, Source::Live(_))) == 0 {
            return Err(miette!("--for is for a server; a capture ends by itself"));
        }
        #[cfg(feature = "metrics")]
        if self.view.serves_metrics() && servers == 0 {
            return Err(miette!("--metrics is for a server; a capture ends by itself"));
        }
        if self.gentle && servers == 0 {
            return Err(miette!("--gentle is for a server: a file has no keyspace events"));
        }
        if self.gentle && self.poll.0 < live::POLL_MIN {
            return Err(miette!("--poll is less than 100ms"));
        }
        Ok(sources)
    }
}

/// A file that is open.
enum Opened {
    Capture(Capture<'static>),
    Aof(Aof<'static>),
}

/// Opens a capture, an append-only file or the folder of one.
fn open(source: &Source) -> Result<Opened> {
    let (name, path) = match source {
        Source::File(name, path) => (name, path),
        Source::Stdin(name) => {
            return Ok(Opened::Capture(Capture::new(name, BufReader::with_capacity(READ, stdin()))));
        }
        Source::Live(_) => return Err(miette!("servers and files are audited apart")),
    };
    if path.is_dir() {
        return folder(name, path).map(Opened::Aof);
    }
    let mut file = reader(path)?;
    let shown = path.display();
    let begin = file.fill_buf().into_diagnostic().wrap_err_with(|| format!("{shown} cannot be read"))?;
    if !Aof::begins_with(begin) {
        return Ok(Opened::Capture(Capture::new(name, file)));
    }
    let own = path.file_name().map_or_else(|| name.clone(), |own| own.to_string_lossy().into_owned());
    Ok(Opened::Aof(Aof::new(name).file(own, file)))
}

fn reader(path: &Path) -> Result<BufReader<File>> {
    let shown = path.display();
    let file = File::open(path).into_diagnostic().wrap_err_with(|| format!("{shown} cannot be read"))?;
    Ok(BufReader::with_capacity(READ, file))
}

/// Opens the files that the manifest of a folder lists.
fn folder(name: &str, path: &Path) -> Result<Aof<'static>> {
    let shown = path.display();
    let unread = || format!("{shown} cannot be read");
    let mut manifests = Vec::new();
    for entry in fs::read_dir(path).into_diagnostic().wrap_err_with(unread)? {
        let path = entry.into_diagnostic().wrap_err_with(unread)?.path();
        if path.extension().is_some_and(|extension| extension == "manifest") {
            manifests.push(path);
        }
    }
    let [manifest] = manifests.as_slice() else {
        let count = manifests.len();
        return Err(miette!(
            "{shown} has {count} files *.manifest: an append-only file of Redis 7.0 has one"
        ));
    };
    let text = fs::read(manifest).into_diagnostic().wrap_err_with(unread)?;
    let listed =
        Manifest::parse(&text).map_err(|(why, line)| miette!("{}:{line}: {why}", manifest.display()))?;
    let mut aof = Aof::new(name);
    for part in listed.read_order() {
        aof = aof.file(&part.name, reader(&path.join(&part.name))?);
    }
    Ok(aof)
}
