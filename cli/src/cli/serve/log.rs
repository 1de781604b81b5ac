//! The log of a served node. Each line has the process ID and its role, the time, a sign for the
//! level, and the text.

use std::{
    cell::RefCell,
    fs::{File, OpenOptions},
    io::{Write, stderr},
    path::Path,
    rc::Rc,
};

use lockstorm_sim::{
    drive::DrivenNode,
    log::{Level, Line},
};
use lockstorm_world::time::Wall;
use miette::{IntoDiagnostic, Result, WrapErr};

/// The signs for the role in a line.
const MASTER: char = 'M';
const REPLICA: char = 'S';

/// The log. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Log {
    /// `None` for standard error.
    file: Option<Rc<RefCell<File>>>,
    least: Level,
}

impl Log {
    /// Opens the log to append to a file, or to standard error for an empty name. A relative name
    /// starts in `folder`.
    pub(super) fn open(folder: &Path, name: &str, least: Level) -> Result<Log> {
        let file = if name.is_empty() {
            None
        } else {
            let path = folder.join(name);
            let file = OpenOptions::new().create(true).append(true).open(&path).into_diagnostic();
            let file = file.wrap_err_with(|| format!("cannot open the log file {}", path.display()))?;
            Some(Rc::new(RefCell::new(file)))
        };
        Ok(Log { file, least })
    }

    /// Writes a line of the process itself, if its level is high enough.
    pub(super) fn line(&self, level: Level, text: &str) {
        if level >= self.least {
            self.write(MASTER, now(), level, text);
        }
    }

    /// Returns the sink for the node's lines. The node has already dropped those of a lower level.
    pub(super) fn sink(&self, node: DrivenNode) -> impl Fn(Wall, &Line) + 'static {
        let log = self.clone();
        move |at, line| {
            let replica = node.look(|server| server.node().is_replica()) == Some(true);
            log.write(if replica { REPLICA } else { MASTER }, at, line.level, &line.text);
        }
    }

    fn write(&self, role: char, at: Wall, level: Level, text: &str) {
        let line = format!("{}:{role} {} {} {text}\n", std::process::id(), date(at), level.mark());
        // Ignore errors, so that a full disk does not end the server.
        let _ = match &self.file {
            Some(file) => file.borrow_mut().write_all(line.as_bytes()),
            None => stderr().write_all(line.as_bytes()),
        };
    }
}

#[expect(clippy::disallowed_methods, reason = "lines of the process itself, before and after the node runs")]
fn now() -> Wall {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    Wall::ZERO + since.unwrap_or_default()
}

/// Formats a time in UTC: `21 Nov 2026 11:10:51.123`.
fn date(at: Wall) -> String {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let seconds = at.as_secs();
    let (mut days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let mut year = 1970;
    let leap = |year: i64| year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let length = |year: i64| if leap(year) { 366 } else { 365 };
    // The clock may show any year. Skip whole cycles of 400 years first, to keep the loop short.
    year += 400 * days.div_euclid(146_097);
    days = days.rem_euclid(146_097);
    while days >= length(year) {
        days -= length(year);
        year += 1;
    }
    let mut month = 0;
    loop {
        let long = match month {
            1 => 28 + i64::from(leap(year)),
            3 | 5 | 8 | 10 => 30,
            _ => 31,
        };
        if days < long {
            break;
        }
        days -= long;
        month += 1;
    }
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    let ms = at.as_millis().rem_euclid(1000);
    format!("{:02} {} {year} {hour:02}:{minute:02}:{second:02}.{ms:03}", days + 1, MONTHS[month])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (ms, expected) in [
            (0, "01 Jan 1970 00:00:00.000"),
            (951_827_696_789, "29 Feb 2000 12:34:56.789"),
            (1_795_259_451_123, "21 Nov 2026 11:10:51.123"),
            (4_107_542_400_000, "01 Mar 2100 00:00:00.000"),
            (-1, "31 Dec 1969 23:59:59.999"),
        ] {
            assert_eq!(date(Wall::from_millis(ms)), expected);
        }
    }
}
