//! Plays many seeds with a progress bar, and reports the differences.

use std::path::PathBuf;

use indicatif::{ProgressBar, ProgressStyle};
use lockstorm_sim::generation::Generation;

use crate::{
    duel::Duel,
    episode::{self, Groups},
    servers::REFERENCE,
    shrink::shrink,
};

/// The options of a long run.
pub(crate) struct Options {
    pub(crate) generation: Generation,
    seeds: Vec<u64>,
    commands: u64,
    episode: Option<u64>,
    /// The run stops after this many differences.
    most: usize,
}

impl Options {
    /// Removes the options of a long run from the arguments; `None` if they contain none.
    pub(crate) fn take(arguments: &mut Vec<String>) -> Result<Option<Options>, String> {
        let mut options =
            Options { generation: REFERENCE, seeds: Vec::new(), commands: 20_000, episode: None, most: 20 };
        let mut at = 1;
        while at < arguments.len() {
            let name = arguments[at].clone();
            if !["--as", "--seeds", "--commands", "--episode", "--most"].contains(&&*name) {
                at += 1;
                continue;
            }
            let value = arguments.get(at + 1).ok_or_else(|| format!("{name} needs a value"))?.clone();
            let number =
                |text: &str| text.parse::<u64>().map_err(|_| format!("{name}: {text:?} is no number"));
            match &*name {
                "--as" => {
                    let named = Generation::named(&value);
                    options.generation = named.ok_or_else(|| format!("no generation is named {value}"))?;
                }
                "--commands" => options.commands = number(&value)?,
                "--episode" => options.episode = Some(number(&value)?),
                "--most" => options.most = number(&value)? as usize,
                _ => match value.split_once("..") {
                    Some((from, to)) => options.seeds = (number(from)?..number(to)?).collect(),
                    None => options.seeds = vec![number(&value)?],
                },
            }
            arguments.drain(at..at + 2);
        }
        Ok((!options.seeds.is_empty()).then_some(options))
    }
}

/// Plays all seeds; returns true if nothing differed.
pub(crate) fn run(options: &Options) -> bool {
    let bar = ProgressBar::new(options.seeds.len() as u64 * options.commands);
    let style = "{elapsed_precise} {wide_bar} {human_pos}/{human_len} commands, {per_sec}, {eta} left, {msg}";
    bar.set_style(ProgressStyle::with_template(style).unwrap_or_else(|_| ProgressStyle::default_bar()));
    let mut found = 0;
    for (at, &number) in options.seeds.iter().enumerate() {
        bar.set_position(at as u64 * options.commands);
        let drawn = Drawn { generation: options.generation, seed: number, only: options.episode };
        let done = seed(drawn, options.commands, &mut |played| bar.inc(played), &mut |text| {
            found += 1;
            bar.suspend(|| println!("{text}"));
            found < options.most
        });
        bar.set_message(format!("seed {number}, {found} differences"));
        if !done {
            break;
        }
    }
    bar.finish_and_clear();
    let (commands, seconds) = (bar.position(), bar.elapsed().as_secs_f64());
    println!("{commands} commands in {seconds:.0} s, {found} differences");
    found == 0
}

/// The episodes to play.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Drawn {
    pub(crate) generation: Generation,
    pub(crate) seed: u64,
    /// One episode, in place of all.
    pub(crate) only: Option<u64>,
}

/// Plays the episodes of a seed until it has played `commands` commands, or one episode only.
/// Reports each difference through the callback; returns false once the callback wants no more.
pub(crate) fn seed(
    Drawn { generation, seed, only }: Drawn,
    commands: u64,
    progress: &mut dyn FnMut(u64),
    tell: &mut dyn FnMut(String) -> bool,
) -> bool {
    let groups = Groups::read(generation);
    let mut duel = Duel::start(generation);
    let mut played = 0;
    let mut number = only.unwrap_or(0);
    while played < commands {
        let steps = episode::draw(&groups, seed, number);
        let before = duel.played;
        let difference = duel.play(&steps);
        let now = duel.played - before;
        played += now;
        progress(now);
        if let Some(difference) = difference {
            let again = format!("-- --as {generation} --seeds {seed} --episode {number}");
            // Restarting a server that dies on each replay would take too long.
            let smallest = if duel.died { None } else { shrink(&mut duel, &steps, difference.clone()) };
            let text = match smallest {
                None => format!("seen once, and not again ({again}): {}", difference.text),
                Some(smallest) => {
                    let path = write(generation, seed, number, &smallest.transcript);
                    let lines = smallest.transcript.lines().count();
                    let shown = if lines <= 30 { smallest.transcript } else { format!("{lines} lines") };
                    format!(
                        "\nseed {seed}, episode {number} ({again}), {} steps, written to {}:\n{}\n{}\n",
                        smallest.steps.len(),
                        path.display(),
                        shown,
                        smallest.difference.text
                    )
                }
            };
            if !tell(text) {
                return false;
            }
        }
        number += 1;
        if only.is_some() {
            break;
        }
    }
    true
}

/// Writes a transcript below the build directory, never into the repository.
fn write(generation: Generation, seed: u64, episode: u64, transcript: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("differential").join(generation.name());
    let path = folder.join(format!("seed_{seed}_episode_{episode}.redis"));
    let head = format!("# Seed {seed}, episode {episode} of tests/differential.\n\n");
    let written = std::fs::create_dir_all(&folder).and_then(|()| std::fs::write(&path, head + transcript));
    if let Err(error) = written {
        eprintln!("{}: {error}", path.display());
    }
    path
}
