//! Merges the tables of all shards into one, byte for byte equal to the table of a single process.

use std::{
    fs::File,
    io::{BufReader, Read, Seek, SeekFrom, Write},
    path::Path,
};

use csv::StringRecord;

use super::{Campaign, CampaignError, cannot};
use crate::study::table::{Cell, Column, Rows, Table};
use lockstorm::{
    judge::{checker, verdict::Count},
    run::{
        runner::{Case, Runner},
        tally::Counter,
    },
};

/// The longest list of unexpected runs.
const NAMED_MAX: usize = 10;

/// The totals of all runs.
#[derive(Debug, Clone, Default)]
pub(crate) struct Merged {
    /// The number of runs with the expected verdicts.
    pub(crate) as_expected: u64,
    /// The number of runs with other verdicts.
    pub(crate) otherwise: u64,
    /// The number of undecided runs.
    pub(crate) undecided: u64,
    /// The first runs that have other verdicts or are undecided.
    pub(crate) unexpected: Vec<Unexpected>,
    /// The violations of each checker.
    pub(crate) counter: Counter,
}

/// A run that has other verdicts than expected, or is undecided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unexpected {
    /// The run.
    pub(crate) case: Case,
    /// `otherwise` or `undecided`.
    pub(crate) verdict: String,
}

impl Campaign {
    /// Reads the tables of all shards in order, checks that each is complete and belongs to this
    /// campaign, and writes their rows. `trial` must be that of the campaign.
    ///
    /// # Errors
    /// Fails if shards are missing or torn, or the rows cannot be written to `target`.
    pub(crate) fn merge(
        &self,
        trial: &Runner<'_>,
        target: &Path,
        rows: &mut Rows<impl Write + Send>,
    ) -> Result<Merged, CampaignError> {
        self.is_whole()?;
        let table = Table::of(trial);
        let places = Places::of(table.columns());
        let mut merged = Merged::default();
        for shard in 0..self.shards() {
            let path = self.shard_file(shard);
            let torn = |why: String| CampaignError::Torn { path: path.clone(), why };
            let mut file = File::open(&path).map_err(cannot("cannot be read", &path))?;
            if !ends_with_a_line(&mut file).map_err(cannot("cannot be read", &path))? {
                return Err(torn("it ends within a line".to_owned()));
            }
            let mut reader = csv::Reader::from_reader(BufReader::new(file));
            let names = table.columns().iter().map(|column| &*column.name);
            if !reader.headers().is_ok_and(|head| head.iter().eq(names)) {
                return Err(torn("its columns are not those of the campaign".to_owned()));
            }
            let mut record = StringRecord::new();
            for case in trial.clone().positions(self.positions(shard)?).cases() {
                let found = reader.read_record(&mut record).map_err(|error| torn(error.to_string()))?;
                let token = trial.token(case);
                if !found || record.get(0) != Some(&*token) {
                    let found = if found { record.get(0).unwrap_or_default() } else { "its end" };
                    return Err(torn(format!("expected {token}, found {found}")));
                }
                let cells = table.columns().iter().zip(&record).map(|(column, text)| {
                    let cell = Cell::read(column.kind, text);
                    cell.ok_or_else(|| torn(format!("{token}: {} is {text:?}", column.name)))
                });
                let row = cells.collect::<Result<Vec<Cell>, _>>()?;
                merged.add(&places, case, &row).map_err(|why| torn(format!("{token}: {why}")))?;
                rows.add(row).map_err(cannot("cannot be written", target))?;
            }
            if reader.read_record(&mut record).is_ok_and(|found| found) {
                return Err(torn(format!("expected its end, found {}", record.get(0).unwrap_or_default())));
            }
        }
        Ok(merged)
    }
}

/// The columns of the verdicts in a row.
struct Places {
    verdict: usize,
    checkers: Vec<(usize, &'static str)>,
}

impl Places {
    fn of(columns: &[Column]) -> Places {
        let at = |name: &str| columns.iter().position(|column| column.name == name);
        let at = |name: &str| at(name).expect("every table has a column for each verdict");
        let checkers = checker::LIST.iter().map(|one| (at(&format!("{}.verdict", one.name)), one.name));
        Places { verdict: at("verdict"), checkers: checkers.collect() }
    }
}

impl Merged {
    fn add(&mut self, places: &Places, case: Case, row: &[Cell]) -> Result<(), String> {
        let text = |at: usize| match &row[at] {
            Cell::Text(text) => Some(text.as_str()),
            _ => None,
        };
        let verdict = text(places.verdict).unwrap_or_default();
        *match verdict {
            "as-expected" => &mut self.as_expected,
            "otherwise" => &mut self.otherwise,
            "undecided" => &mut self.undecided,
            other => return Err(format!("{other:?} is not a verdict")),
        } += 1;
        if verdict != "as-expected" && self.unexpected.len() < NAMED_MAX {
            self.unexpected.push(Unexpected { case, verdict: verdict.to_owned() });
        }
        for &(at, checker) in &places.checkers {
            let Some(word) = text(at) else { continue };
            let count = Count::of_word(word).ok_or_else(|| format!("{word:?} is not a verdict"))?;
            self.counter.add(case, checker, count);
        }
        Ok(())
    }
}

fn ends_with_a_line(file: &mut File) -> std::io::Result<bool> {
    let mut last = [0];
    if file.seek(SeekFrom::End(0))? > 0 {
        file.seek(SeekFrom::End(-1))?;
        file.read_exact(&mut last)?;
    }
    file.rewind()?;
    Ok(last == *b"\n")
}
