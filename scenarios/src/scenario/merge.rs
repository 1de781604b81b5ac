//! Variants: one experiment, several conditions, each laid over the whole.

use toml::de::{DeTable, DeValue};

/// Lays `over` on `base`: tables are merged key by key, anything else is replaced.
///
/// Places in the source travel with the values, so a mistake in a variant is reported where the variant is written.
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
