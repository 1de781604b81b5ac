//! The options: the name, the values and the field in [`Config`] of each.
//!
//! CONFIG GET and CONFIG SET use this table. Values are text in one canonical form, as CONFIG GET
//! prints them.

mod generations;
mod table;
mod values;

pub use generations::OTHERS;
pub use table::OPTIONS;
pub use values::{memory, percentile};

use crate::{config::Config, generation::Generation};

/// An option of CONFIG GET and CONFIG SET.
pub struct Opt {
    /// The name in lower case, as in `redis.conf`.
    pub name: &'static str,
    /// An older name that is also accepted.
    pub alias: Option<&'static str>,
    /// The values it takes.
    pub kind: Kind,
    /// The permission to change it by CONFIG SET.
    pub change: Change,
    /// The storage of its value.
    pub field: Field,
    /// Set if CONFIG GET shows it only for its exact name.
    pub hidden: bool,
}

/// The permission to change an option by CONFIG SET.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// At any time.
    Free,
    /// Only before the start.
    Never,
    /// Only by clients that `enable-protected-configs` allows.
    Protected,
}

/// The values that an option takes.
pub enum Kind {
    /// `yes` or `no`.
    Flag,
    /// An integer between two bounds.
    Integer(i64, i64),
    /// A number of bytes between two bounds, with an optional unit.
    Memory(u64, u64),
    /// A number of bytes, or a percentage of `maxmemory`.
    MemoryOrPercent,
    /// One of some words.
    Choice(&'static [&'static str]),
    /// Any text.
    Text,
    /// A text that a function accepts, or refuses with an error text.
    CheckedText(fn(&Config, &str) -> Result<String, String>),
    /// A value that a function converts to its canonical form, or refuses with an error text.
    Checked(fn(&Config, &str) -> Result<String, String>),
}

/// The storage of an option's value.
pub enum Field {
    /// A field that the node reads.
    Live {
        /// Returns the value as text.
        get: fn(&Config) -> String,
        /// Sets the value from canonical text.
        set: fn(&mut Config, &str),
    },
    /// Nothing here depends on the option. Its value is stored and reported; this is the default.
    Kept(&'static str),
}

impl Opt {
    /// Returns the value as CONFIG GET prints it.
    pub fn get(&self, config: &Config) -> String {
        match self.field {
            Field::Live { get, .. } => get(config),
            Field::Kept(default) => {
                let default = generations::default(config.generation, self.name).unwrap_or(default);
                config.others.get(self.name).map_or(default, String::as_str).to_owned()
            }
        }
    }

    /// Sets the value from text in canonical form, as [`Opt::check`] returns it.
    pub fn set(&self, config: &mut Config, canonical: &str) {
        match self.field {
            Field::Live { set, .. } => set(config, canonical),
            Field::Kept(_) => drop(config.others.insert(self.name.to_owned(), canonical.to_owned())),
        }
    }

    /// Converts a value to its canonical form.
    ///
    /// # Errors
    /// The reason why the option does not take it, in the words of `redis-server`.
    pub fn check(&self, config: &Config, text: &str) -> Result<String, String> {
        // A server reads all values except numbers as C strings: up to the first NUL.
        let word = text.split('\0').next().unwrap_or_default();
        match self.kind {
            Kind::Flag => values::flag(word),
            Kind::Integer(min, max) => values::integer(text, min, max),
            Kind::Memory(min, max) => {
                let value = memory(word).ok_or("argument must be a memory value")?;
                if (min..=max).contains(&value) {
                    Ok(value.to_string())
                } else {
                    Err(values::out_of_range(&min, &max))
                }
            }
            Kind::MemoryOrPercent => {
                let percent = text.strip_suffix('%').and_then(|percent| percent.parse::<u32>().ok());
                let value = match percent {
                    Some(percent) => -i64::from(percent),
                    None => memory(word).ok_or("argument must be a memory or percent value")?.cast_signed(),
                };
                // A server stores percentages as negative numbers, and mistakes the largest numbers
                // of bytes for percentages.
                match value {
                    0.. => Ok(value.to_string()),
                    -100..0 => Ok(format!("{}%", -value)),
                    _ => Err("percentage argument must be less or equal to 100".into()),
                }
            }
            Kind::Choice(words) => match words.iter().find(|choice| choice.eq_ignore_ascii_case(word)) {
                Some(choice) => Ok((*choice).to_owned()),
                None => Err(format!("argument(s) must be one of the following: {}", words.join(", "))),
            },
            Kind::Text => Ok(text.to_owned()),
            Kind::Checked(check) | Kind::CheckedText(check) => check(config, word),
        }
    }
}
/// Returns the option of a name or of an older name, ignoring the case of letters. Options of all
/// generations are found.
pub fn find(name: &str) -> Option<&'static Opt> {
    let known = |option: &&Opt| {
        option.name.eq_ignore_ascii_case(name)
            || option.alias.is_some_and(|alias| alias.eq_ignore_ascii_case(name))
    };
    let others = OTHERS.iter().map(|(option, _)| option);
    OPTIONS.iter().chain(others).find(known).or_else(|| {
        let mut names = Generation::ALL.into_iter().flat_map(generations::names);
        let (_, of) = names.find(|(other, _)| other.eq_ignore_ascii_case(name))?;
        OPTIONS.iter().find(|option| option.name == of)
    })
}

/// Returns the option that servers of a generation know by this name.
pub fn find_in(generation: Generation, name: &str) -> Option<&'static Opt> {
    let (_, option) = names_in(generation).find(|(known, _)| known.eq_ignore_ascii_case(name))?;
    Some(option)
}

/// Returns the option that a node of a generation takes at its start by this name: those of 7.0,
/// and its own.
pub fn find_at_start(generation: Generation, name: &str) -> Option<&'static Opt> {
    find_in(generation, name).or_else(|| find_in(Generation::Redis70, name))
}

/// Sets an option before a node starts, when every option may be set.
///
/// # Errors
/// An unknown option, with the most similar name, or the reason why the option refuses the value.
pub fn set_at_start(config: &mut Config, name: &str, value: &str) -> Result<(), String> {
    let Some(option) = find_at_start(config.generation, name) else {
        let nearest =
            nearest(name).map_or_else(String::new, |nearest| format!("; did you mean `{nearest}`?"));
        return Err(format!("there is no option `{name}`{nearest}"));
    };
    let canonical = option.check(config, value).map_err(|why| format!("`{name}`: {why}"))?;
    option.set(config, &canonical);
    Ok(())
}

/// Returns the option name most similar to `name`; `None` if none is similar.
pub fn nearest(name: &str) -> Option<&'static str> {
    let name = name.to_lowercase();
    let near = names().map(|(known, _)| (strsim::damerau_levenshtein(known, &name), known)).min()?;
    (near.0 <= 1 + name.len() / 4).then_some(near.1)
}

/// Returns every name, older ones included, with its option.
pub fn names() -> impl Iterator<Item = (&'static str, &'static Opt)> {
    OPTIONS.iter().flat_map(|option| {
        let alias = option.alias.map(|alias| (alias, option));
        [(option.name, option)].into_iter().chain(alias)
    })
}

/// Returns every name by which servers of a generation know an option, with the option.
pub fn names_in(generation: Generation) -> impl Iterator<Item = (&'static str, &'static Opt)> {
    let known = names().filter(move |(name, _)| generations::has(generation, name));
    let further = generations::names(generation).filter_map(|(name, of)| {
        let option = OPTIONS.iter().find(|option| option.name == of)?;
        Some((name, option))
    });
    known.chain(further).chain(generations::others(generation).map(|option| (option.name, option)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_sorted_and_their_defaults_are_values_they_take() {
        let config = Config::default();
        assert!(OPTIONS.is_sorted_by(|a, b| a.name < b.name));
        for option in OPTIONS.iter().chain(OTHERS.iter().map(|(option, _)| option)) {
            let value = option.get(&config);
            assert_eq!(option.check(&config, &value).as_ref(), Ok(&value), "{}", option.name);
            let mut changed = config.clone();
            option.set(&mut changed, &value);
            assert_eq!(option.get(&changed), value, "{}", option.name);
        }
    }
}
