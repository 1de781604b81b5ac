//! HSCAN key cursor [MATCH pattern] [COUNT count] [NOVALUES]: some fields and values, and the next
//! cursor.

use bytes::Bytes;

use crate::{
    commands::{
        Ctx, Error, Flags, Group, Keys, Spec,
        scan::{ScanOptions, cursor, reply},
    },
    generation::Feature,
    keyspace::Hash,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "hscan",
    group: Group::Hash,
    since: "2.8.0",
    summary: "Iterates over the fields of a hash step by step.",
    arity: -3,
    flags: Flags::READONLY,
    keys: Keys::FIRST,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let cursor = cursor(&args[2], ctx.node.config.generation)?;
    let rule = ctx.field_rule();
    let may_leave_out = ctx.node.config.generation.has(Feature::ScanWithoutValues);
    let Some(hash) = ctx.read::<Hash>(&args[1])? else { return Ok(reply(0, Vec::new())) };
    let (options, has_values) = match may_leave_out {
        true => without_values(&args[3..]),
        false => (args[3..].to_vec(), true),
    };
    let options = ScanOptions::parse(&options)?;
    let (cursor, found) = options.sweep(cursor, |cursor, found| {
        hash.scan(cursor, |field, value| {
            if !hash.is_expired(field, rule) {
                found.push((field.apart(), value.apart()));
            }
        })
    });
    let wanted = found.into_iter().filter(|(field, _)| options.wants(field));
    let shown = wanted.flat_map(|(field, value)| {
        let value = has_values.then(|| Reply::from(value));
        [Some(Reply::from(field)), value].into_iter().flatten()
    });
    Ok(reply(cursor, shown.collect()))
}

/// Takes NOVALUES out of the options; returns the others, and true if it was not there.
fn without_values(options: &[Bytes]) -> (Vec<Bytes>, bool) {
    let (mut others, mut has_values, mut at) = (Vec::new(), true, 0);
    while at < options.len() {
        if options[at].eq_ignore_ascii_case(b"novalues") {
            has_values = false;
            at += 1;
        } else {
            // An option and its value.
            let end = options.len().min(at + 2);
            others.extend_from_slice(&options[at..end]);
            at = end;
        }
    }
    (others, has_values)
}
