//! The grid over the earth: numbered cells and their neighbours. The bits of a number alternate
//! between latitude and longitude.
//!
//! Source: G. M. Morton's order of cells, and Gustavo Niemeyer's geohash, which is the same order
//! written with letters.

use super::earth::{LATITUDE_MAX, LONGITUDE_MAX, Place};

/// Halvings of each side of the map in the finest grid: 52 bits, which a double holds exactly.
pub(super) const FINEST: u32 = 26;

/// A part of the map.
#[derive(Debug, Clone, Copy)]
pub(super) struct Area {
    pub(super) west: f64,
    pub(super) east: f64,
    pub(super) south: f64,
    pub(super) north: f64,
}

impl Area {
    /// The map whose cells are the scores.
    pub(super) const MAP: Area =
        Area { west: -LONGITUDE_MAX, east: LONGITUDE_MAX, south: -LATITUDE_MAX, north: LATITUDE_MAX };
    /// The map of standard geohashes: it reaches to the poles.
    pub(super) const WHOLE: Area = Area { south: -90.0, north: 90.0, ..Area::MAP };

    fn middle(&self) -> Place {
        let middle = |low: f64, high: f64, max: f64| ((low + high) / 2.0).clamp(-max, max);
        Place {
            longitude: middle(self.west, self.east, LONGITUDE_MAX),
            latitude: middle(self.south, self.north, LATITUDE_MAX),
        }
    }
}

/// A cell of the grid that halves the map `step` times in each direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cell {
    /// The even positions hold the latitude's bits, the odd ones the longitude's.
    pub(super) bits: u64,
    pub(super) step: u32,
}

impl Cell {
    /// Returns the cell of `map` that contains a place. At the very end of a side it is one beyond
    /// the last.
    pub(super) fn of(place: Place, map: &Area, step: u32) -> Cell {
        let part = |at: f64, low: f64, high: f64| ((at - low) / (high - low) * (1u64 << step) as f64) as u32;
        let row = part(place.latitude, map.south, map.north);
        let column = part(place.longitude, map.west, map.east);
        Cell { bits: spread(row) | spread(column) << 1, step }
    }

    /// Returns the cell of a score.
    pub(super) fn of_score(score: f64) -> Cell {
        // A client may use a geo command on any sorted set. Convert scores of no cell like an
        // x86-64 machine.
        let half = (1u64 << 63) as f64;
        let bits =
            if score >= half { truncate(score - half) as u64 ^ 1 << 63 } else { truncate(score) as u64 };
        Cell { bits, step: FINEST }
    }

    /// Returns the middle of the cell.
    pub(super) fn middle(self) -> Place {
        self.area().middle()
    }

    /// Returns the cell's area on the map.
    pub(super) fn area(self) -> Area {
        let map = Area::MAP;
        let side = |index: u32, low: f64, high: f64| {
            low + (f64::from(index) / (1u64 << self.step) as f64) * (high - low)
        };
        let (row, column) = (gather(self.bits), gather(self.bits >> 1));
        Area {
            west: side(column, map.west, map.east),
            east: side(column.wrapping_add(1), map.west, map.east),
            south: side(row, map.south, map.north),
            north: side(row.wrapping_add(1), map.south, map.north),
        }
    }

    /// Returns the cell this many columns to the east and rows to the north. Beyond an edge the map
    /// continues on the opposite side.
    pub(super) fn moved(self, columns: i32, rows: i32) -> Cell {
        let moved = |index: u32, by: i32| match by {
            0 => index,
            _ => index.wrapping_add_signed(by) & (u32::MAX >> (32 - self.step)),
        };
        let (row, column) = (moved(gather(self.bits), rows), moved(gather(self.bits >> 1), columns));
        Cell { bits: spread(row) | spread(column) << 1, step: self.step }
    }

    /// Returns the scores of all places in the cell: from the first to below the second.
    pub(super) fn scores(self) -> (f64, f64) {
        let shift = 2 * (FINEST - self.step);
        ((self.bits << shift) as f64, (self.bits.wrapping_add(1) << shift) as f64)
    }
}

/// Converts a double to an integer like an x86-64 machine, with one result for all that do not fit.
pub(super) fn truncate(number: f64) -> i64 {
    let bound = (1u64 << 63) as f64;
    if (-bound..bound).contains(&number) { number as i64 } else { i64::MIN }
}

/// Steps of spreading bits: the shift, and the mask of the resulting positions.
const STEPS: [(u32, u64); 5] = [
    (16, 0x0000_ffff_0000_ffff),
    (8, 0x00ff_00ff_00ff_00ff),
    (4, 0x0f0f_0f0f_0f0f_0f0f),
    (2, 0x3333_3333_3333_3333),
    (1, 0x5555_5555_5555_5555),
];

/// Moves bit n to position 2n.
fn spread(bits: u32) -> u64 {
    STEPS.iter().fold(u64::from(bits), |bits, (shift, mask)| (bits | bits << shift) & mask)
}

/// Gathers the bits in the even positions.
fn gather(bits: u64) -> u32 {
    let spread = bits & STEPS[4].1;
    let after = [STEPS[3].1, STEPS[2].1, STEPS[1].1, STEPS[0].1, u32::MAX.into()];
    let shifts = STEPS.iter().rev().map(|(shift, _)| shift);
    shifts.zip(after).fold(spread, |bits, (shift, mask)| (bits | bits >> shift) & mask) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_spread_and_gathered() {
        for bits in [0, 1, 2, 0x8000_0000, 0xdead_beef, u32::MAX] {
            let spread = spread(bits);
            assert!((0..32).all(|at| spread >> (2 * at) & 1 == u64::from(bits >> at & 1)), "{bits:x}");
            assert_eq!((gather(spread), gather(spread << 1)), (bits, 0));
        }
    }

    #[test]
    fn a_cell_holds_its_place_and_has_neighbours_all_around() {
        for (longitude, latitude) in [(13.36, 38.11), (-180.0, -85.0), (179.999, 85.05), (0.0, 0.0)] {
            for step in 1..=FINEST {
                let cell = Cell::of(Place { longitude, latitude }, &Area::MAP, step);
                let area = cell.area();
                assert!((area.west..=area.east).contains(&longitude), "{area:?} {longitude}");
                assert!((area.south..=area.north).contains(&latitude), "{area:?} {latitude}");
                for (columns, rows) in [(0, 1), (1, 0), (1, 1), (-1, 1)] {
                    assert_eq!(cell.moved(columns, rows).moved(-columns, -rows), cell);
                }
            }
        }
    }

    #[test]
    fn any_score_stands_for_a_cell() {
        for (score, bits) in [
            (3.9, 3),
            (-1.0, u64::MAX),
            (f64::INFINITY, 0),
            (f64::NEG_INFINITY, 1 << 63),
            (1.0e19, 10_000_000_000_000_000_000),
        ] {
            assert_eq!(Cell::of_score(score).bits, bits, "{score}");
        }
    }
}
