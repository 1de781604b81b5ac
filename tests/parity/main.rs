//! Transcripts: the same commands and replies, always on the simulator, and on a real
//! `redis-server` if one is available. Each file `tests/parity/<group>/<command>.redis` is a test
//! per server; `transcript.rs` describes the format. Those below `tests/parity/generations/<name>`
//! are of that generation, such as Valkey 9.1: `trials/setup servers` installs its server.
//!
//! `LOCKSTORM_RECORD=1 cargo test -p lockstorm-sim --test parity <filter>` records the expected
//! replies of the real server again.
//!
//! `LOCKSTORM_COMPARE=redis-8.2,valkey-9.1 cargo test -p lockstorm-sim --test parity` plays every
//! transcript of Redis 7.0 on the real servers of other generations, and expects their replies of
//! the simulator (`compare.rs`).

mod aof;
mod compare;
mod eviction;
mod info;
mod keys;
mod permissions;
mod servers;
mod specs;
mod transcript;
mod wire;

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    path::{Path, PathBuf},
    sync::{PoisonError, RwLock},
    time::Duration,
};

use libtest_mimic::{Failed, Trial};
use lockstorm_lab::support::{
    arguments,
    programs::program_of,
    redis::{Availability, availability},
};
use lockstorm_sim::generation::Generation;

use servers::{Play, REFERENCE, Real, Received, START_MS, Simulated};
use transcript::{Action, Expected, Step, parse};
use wire::Wire;

/// Time after which a reply counts as missing; longer than any wait in a transcript.
const PATIENCE: Duration = Duration::from_secs(30);

/// The number of plays of a transcript on the real server before a difference counts. Its clock is
/// the machine's: a machine that pauses it for a tenth of a second between two commands ends a
/// pause or a TTL too soon. The simulator gets one play.
const PLAYS: usize = 3;

/// Every trial takes a read lock; one that needs the machine for itself takes the write lock.
static MACHINE: RwLock<()> = RwLock::new(());

fn main() {
    let arguments = arguments();
    let record = std::env::var_os("LOCKSTORM_RECORD").is_some_and(|value| value == "1");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/parity");
    let mut files = Vec::new();
    find(&root, &mut files);
    let named = |server: &str, path: &Path| {
        let name = path.strip_prefix(&root).unwrap_or(path).with_extension("");
        format!("{server}::{}", name.display())
    };
    let mut trials = Vec::new();
    if let Ok(names) = std::env::var("LOCKSTORM_COMPARE") {
        libtest_mimic::run(&arguments, compare::trials(&names, &root, &files)).exit();
    }
    if record {
        trials.extend(
            files.into_iter().map(|path| Trial::test(named("record", &path), move || rewrite(&path))),
        );
    } else {
        for path in files {
            let is_there = match generation_of(&path) {
                Some(generation) => program_of(generation.name()).is_some(),
                None => availability() == Availability::Present,
            };
            if is_there {
                let path = path.clone();
                trials.push(Trial::test(named("real", &path), move || oracle(&path)));
            }
            trials.push(beside(named("sim", &path), move || {
                let mut server = simulated(&path)?;
                play(&path, &mut server)
            }));
        }
    }
    let reference = (availability() == Availability::Present).then_some(REFERENCE);
    let others = Generation::ALL.into_iter().filter(|one| *one != REFERENCE);
    for generation in others.chain(reference).filter(|_| !record) {
        trials.push(beside(format!("eviction::{generation}"), move || eviction::compare(generation)));
    }
    match availability() {
        Availability::Present if record => {}
        Availability::Present => {
            trials.push(beside("real::aof", aof::compare));
            trials.push(beside("real::aof_always", aof::give_up));
            trials.push(beside("real::info", info::compare));
            trials.push(beside("real::specs", specs::compare));
            trials.push(beside("real::keys", keys::compare));
            trials.push(beside("real::permissions", permissions::compare));
        }
        Availability::Absent(notice) => eprintln!("parity: {notice}"),
        Availability::Missing(why) => trials.push(Trial::test("real::is_present", move || Err(why.into()))),
    }
    libtest_mimic::run(&arguments, trials).exit();
}

/// A trial that may run beside others.
fn beside(name: impl Into<String>, run: impl FnOnce() -> Result<(), Failed> + Send + 'static) -> Trial {
    Trial::test(name, move || {
        let _machine = MACHINE.read().unwrap_or_else(PoisonError::into_inner);
        run()
    })
}

/// Plays a transcript on the real server.
fn oracle(path: &Path) -> Result<(), Failed> {
    at_last_alone(|| play(path, &mut real(path, generation_of(path).unwrap_or(REFERENCE))?))
}

/// Runs a trial that uses a real server: beside other trials, and if that fails, with the machine
/// for itself.
fn at_last_alone(run: impl Fn() -> Result<(), Failed>) -> Result<(), Failed> {
    let mut ran = {
        let _machine = MACHINE.read().unwrap_or_else(PoisonError::into_inner);
        run()
    };
    for _ in 1..PLAYS {
        let Err(why) = &ran else { break };
        let _machine = MACHINE.write().unwrap_or_else(PoisonError::into_inner);
        eprintln!("played again, alone, for the real server's clock: {}", why.message().unwrap_or_default());
        ran = run();
    }
    ran
}

fn find(directory: &Path, files: &mut Vec<PathBuf>) {
    let entries = std::fs::read_dir(directory).expect("the folder of transcripts can be read");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("and its entries").path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            find(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "redis") {
            files.push(path);
        }
    }
}

fn read(path: &Path) -> Result<Vec<Step>, Failed> {
    steps_of(path, &std::fs::read_to_string(path)?)
}

fn steps_of(path: &Path, text: &str) -> Result<Vec<Step>, Failed> {
    parse(text).map_err(|why| format!("{}: {why}", path.display()).into())
}

/// Returns the generation whose folder the transcript is in; `None` for Redis 7.0.
fn generation_of(path: &Path) -> Option<Generation> {
    Generation::named(path.parent()?.file_name()?.to_str()?)
}

/// Starts the simulator for a transcript.
fn simulated(path: &Path) -> Result<Simulated, Failed> {
    Ok(Simulated::start_as(generation_of(path).unwrap_or(REFERENCE), START_MS, &options(path)?))
}

/// Starts the real server for a transcript.
fn real(path: &Path, generation: Generation) -> Result<Real, Failed> {
    let server = Real::start_as(generation, &options(path)?);
    server.ok_or_else(|| format!("{generation} is not installed: `trials/setup servers`").into())
}

/// The options with which the server of a transcript starts.
fn options(path: &Path) -> Result<Vec<(String, String)>, Failed> {
    let of = |step: Step| match step.action {
        Action::Option(name, value) => Some((name, value)),
        _ => None,
    };
    Ok(read(path)?.into_iter().filter_map(of).collect())
}

/// Plays a transcript; the error lists all differences with their lines.
fn play(path: &Path, server: &mut impl Play) -> Result<(), Failed> {
    let differences = differences_of(path, read(path)?, server)?;
    let told: String = differences.into_iter().map(|one| one.told).collect();
    if told.is_empty() { Ok(()) } else { Err(format!("\n{told}").into()) }
}

/// A step whose replies are not the expected ones.
struct Difference {
    at: Place,
    /// The difference for a person, with its line.
    told: String,
}

/// The place of a difference in a transcript.
#[derive(PartialEq)]
enum Place {
    /// The line of a step.
    Line(usize),
    /// Behind the last step, on this connection.
    End(String),
}

/// Plays steps; the error is that they cannot be played.
fn differences_of(path: &Path, steps: Vec<Step>, server: &mut impl Play) -> Result<Vec<Difference>, Failed> {
    let mut ids = BTreeMap::new();
    let mut differences = Vec::new();
    let mut names = std::collections::BTreeSet::new();
    let mut exchanges = 0;
    'steps: for step in steps {
        let name = match &step.action {
            Action::Nothing | Action::Option(..) => continue,
            Action::Sleep(ms) => {
                server.sleep(Duration::from_millis(*ms));
                continue;
            }
            Action::Close(name) => {
                server.close(name);
                names.remove(name);
                continue;
            }
            Action::Follow(name) => {
                let got = server.follow(name, PATIENCE);
                if !matches!(got, Received::Reply(_)) {
                    return Err(format!("{}:{}: no snapshot", path.display(), step.line).into());
                }
                names.insert(name.clone());
                continue;
            }
            Action::Disk { full } => {
                server.fill_disk(*full);
                continue;
            }
            Action::Send(name, sent) => {
                let bytes = sent.encode(|of| id(server, &mut ids, of));
                server.send(name, &bytes);
                name
            }
            Action::Receive(name) => name,
        };
        names.insert(name.clone());
        exchanges += 1;
        let mut tell = |wanted: &[String], got: &Received| {
            let place = format!("{}:{}: {}", path.display(), step.line, step.text);
            let (wanted, got) = (wanted.join("\n  "), shown(got));
            let told = format!("{place}\n  expected {wanted}\n  got      {got}\n");
            differences.push(Difference { at: Place::Line(step.line), told });
        };
        for (expected, written) in &step.expected {
            let got = server.receive(name, PATIENCE);
            let as_expected = match &got {
                Received::Reply(reply) => expected.accepts(Some(reply)),
                Received::Closed => expected.accepts(None),
                Received::Nothing => false,
            };
            if !as_expected {
                tell(written, &got);
                // Later replies would only be out of step. The simulator's cost no time.
                let is_out_of_step =
                    !matches!(got, Received::Reply(_)) || matches!(expected, Expected::Closed);
                if is_out_of_step && !server.silence().is_zero() {
                    break 'steps;
                }
            }
        }
        if step.expected.is_empty() {
            let got = server.receive(name, server.silence());
            if got != Received::Nothing {
                tell(&["silence".into()], &got);
            }
        }
    }
    if exchanges == 0 {
        return Err(format!("{}: nothing is sent", path.display()).into());
    }
    for name in names {
        let silence = server.silence();
        if let got @ Received::Reply(_) = server.receive(&name, silence) {
            let told = format!("{}: unexpected on '{name}': {}\n", path.display(), shown(&got));
            differences.push(Difference { at: Place::End(name), told });
        }
    }
    Ok(differences)
}

/// The ID of a connection; the first use asks the server for it.
fn id(server: &mut impl Play, ids: &mut BTreeMap<String, i64>, name: &str) -> i64 {
    *ids.entry(name.to_owned()).or_insert_with(|| {
        server.send(name, b"CLIENT ID\r\n");
        match server.receive(name, PATIENCE) {
            Received::Reply(Wire::Integer(id)) => id,
            other => panic!("no number of connection '{name}': {other:?}"),
        }
    })
}

fn shown(received: &Received) -> String {
    match received {
        Received::Reply(reply) => {
            let mut lines = Vec::new();
            reply.lines(0, &mut lines);
            lines.join("\n  ")
        }
        Received::Nothing => "nothing".into(),
        Received::Closed => "closed".into(),
    }
}

/// Plays a transcript on the real server and records its replies. Replies that already match the
/// transcript keep their form, so that patterns remain.
fn rewrite(path: &Path) -> Result<(), Failed> {
    Ok(std::fs::write(
        path,
        record_from(path, read(path)?, generation_of(path).unwrap_or(REFERENCE), PATIENCE)?,
    )?)
}

/// Returns the transcript with the replies of the real server of a generation, which counts as
/// silent after `patience`.
fn record_from(
    path: &Path,
    steps: Vec<Step>,
    generation: Generation,
    patience: Duration,
) -> Result<String, Failed> {
    let mut server = real(path, generation)?;
    let mut ids = BTreeMap::new();
    let mut out = String::new();
    let mut patience = patience;
    let mut steps = steps.into_iter().peekable();
    while let Some(step) = steps.next() {
        let received_next = match steps.peek().map(|next| &next.action) {
            Some(Action::Receive(name)) => Some(name.clone()),
            _ => None,
        };
        let name = match &step.action {
            Action::Nothing | Action::Option(..) => None,
            Action::Sleep(ms) => {
                server.sleep(Duration::from_millis(*ms));
                None
            }
            Action::Close(name) => {
                server.close(name);
                None
            }
            Action::Follow(name) => {
                server.follow(name, patience);
                None
            }
            Action::Disk { full } => {
                server.fill_disk(*full);
                None
            }
            Action::Send(name, sent) => {
                let bytes = sent.encode(|of| id(&mut server, &mut ids, of));
                server.send(name, &bytes);
                Some(name)
            }
            Action::Receive(name) => Some(name),
        };
        let _ = write!(out, "{}", step.text);
        let Some(name) = name else {
            out.push('\n');
            continue;
        };
        let mut separator = if matches!(step.action, Action::Receive(_)) { " " } else { "\n" };
        let mut expected = step.expected.iter();
        let mut replies = 0;
        loop {
            let wanted = expected.next();
            if wanted.is_none() && replies > 0 && received_next.as_ref() == Some(name) {
                break;
            }
            // An expected reply may take its time. Further replies to a command arrive together
            // with the first; waiting for them would use up the TTLs that the next steps ask for.
            let wait = match wanted {
                Some(_) => patience,
                None if replies == 0 => server.silence() * 2,
                None => Duration::from_millis(2),
            };
            replies += 1;
            let reply = match server.receive(name, wait) {
                Received::Nothing => {
                    // Replies that are out of step are not worth the wait.
                    if wanted.is_some() {
                        patience = patience.min(server.silence() * 4);
                    }
                    break;
                }
                Received::Closed => None,
                Received::Reply(reply) => Some(reply),
            };
            let mut lines = Vec::new();
            match (wanted, &reply) {
                (Some((wanted, written)), reply) if wanted.accepts(reply.as_ref()) => {
                    lines.clone_from(written)
                }
                (_, Some(reply)) => reply.lines(0, &mut lines),
                (_, None) => lines.push("closed".into()),
            }
            let _ = writeln!(out, "{separator}{}", lines.join("\n"));
            separator = "";
            if reply.is_none() {
                break;
            }
        }
        if !separator.is_empty() {
            out.push('\n');
        }
    }
    Ok(out)
}
