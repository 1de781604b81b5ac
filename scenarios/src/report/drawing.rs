//! The timeline of the page: an SVG whose parts carry their positions in true time, and the numbers
//! that its script needs.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write,
};

use indexmap::IndexMap;
use lockstorm_world::{Record, time::True};
use serde_json::{Value, json};

use super::{
    escape::escape,
    lanes::{self, Bar, Lane},
    messages::{self, Message},
    timeline::own_clock,
};
use crate::judge::{
    checker::{Evidence, evidence::words},
    history::{ClockId, Fault, Fence, History, Host, HostKind, Lock, Owner, Segment},
};

/// The x coordinate at which the rows begin, in pixels; their names are to the left of it.
const LEFT: u32 = 190;
/// The width of the timeline in pixels, until the script has measured the page.
const WIDTH: f64 = 1_130.0;
const ROW: u32 = 24;
/// The most parts of one page. A line below the drawing counts the others.
const PARTS_MAX: usize = 20_000;
/// The most rows of faults that come before all other rows; more than these come after them.
const FAULTS_FIRST: usize = 8;
/// The least change of a clock at once, in microseconds, that the script draws as a jump.
const JUMP_MIN: f64 = 1_000.0;

pub(super) struct Drawing {
    pub(super) svg: String,
    pub(super) data: Value,
    /// The meaning of the shapes that the drawing has, and of no others.
    pub(super) legend: String,
}

/// A kind of shape in the drawing, in the order of the legend.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Shape {
    Holds,
    Asks,
    Two,
    Fault,
    Down,
    Paused,
    Suspended,
    Master,
    Write,
    Rejected,
    Said,
    Request,
    Reply,
    NeverArrived,
    Jumps,
    StandsStill,
    Calm,
}

impl Shape {
    /// The style classes of its sample, and its meaning in words.
    fn meaning(self) -> (&'static str, &'static str) {
        match self {
            Shape::Holds => ("o0 swatch holder", "has the lock (a colour for each owner)"),
            Shape::Asks => ("o0 swatch asks", "asks for it"),
            Shape::Two => ("swatch two", "two at once"),
            Shape::Fault => ("swatch fault-bar", "fault"),
            Shape::Down => ("swatch stands", "down"),
            Shape::Paused => ("swatch stands", "paused"),
            Shape::Suspended => ("swatch stands", "suspended"),
            Shape::Master => ("swatch role-of", "master"),
            Shape::Write => ("o0 swatch write", "write"),
            Shape::Rejected => ("o0 swatch rejected", "rejected write"),
            Shape::Said => ("swatch said", "what was said of a failure"),
            Shape::Request => ("swatch sent", "request"),
            Shape::Reply => ("swatch sent answer", "reply"),
            Shape::NeverArrived => ("swatch sent lost", "never arrived"),
            Shape::Jumps => ("swatch jumps", "a clock that jumps"),
            Shape::StandsStill => ("swatch stops", "a clock that stands still"),
            Shape::Calm => ("swatch calms", "end of the storm"),
        }
    }
}

/// Returns the legend of these shapes. Shapes with the same sample share one entry.
fn legend(shapes: &BTreeSet<Shape>, is_real: bool) -> String {
    let mut entries: IndexMap<&str, Vec<&str>> = IndexMap::new();
    for (sample, words) in shapes.iter().map(|shape| shape.meaning()) {
        entries.entry(sample).or_default().push(words);
    }
    let mut legend = "<div class=\"legend\">".to_owned();
    for (sample, words) in entries {
        let inside = if sample.contains("sent") { "\u{25b6}" } else { "" };
        let (last, others) = words.split_last().map_or(("", &[][..]), |(last, others)| (*last, others));
        let words =
            if others.is_empty() { last.to_owned() } else { format!("{} or {last}", others.join(", ")) };
        let _ = write!(legend, "<span><i class=\"{sample}\">{inside}</i>{words}</span>");
    }
    if is_real {
        legend.push_str(
            "<span class=\"note\">On real servers, in real time: messages between hosts are not recorded there.</span>",
        );
    }
    legend.push_str("</div>\n");
    legend
}

struct Canvas<'a> {
    history: &'a History,
    y: u32,
    /// The layers from bottom to top: stripes and names; bands of faults; bars; words, marks and
    /// overlaps.
    under: String,
    bands: String,
    bars: String,
    over: String,
    shapes: BTreeSet<Shape>,
    parts: usize,
    left_out: usize,
}

impl Canvas<'_> {
    fn x(&self, at: True) -> f64 {
        let end = self.history.header.end.as_micros().max(1) as f64;
        f64::from(LEFT) + at.as_micros().clamp(0, end as i64) as f64 / end * WIDTH
    }

    /// Counts a part. Returns true if there is room for it; the legend then explains its shape.
    fn within(&mut self, shape: Option<Shape>) -> bool {
        let within = self.parts < PARTS_MAX;
        if within {
            self.parts += 1;
            self.shapes.extend(shape);
        } else {
            self.left_out += 1;
        }
        within
    }

    fn heading(&mut self, title: &str, sub: &str) {
        self.y += 12;
        let y = self.y + 14;
        let _ = writeln!(
            self.under,
            "<text class=\"head\" x=\"10\" y=\"{y}\">{} <tspan class=\"sub\">{}</tspan></text>",
            escape(title),
            escape(sub)
        );
        self.y += 20;
    }

    /// Adds a row with its name, and returns its y coordinate.
    fn row(&mut self, label: &str, sub: &str) -> u32 {
        let y = self.y;
        self.y += ROW;
        let text = y + 16;
        let full = format!("{label} {sub}");
        let _ = writeln!(
            self.under,
            "<rect class=\"stripe\" x=\"{LEFT}\" y=\"{}\" width=\"100%\" height=\"{}\"/>\
             <text class=\"name\" x=\"22\" y=\"{text}\">{} <tspan class=\"sub\">{}</tspan><title>{}</title></text>",
            y + 1,
            ROW - 2,
            escape(label),
            escape(sub),
            escape(full.trim_end())
        );
        y
    }

    fn rect(
        &mut self,
        (shape, class): (Shape, &str),
        (from, until): (True, True),
        (y, height): (u32, u32),
        title: &str,
    ) {
        if !self.within(Some(shape)) {
            return;
        }
        let (x, width) = (self.x(from), (self.x(until) - self.x(from)).max(2.0));
        let (a, b) = (from.as_micros(), until.as_micros());
        let _ = writeln!(
            self.bars,
            "<rect class=\"{class}\" data-a=\"{a}\" data-b=\"{b}\" x=\"{x:.1}\" width=\"{width:.1}\" y=\"{y}\" \
             height=\"{height}\"><title>{}</title></rect>",
            escape(title)
        );
    }

    /// Adds words inside of a bar (`in`) or after it (`out`).
    fn words(&mut self, class: &str, (from, until): (True, True), y: u32, text: &str) {
        if !self.within(None) {
            return;
        }
        let (a, b) = (from.as_micros(), until.as_micros());
        let x = if class.starts_with("in") { self.x(from) + 5.0 } else { self.x(until) + 7.0 };
        let _ = writeln!(
            self.over,
            "<text class=\"{class}\" data-a=\"{a}\" data-b=\"{b}\" x=\"{x:.1}\" y=\"{y}\">{}</text>",
            escape(text)
        );
    }

    fn bar(&mut self, bar: &Bar, y: u32) {
        let colour = bar.owner.map_or(String::new(), |owner| format!(" {}", colour(owner)));
        let span = (bar.from, bar.until);
        match bar.class {
            "ask" => self.rect((Shape::Asks, &format!("ask{colour}")), span, (y + 9, 6), &bar.title),
            "role" => {
                self.rect((Shape::Master, "role"), span, (y + 5, ROW - 10), &bar.title);
                self.words("in on", span, y + 16, &bar.label);
            }
            "down" | "paused" | "suspended" => {
                let shape = match bar.class {
                    "down" => Shape::Down,
                    "paused" => Shape::Paused,
                    _ => Shape::Suspended,
                };
                self.rect((shape, "still"), span, (y + 2, ROW - 4), &bar.title);
                self.words("in on", span, y + 16, &bar.label);
            }
            _ => {
                self.rect((Shape::Holds, &format!("bar{colour}")), span, (y + 4, ROW - 8), &bar.title);
                self.words("in", span, y + 16, &bar.label);
            }
        }
    }

    fn mark(&mut self, at: True, y: u32, title: &str) {
        if !self.within(Some(Shape::Said)) {
            return;
        }
        let (a, x) = (at.as_micros(), self.x(at));
        let title = escape(title);
        let _ = writeln!(
            self.over,
            "<circle class=\"mark\" data-a=\"{a}\" cx=\"{x:.1}\" cy=\"{y}\" r=\"4\"><title>{title}</title></circle>"
        );
    }

    fn lanes(&mut self, lanes: &[Lane], overlaps: &[(True, True)]) {
        let top = self.y;
        for lane in lanes {
            let y = self.row(&lane.label, "");
            for bar in &lane.bars {
                self.bar(bar, y);
            }
            for (at, title) in &lane.marks {
                self.mark(*at, y + ROW / 2, title);
            }
        }
        let height = self.y - top;
        for (from, until) in overlaps {
            if !self.within(Some(Shape::Two)) {
                return;
            }
            let (a, b, x) = (from.as_micros(), until.as_micros(), self.x(*from));
            let width = (self.x(*until) - x).max(2.0);
            let length = words::length(until.since(*from));
            let _ = writeln!(
                self.over,
                "<rect class=\"over\" data-a=\"{a}\" data-b=\"{b}\" x=\"{x:.1}\" width=\"{width:.1}\" y=\"{top}\" \
                 height=\"{height}\"><title>two at once for {length}, from {} to {}</title></rect>",
                words::instant(*from),
                words::instant(*until)
            );
        }
    }
}

fn colour(owner: Owner) -> String {
    format!("o{}", owner.0 % 8)
}

impl Drawing {
    /// Draws a run. Of too many messages, keeps those nearest to the start of `focus`.
    pub(super) fn of(evidence: &Evidence<'_>, records: &[Record], focus: Option<(True, True)>) -> Self {
        let history = evidence.history;
        let top = 26;
        let empty = String::new;
        let mut canvas = Canvas {
            history,
            y: top,
            under: empty(),
            bands: empty(),
            bars: empty(),
            over: empty(),
            shapes: BTreeSet::new(),
            parts: 0,
            left_out: 0,
        };
        // A storm has many rows of faults, which would push the rows of their consequences off the
        // screen.
        let rows = fault_rows(history);
        let (first, last) =
            if rows.len() <= FAULTS_FIRST { (rows, FaultRows::new()) } else { (FaultRows::new(), rows) };
        faults(&mut canvas, first, None);
        canvas.heading("nodes", "whose key each one had");
        let lives = lanes::lives(history);
        let nodes: Vec<Host> = history.header.hosts_of(HostKind::Node).collect();
        for (lane, node) in lanes::nodes(history).iter().zip(nodes) {
            let y = canvas.row(&lane.label, "");
            lane.bars.iter().chain(lives.get(&node).into_iter().flatten()).for_each(|bar| canvas.bar(bar, y));
        }
        masters(&mut canvas, evidence);
        canvas.heading("promised by the servers", "grant to end of lease, in true time (L1)");
        canvas.lanes(&lanes::promised(evidence), &evidence.promises_at_once());
        canvas.heading("believed by the clients", "by their own clocks (L2)");
        let mut believed = lanes::believed(evidence);
        let owners: Vec<Host> = history.owners.iter().map(|owner| owner.client).collect();
        for lane in &mut believed {
            let client = lane.bars.iter().find_map(|bar| bar.owner).map(|owner| owners[owner.0 as usize]);
            let still = client.and_then(|client| lives.get(&client)).into_iter().flatten();
            // Leave the label out: it would cover the belief's own bar.
            lane.bars.extend(still.map(|bar| Bar { label: String::new(), ..bar.clone() }));
        }
        canvas.lanes(&believed, &evidence.beliefs_at_once());
        resource(&mut canvas);
        failure_detection(&mut canvas);
        faults(&mut canvas, last, Some(top));
        let messages = messages(&mut canvas, records, focus.map_or(True::ZERO, |(from, _)| from));
        let clocks = clocks(&mut canvas);
        canvas.y += 10;
        let focus = focus.map(|(from, until)| [from.as_micros(), until.as_micros()]);
        finish(canvas, top, json!({ "clocks": clocks, "messages": messages, "focus": focus }))
    }
}

/// Draws the nodes that were masters of each lock, if that can change.
fn masters(canvas: &mut Canvas<'_>, evidence: &Evidence<'_>) {
    let locks = (0..).zip(&evidence.history.header.locks).map(|(at, _)| Lock(at));
    let lanes: Vec<_> = locks.map(|lock| (lock, lanes::masters(evidence, lock))).collect();
    if lanes.iter().any(|(_, lanes)| !lanes.is_empty()) {
        canvas.heading("masters", "which nodes were masters");
    }
    for (lock, lanes) in lanes {
        canvas.lanes(&lanes, &evidence.two_masters(lock));
    }
}

/// Draws the events that Sentinels and nodes of a cluster reported of each other. They come after
/// the rows that they explain, because there may be many.
fn failure_detection(canvas: &mut Canvas<'_>) {
    let lanes = lanes::failure_detection(canvas.history);
    if !lanes.is_empty() {
        canvas
            .heading("failure detection", "what Sentinels and nodes of a cluster said; hover for the words");
        canvas.lanes(&lanes, &[]);
    }
}

/// Faults by row. All occurrences of a named fault share a row, whatever sizes and hosts the seed
/// has drawn; faults without a name share one if they are alike.
type FaultRows<'a> = IndexMap<(&'a str, String), Vec<&'a Fault>>;

fn targets(history: &History, fault: &Fault) -> String {
    let targets: Vec<&str> = fault.targets.iter().map(|host| history.host_name(*host)).collect();
    targets.join(", ")
}

fn fault_rows(history: &History) -> FaultRows<'_> {
    let mut rows = FaultRows::new();
    for fault in &history.faults {
        let alike =
            if fault.name.is_empty() { targets(history, fault) + &fault.words } else { String::new() };
        rows.entry((&*fault.name, alike)).or_default().push(fault);
    }
    rows
}

/// Draws rows of faults, with bands that begin at `top`, or else at the row of their fault.
fn faults(canvas: &mut Canvas<'_>, rows: FaultRows<'_>, top: Option<u32>) {
    if rows.is_empty() {
        return;
    }
    let history = canvas.history;
    canvas.heading("faults", "what was done, and to whom");
    for ((name, _), occurrences) in rows {
        let y = match &occurrences[..] {
            [first, rest @ ..] if !rest.is_empty() && !name.is_empty() => {
                let (count, is_same) =
                    (occurrences.len(), rest.iter().all(|one| one.targets == first.targets));
                let whom = if is_same { targets(history, first) } else { String::new() };
                canvas.row(name, format!("×{count} {whom}").trim_end())
            }
            alike => canvas.row(&targets(history, alike[0]), ""),
        };
        for (at, fault) in occurrences.iter().enumerate() {
            let what = &*fault.words;
            let until = fault.until.unwrap_or(if fault.lasts { history.header.end } else { fault.from });
            let title = format!("{what}\n{}", words::span(fault));
            canvas.rect((Shape::Fault, "fault"), (fault.from, until), (y + 6, ROW - 12), &title);
            if at + 1 == occurrences.len() {
                canvas.words("out", (fault.from, until), y + 16, what);
            }
            if canvas.within(None) {
                let (a, b, x) = (fault.from.as_micros(), until.as_micros(), canvas.x(fault.from));
                let width = (canvas.x(until) - x).max(1.0);
                let y = top.unwrap_or(y);
                let _ = writeln!(
                    canvas.bands,
                    "<rect class=\"band\" data-a=\"{a}\" data-b=\"{b}\" x=\"{x:.1}\" width=\"{width:.1}\" y=\"{y}\" height=\"100%\"/>"
                );
            }
        }
    }
}

/// Draws a row per host; the script draws the messages in view between the rows.
fn messages(canvas: &mut Canvas<'_>, records: &[Record], instant: True) -> Value {
    let (messages, left_out) = messages::around(canvas.history, records, instant);
    if messages.is_empty() {
        return Value::Null;
    }
    canvas.heading("messages", "hover for the command and its reply");
    let end = canvas.history.header.end;
    for message in &messages {
        canvas.shapes.insert(match message {
            Message { arrived, .. } if arrived.is_none_or(|at| at > end) => Shape::NeverArrived,
            Message { is_request: true, .. } => Shape::Request,
            Message { .. } => Shape::Reply,
        });
    }
    let mut rows = BTreeMap::new();
    for at in messages.iter().flat_map(|message| message.ends).collect::<BTreeSet<usize>>() {
        let y = canvas.row(&canvas.history.header.hosts[at].name.clone(), "");
        rows.insert(at, y + ROW / 2);
    }
    let row = |Message { ends: [from, to], sent, arrived, is_request, words }: Message| {
        json!([rows[&from], rows[&to], sent.as_micros(), arrived.map(True::as_micros), is_request, words])
    };
    let list: Vec<Value> = messages.into_iter().map(row).collect();
    json!({ "list": list, "leftOut": left_out })
}

fn resource(canvas: &mut Canvas<'_>) {
    let history = canvas.history;
    let writes = lanes::writes(history);
    let Some(resource) = history.header.resource.as_ref().filter(|_| !writes.is_empty()) else { return };
    let rule = match resource.fence {
        Fence::None => "unfenced",
        Fence::Greater => "only tokens > the greatest seen",
        Fence::AtLeast => "only tokens ≥ the greatest seen",
    };
    canvas.heading("writes", rule);
    let y = canvas.row(history.host_name(resource.host), "");
    canvas.y += 8;
    for dot in writes {
        if !canvas.within(Some(if dot.accepted { Shape::Write } else { Shape::Rejected })) {
            continue;
        }
        let (a, x) = (dot.at.as_micros(), canvas.x(dot.at));
        let _ = writeln!(
            canvas.bars,
            "<circle class=\"dot {}{}\" data-a=\"{a}\" cx=\"{x:.1}\" cy=\"{}\" r=\"4\"><title>{}</title></circle>",
            colour(dot.owner),
            if dot.accepted { "" } else { " no" },
            y + 9,
            escape(&dot.title)
        );
        if let Some(token) = dot.token {
            let _ = writeln!(
                canvas.over,
                "<text class=\"token\" data-a=\"{a}\" x=\"{x:.1}\" y=\"{}\">{token}</text>",
                y + 27
            );
        }
    }
}

/// Draws a row per host for its own clock; the script draws the ticks.
fn clocks(canvas: &mut Canvas<'_>) -> Vec<Value> {
    let history = canvas.history;
    canvas.heading("clocks", "what each host's own clock shows, in seconds");
    let hosts = history.header.hosts.iter().enumerate().filter(|(_, host)| host.kind != HostKind::Resource);
    let hosts: Vec<Host> = hosts.map(|(at, _)| Host(at as u16)).collect();
    let epoch = epoch(history, &hosts);
    let mut all = Vec::new();
    for host in hosts {
        let clock_id = own_clock(history, host);
        let kind = match clock_id {
            ClockId::Wall => "wall",
            ClockId::Monotonic => "monotonic",
            ClockId::Boottime => "boottime",
        };
        let y = canvas.row(history.host_name(host), kind);
        let clock = history.clock(host);
        let origin = if clock_id == ClockId::Wall { epoch } else { clock.reading(clock_id, True::ZERO) };
        let piece = |segment: &Segment| {
            let reading = segment.readings[clock_id as usize].saturating_sub(origin);
            json!([segment.from.as_micros(), reading / 1_000, segment.rates[clock_id as usize] as f64 / 1e9])
        };
        let segments = clock.segments();
        let pieces: Vec<Value> = segments.iter().map(piece).collect();
        canvas.shapes.extend(uneven(segments, clock_id, history.header.end));
        all.push(json!({ "y": y, "height": ROW, "pieces": pieces }));
    }
    all
}

/// Returns the shapes that the script draws for a clock besides its ticks.
fn uneven(segments: &[Segment], clock_id: ClockId, end: True) -> BTreeSet<Shape> {
    let of = clock_id as usize;
    let mut shapes = BTreeSet::new();
    for (at, segment) in segments.iter().enumerate().filter(|(_, segment)| segment.from <= end) {
        let until = segments.get(at + 1).map_or(end, |next| next.from.min(end));
        if segment.rates[of] <= 0 && until > segment.from {
            shapes.insert(Shape::StandsStill);
        }
        let before = at.checked_sub(1).map(|before| &segments[before]);
        let is_jump = before.is_some_and(|before| {
            let passed = (segment.from.as_micros() - before.from.as_micros()) as f64;
            let gone = segment.readings[of].saturating_sub(before.readings[of]) as f64 / 1e3;
            (gone - passed * before.rates[of] as f64 / 1e9).abs() >= JUMP_MIN
        });
        shapes.extend(is_jump.then_some(Shape::Jumps));
    }
    shapes
}

/// Returns the reading of most wall clocks at the beginning of the world; the other clocks then
/// appear as off.
fn epoch(history: &History, hosts: &[Host]) -> i64 {
    let mut readings: Vec<i64> =
        hosts.iter().map(|host| history.clock(*host).reading(ClockId::Wall, True::ZERO)).collect();
    readings.sort_unstable();
    readings
        .chunk_by(|one, other| one == other)
        .rev()
        .max_by_key(|equal| equal.len())
        .and_then(|equal| equal.first().copied())
        .unwrap_or(0)
}

/// Puts the drawing together. `data` has the values from which the script draws.
fn finish(mut canvas: Canvas<'_>, top: u32, mut data: Value) -> Drawing {
    let header = &canvas.history.header;
    if canvas.left_out > 0 {
        let said = format!("{} more parts are not drawn", canvas.left_out);
        let y = canvas.y + 14;
        let _ = writeln!(canvas.under, "<text class=\"sub\" x=\"22\" y=\"{y}\">{said}</text>");
        canvas.y += ROW;
    }
    let height = canvas.y;
    let calm = header.calm.map_or(String::new(), |calm| {
        format!(
            "<line class=\"calm\" data-a=\"{0}\" x1=\"{1:.1}\" x2=\"{1:.1}\" y1=\"{top}\" y2=\"{height}\"><title>the storm is over at {2}</title></line>",
            calm.as_micros(),
            canvas.x(calm),
            words::instant(calm)
        )
    });
    canvas.shapes.extend(header.calm.filter(|calm| *calm <= header.end).map(|_| Shape::Calm));
    let legend = legend(&canvas.shapes, header.is_real());
    let Canvas { under, bands, bars, over, .. } = canvas;
    let svg = format!(
        "<svg id=\"plot\" height=\"{height}\" role=\"img\" aria-label=\"timeline\">\
         <clipPath id=\"clip\"><rect id=\"window\" x=\"{LEFT}\" y=\"0\" width=\"{WIDTH}\" height=\"{height}\"/></clipPath>\n\
         {under}<g clip-path=\"url(#clip)\">\n{bands}<g id=\"ticks\"></g>\n{bars}{calm}\n{over}<g id=\"messages\"></g></g>\n</svg>\n"
    );
    let end = header.end.as_micros().max(1);
    for (name, value) in [("end", end), ("left", LEFT.into()), ("top", top.into()), ("height", height.into())]
    {
        data[name] = value.into();
    }
    data["jump"] = JUMP_MIN.into();
    Drawing { svg, data, legend }
}
