//! ACL GENPASS [bits]: an unguessable password, from the PRNG of the node.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec, integer},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "acl|genpass",
    group: Group::Server,
    since: "6.0.0",
    summary: "Generates a password.",
    arity: -2,
    flags: Flags::NOSCRIPT.union(Flags::LOADING).union(Flags::STALE),
    keys: Keys::None,
    subcommands: &[],
    run,
};

const BITS: i64 = 256;
const BITS_MAX: i64 = 4096;

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let bits = match args {
        [_, _] => BITS,
        [_, _, bits] => integer(bits)?,
        _ => return Err(Error::subcommand("acl", &args[1])),
    };
    let digits = match bits {
        1..=BITS_MAX => (bits as usize).div_ceil(4),
        _ => {
            return Err(Error(
                format!(
                    "ERR ACL GENPASS argument must be the number of bits for the output password, a positive number up \
                     to {BITS_MAX}"
                )
                .into(),
            ));
        }
    };
    let drawn = (0..digits.div_ceil(16)).map(|_| format!("{:016x}", ctx.env.random()));
    let mut password: String = drawn.collect();
    password.truncate(digits);
    Ok(Reply::bulk(password))
}
