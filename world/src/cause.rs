//! The causes of conditions.

use std::{fmt, sync::Arc};

/// The cause of a condition, such as one occurrence of a fault. A cause counts once per target.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cause(Arc<str>);

impl<S: AsRef<str>> From<S> for Cause {
    fn from(name: S) -> Cause {
        Cause(name.as_ref().into())
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
