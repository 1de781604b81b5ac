//! The survival of holds: the share of them that the servers still have after a given time.
//!
//! The estimate is that of Kaplan and Meier, "Nonparametric Estimation from Incomplete
//! Observations" (1958): a released hold counts for as long as it was observed, and contributes
//! nothing to later times. The band is Greenwood's, computed for log(-log S) so that it stays
//! between 0 and 1 (Kalbfleisch and Prentice, *The Statistical Analysis of Failure Time Data*).

use std::time::Duration;

use plotters::prelude::*;

use super::CURVE;
use lockstorm::judge::{checker::Hold, verdict::percent};

/// The normal quantile of a 95 % band.
const QUANTILE: f64 = 1.959_964;

/// A step of the estimate, at a time at which holds were lost.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Step {
    /// The time since the beginning of the holds.
    pub(crate) after: Duration,
    /// The share of the holds that the servers keep for longer.
    pub(crate) share: f64,
    /// The lower and upper bound of the share at 95 %.
    pub(crate) band: (f64, f64),
}

/// The estimated survival of holds.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Survival {
    steps: Vec<Step>,
    holds: usize,
    lost: usize,
    longest: Duration,
}

impl Survival {
    /// Estimates the survival from holds in any order.
    pub(crate) fn of(mut holds: Vec<Hold>) -> Survival {
        // A hold that is lost at the instant of another one's release was at risk together with it.
        holds.sort_by_key(|hold| (hold.seen, !hold.lost));
        let (mut share, mut variance, mut seen) = (1.0, 0.0, 0);
        let mut steps = Vec::new();
        for alike in holds.chunk_by(|one, other| one.seen == other.seen) {
            let at_risk = (holds.len() - seen) as f64;
            let lost = alike.iter().filter(|hold| hold.lost).count() as f64;
            seen += alike.len();
            if lost > 0.0 {
                share *= 1.0 - lost / at_risk;
                variance += lost / (at_risk * (at_risk - lost));
                steps.push(Step { after: alike[0].seen, share, band: band(share, variance) });
            }
        }
        let lost = holds.iter().filter(|hold| hold.lost).count();
        let longest = holds.last().map_or(Duration::ZERO, |hold| hold.seen);
        Survival { steps, holds: holds.len(), lost, longest }
    }

    /// Draws the picture.
    pub(crate) fn svg(&self, title: &str) -> String {
        let mut svg = String::new();
        // This backend fails only if it cannot write a file, and this one writes to memory.
        self.draw(title, &mut svg).expect("an SVG in memory");
        svg
    }

    fn draw<'s>(
        &self,
        title: &str,
        svg: &'s mut String,
    ) -> Result<(), DrawingAreaErrorKind<<SVGBackend<'s> as DrawingBackend>::ErrorType>> {
        let end = self.longest.as_secs_f64().max(0.001);
        let root = SVGBackend::with_string(svg, CURVE).into_drawing_area();
        root.fill(&WHITE)?;
        let caption = format!("{title}, {} holds, {} lost", self.holds, self.lost);
        let mut chart = ChartBuilder::on(&root)
            .caption(caption, ("sans-serif", 17))
            .margin(14)
            .x_label_area_size(48)
            .y_label_area_size(64)
            .build_cartesian_2d(0.0..end, 0.0..1.0)?;
        chart
            .configure_mesh()
            .light_line_style(TRANSPARENT)
            .y_label_formatter(&|share| percent(*share))
            .x_desc("time since the owner first believed in its hold (seconds)")
            .y_desc("share of the holds that the servers still have")
            .draw()?;
        let low = stairs(self.steps.iter().map(|step| (step.after, step.band.0)), end);
        let high = stairs(self.steps.iter().map(|step| (step.after, step.band.1)), end);
        let outline: Vec<(f64, f64)> = high.into_iter().chain(low.into_iter().rev()).collect();
        chart.draw_series([Polygon::new(outline, RED.mix(0.15))])?;
        let line = stairs(self.steps.iter().map(|step| (step.after, step.share)), end);
        chart.draw_series(LineSeries::new(line, RED.stroke_width(2)))?;
        root.present()
    }
}

/// Returns the bounds of a share whose logarithm has this variance.
fn band(share: f64, variance: f64) -> (f64, f64) {
    if share <= 0.0 {
        return (0.0, 0.0);
    }
    let width = QUANTILE * variance.sqrt() / share.ln();
    // The logarithm of a share is negative.
    (share.powf((-width).exp()), share.powf(width.exp()))
}

/// Returns the points of a step function that starts at 1.
fn stairs(steps: impl Iterator<Item = (Duration, f64)>, end: f64) -> Vec<(f64, f64)> {
    let mut line = vec![(0.0, 1.0)];
    for (after, share) in steps {
        let (at, before) = (after.as_secs_f64(), line[line.len() - 1].1);
        line.extend([(at, before), (at, share)]);
    }
    line.push((end, line[line.len() - 1].1));
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(holds: &[(u64, bool)]) -> Vec<(u64, f64)> {
        let hold = |(ms, lost): &(u64, bool)| Hold { seen: Duration::from_millis(*ms), lost: *lost };
        let survival = Survival::of(holds.iter().map(hold).collect());
        let rounded = |share: f64| (share * 1e4).round() / 1e4;
        survival.steps.iter().map(|step| (step.after.as_millis() as u64, rounded(step.share))).collect()
    }

    /// The first row is the example of Kaplan and Meier's paper: losses at 0.8, 3.1, 5.4 and 9.2,
    /// and four others observed for 1.0, 2.7, 7.0 and 12.1.
    #[test]
    fn a_hold_that_is_given_back_counts_for_as_long_as_it_was_seen() {
        for (holds, expected) in [
            (
                &[
                    (800, true),
                    (1_000, false),
                    (2_700, false),
                    (3_100, true),
                    (5_400, true),
                    (7_000, false),
                    (9_200, true),
                    (12_100, false),
                ][..],
                &[(800, 0.875), (3_100, 0.7), (5_400, 0.525), (9_200, 0.2625)][..],
            ),
            (&[(5, false), (6, false)], &[]),
            (&[(5, true), (5, false)], &[(5, 0.5)]),
            (&[(5, true), (5, true)], &[(5, 0.0)]),
            (&[], &[]),
        ] {
            assert_eq!(of(holds), expected, "{holds:?}");
        }
    }

    /// A share of nine of ten. Its band is wider below than above, and lies within 0 and 1.
    #[test]
    fn the_band_lies_around_the_share() {
        let holds = (0..10).map(|number| Hold { seen: Duration::from_secs(1), lost: number == 0 });
        let step = Survival::of(holds.collect()).steps[0];
        let (low, high) = step.band;
        assert!((0.0..0.9).contains(&low) && (0.9..1.0).contains(&high), "{step:?}");
        assert!((low - 0.473).abs() < 0.001 && (high - 0.985).abs() < 0.001, "{step:?}");
    }
}
