//! Subscribes and unsubscribes, for the three kinds: sends one reply for each name, with the number
//! of remaining subscriptions.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Origin},
    effect::Subscription,
    resp::Reply,
};

/// Subscribes to `names`.
pub(super) fn subscribe(ctx: &mut Ctx<'_>, kind: Subscription, names: &[Bytes]) -> Result<Reply, Error> {
    let conn = ctx.conn;
    let word = match kind {
        Subscription::Channel => "subscribe",
        Subscription::Pattern => "psubscribe",
        Subscription::Shard => "ssubscribe",
    };
    let mut replies = Vec::with_capacity(names.len());
    for name in names {
        note(ctx, kind, name);
        ctx.node.clients.subscribe(conn, kind, name.clone());
        let left = ctx.session().subscriptions_beside(kind).into();
        replies.push(Reply::Push(vec![Reply::bulk(word), Reply::from(name), left]));
    }
    Ok(Reply::Several(replies))
}

/// Unsubscribes from `names`, or from everything of this kind if there are none.
pub(super) fn unsubscribe(ctx: &mut Ctx<'_>, kind: Subscription, names: &[Bytes]) -> Reply {
    let conn = ctx.conn;
    let word = match kind {
        Subscription::Channel => "unsubscribe",
        Subscription::Pattern => "punsubscribe",
        Subscription::Shard => "sunsubscribe",
    };
    let all: Vec<Bytes>;
    let names = if names.is_empty() {
        all = ctx.session().subscribed(kind).iter().cloned().collect();
        &all[..]
    } else {
        names
    };
    let mut replies = Vec::with_capacity(names.len().max(1));
    for name in names {
        note(ctx, kind, name);
        ctx.node.clients.unsubscribe(conn, kind, name);
        let left = ctx.session().subscriptions_beside(kind).into();
        replies.push(Reply::Push(vec![Reply::bulk(word), Reply::from(name), left]));
    }
    // Without any subscription, send one reply with null.
    if replies.is_empty() {
        let left = ctx.session().subscriptions_beside(kind).into();
        replies.push(Reply::Push(vec![Reply::bulk(word), Reply::Null, left]));
    }
    Reply::Several(replies)
}

/// In a transaction, records a change of subscriptions: the earlier subscriptions receive the
/// messages published before it.
fn note(ctx: &mut Ctx<'_>, kind: Subscription, name: &Bytes) {
    if ctx.origin == Origin::Exec {
        let was = ctx.session().subscribed(kind).contains(name);
        ctx.effects.resubscribe(kind, name.clone(), was);
    }
}
