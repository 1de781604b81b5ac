//! The filters of CLIENT KILL and CLIENT LIST, which choose connections.

use std::{collections::BTreeSet, mem::discriminant};

use bytes::Bytes;

use super::clients::Kind;
use crate::{
    commands::{Ctx, Error, integer, printable},
    event::ConnId,
    generation::{Feature, Generation},
    node::{Node, clients::Session},
    time::Monotonic,
};

/// The letters of flags that a filter may name.
const FLAGS: &str = "ABEIMNOPRSTUbcdeirtux";

/// The letters of capabilities that a filter may name.
const CAPABILITIES: &str = "r";

/// One criterion.
enum Filter<'a> {
    Ids(BTreeSet<u64>),
    Peer(&'a [u8]),
    Local(&'a [u8]),
    Ip(&'a [u8]),
    Kind(Kind),
    User(&'a [u8]),
    Name(&'a [u8]),
    LibName(&'a [u8]),
    LibVersion(&'a [u8]),
    Flags(&'a [u8]),
    Capabilities(&'a [u8]),
    Db(usize),
    /// The least age in seconds.
    Age(u64),
    /// The least idle time in seconds.
    Idle(u64),
}

impl Filter<'_> {
    fn matches(&self, session: &Session, now: Monotonic) -> bool {
        // A connection without a name has none, not an empty one.
        let named = |name: &Bytes, wanted: &[u8]| !name.is_empty() && name == wanted;
        match self {
            Filter::Ids(ids) => ids.contains(&session.id.0),
            Filter::Peer(peer) => session.peer.as_bytes() == *peer,
            Filter::Local(local) => session.local.as_bytes() == *local,
            Filter::Ip(ip) => session.peer.rsplit_once(':').is_some_and(|(host, _)| host.as_bytes() == *ip),
            Filter::Kind(kind) => Kind::of(session) == *kind,
            Filter::User(user) => session.user == *user,
            Filter::Name(name) => named(&session.name, name),
            Filter::LibName(name) => named(&session.lib_name, name),
            Filter::LibVersion(version) => named(&session.lib_version, version),
            Filter::Flags(letters) => {
                let flags = session.flags();
                letters.iter().all(|letter| flags.as_bytes().contains(letter))
            }
            Filter::Capabilities(letters) => letters.is_empty() || session.redirects,
            Filter::Db(db) => session.db == *db,
            Filter::Age(least) => now.since(session.since).as_secs() >= *least,
            Filter::Idle(least) => now.since(session.last_active).as_secs() >= *least,
        }
    }
}

/// The criteria for connections. Of several values for one criterion the last applies.
pub(super) struct Filters<'a> {
    /// Each criterion, with true if connections must not meet it.
    filters: Vec<(bool, Filter<'a>)>,
    spares_caller: bool,
}

impl<'a> Filters<'a> {
    /// Returns the filter for the connection with one remote address, the caller included.
    pub(super) fn of_peer(peer: &'a [u8]) -> Filters<'a> {
        Filters { filters: vec![(false, Filter::Peer(peer))], spares_caller: false }
    }

    /// Reads filters. `spares_caller` is the default of SKIPME.
    ///
    /// # Errors
    /// The error of the first wrong word.
    pub(super) fn parse(
        node: &Node,
        mut words: &'a [Bytes],
        spares_caller: bool,
    ) -> Result<Filters<'a>, Error> {
        let generation = node.config.generation;
        let mut out = Filters { filters: Vec::new(), spares_caller };
        while let [name, rest @ ..] = words {
            let [value, after @ ..] = rest else { return Err(Error::SYNTAX) };
            words = after;
            let name = name.to_ascii_lowercase();
            if &name[..] == b"skipme" {
                out.spares_caller = match &value.to_ascii_lowercase()[..] {
                    b"yes" => true,
                    b"no" => false,
                    _ => return Err(Error::SYNTAX),
                };
                continue;
            }
            let positive = name.strip_prefix(b"not-").filter(|_| generation.has(Feature::ClientFilters));
            let (negated, name) = positive.map_or((false, &name[..]), |name| (true, name));
            let filter = match name {
                b"id" if generation.has(Feature::ClientIds) => Filter::Ids(ids(value, &mut words)?),
                b"id" => match id(value, generation)? {
                    Some(id) => Filter::Ids(BTreeSet::from([id])),
                    None => continue,
                },
                _ => filter(node, name, value, negated)?,
            };
            out.add(negated, filter, generation);
        }
        Ok(out)
    }

    /// Adds a filter in place of an earlier one of its kind. Ids add up where one filter may have
    /// several.
    fn add(&mut self, negated: bool, filter: Filter<'a>, generation: Generation) {
        let alike = |(not, known): &(bool, Filter<'a>)| {
            *not == negated && discriminant(known) == discriminant(&filter)
        };
        let Some(at) = self.filters.iter().position(alike) else {
            self.filters.push((negated, filter));
            return;
        };
        match (&mut self.filters[at].1, filter) {
            (Filter::Ids(known), Filter::Ids(more)) if generation.has(Feature::ClientIds) => {
                known.extend(more);
            }
            (known, filter) => *known = filter,
        }
    }

    /// Returns true if the filters choose a connection. They never choose one that is closing.
    pub(super) fn select(&self, session: &Session, caller: ConnId, now: Monotonic) -> bool {
        let spared = session.is_leaving() || (self.spares_caller && session.id == caller);
        !spared && self.filters.iter().all(|(negated, filter)| filter.matches(session, now) != *negated)
    }

    /// Returns the ids of the chosen connections.
    pub(super) fn chosen(&self, ctx: &Ctx<'_>) -> Vec<ConnId> {
        let sessions = ctx.node.clients.sessions.iter();
        let chosen = sessions.filter(|session| self.select(session, ctx.conn, ctx.env.monotonic));
        chosen.map(|session| session.id).collect()
    }
}

fn filter<'a>(node: &Node, name: &[u8], value: &'a [u8], negated: bool) -> Result<Filter<'a>, Error> {
    let generation = node.config.generation;
    let has_all = generation.has(Feature::ClientFilters);
    Ok(match name {
        b"type" => Filter::Kind(Kind::parse(value, generation)?),
        b"addr" => Filter::Peer(value),
        b"laddr" => Filter::Local(value),
        b"user" if node.acl.user(value).is_some() => Filter::User(value),
        b"user" => {
            let user = printable(value, usize::MAX);
            return Err(Error(format!("ERR No such user '{user}'").into()));
        }
        b"maxage" if !negated && generation.has(Feature::ClientAge) => Filter::Age(seconds(value, "maxage")?),
        b"idle" if !negated && has_all => Filter::Idle(seconds(value, "idle")?),
        b"name" if has_all => Filter::Name(value),
        b"lib-name" if has_all => Filter::LibName(value),
        b"lib-ver" if has_all => Filter::LibVersion(value),
        b"ip" if has_all => Filter::Ip(value),
        b"flags" if has_all => Filter::Flags(letters(value, FLAGS, "flags")?),
        b"capa" if has_all => Filter::Capabilities(letters(value, CAPABILITIES, "capa")?),
        b"db" if has_all => {
            let db = integer(value).map_err(|_| Error::of("ERR DB is not an integer or out of range"))?;
            let db = usize::try_from(db).ok().filter(|db| *db < node.dbs.len());
            let last = node.dbs.len().saturating_sub(1);
            let text = || format!("ERR DB number should be between 0 and {last}");
            Filter::Db(db.ok_or_else(|| Error(text().into()))?)
        }
        _ => return Err(Error::SYNTAX),
    })
}

/// Reads one id. Redis 6.2 takes 0 for no filter.
fn id(value: &[u8], generation: Generation) -> Result<Option<u64>, Error> {
    if generation == Generation::Redis62 {
        let id = integer(value)?;
        return Ok((id != 0).then_some(id.cast_unsigned()));
    }
    let id = integer(value).ok().and_then(|id| u64::try_from(id).ok()).filter(|id| *id > 0);
    id.map(Some).ok_or(NO_ID)
}

/// Reads ids up to the first word that is no integer.
fn ids(first: &[u8], words: &mut &[Bytes]) -> Result<BTreeSet<u64>, Error> {
    let positive = |id: i64| u64::try_from(id).ok().filter(|id| *id > 0).ok_or(NO_ID);
    let mut ids = BTreeSet::from([positive(integer(first).map_err(|_| Error::SYNTAX)?)?]);
    while let [word, rest @ ..] = *words
        && let Ok(id) = integer(word)
    {
        ids.insert(positive(id)?);
        *words = rest;
    }
    Ok(ids)
}

const NO_ID: Error = Error::of("ERR client-id should be greater than 0");

/// Reads a number of seconds that is greater than 0.
fn seconds(value: &[u8], name: &str) -> Result<u64, Error> {
    let seconds = integer(value);
    let seconds =
        seconds.map_err(|_| Error(format!("ERR {name} is not an integer or out of range").into()))?;
    let positive = u64::try_from(seconds).ok().filter(|seconds| *seconds > 0);
    positive.ok_or_else(|| Error(format!("ERR {name} should be greater than 0").into()))
}

/// Checks that each letter is a known one.
fn letters<'a>(value: &'a [u8], known: &str, name: &str) -> Result<&'a [u8], Error> {
    if value.iter().all(|letter| known.as_bytes().contains(letter)) {
        return Ok(value);
    }
    let value = printable(value, usize::MAX);
    Err(Error(format!("ERR Unknown {name} found in the provided filter: {value}").into()))
}
