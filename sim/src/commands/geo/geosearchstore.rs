//! GEOSEARCHSTORE destination source FROMMEMBER member | FROMLONLAT longitude latitude BYRADIUS
//! radius unit | BYBOX width height unit [ASC | DESC] [COUNT count [ANY]] [STOREDIST]: stores the
//! places in a circle or in a box.

use bytes::Bytes;

use super::{query::Form, searching::search};
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "geosearchstore",
    group: Group::Geo,
    since: "6.2.0",
    summary: "Stores the places in a circle or in a box.",
    arity: -8,
    flags: Flags::WRITE.union(Flags::DENYOOM),
    keys: Keys::Range { first: 1, last: 2, step: 1 },
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    search(ctx, args, Form::SearchStore)
}
