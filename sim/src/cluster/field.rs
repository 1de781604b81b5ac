//! The fields of the messages of the cluster bus.

/// Reads fields one after another.
pub(super) struct Reader<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) at: usize,
}

impl<'a> Reader<'a> {
    pub(super) fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let taken = self.bytes.get(self.at..self.at.checked_add(len)?)?;
        self.at += len;
        Some(taken)
    }

    pub(super) fn u16(&mut self) -> Option<u16> {
        Some(u16::from_be_bytes(self.take(2)?.try_into().ok()?))
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        Some(u32::from_be_bytes(self.take(4)?.try_into().ok()?))
    }

    pub(super) fn u64(&mut self) -> Option<u64> {
        Some(u64::from_be_bytes(self.take(8)?.try_into().ok()?))
    }

    /// Reads the text of a field of `len` bytes; `None` unless it is printable ASCII up to the
    /// first zero.
    pub(super) fn text(&mut self, len: usize) -> Option<String> {
        let field = self.take(len)?;
        let end = field.iter().position(|byte| *byte == 0).unwrap_or(len);
        let is_text = field[..end].iter().all(u8::is_ascii_graphic);
        is_text.then(|| String::from_utf8_lossy(&field[..end]).into_owned())
    }
}

/// Writes a text into a field of `len` bytes, cut to leave at least one zero at the end.
pub(super) fn put_text(out: &mut Vec<u8>, text: &str, len: usize) {
    let text = &text.as_bytes()[..text.len().min(len - 1)];
    out.extend_from_slice(text);
    out.resize(out.len() + len - text.len(), 0);
}
