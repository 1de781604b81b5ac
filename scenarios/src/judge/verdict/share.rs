//! The share of many runs in which a property holds, and the conclusions that their number allows.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, Normal};

use super::{Finding, Match, Verdict};

/// The confidence of a verdict about a share, if the scenario sets none.
pub const CONFIDENCE: f64 = 0.95;

/// A bound on a share of runs: `<= 1%` or `>= 99%`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Share {
    /// True if the share must be at least the bound, false if it must be at most the bound.
    pub at_least: bool,
    /// The bound, from 0 to 1.
    pub bound: f64,
    /// The confidence of the verdict, from 0.5 to 1.
    pub confidence: f64,
}

/// The chance of a wrong verdict before all runs are done, as a fraction of its chance at the end.
const EARLY: f64 = 1.0 / 50.0;

/// The runs of an experiment, counted by their outcomes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Count {
    /// The runs with the outcome that is counted.
    pub yes: u64,
    /// The runs with the opposite outcome.
    pub no: u64,
    /// The runs that do not decide.
    pub undecided: u64,
}

impl std::ops::AddAssign for Count {
    fn add_assign(&mut self, other: Count) {
        self.yes += other.yes;
        self.no += other.no;
        self.undecided += other.undecided;
    }
}

/// The interval in which a share lies, ends included.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// The least share, from 0 to 1.
    pub low: f64,
    /// The greatest share, from 0 to 1.
    pub high: f64,
}

impl Count {
    /// Counts the findings: `yes` are the violated ones.
    pub fn of<'a>(findings: impl IntoIterator<Item = &'a Finding>) -> Count {
        let mut count = Count::default();
        for finding in findings {
            *match finding.verdict {
                Verdict::Violated { .. } => &mut count.yes,
                Verdict::Holds { .. } => &mut count.no,
                Verdict::Undecided { .. } => &mut count.undecided,
            } += 1;
        }
        count
    }

    /// Counts one run, by the [word](Verdict::word) of its verdict; `None` for any other word.
    pub fn of_word(word: &str) -> Option<Count> {
        match word {
            "violated" => Some(Count { yes: 1, ..Count::default() }),
            "holds" => Some(Count { no: 1, ..Count::default() }),
            "undecided" => Some(Count { undecided: 1, ..Count::default() }),
            _ => None,
        }
    }

    /// Returns the number of runs.
    pub fn runs(self) -> u64 {
        self.yes + self.no + self.undecided
    }

    /// Returns the interval in which the share of `yes` lies with this confidence. An undecided run
    /// may be either, which makes the interval wider.
    ///
    /// ```
    /// use lockstorm::judge::verdict::Count;
    /// let none_of_a_hundred = Count { no: 100, ..Count::default() }.interval(0.95);
    /// assert_eq!(none_of_a_hundred.to_string(), "0%..3.7%");
    /// ```
    pub fn interval(self, confidence: f64) -> Interval {
        Interval {
            low: wilson(self.yes, self.runs(), confidence).low,
            high: wilson(self.yes + self.undecided, self.runs(), confidence).high,
        }
    }
}

/// The score interval of a binomial share: Wilson, *Probable inference, the law of succession, and
/// statistical inference* (1927).
fn wilson(yes: u64, runs: u64, confidence: f64) -> Interval {
    if runs == 0 {
        return Interval { low: 0.0, high: 1.0 };
    }
    let z = Normal::standard().inverse_cdf(0.5 + confidence / 2.0);
    let (n, share) = (runs as f64, yes as f64 / runs as f64);
    let middle = share + z * z / (2.0 * n);
    let half = z * (share * (1.0 - share) / n + z * z / (4.0 * n * n)).sqrt();
    let scale = 1.0 + z * z / n;
    // The formula is exact at either end, but its rounding errors are not.
    Interval {
        low: if yes == 0 { 0.0 } else { (middle - half) / scale },
        high: if yes == runs { 1.0 } else { (middle + half) / scale },
    }
}

impl Share {
    /// Returns true if these runs decide the share before all runs are done. Looking again and
    /// again, and stopping when the interval happens to decide, is wrong more often than the
    /// confidence allows. So an early stop takes a wider interval (for 95 %, that of 99.9 %), and
    /// the verdict at the end keeps its confidence: Haybittle, *Repeated assessment of results in
    /// clinical trials of cancer treatment* (1971), and Peto et al. (1976).
    pub fn is_decided_early(&self, count: Count) -> bool {
        let early = Share { confidence: 1.0 - (1.0 - self.confidence) * EARLY, ..*self };
        !matches!(early.judge(count), Match::Undecided(_))
    }

    /// Judges by these runs if the share meets the bound. The result is *undecided* while the bound
    /// lies in the interval.
    pub fn judge(&self, count: Count) -> Match {
        let Interval { low, high } = count.interval(self.confidence);
        let (shown, refuted) = if self.at_least {
            (low >= self.bound, high < self.bound)
        } else {
            (high <= self.bound, low > self.bound)
        };
        let found = || {
            let (yes, runs, sure) = (count.yes, count.runs(), percent(self.confidence));
            format!(
                "expected {self}, found {yes} of {runs}: {} with {sure} confidence",
                Interval { low, high }
            )
        };
        match (shown, refuted) {
            (true, _) => Match::AsExpected,
            (_, true) => Match::Otherwise(found()),
            _ if count.undecided > 0 => {
                Match::Undecided(format!("{}; {} runs do not say", found(), count.undecided))
            }
            _ => Match::Undecided(format!("{}; more seeds would decide it", found())),
        }
    }
}

/// Formats a share as text: `12.5%`, rounded to a tenth of a percent or, below one percent, to a
/// hundredth.
pub fn percent(share: f64) -> String {
    let percent = share * 100.0;
    let digits = if percent > 0.0 && percent < 1.0 { 100.0 } else { 10.0 };
    format!("{}%", (percent * digits).round() / digits)
}

/// Reads a share such as `95%`.
pub(super) fn read_percent(text: &str) -> Option<f64> {
    let number: f64 = text.trim().strip_suffix('%')?.trim_end().parse().ok()?;
    (0.0..=100.0).contains(&number).then_some(number / 100.0)
}

impl fmt::Display for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..{}", percent(self.low), percent(self.high))
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // As written in the file: to six decimal places, not to the digits of [`percent`].
        let bound = (self.bound * 1e8).round() / 1e6;
        write!(f, "{} {bound}%", if self.at_least { ">=" } else { "<=" })
    }
}

impl FromStr for Share {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!(r#"expected a share of the runs such as "<= 1%" or ">= 99%", found {text:?}"#);
        let trimmed = text.trim();
        let (at_least, bound) = match (trimmed.strip_prefix(">="), trimmed.strip_prefix("<=")) {
            (Some(bound), _) => (true, bound),
            (_, Some(bound)) => (false, bound),
            _ => return Err(wrong()),
        };
        let bound = read_percent(bound).ok_or_else(wrong)?;
        Ok(Self { at_least, bound, confidence: CONFIDENCE })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Newcombe, *Two-sided confidence intervals for the single proportion* (1998), table I, method
    /// 3: 81 of 263, 15 of 148, 0 of 20 and 1 of 29.
    #[test]
    fn intervals_are_those_of_the_literature() {
        for (yes, runs, low, high) in [
            (81, 263, 0.2553, 0.3662),
            (15, 148, 0.0624, 0.1605),
            (0, 20, 0.0, 0.1611),
            (1, 29, 0.0061, 0.1718),
        ] {
            let found = wilson(yes, runs, 0.95);
            assert!((found.low - low).abs() < 5e-5, "{yes} of {runs}: {found:?}");
            assert!((found.high - high).abs() < 5e-5, "{yes} of {runs}: {found:?}");
        }
        assert_eq!(wilson(0, 0, 0.95), Interval { low: 0.0, high: 1.0 });
    }

    #[test]
    fn a_share_is_shown_refuted_or_undecided() {
        let count = |yes, no, undecided| Count { yes, no, undecided };
        for (rate, count, verdict) in [
            ("<= 1%", count(0, 1000, 0), "as expected"),
            ("<= 1%", count(0, 100, 0), "undecided"),
            ("<= 1%", count(30, 970, 0), "otherwise"),
            (">= 99%", count(1000, 0, 0), "as expected"),
            (">= 99%", count(900, 100, 0), "otherwise"),
            // An undecided run may be the worst case.
            ("<= 1%", count(0, 900, 100), "undecided"),
            ("<= 1%", count(0, 0, 0), "undecided"),
        ] {
            let found = match rate.parse::<Share>().unwrap().judge(count) {
                Match::AsExpected => "as expected",
                Match::Otherwise(_) => "otherwise",
                Match::Undecided(_) => "undecided",
            };
            assert_eq!(found, verdict, "{rate} {count:?}");
        }
    }

    /// For 64 runs without a violation the interval of 95 % ends at 5.7 %, and that of 99.9 % at
    /// 14.5 %.
    #[test]
    fn it_takes_a_wider_interval_to_stop_early() {
        let none = Count { no: 64, ..Count::default() };
        for (share, early, late) in
            [("<= 5%", false, false), ("<= 6%", false, true), ("<= 14%", false, true), ("<= 15%", true, true)]
        {
            let share: Share = share.parse().unwrap();
            assert_eq!(share.is_decided_early(none), early, "{share}");
            assert_eq!(share.judge(none) == Match::AsExpected, late, "{share}");
        }
    }

    #[test]
    fn a_refuted_share_says_what_was_found() {
        let rate: Share = "<= 1%".parse().unwrap();
        let verdict = rate.judge(Count { yes: 30, no: 970, undecided: 0 });
        let words = "expected <= 1%, found 30 of 1000: 2.1%..4.3% with 95% confidence";
        assert_eq!(verdict, Match::Otherwise(words.to_owned()));
    }
}
