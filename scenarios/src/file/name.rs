//! A name in a scenario file, with its position there.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};
use toml::Spanned;

/// A name with its position in the file, so that an error about an unknown name can point at it.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[schemars(with = "String")]
#[serde(transparent)]
pub struct Name(Spanned<String>);

impl Name {
    /// Makes a name that was not written in a file.
    pub fn new(name: impl Into<String>) -> Name {
        Name(Spanned::new(0..0, name.into()))
    }

    /// Makes a name at this position, in bytes of its file.
    pub fn at(span: std::ops::Range<usize>, name: impl Into<String>) -> Name {
        Name(Spanned::new(span, name.into()))
    }

    /// Returns the name without its position in the file.
    pub fn as_str(&self) -> &str {
        self.0.get_ref()
    }

    /// Returns its position, in bytes of the file.
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
