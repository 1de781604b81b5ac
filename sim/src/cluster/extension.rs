//! The extensions of PING, PONG and MEET, in which a node says more about itself than in the
//! header.

use super::{
    field::{Reader, put_text},
    id::NodeId,
};

/// Bytes of an extension before its content.
const EXTENSION_LEN: usize = 8;

/// The kinds of extensions.
const HOSTNAME: u16 = 0;
const HUMAN_NAME: u16 = 1;
const FORGOTTEN: u16 = 2;
const SHARD: u16 = 3;
const FOURTH: u16 = 4;

/// The extensions of a message, as far as a node uses them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Extensions {
    /// The host name of the sender; empty if it announces none.
    pub hostname: String,
    /// The name of the sender for people; empty if it announces none.
    pub human_name: String,
    /// Nodes that the sender was told to forget, each with the seconds for which it still does.
    pub forgotten: Vec<(NodeId, u64)>,
    /// The id of the sender's shard.
    pub shard: Option<NodeId>,
    /// From Redis 8.2 a secret of the sender; from Valkey its IPv4 address for clients.
    pub fourth: String,
}

impl Extensions {
    /// Writes the extensions after the gossip.
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        for (kind, text) in [(HOSTNAME, &self.hostname), (HUMAN_NAME, &self.human_name)] {
            if !text.is_empty() {
                put_padded(out, kind, text);
            }
        }
        for (id, seconds) in &self.forgotten {
            put_head(out, FORGOTTEN, id.bytes().len() + 8);
            out.extend_from_slice(id.bytes());
            out.extend_from_slice(&seconds.to_be_bytes());
        }
        if let Some(shard) = &self.shard {
            put_head(out, SHARD, shard.bytes().len());
            out.extend_from_slice(shard.bytes());
        }
        if !self.fourth.is_empty() {
            put_head(out, FOURTH, self.fourth.len());
            out.extend_from_slice(self.fourth.as_bytes());
        }
    }

    /// The number of extensions.
    pub(super) fn count(&self) -> u16 {
        let one = |is_there: bool| usize::from(is_there);
        let texts = [&self.hostname, &self.human_name, &self.fourth].map(|text| one(!text.is_empty()));
        let count = texts.iter().sum::<usize>() + self.forgotten.len() + one(self.shard.is_some());
        u16::try_from(count).unwrap_or(u16::MAX)
    }

    /// Reads `count` extensions, and skips unknown kinds; `None` if the message ends within them,
    /// or a text is not printable.
    pub(super) fn decode(reader: &mut Reader<'_>, count: u16) -> Option<Extensions> {
        let mut read = Extensions::default();
        for _ in 0..count {
            let len = (reader.u32()? as usize).checked_sub(EXTENSION_LEN)?;
            let kind = reader.u16()?;
            reader.take(2)?;
            let mut content = Reader { bytes: reader.take(len)?, at: 0 };
            match kind {
                HOSTNAME => read.hostname = content.text(len)?,
                HUMAN_NAME => read.human_name = one_name(content.text(len)?),
                FORGOTTEN => {
                    let id = NodeId::parse(content.take(super::id::ID_LEN)?)?;
                    read.forgotten.push((id, content.u64()?));
                }
                SHARD => read.shard = Some(NodeId::parse(content.take(super::id::ID_LEN)?)?),
                FOURTH => read.fourth = one_name(content.text(len)?),
                _ => {}
            }
        }
        Some(read)
    }
}

/// Returns a name, or no name in place of one that would be several in `nodes.conf`.
fn one_name(text: String) -> String {
    if text.contains([',', '=']) { String::new() } else { text }
}

fn put_head(out: &mut Vec<u8>, kind: u16, len: usize) {
    out.extend_from_slice(&((EXTENSION_LEN + len) as u32).to_be_bytes());
    out.extend_from_slice(&kind.to_be_bytes());
    out.extend_from_slice(&[0; 2]);
}

/// Writes a terminated text, padded to a multiple of eight bytes.
fn put_padded(out: &mut Vec<u8>, kind: u16, text: &str) {
    let len = (text.len() + 1).next_multiple_of(8);
    put_head(out, kind, len);
    put_text(out, text, len);
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    use crate::cluster::{Address, Body, Flags, Header, Kind, Marks, Message, SlotSet, Taken, take};

    fn id(digit: &str) -> NodeId {
        NodeId::parse(digit.repeat(40).as_bytes()).expect("a name")
    }

    fn message(kind: Kind, body: Body) -> Message {
        let header = Header {
            sender: id("a"),
            current_epoch: 0,
            config_epoch: 0,
            offset: 0,
            slots: SlotSet::default(),
            master: None,
            address: Address::default(),
            flags: Flags::MYSELF | Flags::MASTER,
            down: false,
            marks: Marks::EXTENDED,
        };
        Message { kind, header, body }
    }

    /// As Redis 8.2.3 sends `host.test`, `nick`, a node to forget, its shard and its secret.
    #[test]
    fn extensions_are_written_in_the_order_of_redis() {
        let secret = "b".repeat(40);
        let all = Extensions {
            hostname: "host.test".into(),
            human_name: "nick".into(),
            forgotten: vec![(id("f"), 60)],
            shard: Some(id("c")),
            fourth: secret.clone(),
        };
        let mut out = Vec::new();
        all.encode(&mut out);
        let parts: [&[u8]; 10] = [
            b"\0\0\0\x18\0\0\0\0",
            b"host.test\0\0\0\0\0\0\0",
            b"\0\0\0\x10\0\x01\0\0",
            b"nick\0\0\0\0",
            b"\0\0\0\x38\0\x02\0\0",
            &[&[b'f'; 40][..], &60_u64.to_be_bytes()].concat(),
            b"\0\0\0\x30\0\x03\0\0",
            &[b'c'; 40],
            b"\0\0\0\x30\0\x04\0\0",
            secret.as_bytes(),
        ];
        assert_eq!(out, parts.concat());
        let body = Body::Gossip { entries: vec![], extensions: all };
        let said = message(Kind::Ping, body);
        assert_eq!(take(&mut said.encode().to_vec()), Ok(Some(Taken::Message(Box::new(said)))));
    }

    /// Valkey also sends an IPv6 address for clients, and newer servers will send more.
    #[test]
    fn unknown_extensions_are_skipped() {
        let mut bytes = b"\0\0\0\x10\0\x05\0\0::7\0\0\0\0\0".to_vec();
        bytes.extend(b"\0\0\0\x0a\0\xff\0\0\xff\0");
        bytes.extend(b"\0\0\0\x10\0\x00\0\0h\0\0\0\0\0\0\0");
        let mut reader = Reader { bytes: &bytes, at: 0 };
        let read = Extensions::decode(&mut reader, 3).expect("extensions");
        assert_eq!(
            (reader.at, read),
            (bytes.len(), Extensions { hostname: "h".into(), ..Extensions::default() })
        );
        for end in 0..bytes.len() {
            assert_eq!(
                Extensions::decode(&mut Reader { bytes: &bytes[..end], at: 0 }, 3),
                None,
                "cut at {end}"
            );
        }
    }

    /// As Valkey 9.1.2 sends `PUBLISH ch hello` to a node that takes light messages.
    #[test]
    fn a_light_message_has_no_header() {
        let (channel, text) = (Bytes::from_static(b"ch"), Bytes::from_static(b"hello"));
        let said = message(Kind::Publish, Body::Publish { channel: channel.clone(), message: text.clone() });
        let bytes = said.encode_light();
        assert_eq!(&bytes[..], b"RCmb\0\0\0\x1f\0\x01\0\0\x80\x04\0\0\0\0\0\x02\0\0\0\x05chhello");
        let light = Taken::Light { kind: Kind::Publish, channel, message: text };
        assert_eq!(take(&mut bytes.to_vec()), Ok(Some(light)));
        for end in 0..bytes.len() {
            assert_eq!(take(&mut bytes[..end].to_vec()), Ok(None), "cut at {end}");
        }
        for at in 8..bytes.len() {
            for value in [0, 1, 0x7f, 0x80, 0xff] {
                let mut damaged = bytes.to_vec();
                damaged[at] = value;
                // A kind that is not light needs a whole header.
                let taken = take(&mut damaged);
                assert!(taken != Ok(None), "{at}: {value}");
            }
        }
    }
}
