//! The messages of the cluster bus, byte for byte as Redis and Valkey send and read them.

use bytes::Bytes;

use super::{
    extension::Extensions,
    field::{Reader, put_text},
    id::{ID_LEN, NodeId},
    node::{Address, Flags},
    slot_set::{SLOT_BYTES, SlotSet},
};

/// The first bytes of a message.
const SIGNATURE: &[u8; 4] = b"RCmb";

/// The version of the protocol of the bus.
const VERSION: u16 = 1;

/// Bytes before the body.
const HEADER_LEN: usize = 2256;

/// Bytes of an entry of gossip.
const GOSSIP_LEN: usize = 104;

/// Bytes of a light message before its body.
const LIGHT_LEN: usize = 16;

/// Marks the kind of a light message.
const LIGHT: u16 = 1 << 15;

/// Bytes for an IP address.
const IP_LEN: usize = 46;

/// The longest message, in bytes: a longer one breaks the connection. No message of a simulated
/// node comes near.
const MESSAGE_LEN_MAX: usize = 512 << 20;

/// The kind of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Asks for a PONG.
    Ping,
    /// Answers, or announces a change of the sender.
    Pong,
    /// A PING of a node that joins.
    Meet,
    /// Announces that a node has failed.
    Fail,
    /// A message for the subscribers of a channel.
    Publish,
    /// A replica requests a vote.
    AuthRequest,
    /// A vote for a replica.
    AuthAck,
    /// The current slots of a node.
    Update,
    /// A replica asks its master for a manual failover.
    ManualFailover,
    /// A message of a module.
    Module,
    /// A message for the subscribers of a shard channel.
    PublishShard,
}

impl Kind {
    /// All kinds, in the order of their numbers on the wire.
    pub(super) const ALL: [Kind; 11] = [
        Kind::Ping,
        Kind::Pong,
        Kind::Meet,
        Kind::Fail,
        Kind::Publish,
        Kind::AuthRequest,
        Kind::AuthAck,
        Kind::Update,
        Kind::ManualFailover,
        Kind::Module,
        Kind::PublishShard,
    ];

    /// The number on the wire.
    pub(super) fn number(self) -> u16 {
        Kind::ALL.iter().position(|kind| *kind == self).expect("all are listed") as u16
    }

    /// The name in CLUSTER INFO.
    pub(super) fn name(self) -> &'static str {
        match self {
            Kind::Ping => "ping",
            Kind::Pong => "pong",
            Kind::Meet => "meet",
            Kind::Fail => "fail",
            Kind::Publish => "publish",
            Kind::AuthRequest => "auth-req",
            Kind::AuthAck => "auth-ack",
            Kind::Update => "update",
            Kind::ManualFailover => "mfstart",
            Kind::Module => "module",
            Kind::PublishShard => "publishshard",
        }
    }
}

bitflags::bitflags! {
    /// Flags of a message.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    pub struct Marks: u8 {
        /// The sender is a master that holds back writes for a manual failover.
        const PAUSED = 1;
        /// Vote even if the master has not failed.
        const FORCE = 1 << 1;
        /// Extensions follow the gossip, or the sender can read some.
        const EXTENDED = 1 << 2;
    }
}

/// The state of the sender, in every message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// The id of the sending node.
    pub sender: NodeId,
    /// The logical clock of the sender.
    pub current_epoch: u64,
    /// The epoch of the sender's claim to the slots.
    pub config_epoch: u64,
    /// The sender's offset in the replication stream.
    pub offset: u64,
    /// The slots of the sender, or of its master if it is a replica.
    pub slots: SlotSet,
    /// The sender's master, if it is a replica.
    pub master: Option<NodeId>,
    /// The sender's address; the IP address is empty unless it is announced.
    pub address: Address,
    /// The role and state of the sender.
    pub flags: Flags,
    /// True if the cluster is down in the sender's view.
    pub down: bool,
    /// Flags of the message itself, such as FORCE.
    pub marks: Marks,
}

/// A report about another node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gossip {
    /// The id of the other node.
    pub id: NodeId,
    /// The time of the unanswered ping to it, in seconds of the wall clock; 0 if none is
    /// unanswered.
    pub ping_sent_secs: u32,
    /// The time of its last pong, in seconds of the wall clock.
    pub pong_received_secs: u32,
    /// The address that the sender knows of it.
    pub address: Address,
    /// Its role and state in the sender's view.
    pub flags: Flags,
}

/// The part of a message after the header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Body {
    /// The body of PING, PONG and MEET.
    Gossip {
        /// Reports of other nodes.
        entries: Vec<Gossip>,
        /// Optional facts about the sender, such as its host name and its shard.
        extensions: Extensions,
    },
    /// The id of a node that has failed by the reports of a majority of the masters.
    Fail(NodeId),
    /// A message for subscribers.
    Publish {
        /// The channel to which the message was published.
        channel: Bytes,
        /// The payload for the subscribers.
        message: Bytes,
    },
    /// The claim of a node to its slots.
    Update {
        /// The id of the node that has the newer claim.
        id: NodeId,
        /// The epoch of its claim.
        config_epoch: u64,
        /// All slots of the claim, not only the changed ones.
        slots: SlotSet,
    },
    /// No body.
    Empty,
}

/// A message of the cluster bus.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// The kind, which determines the variant of `body`.
    pub kind: Kind,
    /// The state of the sender.
    pub header: Header,
    /// The part after the header.
    pub body: Body,
}

/// The received bytes are not a message. No later message can be found on the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Broken;

/// A message taken off the received bytes.
#[derive(Debug, PartialEq, Eq)]
pub enum Taken {
    /// A whole message.
    Message(Box<Message>),
    /// A light message of Valkey, which names no sender.
    Light {
        /// The kind: for a channel, or for a shard channel.
        kind: Kind,
        /// The channel to which the message was published.
        channel: Bytes,
        /// The payload for the subscribers.
        message: Bytes,
    },
    /// A whole message that cannot be parsed, with its kind if that is known. It is ignored.
    Senseless(Option<Kind>),
}

/// Takes the next whole message off the received bytes; `None` while it is incomplete.
///
/// # Errors
/// If the bytes are not the start of a message.
pub fn take(buffer: &mut Vec<u8>) -> Result<Option<Taken>, Broken> {
    let start = &buffer[..buffer.len().min(SIGNATURE.len())];
    if !SIGNATURE.starts_with(start) {
        return Err(Broken);
    }
    let Some(len) = buffer.get(4..8) else { return Ok(None) };
    let len = u32::from_be_bytes(len.try_into().expect("four bytes")) as usize;
    if !(LIGHT_LEN..=MESSAGE_LEN_MAX).contains(&len) {
        return Err(Broken);
    }
    let Some(number) = (Reader { bytes: buffer, at: 12 }).u16() else { return Ok(None) };
    if !is_light(number) && len < HEADER_LEN {
        return Err(Broken);
    }
    if buffer.len() < len {
        return Ok(None);
    }
    let whole: Vec<u8> = buffer.drain(..len).collect();
    if is_light(number) {
        return Ok(Some(take_light(&whole, number)));
    }
    Ok(Some(match Message::decode(&whole) {
        Some(message) => Taken::Message(Box::new(message)),
        None => Taken::Senseless(kind_of(number)),
    }))
}

impl Message {
    /// The bytes on the wire.
    pub fn encode(&self) -> Bytes {
        let mut out = Vec::with_capacity(HEADER_LEN + 4 * GOSSIP_LEN);
        let Header { sender, slots, master, address, .. } = &self.header;
        let (count, extensions) = match &self.body {
            Body::Gossip { entries, extensions } => (entries.len() as u16, extensions.count()),
            _ => (0, 0),
        };
        let mut marks = self.header.marks;
        if extensions > 0 {
            marks |= Marks::EXTENDED;
        }
        out.extend_from_slice(SIGNATURE);
        // The length is filled in at the end.
        out.extend_from_slice(&[0; 4]);
        for short in [VERSION, address.port, self.kind.number(), count] {
            out.extend_from_slice(&short.to_be_bytes());
        }
        for long in [self.header.current_epoch, self.header.config_epoch, self.header.offset] {
            out.extend_from_slice(&long.to_be_bytes());
        }
        out.extend_from_slice(sender.bytes());
        out.extend_from_slice(slots.bytes());
        out.extend_from_slice(master.as_ref().map_or(&[0; ID_LEN], |master| master.bytes()));
        put_text(&mut out, &address.ip, IP_LEN);
        out.extend_from_slice(&extensions.to_be_bytes());
        out.extend_from_slice(&[0; 30]);
        // The first is the plaintext port beside a TLS port; no node here has TLS.
        for short in [0, address.bus_port, self.header.flags.bits()] {
            out.extend_from_slice(&short.to_be_bytes());
        }
        out.extend_from_slice(&[u8::from(self.header.down), marks.bits(), 0, 0]);
        debug_assert_eq!(out.len(), HEADER_LEN);
        self.body.encode(&mut out);
        let len = out.len() as u32;
        out[4..8].copy_from_slice(&len.to_be_bytes());
        out.into()
    }

    /// Decodes a whole message; `None` if it cannot be parsed.
    fn decode(bytes: &[u8]) -> Option<Message> {
        let mut reader = Reader { bytes, at: 8 };
        if reader.u16()? != VERSION {
            return None;
        }
        let port = reader.u16()?;
        let kind = *Kind::ALL.get(usize::from(reader.u16()?))?;
        let count = reader.u16()?;
        let (current_epoch, config_epoch, offset) = (reader.u64()?, reader.u64()?, reader.u64()?);
        let sender = NodeId::parse(reader.take(ID_LEN)?)?;
        let slots = SlotSet::of(reader.take(SLOT_BYTES)?.try_into().ok()?);
        let master = reader.take(ID_LEN)?;
        let master = if *master == [0; ID_LEN] { None } else { Some(NodeId::parse(master)?) };
        let ip = reader.text(IP_LEN)?;
        let extensions = reader.u16()?;
        reader.take(30 + 2)?;
        let bus_port = reader.u16()?;
        let flags = Flags::from_bits_truncate(reader.u16()?);
        let down = *reader.take(1)?.first()? != 0;
        let marks = Marks::from_bits_truncate(*reader.take(3)?.first()?);
        let extensions = if marks.contains(Marks::EXTENDED) { extensions } else { 0 };
        let body = Body::decode(&mut reader, kind, count, extensions)?;
        if reader.at != bytes.len() {
            return None;
        }
        let address = Address { ip, port, bus_port };
        let header = Header {
            sender,
            current_epoch,
            config_epoch,
            offset,
            slots,
            master,
            address,
            flags,
            down,
            marks,
        };
        Some(Message { kind, header, body })
    }
}

impl Body {
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Body::Gossip { entries, extensions } => {
                for entry in entries {
                    out.extend_from_slice(entry.id.bytes());
                    out.extend_from_slice(&entry.ping_sent_secs.to_be_bytes());
                    out.extend_from_slice(&entry.pong_received_secs.to_be_bytes());
                    put_text(out, &entry.address.ip, IP_LEN);
                    for short in [entry.address.port, entry.address.bus_port, entry.flags.bits(), 0, 0] {
                        out.extend_from_slice(&short.to_be_bytes());
                    }
                }
                extensions.encode(out);
            }
            Body::Fail(id) => out.extend_from_slice(id.bytes()),
            Body::Publish { channel, message } => {
                out.extend_from_slice(&(channel.len() as u32).to_be_bytes());
                out.extend_from_slice(&(message.len() as u32).to_be_bytes());
                out.extend_from_slice(channel);
                out.extend_from_slice(message);
            }
            Body::Update { id, config_epoch, slots } => {
                out.extend_from_slice(&config_epoch.to_be_bytes());
                out.extend_from_slice(id.bytes());
                out.extend_from_slice(slots.bytes());
            }
            Body::Empty => {}
        }
    }

    pub(super) fn decode(reader: &mut Reader<'_>, kind: Kind, count: u16, extensions: u16) -> Option<Body> {
        Some(match kind {
            Kind::Ping | Kind::Pong | Kind::Meet => {
                let mut entries = Vec::new();
                for _ in 0..count {
                    entries.extend(Gossip::decode(reader)?);
                }
                Body::Gossip { entries, extensions: Extensions::decode(reader, extensions)? }
            }
            Kind::Fail => Body::Fail(NodeId::parse(reader.take(ID_LEN)?)?),
            Kind::Publish | Kind::PublishShard => {
                let (channel, message) = (reader.u32()? as usize, reader.u32()? as usize);
                let channel = Bytes::copy_from_slice(reader.take(channel)?);
                Body::Publish { channel, message: Bytes::copy_from_slice(reader.take(message)?) }
            }
            Kind::Update => {
                let config_epoch = reader.u64()?;
                let id = NodeId::parse(reader.take(ID_LEN)?)?;
                let slots = SlotSet::of(reader.take(SLOT_BYTES)?.try_into().ok()?);
                Body::Update { id, config_epoch, slots }
            }
            Kind::AuthRequest | Kind::AuthAck | Kind::ManualFailover => Body::Empty,
            // No module exists that could receive it.
            Kind::Module => return None,
        })
    }
}

impl Gossip {
    /// Decodes an entry: `Some(None)` for an entry without a valid name, `None` if the message ends
    /// within it.
    fn decode(reader: &mut Reader<'_>) -> Option<Option<Gossip>> {
        let id = NodeId::parse(reader.take(ID_LEN)?);
        let (ping_sent_secs, pong_received_secs) = (reader.u32()?, reader.u32()?);
        let ip = reader.text(IP_LEN)?;
        let (port, bus_port, flags) = (reader.u16()?, reader.u16()?, reader.u16()?);
        reader.take(4)?;
        // MYSELF, HANDSHAKE and MEET describe the table of the sender, and a node says itself which
        // messages it takes: drop them.
        let of_the_sender = Flags::MYSELF | Flags::HANDSHAKE | Flags::MEET | Flags::ABILITIES;
        let flags = Flags::from_bits_truncate(flags) - of_the_sender;
        let address = Address { ip, port, bus_port };
        Some(id.map(|id| Gossip { id, ping_sent_secs, pong_received_secs, address, flags }))
    }
}

/// Returns true if the number of a kind is that of a light message.
fn is_light(number: u16) -> bool {
    number & LIGHT != 0
}

/// The kind of a message, by its number on the wire.
fn kind_of(number: u16) -> Option<Kind> {
    Kind::ALL.get(usize::from(number & !LIGHT)).copied()
}

/// Decodes a whole light message. Only messages of channels are light.
fn take_light(bytes: &[u8], number: u16) -> Taken {
    let kind = kind_of(number);
    let mut reader = Reader { bytes, at: 8 };
    let is_known = reader.u16() == Some(VERSION) && matches!(kind, Some(Kind::Publish | Kind::PublishShard));
    reader.at = LIGHT_LEN;
    match kind.filter(|_| is_known) {
        Some(known) => match Body::decode(&mut reader, known, 0, 0) {
            Some(Body::Publish { channel, message }) if reader.at == bytes.len() => {
                Taken::Light { kind: known, channel, message }
            }
            _ => Taken::Senseless(kind),
        },
        None => Taken::Senseless(kind),
    }
}

impl Message {
    /// The bytes of the light form: the kind and the body alone.
    pub(super) fn encode_light(&self) -> Bytes {
        let mut body = Vec::new();
        self.body.encode(&mut body);
        let mut out = Vec::with_capacity(LIGHT_LEN + body.len());
        out.extend_from_slice(SIGNATURE);
        out.extend_from_slice(&((LIGHT_LEN + body.len()) as u32).to_be_bytes());
        for short in [VERSION, 0, self.kind.number() | LIGHT, 0] {
            out.extend_from_slice(&short.to_be_bytes());
        }
        out.extend_from_slice(&body);
        out.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(digit: &str) -> NodeId {
        NodeId::parse(digit.repeat(ID_LEN).as_bytes()).expect("a name")
    }

    fn message(kind: Kind, body: Body) -> Message {
        let mut slots = SlotSet::default();
        for slot in [0, 5, 16_383] {
            slots.add(slot);
        }
        let header = Header {
            sender: id("a"),
            current_epoch: 7,
            config_epoch: 6,
            offset: 1 << 40,
            slots,
            master: Some(id("b")),
            address: Address { ip: "10.0.0.1".into(), port: 7000, bus_port: 17000 },
            flags: Flags::MYSELF | Flags::REPLICA,
            down: true,
            marks: Marks::FORCE,
        };
        Message { kind, header, body }
    }

    fn all() -> Vec<(Message, usize)> {
        let address = Address { ip: "::1".into(), port: 1, bus_port: 2 };
        let flags = Flags::MASTER | Flags::PFAIL;
        let gossip = Gossip { id: id("c"), ping_sent_secs: 5, pong_received_secs: 6, address, flags };
        let (channel, text) = (Bytes::from_static(b"ch"), Bytes::from_static(b"\0text"));
        let update = Body::Update { id: id("d"), config_epoch: 9, slots: SlotSet::default() };
        let gossiping = |hostname: &str| {
            let entries = vec![gossip.clone(), gossip.clone()];
            Body::Gossip {
                entries,
                extensions: Extensions { hostname: hostname.into(), ..Extensions::default() },
            }
        };
        [
            (Kind::Ping, gossiping(""), 208),
            (Kind::Pong, Body::Gossip { entries: vec![], extensions: Extensions::default() }, 0),
            (Kind::Fail, Body::Fail(id("e")), 40),
            (Kind::Publish, Body::Publish { channel, message: text }, 8 + 7),
            (Kind::AuthRequest, Body::Empty, 0),
            (Kind::Update, update, 8 + 40 + 2048),
        ]
        .map(|(kind, body, len)| (message(kind, body), HEADER_LEN + len))
        .into()
    }

    #[test]
    fn what_is_written_is_read_again_however_it_is_cut() {
        for (message, len) in all() {
            let bytes = message.encode();
            assert_eq!(bytes.len(), len, "{:?}", message.kind);
            let mut buffer = Vec::new();
            for (at, byte) in bytes.iter().enumerate() {
                if at % 97 == 0 {
                    assert_eq!(take(&mut buffer), Ok(None), "{:?} {at}", message.kind);
                }
                buffer.push(*byte);
            }
            assert_eq!(take(&mut buffer), Ok(Some(Taken::Message(Box::new(message)))));
            assert!(buffer.is_empty());
        }
    }

    #[test]
    fn a_host_name_is_an_extension_of_a_multiple_of_eight_bytes() {
        let extensions = Extensions { hostname: "redis-7.test".into(), ..Extensions::default() };
        let body = Body::Gossip { entries: vec![], extensions };
        let mut said = message(Kind::Ping, body);
        said.header.marks |= Marks::EXTENDED;
        let mut bytes = said.encode().to_vec();
        assert_eq!(bytes.len(), HEADER_LEN + 8 + 16);
        assert_eq!(take(&mut bytes), Ok(Some(Taken::Message(Box::new(said)))));
    }

    #[test]
    fn no_bytes_from_the_wire_are_more_than_a_broken_connection_or_a_senseless_message() {
        let broken = |bytes: &[u8]| take(&mut bytes.to_vec()) == Err(Broken);
        assert!(
            broken(b"RCmx") && broken(b"G") && broken(b"RCmb\0\0\0\x01") && broken(b"RCmb\xff\xff\xff\xff")
        );
        for (message, _) in all() {
            let bytes = message.encode().to_vec();
            for at in (8..80).chain(2120..bytes.len()) {
                for value in [0, 1, 0x7f, 0xff] {
                    let mut bytes = bytes.clone();
                    bytes[at] = value;
                    let taken = take(&mut bytes).expect("its length is what it was");
                    assert!(taken.is_some() && bytes.is_empty(), "{:?} {at}", message.kind);
                }
            }
            // Cut the message, and set its length to match.
            for len in HEADER_LEN..bytes.len() {
                let mut bytes = bytes[..len].to_vec();
                bytes[4..8].copy_from_slice(&(len as u32).to_be_bytes());
                assert_eq!(take(&mut bytes), Ok(Some(Taken::Senseless(Some(message.kind)))));
            }
        }
    }
}
