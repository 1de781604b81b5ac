//! Searches for the places in a circle or in a box, and replies with them or stores them.

use std::{cmp::Ordering, f64::consts::PI};

use bytes::Bytes;

use super::{
    earth::{self, Place},
    grid::{self, Area, Cell, FINEST},
    query::{Form, Query, Shape, Target},
};
use crate::{
    blob::Blob,
    commands::{Ctx, Error, partial_sort::partial_sort_by, sorted_set::storing::store_as},
    generation::Generation,
    keyspace::SortedSet,
    resp::Reply,
};

/// Half of the circumference of the earth on a Mercator map, in metres.
const HALF_AROUND: f64 = 20_037_726.37;
/// Beyond these latitudes the cells of the map are so narrow that larger ones are needed.
const NARROW: [f64; 2] = [66.0, 80.0];

/// A found place.
#[derive(Debug)]
struct Found {
    place: Place,
    metres: f64,
    score: f64,
    member: Blob,
}

/// Runs a geo search command.
pub(super) fn search(ctx: &mut Ctx<'_>, args: &[Bytes], form: Form) -> Result<Reply, Error> {
    let generation = ctx.node.config.generation;
    let set = ctx.read::<SortedSet>(&args[form.key()])?;
    let query = Query::parse(form, args, set)?;
    let mut found = set.map_or_else(Vec::new, |set| look_around(set, &query));
    // With a COUNT, the nearest places come first, unless ANY is given.
    let farthest_first = query.farthest_first.or(query.count.filter(|_| !query.any).map(|_| false));
    let wanted = query.count.unwrap_or(usize::MAX).min(found.len());
    if let Some(farthest_first) = farthest_first {
        order(&mut found, wanted, farthest_first);
    }
    found.truncate(wanted);
    Ok(match &query.target {
        Some(target) => store(ctx, target, found, query.unit, form.event()),
        None => Reply::Array(found.into_iter().map(|found| answer(found, &query, generation)).collect()),
    })
}

fn order(found: &mut [Found], wanted: usize, farthest_first: bool) {
    let compare = |a: &Found, b: &Found| {
        let order = a.metres.partial_cmp(&b.metres).unwrap_or_else(|| a.metres.total_cmp(&b.metres));
        if farthest_first { order.reverse() } else { order }
    };
    if wanted == found.len() {
        found.sort_by(compare);
    } else {
        partial_sort_by(found, 0..wanted, compare);
    }
}

fn answer(found: Found, query: &Query, generation: Generation) -> Reply {
    let member = Reply::from(found.member);
    let mut replies = vec![member];
    if query.with_distance {
        replies.push(earth::distance(found.metres / query.unit));
    }
    if query.with_hash {
        replies.push(Reply::Integer(grid::truncate(found.score)));
    }
    if query.with_place {
        replies.push(found.place.reply(generation));
    }
    if replies.len() > 1 { Reply::Array(replies) } else { replies.swap_remove(0) }
}

fn store(ctx: &mut Ctx<'_>, target: &Target, found: Vec<Found>, unit: f64, event: &'static str) -> Reply {
    let encodings = ctx.node.config.keyspace.encodings;
    let count = found.len();
    let scored = found.into_iter().map(|found| {
        let distance = found.metres / unit;
        // For opposite points of the earth the formula may give NaN.
        let score = if !target.distances {
            found.score
        } else {
            Some(distance).filter(|d| !d.is_nan()).unwrap_or(0.0)
        };
        (found.member, score)
    });
    let mut set = SortedSet::large(scored);
    set.compact(&encodings);
    store_as(ctx, &target.key, set, count, event)
}

/// Returns the places inside the shape, cell by cell, in each cell by score. With ANY the search
/// ends at COUNT places.
fn look_around(set: &SortedSet, query: &Query) -> Vec<Found> {
    let enough = query.count.filter(|_| query.any).unwrap_or(usize::MAX);
    let mut found = Vec::new();
    let mut last: Option<Cell> = None;
    for cell in cells(query) {
        // On a map only a few cells wide, the neighbours on both sides are the same cell.
        if last == Some(cell) {
            continue;
        }
        last = Some(cell);
        let (min, max) = cell.scores();
        let first = set.partition(|score, _| score < min);
        let members = set.range(first..set.len(), false).take_while(|(score, _)| *score < max);
        for (score, member) in members {
            let place = Cell::of_score(score).middle();
            if let Some(metres) = within(query, place) {
                found.push(Found { place, metres, score, member: member.clone() });
                if found.len() >= enough {
                    return found;
                }
            }
        }
    }
    found
}

/// Returns the distance of a place from the center; `None` if it is outside the shape.
fn within(query: &Query, place: Place) -> Option<f64> {
    let center = query.center;
    match query.shape {
        Shape::Circle { radius } => {
            let metres = place.distance(center);
            // A NaN is not greater than the radius.
            (metres.partial_cmp(&(radius * query.unit)) != Some(Ordering::Greater)).then_some(metres)
        }
        Shape::Box { width, height } => {
            let beside = Place { longitude: center.longitude, latitude: place.latitude };
            let below = Place { longitude: place.longitude, latitude: center.latitude };
            let outside = place.distance(beside) > width * query.unit / 2.0
                || place.distance(below) > height * query.unit / 2.0;
            (!outside).then(|| center.distance(place))
        }
    }
}

/// Returns the part of the map that encloses the shape.
fn bounds(query: &Query) -> Area {
    let Place { longitude, latitude } = query.center;
    let (height, width) = match query.shape {
        Shape::Circle { radius } => (query.unit * radius, query.unit * radius),
        Shape::Box { width, height } => (query.unit * (height / 2.0), query.unit * (width / 2.0)),
    };
    let degrees = |radians: f64| radians / (PI / 180.0);
    let tall = degrees(height / earth::RADIUS);
    // Closer to the pole, the shape spans more degrees of longitude.
    let polar = if latitude < 0.0 { latitude - tall } else { latitude + tall };
    let wide = degrees(width / earth::RADIUS / polar.to_radians().cos());
    Area { west: longitude - wide, east: longitude + wide, south: latitude - tall, north: latitude + tall }
}

/// Returns the finest grid in which a cell and its neighbours cover a circle.
fn estimated_step(metres: f64, latitude: f64) -> u32 {
    if metres == 0.0 {
        return FINEST;
    }
    let (mut metres, mut step) = (metres, 1i32);
    while metres < HALF_AROUND {
        metres *= 2.0;
        step += 1;
    }
    step -= 2;
    step -= NARROW.iter().filter(|narrow| latitude.abs() > **narrow).count() as i32;
    step.clamp(1, FINEST as i32) as u32
}

/// Returns the cells that the shape may reach, in search order.
fn cells(query: &Query) -> Vec<Cell> {
    let metres = query.unit
        * match query.shape {
            Shape::Circle { radius } => radius,
            Shape::Box { width, height } => {
                ((width / 2.0) * (width / 2.0) + (height / 2.0) * (height / 2.0)).sqrt()
            }
        };
    let bounds = bounds(query);
    let mut step = estimated_step(metres, query.center.latitude);
    let mut cell = Cell::of(query.center, &Area::MAP, step);
    let area = |columns, rows| cell.moved(columns, rows).area();
    let covered = area(0, 1).north >= bounds.north
        && area(0, -1).south <= bounds.south
        && area(1, 0).east >= bounds.east
        && area(-1, 0).west <= bounds.west;
    if step > 1 && !covered {
        step -= 1;
        cell = Cell::of(query.center, &Area::MAP, step);
    }
    let own = cell.area();
    // A neighbour on a side that the shape does not reach has no places in the shape.
    let useless = |columns: i32, rows: i32| {
        step >= 2
            && (rows < 0 && own.south < bounds.south
                || rows > 0 && own.north > bounds.north
                || columns < 0 && own.west < bounds.west
                || columns > 0 && own.east > bounds.east)
    };
    let around = [(0, 1), (0, -1), (1, 0), (-1, 0), (1, 1), (-1, 1), (1, -1), (-1, -1)];
    let around = around.into_iter().filter(|(columns, rows)| !useless(*columns, *rows));
    std::iter::once((0, 0)).chain(around).map(|(columns, rows)| cell.moved(columns, rows)).collect()
}
