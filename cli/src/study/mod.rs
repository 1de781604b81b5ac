//! Studies over many runs of a scenario.
//!
//! | module | contents |
//! | --- | --- |
//! | `table` | every run as a row, as CSV or Parquet |
//! | `sensitivity` | the drawn values that separate violated runs from held ones |
//! | `plot` | a sweep as a picture |
//! | `boundary` | the place along an axis where a verdict changes |
//! | `campaign` | many seeds in one folder, for many processes and machines |
//! | `shrink` | the smallest scenario that still has a violation |
//! | `cause` | the faults without which a violation would not have happened |

pub(crate) mod table;

pub(crate) mod sensitivity;

pub(crate) mod plot;

pub(crate) mod boundary;

pub(crate) mod campaign;

pub(crate) mod shrink;

pub(crate) mod cause;
