//! The parts of a key that a hold covers.

use std::sync::Arc;

/// The parts of a key that are locked together. Most kinds lock the key as a whole; a faster
/// multi-lock locks some values of its group, which are kept sorted.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Parts(Option<Arc<[String]>>);

impl Parts {
    /// The key as a whole, which counts as one part.
    pub(crate) const WHOLE: Self = Self(None);

    /// Some values of a group; duplicates count once.
    pub(crate) fn several(values: impl IntoIterator<Item = String>) -> Self {
        let mut values: Vec<String> = values.into_iter().collect();
        values.sort_unstable();
        values.dedup();
        Self(Some(values.into()))
    }

    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = &str> {
        static WHOLE: [String; 1] = [String::new()];
        self.0.as_deref().unwrap_or(&WHOLE).iter().map(String::as_str)
    }

    /// Returns the index of `part`.
    pub(super) fn position(&self, part: &str) -> Option<usize> {
        match &self.0 {
            None => part.is_empty().then_some(0),
            Some(values) => values.binary_search_by(|value| value.as_str().cmp(part)).ok(),
        }
    }

    /// Returns true if the two have a part in common.
    pub(crate) fn overlap(&self, other: &Self) -> bool {
        self.iter().any(|part| other.position(part).is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_overlap_where_they_have_one_in_common() {
        let parts = |values: &[&str]| Parts::several(values.iter().map(ToString::to_string));
        assert_eq!(parts(&["b", "a", "b"]).iter().collect::<Vec<_>>(), ["a", "b"]);
        for (one, other, overlap) in [
            (Parts::WHOLE, Parts::WHOLE, true),
            (parts(&["a", "b"]), parts(&["c", "b"]), true),
            (parts(&["a", "b"]), parts(&["c"]), false),
            (parts(&[]), parts(&["a"]), false),
        ] {
            assert_eq!(one.overlap(&other), overlap, "{one:?} {other:?}");
            assert_eq!(other.overlap(&one), overlap, "{other:?} {one:?}");
        }
    }
}
