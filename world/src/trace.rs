//! The trace: every event with its true time and the readings of the host's clocks. Its SHA-256 is
//! the fingerprint of the run.

use std::{collections::VecDeque, fmt, sync::Arc};

use bytes::Bytes;
use sha2::{Digest, Sha256};

use crate::{clock::Reading, time::True};

/// The name of a host, cheap to copy.
pub type HostName = Arc<str>;

/// An event of a run: everything that happens to hosts, packets and requests.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields are named after what they are")]
pub enum Event {
    /// The host's software started.
    Started { incarnation: u64 },
    /// The host's software ended by itself.
    Finished,
    /// The host's software is gone: `crash`, `kill` or `stop`.
    Ended { how: &'static str },
    /// A packet was put on a link; it arrives at `due` unless a fault interferes. It would arrive
    /// at `drawn` if no packet before it on the link arrived later. The fingerprint leaves `drawn`
    /// out.
    Packet {
        to: HostName,
        source_port: u16,
        destination_port: u16,
        flags: &'static str,
        payload: Bytes,
        due: True,
        drawn: True,
    },
    /// A verb was executed.
    Fault { verb: String },
    /// The code of a server host (a node) read a request.
    Request { client: HostName, connection: u64, command: Bytes },
    /// A node wrote bytes of replies to a connection.
    Reply { client: HostName, connection: u64, bytes: Bytes },
    /// The effect of a request on a node's data.
    Effect { effect: String },
    /// An event that code on a host emits: a grant, a belief, a write to a resource.
    Observed { kind: &'static str, detail: String },
}

/// An event with its time and its host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// The number of the record, counted from 0.
    pub number: u64,
    /// The instant in true time, which no host can read.
    pub at: True,
    /// The host and the readings of its clocks; `None` for faults.
    pub host: Option<(HostName, Reading)>,
    /// The event, such as a crash, a packet or a reply.
    pub event: Event,
}

impl Record {
    /// Appends the stable byte form from which the fingerprint is computed: integers little-endian,
    /// texts and bytes with their length in front, one tag per kind of event.
    pub fn encode(&self, out: &mut Vec<u8>) {
        head(out, self.at, self.host.as_ref().map(|(name, reading)| (name, reading)));
        match &self.event {
            Event::Started { incarnation } => {
                out.push(0);
                out.extend_from_slice(&incarnation.to_le_bytes());
            }
            Event::Finished => out.push(1),
            Event::Ended { how } => {
                out.push(2);
                bytes(out, how.as_bytes());
            }
            Event::Packet { to, source_port, destination_port, flags, payload, due, drawn } => {
                let ports = (*source_port, *destination_port);
                Sent { to, ports, flags, payload, arrival: Arrival { due: *due, drawn: *drawn } }.encode(out);
            }
            Event::Fault { verb } => {
                out.push(4);
                bytes(out, verb.as_bytes());
            }
            Event::Request { client, connection, command } => {
                out.push(5);
                bytes(out, client.as_bytes());
                out.extend_from_slice(&connection.to_le_bytes());
                bytes(out, command);
            }
            Event::Reply { client, connection, bytes: reply } => {
                out.push(6);
                bytes(out, client.as_bytes());
                out.extend_from_slice(&connection.to_le_bytes());
                bytes(out, reply);
            }
            Event::Effect { effect } => {
                out.push(7);
                bytes(out, effect.as_bytes());
            }
            Event::Observed { kind, detail } => {
                out.push(8);
                bytes(out, kind.as_bytes());
                bytes(out, detail.as_bytes());
            }
        }
    }
}

fn int(out: &mut Vec<u8>, n: i64) {
    out.extend_from_slice(&n.to_le_bytes());
}

fn bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
    out.extend_from_slice(bytes);
}

/// Appends the stable form of the time and the host of a record.
fn head(out: &mut Vec<u8>, at: True, host: Option<(&HostName, &Reading)>) {
    int(out, at.as_nanos());
    match host {
        None => out.push(0),
        Some((name, reading)) => {
            out.push(1);
            bytes(out, name.as_bytes());
            int(out, reading.wall.as_nanos());
            int(out, reading.monotonic.as_nanos());
            int(out, reading.boottime.as_nanos());
        }
    }
}

/// The arrival of a packet that is put on a link.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Arrival {
    pub(crate) due: True,
    /// The arrival without the packets before it, which it does not overtake.
    pub(crate) drawn: True,
}

/// A packet that was put on a link, in the words of [`Event::Packet`].
pub(crate) struct Sent<'a> {
    pub(crate) to: &'a HostName,
    /// The ports of the source and of the destination.
    pub(crate) ports: (u16, u16),
    pub(crate) flags: &'static str,
    pub(crate) payload: &'a Bytes,
    pub(crate) arrival: Arrival,
}

impl Sent<'_> {
    fn encode(&self, out: &mut Vec<u8>) {
        out.push(3);
        bytes(out, self.to.as_bytes());
        out.extend_from_slice(&self.ports.0.to_le_bytes());
        out.extend_from_slice(&self.ports.1.to_le_bytes());
        bytes(out, self.flags.as_bytes());
        bytes(out, self.payload);
        int(out, self.arrival.due.as_nanos());
    }

    fn event(&self) -> Event {
        let (source_port, destination_port) = self.ports;
        let (to, payload, flags) = (self.to.clone(), self.payload.clone(), self.flags);
        let Arrival { due, drawn } = self.arrival;
        Event::Packet { to, source_port, destination_port, flags, payload, due, drawn }
    }
}

/// Prints one line: true time, the host with its three clocks, the event.
impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>15} ", self.at)?;
        if let Some((name, reading)) = &self.host {
            write!(
                f,
                "{name} [wall {} mono {} boot {}] ",
                reading.wall, reading.monotonic, reading.boottime
            )?;
        }
        match &self.event {
            Event::Started { incarnation } => write!(f, "started, incarnation {incarnation}"),
            Event::Finished => f.write_str("finished"),
            Event::Ended { how } => write!(f, "ended by {how}"),
            Event::Packet { to, source_port, destination_port, flags, payload, due, .. } => {
                write!(f, ":{source_port} -> {to}:{destination_port} {flags} due {due} ")?;
                write!(f, "{} bytes {}", payload.len(), payload.escape_ascii())
            }
            Event::Fault { verb } => write!(f, "fault: {verb}"),
            Event::Request { client, connection, command } => {
                write!(f, "< {client}#{connection} {}", command.escape_ascii())
            }
            Event::Reply { client, connection, bytes } => {
                write!(f, "> {client}#{connection} {}", bytes.escape_ascii())
            }
            Event::Effect { effect } => write!(f, "effect {effect}"),
            Event::Observed { kind, detail } => write!(f, "{kind}: {detail}"),
        }
    }
}

/// Selects the records to keep; the fingerprint covers all records in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TraceRetention {
    /// Keep no records: only the fingerprint remains.
    Nothing,
    /// Keep this many of the last records.
    Last(usize),
    /// Keep all except packets.
    Events,
    /// Keep all records, packets included.
    All,
}

/// A host's contact with the rest of its world: its software ran, or a packet reached its kernel.
/// Between two of them the host's software and its kernel do nothing.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Activity {
    /// The instant in true time.
    pub at: True,
    /// The host whose software ran, or whose kernel got the packet.
    pub host: HostName,
    /// The sender of the packet; `None` if the host's software ran.
    pub from: Option<HostName>,
}

/// The SHA-256 of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint([u8; 32]);

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// The trace so far.
pub(crate) struct Trace {
    keep: TraceRetention,
    hooked: bool,
    next: u64,
    hasher: Sha256,
    buffer: Vec<u8>,
    records: VecDeque<Record>,
    unseen: VecDeque<Record>,
    activities: Vec<Activity>,
}

impl Trace {
    pub(crate) fn new(keep: TraceRetention, hooked: bool) -> Self {
        Self {
            keep,
            hooked,
            next: 0,
            hasher: Sha256::new(),
            buffer: vec![],
            records: VecDeque::new(),
            unseen: VecDeque::new(),
            activities: Vec::new(),
        }
    }

    /// Keeps an activity if all records are kept. Several polls at one instant are one activity.
    pub(crate) fn note(&mut self, at: True, host: &HostName, from: Option<&HostName>) {
        if self.keep == TraceRetention::All {
            let activity = Activity { at, host: host.clone(), from: from.cloned() };
            if self.activities.last() != Some(&activity) {
                self.activities.push(activity);
            }
        }
    }

    pub(crate) fn activities(&self) -> &[Activity] {
        &self.activities
    }

    pub(crate) fn push(&mut self, at: True, host: Option<(HostName, Reading)>, event: Event) {
        let record = Record { number: self.next, at, host, event };
        self.next += 1;
        record.encode(&mut self.buffer);
        self.hash_full_buffer();
        let packet = matches!(record.event, Event::Packet { .. });
        if self.hooked && !packet {
            self.unseen.push_back(record.clone());
        }
        match self.keep {
            TraceRetention::Nothing => {}
            TraceRetention::Events if packet => {}
            TraceRetention::Events | TraceRetention::All => self.records.push_back(record),
            TraceRetention::Last(most) => {
                self.records.push_back(record);
                while self.records.len() > most {
                    self.records.pop_front();
                }
            }
        }
    }

    /// Records a packet. Most packets are not kept, and leave nothing but their bytes in the
    /// fingerprint.
    pub(crate) fn push_sent(&mut self, at: True, host: (&HostName, Reading), sent: &Sent<'_>) {
        match self.keep {
            TraceRetention::All | TraceRetention::Last(_) => {
                self.push(at, Some((host.0.clone(), host.1)), sent.event());
            }
            TraceRetention::Nothing | TraceRetention::Events => {
                self.next += 1;
                head(&mut self.buffer, at, Some((host.0, &host.1)));
                sent.encode(&mut self.buffer);
                self.hash_full_buffer();
            }
        }
    }

    fn hash_full_buffer(&mut self) {
        if self.buffer.len() >= 4096 {
            self.hasher.update(&self.buffer);
            self.buffer.clear();
        }
    }

    /// Takes the next record that no hook has seen.
    pub(crate) fn take_unseen(&mut self) -> Option<Record> {
        self.unseen.pop_front()
    }

    pub(crate) fn fingerprint(&self) -> Fingerprint {
        Fingerprint(self.hasher.clone().chain_update(&self.buffer).finalize().into())
    }

    pub(crate) fn count(&self) -> u64 {
        self.next
    }

    pub(crate) fn records(&self) -> &VecDeque<Record> {
        &self.records
    }
}

/// Returns the first pair of records that differ; `None` if the traces are equal.
pub fn first_divergence<'a>(
    one: impl IntoIterator<Item = &'a Record>,
    other: impl IntoIterator<Item = &'a Record>,
) -> Option<Divergence> {
    let (mut one, mut other) = (one.into_iter(), other.into_iter());
    loop {
        match (one.next(), other.next()) {
            (None, None) => return None,
            (a, b) if a == b => {}
            (a, b) => return Some(Divergence { one: a.cloned(), other: b.cloned() }),
        }
    }
}

/// The first place where two runs differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Divergence {
    /// The record of the first trace; `None` if that trace has ended.
    pub one: Option<Record>,
    /// The record of the second trace; `None` if that trace has ended.
    pub other: Option<Record>,
}

impl fmt::Display for Divergence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line = |record: &Option<Record>| {
            record.as_ref().map_or("(the trace ends here)".into(), |r| format!("#{} {r}", r.number))
        };
        write!(f, "one:   {}\nother: {}", line(&self.one), line(&self.other))
    }
}
