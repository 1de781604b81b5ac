//! LATENCY GRAPH event: draws the spikes of an event as columns of characters, each above its age.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec, printable},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "latency|graph",
    group: Group::Server,
    since: "2.8.13",
    summary: "Draws the spikes of one kind of event.",
    arity: 3,
    flags: Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::LOADING).union(Flags::STALE),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let Some((event, spikes)) = ctx.node.latency.of(&args[2]) else {
        let event = printable(&args[2], usize::MAX);
        return Err(Error(format!("ERR No samples available for event '{event}'").into()));
    };
    let now = ctx.env.wall.as_secs();
    let took_ms = || spikes.iter().map(|(_, took_ms)| took_ms);
    let (high, low) = (took_ms().max().unwrap_or_default(), took_ms().min().unwrap_or_default());
    let columns: Vec<Column> = spikes
        .iter()
        .map(|(at, took_ms)| Column { height: height(took_ms - low, high - low), label: ago(now - at) })
        .collect();
    let worst = spikes.worst_ms();
    let mut text = format!("{event} - high {high} ms, low {low} ms (all time high {worst} ms)\n");
    text.push_str(&"-".repeat(WIDTH));
    text.push('\n');
    let blocks: Vec<String> = columns.chunks(WIDTH).map(draw).collect();
    text.push_str(&blocks.join("\n"));
    Ok(Reply::Verbatim(*b"txt", text.into()))
}

/// Maximum number of columns side by side; further ones follow below.
const WIDTH: usize = 80;
/// Rows of a column.
const ROWS: usize = 4;
/// The characters on top of a column, from low to high within its row.
const TOPS: [char; 3] = ['_', 'o', '#'];

/// A spike.
struct Column {
    /// Height in thirds of a row.
    height: usize,
    /// The age, written from top to bottom.
    label: String,
}

/// Returns the height of a column with a value `above` the lowest; the highest is `range` above it.
fn height(above: u64, range: u64) -> usize {
    let steps = ROWS * TOPS.len();
    let height = above as f64 * steps as f64 / range.max(1) as f64;
    (height as usize).min(steps - 1)
}

/// Formats seconds as a number of the largest unit that fits.
fn ago(seconds: i64) -> String {
    match seconds {
        ..60 => format!("{seconds}s"),
        60..3600 => format!("{}m", seconds / 60),
        3600..86_400 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// Draws the columns of one block, and below an empty row their labels.
fn draw(columns: &[Column]) -> String {
    let mut text = String::new();
    for row in (0..ROWS).rev() {
        text.extend(columns.iter().map(|column| match column.height.checked_sub(row * TOPS.len()) {
            None => ' ',
            Some(within) => TOPS.get(within).copied().unwrap_or('|'),
        }));
        text.push('\n');
    }
    text.push_str(&" ".repeat(columns.len()));
    text.push('\n');
    let longest = columns.iter().map(|column| column.label.len()).max().unwrap_or_default();
    for at in 0..longest {
        text.extend(columns.iter().map(|column| column.label.chars().nth(at).unwrap_or(' ')));
        text.push('\n');
    }
    text
}
