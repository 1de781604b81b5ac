//! Variants: several conditions of one experiment, each laid over the common part.

use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use super::error::Mistake;

/// Lays `over` on `base`: tables are merged key by key, anything else is replaced.
///
/// Values keep their positions in the source, so a mistake in a variant is reported at its place in
/// the variant.
pub(super) fn overlay<'i>(base: &mut DeTable<'i>, over: DeTable<'i>) {
    for (key, value) in over {
        let merged = match (base.get_mut(&key).map(|old| old.get_mut()), value.get_ref()) {
            (Some(DeValue::Table(old)), DeValue::Table(new)) => {
                overlay(old, new.clone());
                true
            }
            _ => false,
        };
        if !merged {
            base.insert(key, value);
        }
    }
}

/// Removes the keys that a variant leaves out: `without = ["fault.pause"]`, keys by their paths.
pub(super) fn leave_out(base: &mut DeTable<'_>, without: Spanned<DeValue<'_>>) -> Result<(), Mistake> {
    let place = without.span();
    let DeValue::Array(paths) = without.into_inner() else {
        return Err(Mistake::at(place, "expected a list of keys to leave out, such as [\"fault.pause\"]"));
    };
    for path in paths.iter() {
        let DeValue::String(text) = path.get_ref() else {
            return Err(Mistake::at(path.span(), "expected the path of a key, such as \"fault.pause\""));
        };
        let mut parts: Vec<&str> = text.split('.').collect();
        let last = parts.pop().unwrap_or_default();
        let mut table = Some(&mut *base);
        for part in parts {
            table = match table.and_then(|table| table.get_mut(part)).map(Spanned::get_mut) {
                Some(DeValue::Table(inner)) => Some(inner),
                _ => None,
            };
        }
        if table.and_then(|table| table.remove(last)).is_none() {
            return Err(Mistake::at(path.span(), format!("there is no `{text}` to leave out")));
        }
    }
    Ok(())
}
