//! A name in a scenario file that remembers where it was written.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};
use toml::Spanned;

/// A name with its place in the file, so that a name that stands for nothing can be pointed at.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[schemars(with = "String")]
#[serde(transparent)]
pub struct Name(Spanned<String>);

impl Name {
    /// A name that was not written in a file.
    pub fn new(name: impl Into<String>) -> Name {
        Name(Spanned::new(0..0, name.into()))
    }

    /// A name that was written at this place, in bytes of its file.
    pub fn at(span: std::ops::Range<usize>, name: impl Into<String>) -> Name {
        Name(Spanned::new(span, name.into()))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        self.0.get_ref()
    }

    /// Where it was written, in bytes of the file.
    pub fn span(&self) -> std::ops::Range<usize> {
        self.0.span()
    }
}

impl Serialize for Name {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl PartialEq for Name {
    fn eq(&self, other: &Name) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Name {}

impl std::hash::Hash for Name {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}

impl std::borrow::Borrow<str> for Name {
    fn borrow(&self) -> &str {
        self.as_str()
    }
}
