//! `lockstorm scoreboard`: puts many lock libraries on trial for the same claims, in one table.

use std::{
    fs,
    ops::{ControlFlow, Range},
    path::{Path, PathBuf},
    process::Command,
};

use clap::Args;
use indexmap::IndexMap;
use lockstorm_world::TraceRetention;
use miette::{IntoDiagnostic, Result, WrapErr, bail, miette};
use serde::Deserialize;

use super::{
    Exit,
    options::{Jobs, RealServers, Seeds, sources},
    out::{errln, outln},
    trial::AT_ONCE,
};
use lockstorm::{
    file::{
        peer::Peer,
        scenario::{Source, nearest},
        server::Servers,
    },
    judge::{
        history::Ended,
        verdict::{self, Expectation, Finding, Match},
    },
    report::{BoardClaim, CameOut, Cell, Runs, Scoreboard as Board, Tried},
    run::real,
    run::{
        runner::{Case, Judged, Runner, judge},
        worklist::work_through,
    },
};

/// The most attempts at a run whose result a late machine may have caused.
const PLAYS: usize = 3;

/// Put many lock libraries on trial for the same claims, and write a table of the results
///
/// LIST is a TOML file with a table `[peer.NAME]` for each library. Its `command` starts a peer, as
/// for `lockstorm trial`. An optional `setup` is a shell command that runs before the first trial;
/// it should do nothing if the library is already set up. An optional `note` is printed with the
/// results. An optional `control` marks a lock that is broken on purpose, and lists the claims that
/// must come out violated. A cell of several seeds has the worst outcome of them, and their number.
#[derive(Debug, Args)]
#[command(
    mut_arg("seeds", |seeds| seeds.help("Range of seeds of each cell, excluding B [default: 0..1]")),
    mut_arg("jobs", |jobs| jobs.help(format!("Number of runs at a time [default: {AT_ONCE}]")))
)]
pub(super) struct Scoreboard {
    /// TOML file with the libraries
    list: PathBuf,
    /// Scenario files or folders, on disk or among the stock scenarios; each file needs a [claim]
    #[arg(default_value = "trial", value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Try only these libraries, by their names in LIST
    #[arg(long, value_name = "NAME,..", value_delimiter = ',')]
    only: Vec<String>,
    #[command(flatten)]
    seeds: Seeds,
    #[command(flatten)]
    jobs: Jobs,
    #[command(flatten)]
    servers: RealServers,
    /// Write SCOREBOARD.md, scoreboard.json and scoreboard.html into this folder, instead of
    /// printing the Markdown
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Keep the rows of the scoreboard.json in DIR for the libraries that are not tried now
    #[arg(long, requires = "out")]
    keep: bool,
}

/// The list of libraries.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    peer: IndexMap<String, Listed>,
}

/// A library in the list.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Listed {
    command: String,
    setup: Option<String>,
    #[serde(default)]
    control: Vec<String>,
    note: Option<String>,
}

impl Scoreboard {
    pub(super) fn run(self) -> Result<Exit> {
        let servers = self.servers.find()?;
        let mut sources = sources(&self.paths)?;
        if let Some(source) = sources.iter().find(|source| source.claim().is_none()) {
            bail!("{} has no [claim]: each column of the scoreboard is a claim", source.file);
        }
        sources.sort_by_key(|source| source.claim().map(|claim| super::claims::order(&claim.id)));
        let list = self.list()?;
        for listed in list.values() {
            set_up(listed)?;
        }
        // Start each peer once before any trial, so that a broken one fails now and not after
        // hours.
        let peers = list.iter().map(|(name, listed)| {
            let peer = Peer::of(&listed.command).map_err(|why| miette!("{name}: {why}"))?;
            Ok((name, listed, peer))
        });
        let peers: Vec<(&String, &Listed, Peer)> = peers.collect::<Result<_>>()?;
        let seeds = self.seeds.given().unwrap_or(0..1);
        let mut board = Board {
            command: self.command(&seeds),
            date: today(),
            server: servers[0].default().to_string(),
            others: servers[1..].iter().map(|servers| servers.default().to_string()).collect(),
            seeds: seeds.clone(),
            claims: sources.iter().filter_map(column).collect(),
            libraries: Vec::new(),
            controls: Vec::new(),
        };
        // Read the earlier scoreboard before any trial, because it may not fit this one.
        let kept = if self.keep { self.kept(&board)? } else { None };
        let mut exit = Exit::Expected;
        for (name, listed, peer) in &peers {
            let jobs = self.jobs.given().unwrap_or(AT_ONCE);
            let cells = try_all(&sources, peer, &servers, &seeds, jobs)?;
            let tried = Tried {
                name: (*name).clone(),
                library: peer.hello.name(),
                driver: peer.hello.driver.clone(),
                date: today(),
                command: peer.command.clone(),
                note: listed.note.clone(),
                cells,
            };
            exit = exit.max(told(name, &board.claims, &tried, &listed.control));
            let is_control = !listed.control.is_empty();
            if is_control { board.controls.push(tried) } else { board.libraries.push(tried) }
        }
        if let Some(kept) = kept {
            let all = self.all()?;
            board.libraries = joined(kept.libraries, board.libraries, &all);
            board.controls = joined(kept.controls, board.controls, &all);
        }
        match &self.out {
            None => outln!("{}", board.markdown().trim_end()),
            Some(folder) => {
                let json = serde_json::to_string_pretty(&board).into_diagnostic()?;
                write(folder, "SCOREBOARD.md", &board.markdown())?;
                write(folder, "scoreboard.json", &json)?;
                write(folder, "scoreboard.html", &board.html())?;
            }
        }
        Ok(exit)
    }

    /// Returns the scoreboard in the folder, or `None` if there is none. It must have the columns,
    /// the servers and the seeds of the new one.
    fn kept(&self, board: &Board) -> Result<Option<Board>> {
        let Some(path) = self.out.as_ref().map(|folder| folder.join("scoreboard.json")) else {
            return Ok(None);
        };
        if !path.exists() {
            return Ok(None);
        }
        let text = fs::read_to_string(&path).into_diagnostic();
        let text = text.wrap_err_with(|| format!("{} cannot be read", path.display()))?;
        let kept: Board = serde_json::from_str(&text)
            .into_diagnostic()
            .wrap_err_with(|| format!("{} is no scoreboard", path.display()))?;
        let of = |board: &Board| {
            let servers = [std::slice::from_ref(&board.server), &board.others].concat();
            (board.claims.clone(), servers, board.seeds.clone())
        };
        if of(&kept) != of(board) {
            bail!("{} is of other claims, servers or seeds: --keep cannot join them", path.display());
        }
        Ok(Some(kept))
    }

    /// Returns the requested libraries.
    fn list(&self) -> Result<IndexMap<String, Listed>> {
        let mut peer = self.all()?;
        if let Some(unknown) = self.only.iter().find(|name| !peer.contains_key(*name)) {
            let near = nearest(unknown, peer.keys().map(String::as_str));
            let near = near.map_or(String::new(), |near| format!("; did you mean {near}?"));
            bail!("{} has no library {unknown}{near}", self.list.display());
        }
        peer.retain(|name, _| self.only.is_empty() || self.only.contains(name));
        Ok(peer)
    }

    /// Returns all libraries of the list.
    fn all(&self) -> Result<IndexMap<String, Listed>> {
        let text = fs::read_to_string(&self.list).into_diagnostic();
        let text = text.wrap_err_with(|| format!("{} cannot be read", self.list.display()))?;
        let List { peer } =
            toml::from_str(&text).into_diagnostic().wrap_err_with(|| self.list.display().to_string())?;
        Ok(peer)
    }

    /// Returns a short command line for the heading, without options that do not affect the table.
    fn command(&self, seeds: &Range<u64>) -> String {
        let paths = self.paths.iter().map(|path| path.display().to_string()).filter(|path| path != "trial");
        let mut words = vec!["lockstorm scoreboard".to_owned(), self.list.display().to_string()];
        words.extend(paths);
        // The rows that are kept came from other libraries.
        if !self.only.is_empty() && !self.keep {
            words.push(format!("--only {}", self.only.join(",")));
        }
        if *seeds != (0..1) {
            words.push(format!("--seeds {}..{}", seeds.start, seeds.end));
        }
        words.join(" ")
    }
}

/// Joins rows of an earlier scoreboard with new ones, which replace those of the same name, in the
/// order of the list. Rows of libraries that the list no longer has are dropped.
fn joined(mut rows: Vec<Tried>, new: Vec<Tried>, list: &IndexMap<String, Listed>) -> Vec<Tried> {
    rows.retain(|row| list.contains_key(&row.name) && new.iter().all(|tried| tried.name != row.name));
    rows.extend(new);
    rows.sort_by_key(|row| list.get_index_of(&row.name));
    rows
}

/// Runs the setup of a library.
fn set_up(listed: &Listed) -> Result<()> {
    let Some(setup) = &listed.setup else { return Ok(()) };
    let done = Command::new("sh").arg("-c").arg(setup).status().into_diagnostic()?;
    if done.success() { Ok(()) } else { Err(miette!("`{setup}` failed: {done}")) }
}

fn write(folder: &Path, name: &str, text: &str) -> Result<()> {
    let path = folder.join(name);
    fs::create_dir_all(folder)
        .and_then(|()| fs::write(&path, text))
        .into_diagnostic()
        .wrap_err_with(|| format!("{} cannot be written", path.display()))
}

fn column(source: &Source) -> Option<BoardClaim> {
    let claim = source.claim()?;
    Some(BoardClaim { id: claim.id.clone(), says: claim.says.clone(), file: source.file.clone() })
}

/// Tries one library for every claim on every server. The results on the first server have those of
/// the others.
fn try_all(
    sources: &[Source],
    peer: &Peer,
    servers: &[Servers],
    seeds: &Range<u64>,
    jobs: usize,
) -> Result<Vec<Cell>> {
    let (first, others) = servers.split_first().expect("there is a server");
    let mut cells = try_on(sources, peer, first, seeds, jobs)?;
    for servers in others {
        for (cell, other) in cells.iter_mut().zip(try_on(sources, peer, servers, seeds, jobs)?) {
            cell.elsewhere.push((servers.default().to_string(), other));
        }
    }
    Ok(cells)
}

/// Tries one library for every claim on one server.
fn try_on(
    sources: &[Source],
    peer: &Peer,
    servers: &Servers,
    seeds: &Range<u64>,
    jobs: usize,
) -> Result<Vec<Cell>> {
    let trial = Runner::new(sources).seeds(seeds.clone()).peer(peer).servers(servers);
    // Take only the first condition of each file.
    let cases: Vec<Case> = trial.cases().into_iter().filter(|case| case.variant == 0).collect();
    let cells = work_through(&cases, jobs, |&case| {
        let cell = cell(&trial, case);
        if real::interrupted() { ControlFlow::Break(cell) } else { ControlFlow::Continue(cell) }
    });
    if real::interrupted() {
        bail!("interrupted: all servers are stopped");
    }
    let mut of_sources = vec![Vec::new(); sources.len()];
    for (case, cell) in cases.iter().zip(cells) {
        of_sources[case.source].push(cell);
    }
    Ok(of_sources.into_iter().filter_map(Cell::joined).collect())
}

/// Executes one run, and repeats it while a late machine may have caused its result.
fn cell(trial: &Runner<'_>, case: Case) -> Cell {
    let problems = real::impossible(&trial.plan(case));
    if !problems.is_empty() {
        return Cell { evidence: problems, ..of_one(CameOut::DoesNotApply, true) };
    }
    let mut plays = 0;
    loop {
        plays += 1;
        let outcome = trial.outcome(case, TraceRetention::Nothing);
        let judged = judge(trial.variant(case), case, &outcome);
        let is_given_up = outcome.history.header.ended != Ended::Complete;
        let mut cell = stands(trial, &judged, is_given_up);
        if let Ended::Early(why) = &outcome.history.header.ended {
            cell.evidence = vec![format!("the run was given up: {why}")];
        }
        cell.plays = plays;
        let is_shown = judged.findings.iter().any(|found| found.verdict.witness().is_some());
        let may_be_late = cell.came_out == CameOut::Undecided || (!cell.expected && !is_shown);
        if !may_be_late || plays == PLAYS || real::interrupted() {
            return cell;
        }
    }
}

/// Compares a run with its claim, by the checkers in `[expect]`.
fn stands(trial: &Runner<'_>, judged: &Judged, is_given_up: bool) -> Cell {
    let (mut came_out, mut expected, mut evidence) = (CameOut::Holds, true, Vec::new());
    let mut undecided = Vec::new();
    for (checker, expects) in &trial.variant(judged.case).scenario.expect {
        let Some(finding) = judged.finding(checker) else { continue };
        let matched = expects.matches(finding);
        let violated = finding.verdict.witness().is_some();
        let sentence = || format!("{checker}: {}", finding.verdict.sentence());
        match matched {
            Match::AsExpected if !violated => {}
            Match::AsExpected => {
                came_out = CameOut::Violated;
                evidence.push(sentence());
            }
            // A time that exceeds its bound at the end of the run would only grow.
            Match::Undecided(because) => {
                if let Some(excess) = excess(expects, finding).filter(|_| !is_given_up) {
                    (came_out, expected) = (CameOut::Violated, false);
                    evidence.push(format!("{checker}: {excess}"));
                    continue;
                }
                if came_out == CameOut::Holds {
                    (came_out, expected) = (CameOut::Undecided, false);
                }
                undecided.push(format!("{checker}: {because}"));
            }
            Match::Otherwise(because) => {
                // The sentence of the finding does not mention a bound that is exceeded.
                let is_bound = expects.holds && !violated;
                if violated || is_bound {
                    came_out = CameOut::Violated;
                }
                expected = false;
                evidence.push(if is_bound { format!("{checker}: {because}") } else { sentence() });
            }
        }
    }
    // Print undecided checkers only if no checker decides.
    if came_out == CameOut::Undecided {
        evidence.append(&mut undecided);
    }
    let (failed_calls, again) = (judged.failed.clone(), trial.again(judged.case));
    Cell { evidence, failed_calls, again, ..of_one(came_out, expected) }
}

/// Returns the cell of one seed, without its evidence.
fn of_one(came_out: CameOut, expected: bool) -> Cell {
    let runs = Runs::one(came_out);
    Cell {
        came_out,
        expected,
        runs,
        violated: runs.interval(),
        evidence: Vec::new(),
        failed_calls: Vec::new(),
        again: String::new(),
        plays: 0,
        elsewhere: Vec::new(),
    }
}

/// Describes a measure that exceeds its bound by more than the tolerance for a late machine.
fn excess(expects: &Expectation, finding: &Finding) -> Option<String> {
    expects.measures.iter().find_map(|(name, range)| {
        let most = verdict::Range { least: None, ..range.widened(finding.tolerance) };
        let found = finding.measure(name).filter(|found| !most.contains(*found))?;
        Some(format!("expected {name} {range}, found {found} when the run ended"))
    })
}

/// Reports the result of a library. A control fails the command if it does not violate its claims.
fn told(name: &str, claims: &[BoardClaim], tried: &Tried, control: &[String]) -> Exit {
    let ids = |is: &dyn Fn(&Cell) -> bool| {
        let found = claims.iter().zip(&tried.cells).filter(|(_, cell)| is(cell));
        found.map(|(claim, _)| claim.id.clone()).collect::<Vec<_>>()
    };
    let on_any = |cell: &Cell, came_out| cell.on_each_server().any(|cell| cell.came_out == came_out);
    let violated = ids(&|cell| on_any(cell, CameOut::Violated));
    let undecided = ids(&|cell| on_any(cell, CameOut::Undecided));
    let applies = ids(&|cell| cell.came_out != CameOut::DoesNotApply).len();
    let words = |ids: &[String]| if ids.is_empty() { "none".to_owned() } else { ids.join(" ") };
    errln!(
        "{name}: {}, {applies} claims; violated: {}; undecided: {}",
        tried.library,
        words(&violated),
        words(&undecided)
    );
    // A control must be found on every server.
    let everywhere = ids(&|cell| cell.on_each_server().all(|cell| cell.came_out == CameOut::Violated));
    let missed: Vec<_> = control.iter().filter(|id| !everywhere.contains(id)).cloned().collect();
    if missed.is_empty() {
        return Exit::Expected;
    }
    errln!("{name} is a control, but does not violate {}", missed.join(" "));
    Exit::Unexpected
}

/// Returns the day by the wall clock.
fn today() -> String {
    day_of(real::wall().as_millis())
}

/// Formats the UTC day of a time in milliseconds since 1970, as 2026-11-25.
fn day_of(millis: i64) -> String {
    // Count years from March, so that a leap day is the last day of its year. Eras of 400 years
    // have equal lengths.
    let days = millis.div_euclid(86_400_000) + 719_468;
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    format!("{}-{month:02}-{day:02}", era * 400 + year + next)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use lockstorm::judge::verdict::{Measure, Verdict};

    #[test]
    fn days_of_the_calendar() {
        for (days, date) in [
            (0, "1970-01-01"),
            (-1, "1969-12-31"),
            (59, "1970-03-01"),
            (11_016, "2000-02-29"),
            (11_017, "2000-03-01"),
            (20_782, "2026-11-25"),
            (47_540, "2100-02-28"),
            (47_541, "2100-03-01"),
        ] {
            assert_eq!(day_of(days * 86_400_000 + 1), date);
        }
    }

    /// Regression: a lock that was never free again was undecided, because the bound of the checker
    /// is a minute and the run is shorter.
    #[test]
    fn what_has_lasted_too_long_when_the_run_ends_exceeds_its_bound() {
        let expects: Expectation =
            serde_json::from_str(r#"{ "holds": { "stalled": "..2.5s" } }"#).expect("it is an expectation");
        let too_long = "expected stalled ..2.5s, found 2.7s when the run ended";
        for (stalled_ms, exceeded) in [(2_000, None), (2_599, None), (2_700, Some(too_long))] {
            let measures = vec![Measure::time("stalled", Duration::from_millis(stalled_ms))];
            let (checker, question, verdict) = ("progress", "?", Verdict::undecided("it ended"));
            let tolerance = Duration::from_millis(100);
            let finding = Finding { checker, question, verdict, measures, tolerance };
            assert_eq!(excess(&expects, &finding).as_deref(), exceeded, "{stalled_ms} ms");
        }
    }

    fn row(name: &str, date: &str, came_out: CameOut) -> Tried {
        Tried {
            name: name.into(),
            library: name.into(),
            driver: String::new(),
            date: date.into(),
            command: name.into(),
            note: None,
            cells: vec![of_one(came_out, false)],
        }
    }

    #[test]
    fn kept_rows_are_joined_in_the_order_of_the_list() {
        let list: List = toml::from_str(
            "[peer.a]\ncommand = \"a\"\n[peer.b]\ncommand = \"b\"\n[peer.c]\ncommand = \"c\"\n",
        )
        .expect("it is a list");
        let rows = |rows: &[(&str, &str)]| -> Vec<Tried> {
            rows.iter().map(|(name, date)| row(name, date, CameOut::Holds)).collect()
        };
        let joined = joined(
            rows(&[("gone", "1"), ("b", "1"), ("c", "1")]),
            rows(&[("a", "2"), ("c", "2")]),
            &list.peer,
        );
        let joined: Vec<(&str, &str)> = joined.iter().map(|row| (&*row.name, &*row.date)).collect();
        assert_eq!(joined, [("a", "2"), ("b", "1"), ("c", "2")]);
    }

    #[test]
    fn a_control_that_was_not_found_fails_the_command() {
        let claims = [BoardClaim { id: "T1".into(), says: String::new(), file: String::new() }];
        for (came_out, control, exit) in [
            (CameOut::Violated, vec!["T1".to_owned()], Exit::Expected),
            (CameOut::Holds, vec!["T1".to_owned()], Exit::Unexpected),
            (CameOut::Undecided, vec!["T1".to_owned()], Exit::Unexpected),
            (CameOut::Violated, Vec::new(), Exit::Expected),
        ] {
            let tried = row("x", "", came_out);
            assert_eq!(told("x", &claims, &tried, &control), exit, "{came_out:?}");
        }
    }
}
