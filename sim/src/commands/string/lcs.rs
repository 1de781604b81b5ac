//! LCS key1 key2 [LEN | IDX] [MINMATCHLEN length] [WITHMATCHLEN]: the longest common subsequence of
//! two strings.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec, integer},
    keyspace::Str,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "lcs",
    group: Group::String,
    since: "7.0.0",
    summary: "The longest common subsequence of two strings.",
    arity: -3,
    flags: Flags::READONLY,
    keys: Keys::Range { first: 1, last: 2, step: 1 },
    subcommands: &[],
    run,
};

/// Maximum number of table cells. They take 512 MiB, like the longest string under the default
/// `proto-max-bulk-len`.
/// `proto-max-bulk-len`.
const CELLS_MAX: usize = 1 << 27;

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let mut text = |key: &Bytes| match ctx.read::<Str>(key) {
        Ok(string) => Ok(string.map(|string| string.bytes().apart()).unwrap_or_default()),
        Err(_) => Err(Error::of("ERR The specified keys must contain string values")),
    };
    // Look up both keys before checking either type.
    let (a, b) = (text(&args[1]), text(&args[2]));
    let (a, b) = (a?, b?);
    let options = Options::parse(&args[3..])?;
    let cells = (a.len() + 1).checked_mul(b.len() + 1);
    let cells_max = CELLS_MAX.min(ctx.node.config.clients.proto_max_bulk_len / size_of::<u32>());
    if cells.is_none_or(|cells| cells > cells_max) {
        return Err(Error::of(
            "ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len",
        ));
    }
    let lengths = Lengths::new(&a, &b);
    let len = Reply::Integer(lengths.at(a.len(), b.len()).into());
    if options.only_len {
        return Ok(len);
    }
    let runs = lengths.runs(&a, &b);
    if !options.indices {
        let parts = runs.iter().rev().flat_map(|run| &a[run.a..run.a + run.len]);
        return Ok(Reply::from(parts.copied().collect::<Bytes>()));
    }
    let ends = |from: usize, len: usize| Reply::Array(vec![from.into(), (from + len - 1).into()]);
    let matches = runs.iter().filter(|run| run.len >= options.len_min).map(|run| {
        let mut parts = vec![ends(run.a, run.len), ends(run.b, run.len)];
        if options.with_len {
            parts.push(run.len.into());
        }
        Reply::Array(parts)
    });
    Ok(Reply::Map(vec![(Reply::bulk("matches"), Reply::Array(matches.collect())), (Reply::bulk("len"), len)]))
}

#[derive(Debug, Default)]
struct Options {
    only_len: bool,
    indices: bool,
    with_len: bool,
    len_min: usize,
}

impl Options {
    fn parse(options: &[Bytes]) -> Result<Options, Error> {
        let mut parsed = Options::default();
        let mut rest = options.iter();
        while let Some(option) = rest.next() {
            match option.to_ascii_lowercase().as_slice() {
                b"len" => parsed.only_len = true,
                b"idx" => parsed.indices = true,
                b"withmatchlen" => parsed.with_len = true,
                b"minmatchlen" => {
                    let len = integer(rest.next().ok_or(Error::SYNTAX)?)?;
                    parsed.len_min = usize::try_from(len).unwrap_or(0);
                }
                _ => return Err(Error::SYNTAX),
            }
        }
        if parsed.only_len && parsed.indices {
            return Err(Error::of("ERR If you want both the length and indexes, please just use IDX."));
        }
        Ok(parsed)
    }
}

/// Consecutive bytes of the subsequence that follow each other in both strings.
struct Run {
    a: usize,
    b: usize,
    len: usize,
}

/// Length of the longest common subsequence for every pair of prefixes (the textbook table).
struct Lengths {
    cells: Vec<u32>,
    width: usize,
}

impl Lengths {
    fn new(a: &[u8], b: &[u8]) -> Lengths {
        let width = b.len() + 1;
        let mut lengths = Lengths { cells: vec![0; (a.len() + 1) * width], width };
        for (i, of_a) in a.iter().enumerate() {
            for (j, of_b) in b.iter().enumerate() {
                lengths.cells[(i + 1) * width + j + 1] = if of_a == of_b {
                    lengths.at(i, j) + 1
                } else {
                    lengths.at(i, j + 1).max(lengths.at(i + 1, j))
                };
            }
        }
        lengths
    }

    fn at(&self, i: usize, j: usize) -> u32 {
        self.cells[i * self.width + j]
    }

    /// Returns the runs of one longest subsequence, last first. If two ways are equally long,
    /// shortens the second string.
    fn runs(&self, a: &[u8], b: &[u8]) -> Vec<Run> {
        let mut runs: Vec<Run> = Vec::new();
        let (mut i, mut j) = (a.len(), b.len());
        while i > 0 && j > 0 {
            if a[i - 1] == b[j - 1] {
                (i, j) = (i - 1, j - 1);
                match runs.last_mut() {
                    Some(run) if run.a == i + 1 && run.b == j + 1 => {
                        *run = Run { a: i, b: j, len: run.len + 1 }
                    }
                    _ => runs.push(Run { a: i, b: j, len: 1 }),
                }
            } else if self.at(i - 1, j) > self.at(i, j - 1) {
                i -= 1;
            } else {
                j -= 1;
            }
        }
        runs
    }
}
