//! CLIENT TRACKING ON or OFF [REDIRECT id] [PREFIX prefix ...] [BCAST] [OPTIN] [OPTOUT] [NOLOOP]:
//! turns invalidations for the connection on or off.

use std::collections::BTreeSet;

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec, integer, printable},
    effect::{Cached, Consent, Tracking},
    event::ConnId,
    generation::Generation,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "client|tracking",
    group: Group::Connection,
    since: "6.0.0",
    summary: "Switches client-side caching: invalidations for keys that were read.",
    arity: -3,
    flags: Flags::NOSCRIPT.union(Flags::LOADING).union(Flags::STALE),
    keys: Keys::None,
    subcommands: &[],
    run,
};

#[derive(Default)]
struct Options {
    redirect: Option<ConnId>,
    broadcast: bool,
    opt_in: bool,
    opt_out: bool,
    no_loop: bool,
    prefixes: Vec<Bytes>,
}

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let options = parse(ctx, &args[3..])?;
    if args[2].eq_ignore_ascii_case(b"off") {
        ctx.node.clients.untrack(ctx.conn);
        ctx.effects.cache(Cached::TrackingChanged(None));
        return Ok(Reply::OK);
    }
    if !args[2].eq_ignore_ascii_case(b"on") {
        return Err(Error::SYNTAX);
    }
    let before = ctx.session().tracking.clone();
    check(&options, before.as_ref())?;
    let known = before.and_then(|before| before.prefixes).unwrap_or_default();
    let overlap = overlap(&options.prefixes, &known);
    if let Some((0, error)) = overlap {
        return Err(error);
    }
    if let Some((_, error)) = overlap.as_ref().filter(|_| ctx.node.config.generation == Generation::Valkey91)
    {
        return Err(error.clone());
    }
    let mut prefixes = options.broadcast.then_some(known);
    if let Some(prefixes) = &mut prefixes {
        if options.prefixes.is_empty() {
            prefixes.insert(Bytes::new());
        }
        prefixes.extend(options.prefixes);
    }
    let consent = match (options.opt_in, options.opt_out) {
        (true, _) => Consent::OptIn,
        (_, true) => Consent::OptOut,
        _ => Consent::Given,
    };
    let exception = ctx.session().tracking.as_ref().is_some_and(|before| before.exception);
    let tracking = Tracking { prefixes, consent, no_loop: options.no_loop, exception };
    ctx.node.clients.track(ctx.conn, tracking.clone(), options.redirect);
    ctx.effects.cache(Cached::TrackingChanged(Some(tracking)));
    // If new prefixes overlap each other, only an overlap of the first one is refused. For the
    // others most servers reply with an error, and accept them.
    Ok(match overlap {
        Some((_, error)) => Reply::Several(vec![error.into(), Reply::OK]),
        None => Reply::OK,
    })
}

fn parse(ctx: &Ctx<'_>, words: &[Bytes]) -> Result<Options, Error> {
    let mut options = Options::default();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match (&word.to_ascii_lowercase()[..], words.len()) {
            (b"redirect", 1..) => {
                if options.redirect.is_some() {
                    return Err(Error::of("ERR A client can only redirect to a single other client"));
                }
                let id = integer(words.next().map_or(&b""[..], |id| id))?;
                let conn = u64::try_from(id).ok().map(ConnId);
                let there = conn.filter(|conn| ctx.node.clients.sessions.contains(*conn));
                let missing = Error::of("ERR The client ID you want redirect to does not exist");
                options.redirect = Some(there.ok_or(missing)?);
            }
            (b"prefix", 1..) => options.prefixes.extend(words.next().cloned()),
            (b"bcast", _) => options.broadcast = true,
            (b"optin", _) => options.opt_in = true,
            (b"optout", _) => options.opt_out = true,
            (b"noloop", _) => options.no_loop = true,
            _ => return Err(Error::SYNTAX),
        }
    }
    Ok(options)
}

/// Checks that the options fit each other and the earlier choice.
fn check(options: &Options, before: Option<&Tracking>) -> Result<(), Error> {
    if !options.broadcast && !options.prefixes.is_empty() {
        return Err(Error::of("ERR PREFIX option requires BCAST mode to be enabled"));
    }
    if before.is_some_and(|before| before.prefixes.is_some() != options.broadcast) {
        return Err(Error::of(
            "ERR You can't switch BCAST mode on/off before disabling tracking for this client, and then re-enabling it \
             with a different mode.",
        ));
    }
    if options.broadcast && (options.opt_in || options.opt_out) {
        return Err(Error::of("ERR OPTIN and OPTOUT are not compatible with BCAST"));
    }
    if options.opt_in && options.opt_out {
        return Err(Error::of("ERR You can't specify both OPTIN mode and OPTOUT mode"));
    }
    let was = before.map_or(Consent::Given, |before| before.consent);
    if (options.opt_in && was == Consent::OptOut) || (options.opt_out && was == Consent::OptIn) {
        return Err(Error::of(
            "ERR You can't switch OPTIN/OPTOUT mode before disabling tracking for this client, and then re-enabling it \
             with a different mode.",
        ));
    }
    Ok(())
}

/// Finds an overlap of new prefixes. Returns the index of the prefix, and the error. The index is 0
/// for an overlap with a known prefix.
fn overlap(prefixes: &[Bytes], known: &BTreeSet<Bytes>) -> Option<(usize, Error)> {
    let overlaps = |one: &Bytes, other: &Bytes| one.starts_with(other) || other.starts_with(one);
    let error = |one: &Bytes, what: &str, other: &Bytes| {
        let (one, other) = (printable(one, usize::MAX), printable(other, usize::MAX));
        Error(
            format!(
                "ERR Prefix '{one}' overlaps with {what} prefix '{other}'. Prefixes for a single client must not overlap."
            )
            .into(),
        )
    };
    for (at, prefix) in prefixes.iter().enumerate() {
        if let Some(other) = known.iter().find(|other| overlaps(prefix, other)) {
            return Some((0, error(prefix, "an existing", other)));
        }
        if let Some(other) = prefixes[at + 1..].iter().find(|other| overlaps(prefix, other)) {
            return Some((at, error(prefix, "another provided", other)));
        }
    }
    None
}
