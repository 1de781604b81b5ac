//! A write on its way to the resource, as one line of text: `lock owner token sent`. The token is
//! `-` if there is none; `sent` is the time of sending in nanoseconds of true time.

use std::{fmt, str::FromStr};

use lockstorm_world::time::True;

use super::{Lock, Owner};

/// A write from a client to the resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WriteLine {
    pub(crate) lock: Lock,
    pub(crate) owner: Owner,
    pub(crate) token: Option<u64>,
    pub(crate) sent: True,
}

impl fmt::Display for WriteLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let WriteLine { lock, owner, token, sent } = self;
        let token = token.map_or("-".to_owned(), |token| token.to_string());
        write!(f, "{} {} {token} {}", lock.0, owner.0, sent.as_nanos())
    }
}

impl FromStr for WriteLine {
    type Err = ();

    fn from_str(line: &str) -> Result<WriteLine, ()> {
        let mut words = line.split(' ');
        let mut word = || words.next().ok_or(());
        let lock = Lock(word()?.parse().map_err(drop)?);
        let owner = Owner(word()?.parse().map_err(drop)?);
        let token = match word()? {
            "-" => None,
            token => Some(token.parse().map_err(drop)?),
        };
        let sent = True::from_nanos(word()?.parse().map_err(drop)?);
        Ok(WriteLine { lock, owner, token, sent })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_is_read_as_it_was_sent() {
        for token in [None, Some(34)] {
            let write =
                WriteLine { lock: Lock(1), owner: Owner(2), token, sent: True::from_nanos(2_008_471_396) };
            assert_eq!(write.to_string().parse(), Ok(write));
        }
        for line in ["", "1 2 -", "1 2 x 5", "x 2 - 5", "1 x - 5", "1 2 - x", "hello"] {
            assert_eq!(line.parse::<WriteLine>(), Err(()), "{line}");
        }
    }
}
