//! The place of a campaign: a folder or a bucket.

use std::{
    fmt,
    path::{Path, PathBuf},
    str::FromStr,
};

#[cfg(feature = "s3")]
use crate::study::campaign::{Address, Bucket};
use crate::study::campaign::{Campaign, CampaignError, Status, Worked};
use lockstorm::{file::scenario::Source, run::runner::Judged};

/// A folder, or the address of a bucket, which begins with `s3://`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Place {
    Folder(PathBuf),
    #[cfg(feature = "s3")]
    Bucket(Address),
}

impl FromStr for Place {
    type Err = String;

    fn from_str(text: &str) -> Result<Place, String> {
        if !text.starts_with("s3://") {
            return Ok(Place::Folder(PathBuf::from(text)));
        }
        #[cfg(feature = "s3")]
        return text.parse().map(Place::Bucket);
        #[cfg(not(feature = "s3"))]
        Err("this lockstorm is built without buckets: build it with --features s3, or give a folder"
            .to_owned())
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Folder(folder) => folder.display().fmt(f),
            #[cfg(feature = "s3")]
            Place::Bucket(address) => address.fmt(f),
        }
    }
}

/// An existing campaign.
pub(super) struct Opened {
    pub(super) campaign: Campaign,
    /// The bucket with the shards, and the temporary folder of this process, which is removed on
    /// drop. `None` for a campaign in a folder.
    #[cfg(feature = "s3")]
    bucket: Option<(Bucket, tempfile::TempDir)>,
}

#[cfg(feature = "s3")]
fn own_folder() -> Result<tempfile::TempDir, CampaignError> {
    let made = tempfile::Builder::new().prefix("lockstorm-campaign-").tempdir();
    made.map_err(|error| CampaignError::Io { path: std::env::temp_dir(), what: "cannot be written", error })
}

impl Place {
    /// Returns the folder, or `None` for a bucket.
    pub(super) fn folder(&self) -> Option<&Path> {
        match self {
            Place::Folder(folder) => Some(folder),
            #[cfg(feature = "s3")]
            Place::Bucket(_) => None,
        }
    }

    /// Plans a campaign here.
    pub(super) fn plan(
        &self,
        sources: &[Source],
        seeds: std::ops::Range<u64>,
        shard_runs: u64,
    ) -> Result<Campaign, CampaignError> {
        match self {
            Place::Folder(folder) => Campaign::plan(folder, sources, seeds, shard_runs),
            #[cfg(feature = "s3")]
            Place::Bucket(address) => {
                let (bucket, folder) = (Bucket::open(address.clone())?, own_folder()?);
                let campaign = Campaign::plan(folder.path(), sources, seeds, shard_runs)?;
                bucket.publish(&campaign).map(|()| campaign)
            }
        }
    }

    /// Opens the campaign of this plan, or plans it if there is none.
    pub(super) fn plan_or_open(
        &self,
        sources: &[Source],
        seeds: std::ops::Range<u64>,
        shard_runs: u64,
    ) -> Result<Opened, CampaignError> {
        match self.plan(sources, seeds.clone(), shard_runs) {
            Ok(_) => self.open(),
            Err(exists @ CampaignError::Exists(_)) => {
                // The folder may contain other files than a campaign.
                let Ok(opened) = self.open() else { return Err(exists) };
                let is_of = opened.campaign.is_of(sources, seeds, shard_runs)?;
                if is_of { Ok(opened) } else { Err(CampaignError::Other(self.to_string())) }
            }
            Err(error) => Err(error),
        }
    }

    /// Opens the campaign.
    pub(super) fn open(&self) -> Result<Opened, CampaignError> {
        match self {
            Place::Folder(folder) => Ok(Opened {
                campaign: Campaign::open(folder)?,
                #[cfg(feature = "s3")]
                bucket: None,
            }),
            #[cfg(feature = "s3")]
            Place::Bucket(address) => {
                let (bucket, folder) = (Bucket::open(address.clone())?, own_folder()?);
                Ok(Opened { campaign: bucket.fetch(folder.path())?, bucket: Some((bucket, folder)) })
            }
        }
    }
}

impl Opened {
    /// Runs a shard, unless it is finished.
    pub(super) fn work(
        &self,
        sources: &[Source],
        shard: u64,
        jobs: usize,
        told: &(dyn Fn(&Judged) + Sync),
    ) -> Result<Worked, CampaignError> {
        #[cfg(feature = "s3")]
        if let Some((bucket, _)) = &self.bucket {
            if bucket.has(shard)? {
                return Ok(Worked::Before);
            }
            self.campaign.work(sources, shard, jobs, told)?;
            return bucket.put_shard(&self.campaign, shard).map(|()| Worked::Now);
        }
        self.campaign.work(sources, shard, jobs, told)
    }

    /// Returns the numbers of finished and missing shards.
    pub(super) fn status(&self) -> Result<Status, CampaignError> {
        #[cfg(feature = "s3")]
        if let Some((bucket, _)) = &self.bucket {
            return bucket.status(&self.campaign);
        }
        self.campaign.status()
    }

    /// Downloads every finished shard from a bucket. Does nothing for a folder.
    pub(super) fn gather(&self) -> Result<(), CampaignError> {
        #[cfg(feature = "s3")]
        if let Some((bucket, _)) = &self.bucket {
            let status = bucket.status(&self.campaign)?;
            let mut done = (0..status.shards).filter(|shard| status.missing.binary_search(shard).is_err());
            return done.try_for_each(|shard| bucket.get_shard(&self.campaign, shard));
        }
        Ok(())
    }
}
