//! L2, as it is defined: what L1 says of promises, said of beliefs.

use lockstorm::judge::history::History;

use crate::{Answer, l1::judge_stretches, past::believed};

pub(crate) fn judge(history: &History) -> Answer {
    judge_stretches(history, believed)
}
