//! Draws runs: a sweep as a heat map over two axes or as a curve with its band over one, and holds
//! as a survival curve.

mod survival;

use plotters::{
    coord::{
        ranged1d::{SegmentValue, SegmentedCoord},
        types::RangedCoordusize,
    },
    prelude::*,
    style::text_anchor::{HPos, Pos, VPos},
};

use lockstorm::{
    file::scenario::Coordinate,
    judge::verdict::percent,
    run::tally::{Row, Tally},
};

pub(crate) use survival::Survival;

/// The size of a cell of a heat map, in pixels. It fits two lines of text.
const CELL: (u32, u32) = (72, 42);
/// The width to the left of the cells, and the height under them, in pixels.
const MARGINS: (u32, u32) = (150, 140);
/// The size of a curve, in pixels.
const CURVE: (u32, u32) = (860, 480);
/// The most cells on one axis. More are not readable.
const CELLS_MAX: usize = 200;
/// The most labels under a curve or a map. More would overlap.
const LABELS_MAX: usize = 24;

/// The plot data of one variant of a sweep.
#[derive(Debug)]
pub(crate) struct Plot<'a> {
    title: String,
    axes: Vec<PlotAxis<'a>>,
    /// For each point that the checker judged, its index on each axis, and its counts.
    points: Vec<(Vec<usize>, &'a Row)>,
}

#[derive(Debug)]
struct PlotAxis<'a> {
    name: &'a str,
    /// In the order of the sweep.
    values: Vec<&'a Coordinate>,
}

/// Chooses the checker for a picture of the runs of one variant: the one that its scenario names,
/// or the first that was violated.
pub(crate) fn checker<'a>(tallies: &'a [Tally<'_>]) -> Option<&'a str> {
    let named = tallies.iter().find_map(|tally| tally.variant.scenario.plot.as_deref());
    let violated = || tallies.iter().flat_map(|tally| &tally.rows).find(|row| row.violated.yes > 0);
    named.or_else(|| violated().map(|row| &*row.checker))
}

impl<'a> Plot<'a> {
    /// Prepares the results of one checker for the runs of one variant.
    ///
    /// # Errors
    /// Fails if there are no runs, not one or two axes, too many values to draw, or no results of
    /// the checker.
    pub(crate) fn of(file: &str, tallies: &'a [Tally<'_>], checker: &str) -> Result<Plot<'a>, String> {
        let Some(first) = tallies.first() else { return Err("there are no runs".to_owned()) };
        let mut axes: Vec<PlotAxis<'_>> =
            first.variant.point.iter().map(|at| PlotAxis { name: &at.axis, values: Vec::new() }).collect();
        if !(1..=2).contains(&axes.len()) {
            let axes = axes.len();
            return Err(format!("a picture shows a sweep of one or two axes, and {file} has {axes}"));
        }
        let mut points = Vec::new();
        for tally in tallies {
            let mut place = Vec::new();
            for (axis, at) in axes.iter_mut().zip(&tally.variant.point) {
                let known = axis.values.iter().position(|value| value.value == at.value);
                place.push(known.unwrap_or(axis.values.len()));
                if known.is_none() {
                    axis.values.push(at);
                }
            }
            points.extend(tally.rows.iter().find(|row| row.checker == checker).map(|row| (place, row)));
        }
        if points.is_empty() {
            return Err(format!("{checker} was never violated, and nothing is expected of it"));
        }
        if let Some(axis) = axes.iter().find(|axis| axis.values.len() > CELLS_MAX) {
            return Err(format!("{} has too many values for a picture: at most {CELLS_MAX}", axis.name));
        }
        let of = if first.variant.of.is_empty() { String::new() } else { format!("#{}", first.variant.of) };
        let runs: usize = tallies.iter().map(|tally| tally.runs).sum();
        Ok(Plot { title: format!("{checker} violated: {file}{of}, {runs} runs"), axes, points })
    }

    /// Draws the picture.
    pub(crate) fn svg(&self) -> String {
        let mut svg = String::new();
        let drawn = if let [axis] = &self.axes[..] { self.curve(axis, &mut svg) } else { self.map(&mut svg) };
        // This backend fails only if it cannot write a file, and this one writes to memory.
        drawn.expect("an SVG in memory");
        svg
    }

    fn map<'s>(
        &self,
        svg: &'s mut String,
    ) -> Result<(), DrawingAreaErrorKind<<SVGBackend<'s> as DrawingBackend>::ErrorType>> {
        let [across, up] = &self.axes[..] else { return Ok(()) };
        let (columns, rows) = (across.values.len(), up.values.len());
        let size = |cells: usize, each: u32, margin: u32| cells as u32 * each + margin;
        let width = size(columns, CELL.0, MARGINS.0).max(640);
        let root = SVGBackend::with_string(svg, (width, size(rows, CELL.1, MARGINS.1))).into_drawing_area();
        root.fill(&WHITE)?;
        let mut chart = ChartBuilder::on(&root)
            .caption(&self.title, ("sans-serif", 17))
            .margin(14)
            .x_label_area_size(52)
            .y_label_area_size(92)
            .build_cartesian_2d(segments(columns), segments(rows))?;
        let label = |axis: &PlotAxis<'_>, at: &SegmentValue<usize>| match at {
            SegmentValue::CenterOf(at) => axis.values.get(*at).map_or(String::new(), |at| at.value.clone()),
            _ => String::new(),
        };
        chart
            .configure_mesh()
            .disable_mesh()
            .x_labels(columns.min(LABELS_MAX))
            .y_labels(rows.min(LABELS_MAX))
            .x_label_formatter(&|at| label(across, at))
            .y_label_formatter(&|at| label(up, at))
            .x_desc(across.name)
            .y_desc(up.name)
            .draw()?;
        let edge = |at, of| if at == of { SegmentValue::Last } else { SegmentValue::Exact(at) };
        let corner = |column, row| (edge(column, columns), edge(row, rows));
        chart.draw_series(self.points.iter().map(|(place, row)| {
            let (column, line) = (place[0], place[1]);
            Rectangle::new([corner(column, line), corner(column + 1, line + 1)], shade(row).filled())
        }))?;
        for (lines, size, above) in [(counts as fn(&Row) -> String, 12, true), (bounds, 10, false)] {
            let place = Pos::new(HPos::Center, if above { VPos::Bottom } else { VPos::Top });
            chart.draw_series(self.points.iter().map(|(at, row)| {
                let ink = if share(row) > 0.6 { &WHITE } else { &BLACK };
                let style = ("sans-serif", size).into_font().color(ink).pos(place);
                let at = (SegmentValue::CenterOf(at[0]), SegmentValue::CenterOf(at[1]));
                Text::new(lines(row), at, style)
            }))?;
        }
        root.present()
    }

    fn curve<'s>(
        &self,
        axis: &PlotAxis<'_>,
        svg: &'s mut String,
    ) -> Result<(), DrawingAreaErrorKind<<SVGBackend<'s> as DrawingBackend>::ErrorType>> {
        // Draw values that are not numbers side by side.
        let numbers: Vec<f64> =
            axis.values.iter().enumerate().map(|(at, value)| value.number.unwrap_or(at as f64)).collect();
        let is_number = axis.values.iter().all(|value| value.number.is_some());
        let least = numbers.iter().copied().fold(f64::INFINITY, f64::min);
        let most = numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let most = if most > least { most } else { least + 1.0 };
        let root = SVGBackend::with_string(svg, CURVE).into_drawing_area();
        root.fill(&WHITE)?;
        let mut chart = ChartBuilder::on(&root)
            .caption(&self.title, ("sans-serif", 17))
            .margin(14)
            .x_label_area_size(48)
            .y_label_area_size(64)
            .build_cartesian_2d(least..most, 0.0..1.0)?;
        let near = |at: f64| {
            let at = numbers
                .iter()
                .enumerate()
                .min_by(|(_, one), (_, other)| (*one - at).abs().total_cmp(&(*other - at).abs()));
            at.map_or(String::new(), |(at, _)| axis.values[at].value.clone())
        };
        chart
            .configure_mesh()
            .light_line_style(TRANSPARENT)
            .x_labels(axis.values.len().min(LABELS_MAX / 2))
            .x_label_formatter(&|at| if is_number { format!("{at}") } else { near(*at) })
            .y_label_formatter(&|share| percent(*share))
            .x_desc(if is_number { format!("{} ({})", axis.name, unit(axis)) } else { axis.name.to_owned() })
            .y_desc("share of the runs, with its interval")
            .draw()?;
        let mut points: Vec<(f64, &Row)> =
            self.points.iter().map(|(place, row)| (numbers[place[0]], *row)).collect();
        points.sort_by(|(one, _), (other, _)| one.total_cmp(other));
        let up = points.iter().map(|(at, row)| (*at, row.interval.high));
        let down = points.iter().rev().map(|(at, row)| (*at, row.interval.low));
        let band: Vec<(f64, f64)> = up.chain(down).collect();
        chart.draw_series([Polygon::new(band, RED.mix(0.15))])?;
        let line: Vec<(f64, f64)> = points.iter().map(|(at, row)| (*at, share(row))).collect();
        chart.draw_series(LineSeries::new(line.clone(), RED.stroke_width(2)))?;
        chart.draw_series(line.into_iter().map(|at| Circle::new(at, 3, RED.filled())))?;
        root.present()
    }
}

/// Returns a range of this many cells. plotters includes both ends.
fn segments(cells: usize) -> SegmentedCoord<RangedCoordusize> {
    (0..cells.saturating_sub(1).max(1)).into_segmented()
}

/// Formats the number of violated runs and of all runs in a cell.
fn counts(row: &Row) -> String {
    format!("{}/{}", row.violated.yes, row.violated.runs())
}

/// Formats the interval of the share, in whole percent.
fn bounds(row: &Row) -> String {
    let whole = |share: f64| (100.0 * share).round();
    format!("{} to {}%", whole(row.interval.low), whole(row.interval.high))
}

/// Returns the unit of an axis's numbers, from the notation of its first value.
fn unit(axis: &PlotAxis<'_>) -> &'static str {
    match axis.values.first().map(|first| first.value.as_str()) {
        Some(value) if value.ends_with('%') || value.ends_with("ppm") => "percent",
        Some(value) if value.ends_with(|c: char| c.is_ascii_alphabetic()) => "seconds",
        _ => "count",
    }
}

/// The share of the runs that were violated.
fn share(row: &Row) -> f64 {
    row.violated.yes as f64 / row.violated.runs().max(1) as f64
}

/// Returns white if no run was violated, red if all were, and grey if all are undecided.
fn shade(row: &Row) -> RGBColor {
    if row.violated.undecided == row.violated.runs() {
        return RGBColor(210, 210, 210);
    }
    let fade = |to: u8| (255.0 - share(row) * f64::from(255 - to)).round() as u8;
    RGBColor(fade(180), fade(30), fade(40))
}
