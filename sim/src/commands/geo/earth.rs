//! Places on a spherical earth: distances, parsing and replies.

use bytes::Bytes;

use crate::{
    commands::{Error, double},
    generation::{Feature, Generation},
    resp::Reply,
};

/// Radius of the earth in metres.
pub(super) const RADIUS: f64 = 6_372_797.560_856;
pub(super) const LONGITUDE_MAX: f64 = 180.0;
/// A Mercator map that ends at this latitude is a square.
pub(super) const LATITUDE_MAX: f64 = 85.051_128_78;

/// A place, in degrees.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Place {
    pub(super) longitude: f64,
    pub(super) latitude: f64,
}

impl Place {
    /// Parses a longitude and a latitude.
    pub(super) fn parse(longitude: &[u8], latitude: &[u8]) -> Result<Place, Error> {
        let (longitude, latitude) = (double(longitude)?, double(latitude)?);
        if longitude.abs() > LONGITUDE_MAX || latitude.abs() > LATITUDE_MAX {
            return Err(Error(
                format!("ERR invalid longitude,latitude pair {longitude:.6},{latitude:.6}").into(),
            ));
        }
        Ok(Place { longitude, latitude })
    }

    /// Returns the metres to another place along a great circle, by the haversine formula.
    pub(super) fn distance(self, to: Place) -> f64 {
        let (from_latitude, to_latitude) = (self.latitude.to_radians(), to.latitude.to_radians());
        let u = ((to_latitude - from_latitude) / 2.0).sin();
        let v = ((to.longitude.to_radians() - self.longitude.to_radians()) / 2.0).sin();
        let a = u * u + from_latitude.cos() * to_latitude.cos() * v * v;
        2.0 * RADIUS * a.sqrt().asin()
    }

    /// Replies with longitude and latitude.
    pub(super) fn reply(self, generation: Generation) -> Reply {
        let coordinate: fn(f64) -> Reply = match generation.has(Feature::ShortCoordinates) {
            true => |degrees| Reply::Decimal(Bytes::from(degrees.to_string())),
            false => coordinate,
        };
        Reply::Array(vec![coordinate(self.longitude), coordinate(self.latitude)])
    }
}

/// Replies with up to seventeen digits after the point, without trailing zeros.
fn coordinate(degrees: f64) -> Reply {
    let text = format!("{degrees:.17}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    Reply::Decimal(Bytes::copy_from_slice(if text == "-0" { b"0" } else { text.as_bytes() }))
}

/// Replies with a distance that has four digits after the point.
pub(super) fn distance(distance: f64) -> Reply {
    Reply::bulk(if distance.is_nan() { "-nan".into() } else { format!("{distance:.4}") })
}

/// Returns the metres of a unit.
pub(super) fn unit(name: &Bytes) -> Result<f64, Error> {
    match name.to_ascii_lowercase().as_slice() {
        b"m" => Ok(1.0),
        b"km" => Ok(1000.0),
        b"ft" => Ok(0.3048),
        b"mi" => Ok(1609.34),
        _ => Err(Error::of("ERR unsupported unit provided. please use M, KM, FT, MI")),
    }
}
