//! `lockstorm audit`: says what the locks of a server in production do.

mod live;
mod scenario;

use std::{
    fs::{self, File},
    io::{BufReader, BufWriter, stdin},
    path::PathBuf,
};

use clap::Args;
use lockstorm::{
    audit::{Audit as Auditor, Server, Settings, capture::Capture},
    run::real,
    units::Span,
};
use miette::{IntoDiagnostic, Result, WrapErr, miette};

use super::{
    Exit, interrupts,
    out::{errln, out, outln},
};

/// The size of reads from a capture.
const READ: usize = 1 << 18;

/// Say what the locks of a server in production do, and who took a lock away, from the commands
/// that MONITOR shows
///
/// Reads captures of `redis-cli monitor`, or connects to a server and sends it MONITOR and nothing
/// that changes data. Values and tokens are hashed in all output unless --reveal is given.
///
/// Exit status: 0 without findings, 1 with findings, 2 without locks, 64 wrong usage or a file that
/// cannot be read.
#[derive(Debug, Args)]
pub(super) struct Audit {
    /// Capture files of one node each, `-` for standard input, or one server:
    /// redis://user:password@host:port
    #[arg(value_name = "FILE|URL", required_unless_present = "node")]
    sources: Vec<String>,
    /// Capture of a node with a name; may be repeated. Nodes are read together, by time
    #[arg(long, value_name = "NAME=FILE")]
    node: Vec<String>,
    /// End the audit of a server after this time [default: at Ctrl-C]
    #[arg(long = "for", value_name = "TIME")]
    length: Option<Span>,
    /// Audit only locks whose keys fit this pattern, with * and ?; may be repeated
    #[arg(long, value_name = "PATTERN")]
    lock: Vec<String>,
    /// Note renewals that come after this share of the lease
    #[arg(long, value_name = "PERCENT", default_value_t = 80)]
    late: u8,
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
    #[command(flatten)]
    scenario: scenario::Options,
}

/// A source of commands.
enum Source {
    File(String, PathBuf),
    Stdin(String),
    Live(Server),
}

impl Audit {
    pub(super) fn run(self) -> Result<Exit> {
        self.scenario.check()?;
        let mut audit = Auditor::new(Settings {
            locks: self.lock.clone(),
            reveal: self.reveal,
            late_percent: self.late.into(),
            history: self.history.is_some(),
        });
        let sources = self.sources()?;
        interrupts::end_real_runs();
        match sources.as_slice() {
            [Source::Live(server)] => live::watch(&mut audit, server, self.length.map(|span| span.0))?,
            sources => {
                let captures = sources.iter().map(capture).collect::<Result<_>>()?;
                let read = audit.read(captures, || !real::interrupted());
                read.into_diagnostic().wrap_err("a capture cannot be read")?;
            }
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
        if summary.problems.count > 0 {
            errln!("{} lines could not be read; the rest was", summary.problems.count);
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

    /// Returns the sources that the command line names.
    fn sources(&self) -> Result<Vec<Source>> {
        let of_text = |name: &str, text: &str| match text {
            "-" => Source::Stdin(name.to_owned()),
            path => Source::File(name.to_owned(), path.into()),
        };
        let mut sources = Vec::new();
        for text in &self.sources {
            if text.contains("://") {
                let server =
                    Server::of_url(text).map_err(|why| miette!("the address of the server {why}"))?;
                sources.push(Source::Live(server));
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
        if count(|source| matches!(source, Source::Live(_))) > 0 && sources.len() > 1 {
            return Err(miette!("one server at a time, and no captures beside it"));
        }
        if count(|source| matches!(source, Source::Stdin(_))) > 1 {
            return Err(miette!("standard input is one capture"));
        }
        if self.length.is_some() && count(|source| matches!(source, Source::Live(_))) == 0 {
            return Err(miette!("--for is for a server; a capture ends by itself"));
        }
        Ok(sources)
    }
}

/// Opens a capture.
fn capture(source: &Source) -> Result<Capture<'static>> {
    match source {
        Source::File(name, path) => {
            let shown = path.display();
            let file =
                File::open(path).into_diagnostic().wrap_err_with(|| format!("{shown} cannot be read"))?;
            Ok(Capture::new(name, BufReader::with_capacity(READ, file)))
        }
        Source::Stdin(name) => Ok(Capture::new(name, BufReader::with_capacity(READ, stdin()))),
        Source::Live(server) => Err(miette!("{} is a server", server.name())),
    }
}
