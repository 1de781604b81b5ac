//! Redis locks on trial: scenarios, faults, checkers, verdicts.
