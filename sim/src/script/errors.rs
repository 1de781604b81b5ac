//! The errors in the reply of a script.

/// The errors in the reply of a script, which may be several.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ScriptErrors {
    /// How many are those of commands that the script called, and were counted then.
    pub counted: u64,
    /// The codes of the others.
    pub codes: Vec<String>,
}

impl ScriptErrors {
    /// Notes an error in the reply.
    pub fn note(&mut self, text: &str, is_counted: bool) {
        if is_counted {
            self.counted += 1;
        } else {
            self.codes.push(error_code(text).to_owned());
        }
    }
}

/// What an error reply counts as: the word that it begins with, or ERR if none is short enough.
pub fn error_code(text: &str) -> &str {
    text.bytes().take(32).position(|byte| byte == b' ').map_or("ERR", |end| &text[..end])
}
