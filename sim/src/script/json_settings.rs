//! The settings of `cjson`.

/// Values set by the `cjson.*` functions, for all scripts of a node.
#[derive(Debug, Clone)]
pub(super) struct Settings {
    pub(super) sparse_convert: bool,
    pub(super) sparse_ratio: i32,
    pub(super) sparse_safe: i32,
    pub(super) encode_depth_max: i32,
    pub(super) decode_depth_max: i32,
    pub(super) encode_invalid: Invalid,
    pub(super) decode_invalid: bool,
    pub(super) precision: usize,
    pub(super) keep_buffer: bool,
}

/// Treatment of numbers that JSON does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Invalid {
    Refused,
    Written,
    Null,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            sparse_convert: false,
            sparse_ratio: 2,
            sparse_safe: 10,
            encode_depth_max: 1000,
            decode_depth_max: 1000,
            encode_invalid: Invalid::Refused,
            decode_invalid: true,
            precision: 14,
            keep_buffer: true,
        }
    }
}

/// Maximum nesting, whatever the setting: each level holds a table.
const DEPTH_MAX: usize = 2000;

/// Returns the maximum nesting for the setting `depth`.
pub(super) fn allowed(depth: i32) -> usize {
    usize::try_from(depth).map_or(0, |depth| depth.min(DEPTH_MAX))
}
