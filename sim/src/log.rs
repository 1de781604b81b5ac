//! The log of a node: lines with a level.

/// How much a line matters (`loglevel`). A log shows its own level and those above it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Level {
    /// Every connection.
    Debug,
    /// What is rarely of use.
    Verbose,
    /// What an operator wants to know.
    #[default]
    Notice,
    /// What an operator must know.
    Warning,
}

impl Level {
    const ALL: [(Level, &'static str, char); 4] = [
        (Level::Debug, "debug", '.'),
        (Level::Verbose, "verbose", '-'),
        (Level::Notice, "notice", '*'),
        (Level::Warning, "warning", '#'),
    ];

    /// The name in the configuration.
    pub fn name(self) -> &'static str {
        Level::ALL[self as usize].1
    }

    /// The sign that stands before a line of this level.
    pub fn mark(self) -> char {
        Level::ALL[self as usize].2
    }

    /// The one of a name; the default for a name that is none.
    pub fn named(name: &str) -> Level {
        Level::ALL
            .iter()
            .find(|(_, known, _)| *known == name)
            .map_or_else(Level::default, |(level, ..)| *level)
    }
}

/// One line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// How much it matters.
    pub level: Level,
    /// What it says, without a line break.
    pub text: String,
}
