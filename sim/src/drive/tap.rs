//! Splits the bytes of a client into commands, so that faults can pick one.

use bytes::{Bytes, BytesMut};

use crate::resp::{Decoder, Limits};

/// The bytes of a client that are not taken yet.
#[derive(Default)]
pub(super) struct Tap {
    raw: BytesMut,
    decoder: Decoder,
}

impl Tap {
    pub(super) fn feed(&mut self, bytes: &[u8]) {
        self.raw.extend_from_slice(bytes);
        self.decoder.feed(bytes);
    }

    /// Takes the next complete command: its bytes and its arguments. After a protocol error it
    /// returns all bytes that are not taken, for the server to report the error.
    pub(super) fn next(&mut self) -> Result<Option<(Bytes, Vec<Bytes>)>, Bytes> {
        match self.decoder.next(&Limits::default()) {
            Ok(None) => Ok(None),
            Ok(Some(arguments)) => {
                let length = self.raw.len() - self.decoder.unread();
                Ok(Some((self.raw.split_to(length).freeze(), arguments)))
            }
            Err(_) => Err(std::mem::take(&mut self.raw).freeze()),
        }
    }
}
