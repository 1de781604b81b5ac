//! The reply of CLUSTER GETSLOTMIGRATIONS.

use super::Job;
use crate::{cluster::Cluster, resp::Reply};

impl Cluster {
    /// Returns the reply of CLUSTER GETSLOTMIGRATIONS: a map for each job, the newest first.
    pub fn show_jobs(&self) -> Reply {
        Reply::Array(self.jobs.list.iter().map(shown).collect())
    }
}

fn shown(job: &Job) -> Reply {
    let ranges = job.ranges.iter().map(|(first, last)| format!("{first}-{last}"));
    let text = |name: &str, value: &str| (Reply::bulk(name), Reply::bulk(value));
    let number = |name: &str, value: i64| (Reply::bulk(name), Reply::Integer(value));
    let unsent = if job.is_over() { 0 } else { job.unsent };
    Reply::Map(vec![
        text("name", &job.name),
        text("operation", if job.exports { "EXPORT" } else { "IMPORT" }),
        text("slot_ranges", &ranges.collect::<Vec<_>>().join(" ")),
        text("target_node", job.target.as_str()),
        text("source_node", job.source.as_str()),
        number("create_time", job.created),
        number("last_update_time", job.updated),
        number("last_ack_time", job.acked),
        text("state", job.state.name()),
        text("message", &job.message),
        number("cow_size", 0),
        number("remaining_repl_size", i64::try_from(unsent).unwrap_or(i64::MAX)),
    ])
}
