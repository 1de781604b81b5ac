//! The options of SLOWLOG, COMMANDLOG and LATENCY. The units are microseconds for commands and
//! milliseconds for events.

use super::LargeCommands;

/// The records of slow and large commands (`SLOW LOG` and `LATENCY MONITOR` in `redis.conf`).
#[derive(Debug, Clone)]
pub struct MonitoringOptions {
    /// `slowlog-log-slower-than` in microseconds; negative for never.
    pub slowlog_slower_than: i64,
    /// `slowlog-max-len`: the number of commands that SLOWLOG keeps. Default 128.
    pub slowlog_max_len: usize,
    /// `commandlog-*` about requests.
    pub large_requests: LargeCommands,
    /// `commandlog-*` about replies.
    pub large_replies: LargeCommands,
    /// `latency-monitor-threshold` in milliseconds from which an event is a spike; 0 for never.
    pub latency_monitor_threshold: u64,
    /// `latency-tracking`: set if the durations of commands are recorded.
    pub latency_tracking: bool,
    /// `latency-tracking-info-percentiles`: the percentiles in INFO latencystats.
    pub latency_percentiles: Vec<f64>,
}

impl Default for MonitoringOptions {
    fn default() -> MonitoringOptions {
        MonitoringOptions {
            slowlog_slower_than: 10_000,
            slowlog_max_len: 128,
            large_requests: LargeCommands::default(),
            large_replies: LargeCommands::default(),
            latency_monitor_threshold: 0,
            latency_tracking: true,
            latency_percentiles: vec![50.0, 99.0, 99.9],
        }
    }
}
