//! PFSELFTEST: checks that registers keep their values, that both encodings agree, and that the
//! estimates are good.

use bytes::{Bytes, BytesMut};

use super::{dense, registers, sketch};
use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "pfselftest",
    group: Group::HyperLogLog,
    since: "2.8.9",
    summary: "Tests the inner workings of HyperLogLogs.",
    arity: 1,
    flags: Flags::ADMIN,
    keys: Keys::None,
    subcommands: &[],
    run,
};

/// Number of elements to add, one by one.
const ELEMENTS: u64 = 20_000;
/// Compares both encodings up to this many bytes.
const SPARSE_MAX: usize = 3000;
/// Four times the standard error of an estimate, which is 1.04 / sqrt(16384), less than 1%.
const ERROR_MAX: f64 = 0.0325;

fn run(_: &mut Ctx<'_>, _: &[Bytes]) -> Result<Reply, Error> {
    test().map_err(|why| Error(format!("TESTFAILED {why}").into()))?;
    Ok(Reply::OK)
}

fn test() -> Result<(), String> {
    let mut registers = vec![0; dense::LEN];
    for index in 0..registers::REGISTERS {
        let value = (index * 7 % 63 + 1) as u8;
        dense::raise(&mut registers, index, value);
        for (at, expected) in [(index, value), (index + 1, 0)] {
            let got = if at < registers::REGISTERS { dense::get(&registers, at) } else { 0 };
            if got != expected {
                return Err(format!("Register {at} should be {expected} but is {got}"));
            }
        }
    }
    let (mut sparse, mut dense) = (BytesMut::new(), BytesMut::new());
    sketch::begin(&mut sparse);
    sketch::begin(&mut dense);
    let corrupted = |error: Error| error.to_string();
    sketch::make_dense(&mut dense).map_err(corrupted)?;
    for n in 1..=ELEMENTS {
        for form in [&mut sparse, &mut dense] {
            sketch::add(form, &n.to_le_bytes(), SPARSE_MAX).map_err(corrupted)?;
        }
        if n.is_power_of_two() || n == ELEMENTS {
            let estimates = [&sparse, &dense].map(|form| sketch::count(form).unwrap_or_default());
            if estimates[0] != estimates[1] {
                return Err("dense/sparse disagree".into());
            }
            // A few elements may collide by chance, even with a good estimator.
            if estimates[0].abs_diff(n) as f64 > (n as f64 * ERROR_MAX).max(2.0) {
                return Err(format!("Too big error. card:{n} estimate:{}", estimates[0]));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_test_passes() {
        assert_eq!(super::test(), Ok(()));
    }
}
