//! Working on shards: resumable, and safe to do twice at once.

use std::{fs, ops::ControlFlow};

use super::{Campaign, CampaignError, Part, cannot, shard_name};
use crate::study::table::{Rows, Table};
use lockstorm::{file::scenario::Source, run::runner::Judged};

/// What came of working on a shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Worked {
    /// It had been finished before.
    Before,
    /// It was run, and its table is there.
    Now,
}

impl Campaign {
    /// Runs a shard on so many threads, and puts its table into the folder at once when it is
    /// whole. Nothing is done where it is there already. `told` is called with each run, in no
    /// particular order.
    ///
    /// # Errors
    /// When the table cannot be written, or another process has found something else for the same
    /// shard.
    pub(crate) fn work(
        &self,
        sources: &[Source],
        shard: u64,
        jobs: usize,
        told: &(dyn Fn(&Judged) + Sync),
    ) -> Result<Worked, CampaignError> {
        let positions = self.positions(shard)?;
        let path = self.shard_file(shard);
        if path.exists() {
            return Ok(Worked::Before);
        }
        let trial = self.trial(sources).jobs(jobs).positions(positions);
        let table = Table::of(&trial);
        let mut part = Part::create(&self.shards_folder(), &shard_name(shard))?;
        let written = Rows::csv(table.columns(), &mut part.file).and_then(|mut rows| {
            let mut written = Ok(());
            trial.each(told, &mut |judged| {
                written = rows.add(table.row(&judged));
                if written.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            });
            written?;
            rows.finish()
        });
        part.put(written, &path)?;
        self.sweep(shard)?;
        Ok(Worked::Now)
    }

    /// Takes away what workers have left that were killed at a shard that is finished now.
    fn sweep(&self, shard: u64) -> Result<(), CampaignError> {
        let (folder, name) = (self.shards_folder(), shard_name(shard));
        let cannot_read = cannot("cannot be read", &folder);
        for entry in fs::read_dir(&folder).map_err(&cannot_read)? {
            let entry = entry.map_err(&cannot_read)?;
            let is_left = entry.file_name().to_str().is_some_and(|of| of.starts_with(&name) && of != name);
            if is_left {
                // Another worker may have taken it away.
                let _ = fs::remove_file(entry.path());
            }
        }
        Ok(())
    }
}
