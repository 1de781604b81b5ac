//! SPOP key [count]: removes and returns random members.

use bytes::Bytes;

use crate::{
    blob::Blob,
    commands::{Ctx, Error, Flags, Group, Keys, Spec, draw::draw_elements, ranged},
    effect::Class,
    env::Env,
    keyspace::Set,
    node::lazy_free::deletion,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "spop",
    group: Group::Set,
    since: "1.0.0",
    summary: "Takes random members from a set.",
    arity: -2,
    flags: Flags::WRITE.union(Flags::FAST),
    keys: Keys::FIRST,
    subcommands: &[],
    run,
};

/// Rebuild a set if this factor times its remaining size is at most the number of removed members.
const REMAKE: usize = 5;

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    if args.len() > 3 {
        return Err(Error::SYNTAX);
    }
    let key = &args[1];
    let count = args.get(2).map(|count| ranged(count, 0, i64::MAX, Error::NOT_POSITIVE)).transpose()?;
    let Some(len) = ctx.modify::<Set>(key)?.map(|set| set.len()) else {
        return Ok(if count.is_some() { Reply::Set(Vec::new()) } else { Reply::Null });
    };
    let wanted = count.map_or(1, |count| usize::try_from(count).unwrap_or(usize::MAX)).min(len);
    let (env, db) = (&mut *ctx.env, &ctx.node.dbs[ctx.db]);
    let set = db.typed::<Set>(key)?.expect("its length was just asked for");
    let random = |env: &mut Env| set.random(|len| env.random_below(len));
    let taken: Vec<Blob> = match wanted {
        1 => random(env).into_iter().collect(),
        _ => {
            let wanted = i64::try_from(wanted).unwrap_or(i64::MAX);
            draw_elements(env, len, wanted, random, || set.iter().collect())?
        }
    };
    let encodings = ctx.node.config.keyspace.encodings;
    if let Some(set) = ctx.modify_no_touch::<Set>(key)? {
        for member in &taken {
            set.remove(member);
        }
        // Move the few remaining members to a new set, which may have a smaller encoding.
        if count.is_some() && set.len() * REMAKE <= taken.len() {
            let mut remade = Set::default();
            for member in set.iter() {
                remade.insert(member, &encodings);
            }
            *set = remade;
        }
    }
    if taken.is_empty() {
        return Ok(Reply::Set(Vec::new()));
    }
    ctx.taken_before_reply(taken.len(), key, Class::Set, "spop");
    // The choice is random, so propagate the chosen members.
    ctx.propagate_as(if count.is_some() && taken.len() == len {
        let config = &ctx.node.config;
        vec![deletion(!config.generation.is_before_7_2() && config.memory.lazy_free.server_del, key)]
    } else {
        let remove = |member: &Blob| vec![Bytes::from_static(b"SREM"), key.clone(), member.to_bytes()];
        taken.iter().map(remove).collect()
    });
    let mut replies: Vec<Reply> = taken.into_iter().map(Reply::from).collect();
    Ok(match count {
        Some(_) => Reply::Set(replies),
        None => replies.pop().unwrap_or(Reply::Null),
    })
}
