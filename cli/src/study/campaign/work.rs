//! Work on shards. It can be resumed, and two workers of one shard do not disturb each other.

use std::{fs, ops::ControlFlow};

use super::{Campaign, CampaignError, Part, cannot, shard_name};
use crate::study::table::{Rows, Table};
use lockstorm::{file::scenario::Source, run::runner::Judged};

/// The outcome of work on a shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Worked {
    /// The shard was finished before.
    Before,
    /// The shard was run now, and its table exists.
    Now,
}

impl Campaign {
    /// Runs a shard on `jobs` threads, and puts its table into the folder atomically once it is
    /// complete. Does nothing if the table exists. Calls `told` for each run, in no particular
    /// order.
    ///
    /// # Errors
    /// Fails if the table cannot be written, or another process has produced a different one for
    /// the same shard.
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

    /// Removes the partial files that killed workers left of a shard that is finished now.
    pub(super) fn sweep(&self, shard: u64) -> Result<(), CampaignError> {
        let (folder, name) = (self.shards_folder(), shard_name(shard));
        let cannot_read = cannot("cannot be read", &folder);
        for entry in fs::read_dir(&folder).map_err(&cannot_read)? {
            let entry = entry.map_err(&cannot_read)?;
            let is_left = entry.file_name().to_str().is_some_and(|of| of.starts_with(&name) && of != name);
            if is_left {
                // Another worker may have removed it.
                let _ = fs::remove_file(entry.path());
            }
        }
        Ok(())
    }
}
