//! The options of snapshots. Times are in seconds, delays in microseconds, sizes in bytes.

use super::Config;

/// Snapshots and their folder (`SNAPSHOTTING` in `redis.conf`).
#[derive(Debug, Clone)]
pub struct PersistenceOptions {
    /// `save` points: pairs of seconds and the number of changes that triggers a save after them.
    pub save: Vec<(u64, u64)>,
    /// `stop-writes-on-bgsave-error`: writes are refused after a failed background save.
    pub stop_writes_on_bgsave_error: bool,
    /// `dir`: the data folder that the node reports. The program that starts the node chooses the
    /// real one.
    pub dir: String,
    /// `dbfilename`: the file of the snapshot.
    pub dbfilename: String,
    /// `rdbcompression`: set if snapshots and DUMP compress long strings.
    pub rdb_compression: bool,
    /// `key-load-delay`: microseconds to load each key; a negative number is the keys loaded per
    /// microsecond.
    pub key_load_delay: i64,
    /// `rdb-key-save-delay`: microseconds to save each key; a negative number is the keys saved per
    /// microsecond.
    pub rdb_key_save_delay: i64,
    /// `loading-process-events-interval-bytes`: the number of bytes of a file between two turns of
    /// clients; 0 for no turns.
    pub loading_process_events_interval_bytes: u64,
}

impl Default for PersistenceOptions {
    fn default() -> PersistenceOptions {
        PersistenceOptions {
            save: vec![(3600, 1), (300, 100), (60, 10_000)],
            stop_writes_on_bgsave_error: true,
            dir: "/data".into(),
            dbfilename: "dump.rdb".into(),
            rdb_compression: true,
            key_load_delay: 0,
            rdb_key_save_delay: 0,
            loading_process_events_interval_bytes: 2 << 20,
        }
    }
}

impl Config {
    /// Returns `save` as CONFIG GET prints it.
    pub fn save_points(&self) -> String {
        self.persistence
            .save
            .iter()
            .map(|(seconds, changes)| format!("{seconds} {changes}"))
            .collect::<Vec<_>>()
            .join(" ")
    }

    /// Sets `save` from the text of [`Config::save_points`]; words that are not numbers are
    /// skipped.
    pub fn set_save_points(&mut self, text: &str) {
        let numbers: Vec<u64> = text.split_ascii_whitespace().filter_map(|word| word.parse().ok()).collect();
        self.persistence.save =
            numbers.as_chunks::<2>().0.iter().map(|&[seconds, changes]| (seconds, changes)).collect();
    }
}
