//! The CRC-64 at the end of a snapshot: polynomial of Jones, reflected, starting from 0.

const POLYNOMIAL: u64 = 0x95ac_9329_ac4b_c9b5;

const TABLE: [u64; 256] = {
    let mut table = [0; 256];
    let mut at = 0;
    while at < 256 {
        let mut crc = at as u64;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 { (crc >> 1) ^ POLYNOMIAL } else { crc >> 1 };
            bit += 1;
        }
        table[at] = crc;
        at += 1;
    }
    table
};

pub(super) fn crc64(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |crc, &byte| TABLE[usize::from(crc as u8 ^ byte)] ^ (crc >> 8))
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_check_value_of_the_polynomial_comes_out() {
        // The value that the literature gives for these nine digits with Jones's polynomial.
        assert_eq!(super::crc64(b"123456789"), 0xe9c6_d914_c4b8_d9ca);
    }
}
