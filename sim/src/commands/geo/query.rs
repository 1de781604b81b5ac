//! Query arguments of GEOSEARCH, GEORADIUS and the related commands.

use bytes::Bytes;

use super::{
    earth::{Place, unit},
    grid::Cell,
};
use crate::{
    commands::{Error, double, integer, printable},
    keyspace::SortedSet,
};

/// Syntax of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// GEORADIUS key longitude latitude radius unit
    Coordinates { may_store: bool },
    /// GEORADIUSBYMEMBER key member radius unit
    Member { may_store: bool },
    /// GEOSEARCH key
    Search,
    /// GEOSEARCHSTORE destination key
    SearchStore,
}

impl Form {
    /// Returns the index of the key to search.
    pub(super) fn key(self) -> usize {
        if self == Form::SearchStore { 2 } else { 1 }
    }

    fn searches(self) -> bool {
        matches!(self, Form::Search | Form::SearchStore)
    }

    fn may_store(self) -> bool {
        matches!(self, Form::Coordinates { may_store: true } | Form::Member { may_store: true })
    }

    /// Returns the event name for a stored result.
    pub(super) fn event(self) -> &'static str {
        if self.searches() { "geosearchstore" } else { "georadiusstore" }
    }
}

/// Area around the center, in the unit of the query.
#[derive(Debug, Clone, Copy)]
pub(super) enum Shape {
    Circle { radius: f64 },
    Box { width: f64, height: f64 },
}

/// Destination of the result.
#[derive(Debug)]
pub(super) struct Target {
    pub(super) key: Bytes,
    /// Set if the scores are distances instead of cells.
    pub(super) distances: bool,
}

/// The parsed arguments.
#[derive(Debug)]
pub(super) struct Query {
    /// The center; a placeholder if no sorted set is searched.
    pub(super) center: Place,
    pub(super) shape: Shape,
    /// Metres per unit.
    pub(super) unit: f64,
    pub(super) with_distance: bool,
    pub(super) with_hash: bool,
    pub(super) with_place: bool,
    /// True for the farthest first, false for the nearest first.
    pub(super) farthest_first: Option<bool>,
    pub(super) count: Option<usize>,
    pub(super) any: bool,
    pub(super) target: Option<Target>,
}

impl Query {
    /// Parses the arguments. Without a set, a member is not looked up, and its absence is no error.
    pub(super) fn parse(form: Form, args: &[Bytes], set: Option<&SortedSet>) -> Result<Query, Error> {
        let mut query = Query {
            center: Place { longitude: 0.0, latitude: 0.0 },
            shape: Shape::Circle { radius: 0.0 },
            unit: 1.0,
            with_distance: false,
            with_hash: false,
            with_place: false,
            farthest_first: None,
            count: None,
            any: false,
            target: None,
        };
        let after_key = &args[form.key() + 1..];
        let options = match (form, after_key) {
            (Form::Coordinates { .. }, [longitude, latitude, radius, unit, options @ ..]) => {
                query.center = Place::parse(longitude, latitude)?;
                query.read_circle(radius, unit)?;
                options
            }
            (Form::Member { .. }, [member, radius, unit, options @ ..]) => {
                if let Some(set) = set {
                    query.center = place_of(set, member)?;
                    query.read_circle(radius, unit)?;
                }
                options
            }
            _ => after_key,
        };
        if form == Form::SearchStore {
            query.target = Some(Target { key: args[1].clone(), distances: false });
        }
        query.read_options(form, options, &args[0], set)?;
        Ok(query)
    }

    fn read_options(
        &mut self,
        form: Form,
        mut words: &[Bytes],
        name: &Bytes,
        set: Option<&SortedSet>,
    ) -> Result<(), Error> {
        let searches = form.searches();
        let (mut from_member, mut from_place, mut by_radius, mut by_box) = (false, false, false, false);
        while let [word, rest @ ..] = words {
            words = match (word.to_ascii_lowercase().as_slice(), rest) {
                (b"withdist", _) => {
                    self.with_distance = true;
                    rest
                }
                (b"withhash", _) => {
                    self.with_hash = true;
                    rest
                }
                (b"withcoord", _) => {
                    self.with_place = true;
                    rest
                }
                (b"any", _) => {
                    self.any = true;
                    rest
                }
                (b"asc", _) => {
                    self.farthest_first = Some(false);
                    rest
                }
                (b"desc", _) => {
                    self.farthest_first = Some(true);
                    rest
                }
                (b"count", [count, rest @ ..]) => {
                    let count = integer(count)?;
                    if count <= 0 {
                        return Err(Error::of("ERR COUNT must be > 0"));
                    }
                    self.count = Some(usize::try_from(count).unwrap_or(usize::MAX));
                    rest
                }
                (store @ (b"store" | b"storedist"), [key, rest @ ..]) if form.may_store() => {
                    self.target = Some(Target { key: key.clone(), distances: store == b"storedist" });
                    rest
                }
                (b"frommember", [member, rest @ ..]) if searches && !from_place => {
                    from_member = true;
                    if let Some(set) = set {
                        self.center = place_of(set, member)?;
                    }
                    rest
                }
                (b"fromlonlat", [longitude, latitude, rest @ ..]) if searches && !from_member => {
                    from_place = true;
                    self.center = Place::parse(longitude, latitude)?;
                    rest
                }
                (b"byradius", [radius, unit, rest @ ..]) if searches && !by_box => {
                    by_radius = true;
                    self.read_circle(radius, unit)?;
                    rest
                }
                (b"bybox", [width, height, unit, rest @ ..]) if searches && !by_radius => {
                    by_box = true;
                    self.read_box(width, height, unit)?;
                    rest
                }
                (b"storedist", _) if form == Form::SearchStore => {
                    if let Some(target) = &mut self.target {
                        target.distances = true;
                    }
                    rest
                }
                _ => return Err(Error::SYNTAX),
            };
        }
        let shows = self.with_distance || self.with_hash || self.with_place;
        if self.target.is_some() && shows {
            let what = if searches { "GEOSEARCHSTORE" } else { "STORE option in GEORADIUS" };
            let why = "is not compatible with WITHDIST, WITHHASH and WITHCOORD options";
            return Err(Error(format!("ERR {what} {why}").into()));
        }
        let exactly = |which: &str| {
            let name = printable(name, usize::MAX);
            Error(format!("ERR exactly one of {which} can be specified for {name}").into())
        };
        if searches && !from_member && !from_place {
            return Err(exactly("FROMMEMBER or FROMLONLAT"));
        }
        if searches && !by_radius && !by_box {
            return Err(exactly("BYRADIUS and BYBOX"));
        }
        if self.any && self.count.is_none() {
            return Err(Error::of("ERR the ANY argument requires COUNT argument"));
        }
        Ok(())
    }

    fn read_circle(&mut self, radius: &Bytes, name: &Bytes) -> Result<(), Error> {
        let radius = double(radius).map_err(|_| Error::of("ERR need numeric radius"))?;
        if radius < 0.0 {
            return Err(Error::of("ERR radius cannot be negative"));
        }
        (self.shape, self.unit) = (Shape::Circle { radius }, unit(name)?);
        Ok(())
    }

    fn read_box(&mut self, width: &Bytes, height: &Bytes, name: &Bytes) -> Result<(), Error> {
        let width = double(width).map_err(|_| Error::of("ERR need numeric width"))?;
        let height = double(height).map_err(|_| Error::of("ERR need numeric height"))?;
        if width < 0.0 || height < 0.0 {
            return Err(Error::of("ERR height or width cannot be negative"));
        }
        (self.shape, self.unit) = (Shape::Box { width, height }, unit(name)?);
        Ok(())
    }
}

fn place_of(set: &SortedSet, member: &Bytes) -> Result<Place, Error> {
    let score = set.score(member).ok_or(Error::of("ERR could not decode requested zset member"))?;
    Ok(Cell::of_score(score).middle())
}

/// Returns the indices of GEORADIUS's keys: the first argument, and the destinations.
pub(super) fn keys_around_place(args: &[Bytes]) -> Vec<usize> {
    keys(args, 6)
}

/// Returns the indices of GEORADIUSBYMEMBER's keys.
pub(super) fn keys_around_member(args: &[Bytes]) -> Vec<usize> {
    keys(args, 5)
}

/// Counts the keys of both options, although only the last one is the destination.
fn keys(args: &[Bytes], first_option: usize) -> Vec<usize> {
    let follows = |option: &[u8]| {
        let words = first_option..args.len().saturating_sub(1);
        words.into_iter().find(|at| args[*at].eq_ignore_ascii_case(option)).map(|at| at + 1)
    };
    [Some(1), follows(b"store"), follows(b"storedist")].into_iter().flatten().collect()
}
