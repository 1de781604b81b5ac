//! HELP of the containers: prints the subcommands with their summaries, from the tables.

use bytes::Bytes;

use super::{Ctx, Error, docs, find_for};
use crate::resp::Reply;

/// The `run` of every HELP: prints a line with name and arguments, and one with the summary, for
/// each subcommand.
pub(super) fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let container = find_for(ctx.node, &args[..1])?;
    let upper = String::from_utf8_lossy(&args[0]).to_ascii_uppercase();
    let mut lines = vec![format!("{upper} <subcommand> [<argument> ...], where the subcommand is one of:")];
    for subcommand in container.subcommands_in(ctx.node.config.generation) {
        let (_, name) = subcommand.name.split_once('|').unwrap_or_default();
        let usage = format!("{} {}", name.to_ascii_uppercase(), docs::usage(subcommand));
        lines.push(usage.trim_end().to_owned());
        lines.push(format!("    {}", subcommand.summary));
    }
    Ok(Reply::Array(lines.into_iter().map(|line| Reply::Status(line.into())).collect()))
}

/// The `run` of a container, which needs a subcommand.
pub(super) fn container(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    Err(Error::arity(find_for(ctx.node, &args[..1])?.name))
}
