//! ACL CAT [category]: the categories, or the commands of one.

use bytes::Bytes;

use crate::{
    commands::{Categories, Ctx, Error, Flags, Group, Keys, Spec, access, printable},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "acl|cat",
    group: Group::Server,
    since: "6.0.0",
    summary: "Lists the categories, or the commands of one.",
    arity: -2,
    flags: Flags::NOSCRIPT.union(Flags::LOADING).union(Flags::STALE),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    match args {
        [_, _] => Ok(Reply::Array(Categories::all().names().map(Reply::bulk).collect())),
        [_, _, name] => {
            let Some(category) = Categories::named(name) else {
                let name = printable(name, usize::MAX);
                return Err(Error(format!("ERR Unknown category '{name}'").into()));
            };
            let of_it = access::Table::of(ctx.node).of_category(category);
            Ok(Reply::Array(of_it.map(|spec| Reply::bulk(spec.name)).collect()))
        }
        _ => Err(Error::subcommand("acl", &args[1])),
    }
}
