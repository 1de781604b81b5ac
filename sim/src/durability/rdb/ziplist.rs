//! Ziplists and zipmaps, the compact encodings before listpacks. Redis 6.2 writes ziplists; all
//! servers read both.

use bytes::Bytes;

use super::{
    Item, RdbError,
    listpack::{listpack, little},
};

const ZIPLIST: RdbError = RdbError::Damaged("a ziplist");
const ZIPMAP: RdbError = RdbError::Damaged("a zipmap");
/// Bytes before the first element of a ziplist: the number of its bytes, the offset of its last
/// element, the number of elements.
const HEADER: usize = 10;
/// Stands before the length of a long element in four bytes.
const FAR: u8 = 0xfe;
/// The last byte of a ziplist.
const END: u8 = 0xff;

fn text(n: i64) -> Bytes {
    Bytes::from(n.to_string())
}

/// Returns the elements of a ziplist. It has the number of its bytes and the offset of its last
/// element in four bytes each, the number of elements in two, and the elements, each after the
/// length of the one before.
pub(super) fn ziplist(bytes: &[u8]) -> Result<Vec<Bytes>, RdbError> {
    let slice =
        |from: usize, len: usize| from.checked_add(len).and_then(|to| bytes.get(from..to)).ok_or(ZIPLIST);
    let unsigned = |from: usize| Ok(little(slice(from, 4)?) as u32 as usize);
    let (size, tail, count) = (unsigned(0)?, unsigned(4)?, little(slice(8, 2)?) as u16);
    if size != bytes.len() {
        return Err(ZIPLIST);
    }
    let mut elements = Vec::new();
    let (mut at, mut before, mut last) = (10, 0, 10);
    loop {
        let start = at;
        let back = match slice(at, 1)?[0] {
            0xff => break,
            0xfe => {
                at += 5;
                unsigned(start + 1)?
            }
            short => {
                at += 1;
                usize::from(short)
            }
        };
        if back != before {
            return Err(ZIPLIST);
        }
        let first = slice(at, 1)?[0];
        let integer = |width: usize| Ok((text(little(slice(at + 1, width)?)), 1 + width));
        let (element, len) = match first {
            0x00..=0x3f => {
                let len = usize::from(first);
                (Bytes::copy_from_slice(slice(at + 1, len)?), 1 + len)
            }
            0x40..=0x7f => {
                let len = usize::from(first & 0x3f) << 8 | usize::from(slice(at + 1, 1)?[0]);
                (Bytes::copy_from_slice(slice(at + 2, len)?), 2 + len)
            }
            0x80 => {
                let len = slice(at + 1, 4)?.iter().fold(0, |len, &byte| len << 8 | usize::from(byte));
                (Bytes::copy_from_slice(slice(at + 5, len)?), 5 + len)
            }
            0xc0 => integer(2)?,
            0xd0 => integer(4)?,
            0xe0 => integer(8)?,
            0xf0 => integer(3)?,
            0xfe => integer(1)?,
            0xf1..=0xfd => (text(i64::from(first) - 0xf1), 1),
            _ => return Err(ZIPLIST),
        };
        elements.push(element);
        at += len;
        (before, last) = (at - start, start);
    }
    let counted = count == u16::MAX || usize::from(count) == elements.len();
    if at + 1 == bytes.len() && tail == last && counted { Ok(elements) } else { Err(ZIPLIST) }
}

/// Returns the ziplist with the elements of a listpack that this node has written.
pub(super) fn of_listpack(pack: &[u8]) -> Vec<u8> {
    let items = listpack(pack).unwrap_or_default();
    let mut out = vec![0; HEADER];
    let (mut before, mut last) = (0, HEADER);
    for item in &items {
        let start = out.len();
        match u8::try_from(before) {
            Ok(short) if short < FAR => out.push(short),
            _ => {
                out.push(FAR);
                out.extend((before as u32).to_le_bytes());
            }
        }
        match item {
            Item::Integer(n) => put_integer(&mut out, *n),
            Item::Text(text) => put_text(&mut out, text),
        }
        (before, last) = (out.len() - start, start);
    }
    out.push(END);
    let (size, count) = (out.len() as u32, items.len().min(usize::from(u16::MAX)) as u16);
    out[..4].copy_from_slice(&size.to_le_bytes());
    out[4..8].copy_from_slice(&(last as u32).to_le_bytes());
    out[8..HEADER].copy_from_slice(&count.to_le_bytes());
    out
}

fn put_text(out: &mut Vec<u8>, text: &[u8]) {
    match text.len() {
        len @ 0..=0x3f => out.push(len as u8),
        len @ 0x40..=0x3fff => out.extend([0x40 | (len >> 8) as u8, len as u8]),
        len => {
            out.push(0x80);
            out.extend((len as u32).to_be_bytes());
        }
    }
    out.extend_from_slice(text);
}

fn put_integer(out: &mut Vec<u8>, n: i64) {
    let (mark, width) = match n {
        0..=12 => return out.push(0xf1 + n as u8),
        -0x80..=0x7f => (0xfe, 1),
        -0x8000..=0x7fff => (0xc0, 2),
        -0x80_0000..=0x7f_ffff => (0xf0, 3),
        -0x8000_0000..=0x7fff_ffff => (0xd0, 4),
        _ => (0xe0, 8),
    };
    out.push(mark);
    out.extend_from_slice(&n.to_le_bytes()[..width]);
}

/// Returns the elements of a zipmap, fields and values in turn. Each comes after its length; a
/// value comes also after the number of spare bytes that follow it.
pub(super) fn zipmap(bytes: &[u8]) -> Result<Vec<Bytes>, RdbError> {
    let slice =
        |from: usize, len: usize| from.checked_add(len).and_then(|to| bytes.get(from..to)).ok_or(ZIPMAP);
    let mut elements = Vec::new();
    let mut at = 1;
    loop {
        let len = match slice(at, 1)?[0] {
            // The map can end only where a field would begin.
            0xff if elements.len().is_multiple_of(2) => break,
            0xff => return Err(ZIPMAP),
            0xfe => {
                let len = little(slice(at + 1, 4)?) as u32 as usize;
                at += 5;
                len
            }
            short => {
                at += 1;
                usize::from(short)
            }
        };
        let mut spare = 0;
        if !elements.len().is_multiple_of(2) {
            spare = usize::from(slice(at, 1)?[0]);
            at += 1;
        }
        elements.push(Bytes::copy_from_slice(slice(at, len)?));
        slice(at, len + spare)?;
        at += len + spare;
    }
    let count = usize::from(bytes[0]);
    let counted = count >= 0xfe || count == elements.len() / 2;
    if at + 1 == bytes.len() && counted { Ok(elements) } else { Err(ZIPMAP) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::durability::rdb::Listpack;

    /// Returns an element of `letters` letters, after `before`: the length of the element before,
    /// in the form of the first bytes.
    fn element(before: &[u8], letters: u8) -> Vec<u8> {
        [before, &[0x40, letters], &vec![b'x'; letters.into()]].concat()
    }

    /// The length of an element of 253 bytes or fewer takes one byte before the next element; a
    /// greater length takes four bytes after 0xfe.
    #[test]
    fn a_long_element_of_a_ziplist_is_measured_in_four_bytes() {
        for (letters, before) in [(250, &[253_u8] as &[u8]), (251, &[0xfe, 254, 0, 0, 0])] {
            let (first, second) = (element(&[0], letters), element(before, 1));
            let (tail, size) = (10 + first.len(), 10 + first.len() + second.len() + 1);
            let head = [(size as u32).to_le_bytes(), (tail as u32).to_le_bytes()].concat();
            let whole = [&head[..], &[2, 0], &first, &second, &[0xff]].concat();
            let lengths = ziplist(&whole).map(|elements| elements.iter().map(Bytes::len).collect::<Vec<_>>());
            assert_eq!(lengths, Ok(vec![letters.into(), 1]));
        }
    }

    /// From 16,384 bytes on, the length of an element takes four bytes after 0x80, in big-endian
    /// order.
    #[test]
    fn a_very_long_element_of_a_ziplist_is_as_long_as_four_bytes_say() {
        let element = [&[0, 0x80, 0, 1, 2, 3], &vec![b'x'; 0x10203][..]].concat();
        let size = 10 + element.len() + 1;
        let head = [(size as u32).to_le_bytes(), 10_u32.to_le_bytes()].concat();
        let whole = [&head[..], &[1, 0], &element, &[0xff]].concat();
        assert_eq!(ziplist(&whole).map(|elements| elements[0].len()), Ok(0x10203));
    }

    /// As Redis 6.2.5 dumps `HSET h f v n 300` and `ZADD z 1.5 a 3 b`; and elements of every form.
    #[test]
    fn a_listpack_becomes_a_ziplist() {
        let of = |words: &[&[u8]]| {
            let mut pack = Listpack::default();
            words.iter().for_each(|word| pack.push(word));
            of_listpack(&pack.finish())
        };
        let hash = b"\x18\0\0\0\x13\0\0\0\x04\0\0\x01f\x03\x01v\x03\x01n\x03\xc0\x2c\x01\xff";
        assert_eq!(of(&[b"f", b"v", b"n", b"300"]), hash);
        let scores = b"\x18\0\0\0\x15\0\0\0\x04\0\0\x01a\x03\x031.5\x05\x01b\x03\xf4\xff";
        assert_eq!(of(&[b"a", b"1.5", b"b", b"3"]), scores);
        let long = [63, 64, 250, 251, 252, 300, 0x3fff, 0x4000].map(|len| vec![b'x'; len]);
        let integers =
            [0, 12, 13, -1, 127, -128, 128, 32_767, -32_769, 8_388_607, 8_388_608, i64::MIN, i64::MAX];
        let integers = integers.map(|n: i64| n.to_string().into_bytes());
        let words: Vec<&[u8]> = long.iter().chain(&integers).map(Vec::as_slice).collect();
        let read = ziplist(&of(&words)).expect("a ziplist");
        assert_eq!(read.iter().map(|word| &word[..]).collect::<Vec<_>>(), words);
        assert_eq!(of(&[]), b"\x0b\0\0\0\x0a\0\0\0\0\0\xff");
    }

    /// Each field of the header must be right: number of bytes, offset of the last element, number
    /// of elements.
    #[test]
    fn a_ziplist_that_contradicts_itself_is_refused() {
        let ziplist_of = |tail: u32, count: u8, behind: &[u8]| {
            let (first, second) = ([0, 0x01, b'a'], [3, 0x01, b'b']);
            let size = (10 + first.len() + second.len() + 1 + behind.len()) as u32;
            let head = [size.to_le_bytes(), tail.to_le_bytes()].concat();
            ziplist(&[&head[..], &[count, 0], &first, &second, &[0xff], behind].concat())
        };
        assert_eq!(ziplist_of(13, 2, b"").map(|elements| elements.len()), Ok(2));
        for (tail, count, behind) in [(10, 2, &b""[..]), (13, 3, b""), (13, 2, b".")] {
            assert_eq!(ziplist_of(tail, count, behind), Err(ZIPLIST), "{tail}, {count}, {behind:?}");
        }
    }

    #[test]
    fn zipmaps() {
        type Row = (&'static [u8], Result<&'static [&'static str], RdbError>);
        let rows: [Row; 9] = [
            (b"\x00\xff", Ok(&[])),
            (b"\x01\x01f\x01\x00v\xff", Ok(&["f", "v"])),
            // Spare bytes for a longer value may follow a value.
            (b"\x02\x01f\x01\x02v..\x01g\x00\x00\xff", Ok(&["f", "v", "g", ""])),
            (b"\x01\xfe\x01\x00\x00\x00f\x01\x00v\xff", Ok(&["f", "v"])),
            // More pairs than the first byte can count.
            (b"\xfe\x01f\x01\x00v\xff", Ok(&["f", "v"])),
            (b"\x02\x01f\x01\x00v\xff", Err(ZIPMAP)),
            (b"\x01\x01f\x01\x00v\xff.", Err(ZIPMAP)),
            (b"\x01\x01f\x01\x00v", Err(ZIPMAP)),
            // The last field has no value: of one and a half pairs one is counted.
            (b"\x01\x01f\x01\x00v\x01g\xff", Err(ZIPMAP)),
        ];
        for (bytes, expected) in rows {
            let elements = zipmap(bytes);
            let texts = elements.as_ref().map(|all| all.iter().map(|one| &**one).collect::<Vec<_>>());
            let expected = expected.as_ref().map(|all| all.iter().map(|one| one.as_bytes()).collect());
            assert_eq!(texts, expected, "{}", bytes.escape_ascii());
        }
    }
}
