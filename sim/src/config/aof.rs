//! The options of the append-only file. Sizes are in bytes, the duration of a sync in
//! milliseconds.

/// The append-only file (`APPEND ONLY MODE` in `redis.conf`).
#[derive(Debug, Clone)]
pub struct AofOptions {
    /// `appendonly`: set if the node writes an append-only file.
    pub appendonly: bool,
    /// `appendfsync`: always, every second, or left to the operating system.
    pub appendfsync: Fsync,
    /// `appenddirname`: the folder of the append-only files.
    pub appenddirname: String,
    /// `appendfilename`: the prefix of the names of the append-only files.
    pub appendfilename: String,
    /// `aof-timestamp-enabled`: the append-only file records when its commands were written, for
    /// `redis-check-aof`.
    pub timestamps: bool,
    /// `auto-aof-rewrite-percentage`: the growth of the append-only file over its base that
    /// triggers a rewrite, in percent; 0 for no automatic rewrite.
    pub rewrite_percentage: u64,
    /// `auto-aof-rewrite-min-size` in bytes: smaller files are not rewritten automatically.
    pub rewrite_min_size: u64,
    /// `aof-load-truncated`: an append-only file with an incomplete command at its end is cut off
    /// there.
    pub load_truncated: bool,
    /// `aof-use-rdb-preamble`: the base of the append-only files is a snapshot.
    pub use_rdb_preamble: bool,
    /// `aof-disable-auto-gc`: append-only files that are no longer needed are kept.
    pub disable_auto_gc: bool,
    /// `no-appendfsync-on-rewrite`: while a background job runs, the operating system decides when
    /// to sync.
    pub no_appendfsync_on_rewrite: bool,
    /// The duration of a background sync (`appendfsync everysec`), in milliseconds. It shows the
    /// effect of a slow or stuck disk on the promise of one second. Not an option of Redis.
    pub fsync_ms: u64,
}

impl Default for AofOptions {
    fn default() -> AofOptions {
        AofOptions {
            appendonly: false,
            appendfsync: Fsync::EverySecond,
            appenddirname: "appendonlydir".into(),
            appendfilename: "appendonly.aof".into(),
            timestamps: false,
            rewrite_percentage: 100,
            rewrite_min_size: 64 << 20,
            load_truncated: true,
            use_rdb_preamble: true,
            disable_auto_gc: false,
            no_appendfsync_on_rewrite: false,
            fsync_ms: 0,
        }
    }
}

/// The time at which a write reaches the disk, which decides what survives a crash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Fsync {
    /// `appendfsync always`: before the reply is sent.
    Always,
    /// `appendfsync everysec`: once a second.
    #[default]
    EverySecond,
    /// `appendfsync no`: when the operating system decides; here that is never before a crash.
    No,
}

impl Fsync {
    const ALL: [(Fsync, &'static str); 3] =
        [(Fsync::Always, "always"), (Fsync::EverySecond, "everysec"), (Fsync::No, "no")];

    /// Returns the value in `redis.conf`, such as `everysec`.
    pub fn name(self) -> &'static str {
        Fsync::ALL[self as usize].1
    }

    /// Returns the policy of this name; the default for any other text.
    pub fn named(name: &str) -> Fsync {
        Fsync::ALL.iter().find(|(_, known)| *known == name).map_or_else(Fsync::default, |(fsync, _)| *fsync)
    }
}
