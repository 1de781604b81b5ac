//! The log of a node: lines with a level.

/// The importance of a line (`loglevel`). A log shows its own level and those above it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Level {
    /// Details such as every connection.
    Debug,
    /// Information that is rarely useful.
    Verbose,
    /// Information for the operator.
    #[default]
    Notice,
    /// Problems that the operator must know.
    Warning,
}

impl Level {
    const ALL: [(Level, &'static str, char); 4] = [
        (Level::Debug, "debug", '.'),
        (Level::Verbose, "verbose", '-'),
        (Level::Notice, "notice", '*'),
        (Level::Warning, "warning", '#'),
    ];

    /// Returns the value of `loglevel`, such as `notice`.
    pub fn name(self) -> &'static str {
        Level::ALL[self as usize].1
    }

    /// Returns the character before a line of this level.
    pub fn mark(self) -> char {
        Level::ALL[self as usize].2
    }

    /// Returns the level of this name; the default for any other text.
    pub fn named(name: &str) -> Level {
        Level::ALL
            .iter()
            .find(|(_, known, _)| *known == name)
            .map_or_else(Level::default, |(level, ..)| *level)
    }
}

/// One line of the log, without the time and the process id that are printed before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// The level; `loglevel` decides if the line is logged.
    pub level: Level,
    /// The text, without a line break.
    pub text: String,
}
