//! The definition of L2: that of L1, with beliefs in place of promises.

use lockstorm::judge::history::History;

use crate::{Answer, l1::judge_stretches, past::believed};

pub(crate) fn judge(history: &History) -> Answer {
    judge_stretches(history, believed)
}
