//! LOLWUT [VERSION version] [number ...]: the picture of a version, and the server's version below.

use bytes::Bytes;

use super::lolwut_pictures::{squares, town};
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec, integer},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "lolwut",
    group: Group::Server,
    since: "5.0.0",
    summary: "The version, and the picture of a version.",
    arity: -1,
    flags: Flags::READONLY.union(Flags::FAST),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let (version, numbers) = match args {
        [_, option, version, numbers @ ..] if option.eq_ignore_ascii_case(b"version") => {
            (integer(version)?, numbers)
        }
        _ => (7, &args[1..]),
    };
    // A missing number gets its default; a given one is clamped to its range.
    let number = |at: usize, default: i64, max: i64| {
        numbers.get(at).map_or(Ok(default), |text| integer(text)).map(|number| number.clamp(1, max))
    };
    let (picture, words) = match version {
        5 => {
            let (columns, in_row, rows) = (number(0, 66, 1000)?, number(1, 8, 200)?, number(2, 12, 200)?);
            let picture = squares(ctx.env, columns, in_row, rows);
            (picture, "\nGeorg Nees - schotter, plotter on paper, 1968. ")
        }
        6 => {
            let picture = town(ctx.env, number(0, 80, 1000)?, number(1, 20, 1000)?);
            let words = "Dedicated to the 8 bit game developers of past and present.\n\
                         Original 8 bit image from Plaguemon by hikikomori. ";
            (picture, words)
        }
        _ => (String::new(), ""),
    };
    Ok(Reply::Verbatim(
        *b"txt",
        format!(
            "{picture}{words}{} ver. {}\n",
            if ctx.node.config.generation.is_valkey() { "Valkey" } else { "Redis" },
            ctx.node.config.generation.version()
        )
        .into(),
    ))
}
