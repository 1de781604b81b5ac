//! SENTINEL CONFIG GET|SET: reads or sets an option of the Sentinel itself.

use bytes::Bytes;

use super::{sentinel, text};
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    glob::matches,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "sentinel|config",
    group: Group::Sentinel,
    since: "2.8.4",
    summary: "Reads or sets an option of the Sentinel itself.",
    arity: -3,
    flags: Flags::ADMIN,
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let usage = Error::of("ERR Only SENTINEL CONFIG GET <option> / SET <option> <value> are supported.");
    match (&args[2].to_ascii_lowercase()[..], &args[3..]) {
        (b"get", [pattern]) => {
            let options = sentinel(ctx).options();
            let shown =
                options.iter().filter(|(name, _)| matches(&pattern.to_ascii_lowercase(), name.as_bytes()));
            Ok(Reply::Map(shown.map(|(name, value)| (Reply::bulk(name), Reply::bulk(value))).collect()))
        }
        (b"set", [option, value]) => {
            let (option, value) = (text(option), text(value));
            match sentinel(ctx).set_option(&option.to_ascii_lowercase(), &value) {
                Some(true) => Ok(Reply::OK),
                Some(false) => Err(Error(
                    format!("ERR Invalid value '{value}' to SENTINEL CONFIG SET '{option}'").into(),
                )),
                None => Err(Error(format!("ERR Invalid argument '{option}' to SENTINEL CONFIG SET").into())),
            }
        }
        _ => Err(usage),
    }
}
