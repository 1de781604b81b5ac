//! The errors in the reply of a script.

/// The errors in the reply of a script. One reply may hold several.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ScriptErrors {
    /// Number of errors of commands that the script called. They were counted at the call.
    pub counted: u64,
    /// The first words of the other errors, such as `ERR`.
    pub codes: Vec<String>,
}

impl ScriptErrors {
    /// Records an error in the reply.
    pub fn note(&mut self, text: &str, is_counted: bool) {
        if is_counted {
            self.counted += 1;
        } else {
            self.codes.push(error_code(text).to_owned());
        }
    }
}

/// Returns the code that counts an error reply: its first word. ERR if that is longer than 31
/// bytes.
pub fn error_code(text: &str) -> &str {
    text.bytes().take(32).position(|byte| byte == b' ').map_or("ERR", |end| &text[..end])
}
