//! A campaign with its folder in a bucket that speaks S3's protocol, for machines without a shared
//! disk.
//!
//! Each process keeps the files of the bucket that it needs in a folder of its own. An object
//! appears whole or not at all, and is created only if it does not exist. So the guarantees of a
//! folder hold here as well: two workers of one shard produce the same bytes, and the later one
//! compares.

use std::{
    fs,
    path::{Path, PathBuf},
    str::FromStr,
};

use object_store::{
    Error as StoreError, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload,
    aws::{AmazonS3, AmazonS3Builder},
    path::Path as Key,
};
use tokio::runtime::Runtime;

use super::{Campaign, CampaignError, FILES, SHARDS, Status, copy_name, shard_name};

/// The bucket and the place of a campaign in it: `s3://bucket/prefix`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Address {
    bucket: String,
    prefix: String,
}

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Address, String> {
        let form = || format!("expected s3://BUCKET/PREFIX, found {text:?}");
        let (bucket, prefix) =
            text.strip_prefix("s3://").and_then(|rest| rest.split_once('/')).ok_or_else(form)?;
        let prefix = prefix.trim_matches('/');
        if bucket.is_empty() || prefix.is_empty() {
            return Err(form());
        }
        Ok(Address { bucket: bucket.to_owned(), prefix: prefix.to_owned() })
    }
}

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "s3://{}/{}", self.bucket, self.prefix)
    }
}

/// The files of one campaign in a bucket.
#[derive(Debug)]
pub(crate) struct Bucket {
    address: Address,
    store: AmazonS3,
    runtime: Runtime,
}

impl Bucket {
    /// Opens the bucket at an address. The endpoint and the credentials come from the environment
    /// variables of S3's tools: `AWS_ENDPOINT_URL` (or `AWS_ENDPOINT`), `AWS_REGION`,
    /// `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, `AWS_ALLOW_HTTP` and more.
    ///
    /// # Errors
    /// Fails if these do not suffice to reach a bucket.
    pub(crate) fn open(address: Address) -> Result<Bucket, CampaignError> {
        // A process has one provider of cryptography. If one is installed already it is this one,
        // because the client has no other.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let store = AmazonS3Builder::from_env().with_bucket_name(&address.bucket).build();
        let failed = |error: String| CampaignError::Bucket { what: address.to_string(), error };
        let store = store.map_err(|error| failed(error.to_string()))?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| failed(error.to_string()))?;
        Ok(Bucket { address, store, runtime })
    }

    /// Uploads the files that [`Campaign::plan`] has written, the plan last.
    ///
    /// # Errors
    /// Fails if the bucket has a campaign already, or cannot be written.
    pub(crate) fn publish(&self, campaign: &Campaign) -> Result<(), CampaignError> {
        if !self.names("")?.is_empty() {
            return Err(CampaignError::Exists(self.path("")));
        }
        for at in 0..campaign.plan.files.len() {
            self.put(&campaign.copy(at), &copy_key(at))?;
        }
        self.put(&campaign.folder.join(super::PLAN), super::PLAN)
    }

    /// Downloads the plan and the scenarios, but no shards, to a folder of this process.
    ///
    /// # Errors
    /// Fails if there is no campaign, or it cannot be read.
    pub(crate) fn fetch(&self, folder: &Path) -> Result<Campaign, CampaignError> {
        for made in [folder.to_owned(), folder.join(FILES), folder.join(SHARDS)] {
            fs::create_dir_all(&made).map_err(super::cannot("cannot be made", &made))?;
        }
        self.get(super::PLAN, folder)?;
        let campaign = Campaign::open(folder)?;
        for at in 0..campaign.plan.files.len() {
            self.get(&copy_key(at), folder)?;
        }
        Ok(campaign)
    }

    /// Returns true if a shard is finished.
    ///
    /// # Errors
    /// Fails if the bucket does not answer.
    pub(crate) fn has(&self, shard: u64) -> Result<bool, CampaignError> {
        let name = shard_key(shard);
        match self.runtime.block_on(self.store.head(&self.key(&name))) {
            Ok(_) => Ok(true),
            Err(StoreError::NotFound { .. }) => Ok(false),
            Err(error) => Err(self.failed(&name, &error)),
        }
    }

    /// Uploads the table of a shard that this process has finished, and removes it from the
    /// process's own folder. If the bucket has the table already, the two must be equal.
    ///
    /// # Errors
    /// Fails if they differ, or the bucket cannot be written.
    pub(crate) fn put_shard(&self, campaign: &Campaign, shard: u64) -> Result<(), CampaignError> {
        let path = campaign.shard_file(shard);
        self.put(&path, &shard_key(shard))?;
        fs::remove_file(&path).map_err(super::cannot("cannot be removed", &path))
    }

    /// Downloads the table of a shard.
    ///
    /// # Errors
    /// Fails if the table does not exist, or cannot be read.
    pub(crate) fn get_shard(&self, campaign: &Campaign, shard: u64) -> Result<(), CampaignError> {
        self.get(&shard_key(shard), &campaign.folder)
    }

    /// Returns the progress, from the names of the shards in the bucket.
    ///
    /// # Errors
    /// Fails if the bucket does not answer.
    pub(crate) fn status(&self, campaign: &Campaign) -> Result<Status, CampaignError> {
        let names = self.names(SHARDS)?;
        Ok(campaign.status_of(names.iter().map(String::as_str)))
    }

    fn names(&self, folder: &str) -> Result<Vec<String>, CampaignError> {
        use futures_util::TryStreamExt;
        let prefix = self.key(folder);
        let all = self.store.list(Some(&prefix)).try_collect::<Vec<_>>();
        let all = self.runtime.block_on(all).map_err(|error| self.failed(folder, &error))?;
        Ok(all.iter().filter_map(|one| one.location.filename().map(str::to_owned)).collect())
    }

    fn get(&self, name: &str, folder: &Path) -> Result<(), CampaignError> {
        let bytes = self.bytes(name)?;
        let path = folder.join(name);
        fs::write(&path, bytes).map_err(super::cannot("cannot be written", &path))
    }

    fn bytes(&self, name: &str) -> Result<bytes::Bytes, CampaignError> {
        let got = async { self.store.get(&self.key(name)).await?.bytes().await };
        self.runtime.block_on(got).map_err(|error| self.failed(name, &error))
    }

    fn put(&self, from: &Path, name: &str) -> Result<(), CampaignError> {
        let bytes = bytes::Bytes::from(fs::read(from).map_err(super::cannot("cannot be read", from))?);
        let options = PutOptions::from(PutMode::Create);
        let key = self.key(name);
        let put = self.store.put_opts(&key, PutPayload::from(bytes.clone()), options);
        match self.runtime.block_on(put) {
            Ok(_) => Ok(()),
            Err(StoreError::AlreadyExists { .. }) if self.bytes(name)? == bytes => Ok(()),
            Err(StoreError::AlreadyExists { .. }) => Err(CampaignError::Differs(self.path(name))),
            Err(error) => Err(self.failed(name, &error)),
        }
    }

    fn key(&self, name: &str) -> Key {
        Key::from(format!("{}/{name}", self.address.prefix))
    }

    fn path(&self, name: &str) -> PathBuf {
        PathBuf::from(format!("{}/{name}", self.address).trim_end_matches('/'))
    }

    fn failed(&self, name: &str, error: &StoreError) -> CampaignError {
        let mut error = error.to_string();
        if std::env::var_os("AWS_ACCESS_KEY_ID").is_none() {
            error += "; AWS_ACCESS_KEY_ID is not set, so the credentials had to come from the machine's role";
        }
        CampaignError::Bucket { what: self.path(name).display().to_string(), error }
    }
}

/// The same names as in the folder of a campaign.
fn copy_key(at: usize) -> String {
    format!("{FILES}/{}", copy_name(at))
}

fn shard_key(shard: u64) -> String {
    format!("{SHARDS}/{}", shard_name(shard))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_bucket_and_a_prefix() {
        for (text, address) in [
            ("s3://storms/watchdog", Some("s3://storms/watchdog")),
            ("s3://storms/2026/watchdog/", Some("s3://storms/2026/watchdog")),
            ("s3://storms", None),
            ("s3://storms/", None),
            ("s3:///watchdog", None),
            ("storms/watchdog", None),
        ] {
            let read = text.parse::<Address>().map(|address| address.to_string());
            assert_eq!(read.ok().as_deref(), address, "{text}");
        }
    }
}
