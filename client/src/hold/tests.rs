//! The belief of a hold after renewals, losses and releases, by a clock that is set by hand.

use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::BoxFuture;

use super::{ClientContext, Grant, Hold, Keeper, OwnerState, Parts};
use crate::env::{Boottime, BoxStream, Env, Monotonic, Wall};
use crate::error::{Error, Result};
use crate::key::Key;
use crate::mutex::locked;
use crate::observer::{Event, EventKind, LossCause, Observer};
use crate::wire::drift_margin;

const LEASE: Duration = Duration::from_secs(30);

/// An environment with only clocks, which all show the time that was set.
#[derive(Default)]
pub(crate) struct HandClock(Mutex<Duration>);

impl HandClock {
    pub(crate) fn set(&self, ms: u64) {
        *locked(&self.0) = Duration::from_millis(ms);
    }
}

impl Env for HandClock {
    fn now(&self) -> Monotonic {
        Monotonic(*locked(&self.0))
    }
    fn boottime(&self) -> Boottime {
        Boottime(*locked(&self.0))
    }
    fn wall(&self) -> Wall {
        Wall(*locked(&self.0))
    }
    fn sleep_until(&self, _deadline: Monotonic) -> BoxFuture<'static, ()> {
        Box::pin(std::future::pending())
    }
    fn random(&self) -> u64 {
        unreachable!("a hold draws nothing")
    }
    fn dial(&self, _host: &str, _port: u16) -> BoxFuture<'static, io::Result<BoxStream>> {
        unreachable!("a hold asks no server")
    }
    fn spawn(&self, _task: BoxFuture<'static, ()>) {
        unreachable!("a hold has no task")
    }
}

/// Records the events of holds as text, with times in milliseconds.
#[derive(Default)]
struct Told(Mutex<Vec<String>>);

impl Observer for Told {
    fn observe(&self, event: &Event<'_>) {
        let told = match event.kind {
            EventKind::Acquired { deadline, .. } => format!("acquired until {}", deadline.0.as_millis()),
            EventKind::Renewed { deadline, .. } => format!("renewed until {}", deadline.0.as_millis()),
            EventKind::Lost { why, .. } => format!("lost: {why:?}"),
            EventKind::Releasing { .. } => "releasing".to_owned(),
            other => format!("{other:?}"),
        };
        locked(&self.0).push(told);
    }
}

/// A keeper that is never called.
struct Idle;

impl Keeper for Idle {
    fn release(self: Arc<Self>, _hold: Arc<Hold>) -> BoxFuture<'static, Result<()>> {
        unreachable!("no guard releases it")
    }

    fn overdue(&self, _time: Duration) -> Error {
        unreachable!("no guard waits for it")
    }

    fn extend(self: Arc<Self>, _hold: Arc<Hold>, _lease: Duration) -> BoxFuture<'static, Result<()>> {
        unreachable!("no watchdog renews it")
    }
}

/// One owner of one lock, and the clock of its holds.
pub(crate) struct Setting {
    pub(crate) clock: Arc<HandClock>,
    pub(crate) owner: Arc<OwnerState>,
    ctx: ClientContext,
    told: Arc<Told>,
    keeper: Arc<dyn Keeper>,
}

impl Setting {
    pub(crate) fn new() -> Self {
        let (clock, told) = (Arc::<HandClock>::default(), Arc::<Told>::default());
        let ctx = ClientContext {
            env: clock.clone(),
            observer: told.clone(),
            ledger: Arc::default(),
            work: Arc::default(),
            call_timeout: Duration::from_secs(10),
        };
        let owner = ctx.ledger.owner(&Key::new("l"), "o");
        Self { clock, owner, ctx, told, keeper: Arc::new(Idle) }
    }

    /// Grants a hold of 30 s less the margin for drift, to be renewed by the watchdog.
    pub(crate) fn grant(&self) -> Arc<Hold> {
        self.grant_for(LEASE)
    }

    /// Returns the number of levels that the server must have and may have.
    fn levels(&self) -> (usize, usize) {
        let levels = self.owner.levels(&Parts::WHOLE, self.clock.boottime())[0];
        (levels.least, levels.most)
    }

    fn grant_for(&self, lease: Duration) -> Arc<Hold> {
        self.granted(lease, true)
    }

    fn granted(&self, lease: Duration, renewed: bool) -> Arc<Hold> {
        let deadline = self.clock.boottime() + lease.saturating_sub(drift_margin(lease));
        self.owner.may_last(self.clock.boottime(), Duration::ZERO, lease);
        let grant = Grant { deadline, lease, renewed, token: None, parts: Parts::WHOLE };
        Hold::granted(self.ctx.clone(), &self.owner, &self.owner.owner, &self.keeper, grant)
    }
}

/// A hold of 30 s that was granted at 0; the margin for drift takes 302 ms of that.
struct Row {
    name: &'static str,
    happens: fn(&HandClock, &Hold),
    /// The events after the grant.
    told: &'static [&'static str],
    /// The validity at the last moment of the row, in milliseconds.
    validity: u128,
}

fn sent(ms: u64) -> Boottime {
    Boottime(Duration::from_millis(ms))
}

const ROWS: &[Row] = &[
    Row {
        name: "the margin for drift is not believed in",
        happens: |clock, hold| {
            clock.set(29_697);
            assert!(hold.is_valid());
        },
        told: &[],
        validity: 1,
    },
    Row {
        name: "a renewal counts from when it was sent",
        happens: |clock, hold| {
            clock.set(10_500);
            hold.renewed(sent(10_000), LEASE);
        },
        told: &["renewed until 39698"],
        validity: 29_198,
    },
    Row {
        name: "an earlier renewal whose reply comes later takes nothing back",
        happens: |clock, hold| {
            clock.set(20_000);
            hold.renewed(sent(15_000), LEASE);
            hold.renewed(sent(10_000), LEASE);
        },
        told: &["renewed until 44698", "renewed until 44698"],
        validity: 24_698,
    },
    Row {
        name: "a renewal with a shorter lease takes nothing back",
        happens: |clock, hold| {
            clock.set(10_000);
            hold.renewed(sent(10_000), Duration::from_secs(5));
        },
        told: &["renewed until 29698"],
        validity: 19_698,
    },
    Row {
        name: "a renewal whose reply comes after the deadline brings nothing back",
        happens: |clock, hold| {
            clock.set(29_698);
            hold.renewed(sent(20_000), LEASE);
            assert_eq!(hold.why_lost(), Some(LossCause::Expired));
        },
        told: &["lost: Expired"],
        validity: 0,
    },
    Row {
        name: "a renewal brings no lost hold back",
        happens: |clock, hold| {
            clock.set(10_000);
            hold.lose(LossCause::NotHeld);
            hold.renewed(sent(9_000), LEASE);
        },
        told: &["lost: NotHeld"],
        validity: 0,
    },
    Row {
        name: "a renewal brings no released hold back",
        happens: |clock, hold| {
            clock.set(10_000);
            assert!(hold.releasing());
            hold.renewed(sent(9_000), LEASE);
            assert_eq!(hold.why_lost(), None);
        },
        told: &["releasing"],
        validity: 0,
    },
    Row {
        name: "the first reason of a loss stays",
        happens: |clock, hold| {
            clock.set(10_000);
            hold.lose(LossCause::NotHeld);
            hold.lose(LossCause::NoQuorum);
            clock.set(40_000);
            assert!(!hold.is_valid());
            assert_eq!(hold.why_lost(), Some(LossCause::NotHeld));
        },
        told: &["lost: NotHeld"],
        validity: 0,
    },
    Row {
        name: "a release after the deadline finds it lost",
        happens: |clock, hold| {
            clock.set(29_698);
            assert!(hold.releasing());
        },
        told: &["lost: Expired", "releasing"],
        validity: 0,
    },
    Row {
        name: "it is released once",
        happens: |_, hold| {
            assert!(hold.releasing());
            assert!(!hold.releasing());
            assert!(!hold.is_renewed());
        },
        told: &["releasing"],
        validity: 0,
    },
];

#[test]
fn what_a_hold_believes() {
    for Row { name, happens, told, validity } in ROWS {
        let setting = Setting::new();
        let hold = setting.grant();
        happens(&setting.clock, &hold);
        let acquired = ["acquired until 29698"];
        let expected: Vec<&str> = acquired.iter().chain(*told).copied().collect();
        assert_eq!(*locked(&setting.told.0), expected, "{name}");
        assert_eq!(hold.validity().as_millis(), *validity, "{name}");
    }
}

#[test]
fn the_watchdog_renews_what_has_no_lease_of_its_own_and_is_neither_lost_nor_given_back() {
    type Happens = fn(&Hold);
    let rows: [(&str, Happens, bool); 3] = [
        ("held", |_| {}, true),
        ("lost", |hold| hold.lose(LossCause::NotHeld), false),
        ("given back", |hold| assert!(hold.releasing()), false),
    ];
    for (name, happens, is_renewed) in rows {
        for without_lease in [true, false] {
            let hold = Setting::new().granted(LEASE, without_lease);
            happens(&hold);
            assert_eq!(hold.is_renewed(), is_renewed && without_lease, "{name}, without: {without_lease}");
        }
    }
}

/// A longer lease kept the key, but a level whose own lease had ended was assumed to be gone from
/// the server's count. A request without a reply then seemed to have been executed, and a later
/// hold kept the level from being released.
#[test]
fn a_level_is_counted_for_as_long_as_a_longer_one_keeps_the_key() {
    let setting = Setting::new();
    let outer = setting.grant();
    let inner = setting.grant_for(Duration::from_secs(1));
    setting.clock.set(2_000);
    assert!(!inner.is_valid());
    assert_eq!(setting.levels(), (2, 2));
    let later = setting.grant();
    assert_eq!(setting.levels(), (3, 3));
    assert!(!setting.owner.superseded(&inner), "it is counted beside the later one");
    // The later hold keeps the key after the release of the outer one.
    assert!(outer.releasing());
    setting.owner.remove(outer.number);
    assert_eq!(setting.levels(), (2, 2));
    // All leases and the key have ended: the next grant creates a new key.
    setting.clock.set(60_000);
    assert!(!later.is_valid());
    assert_eq!(setting.levels(), (0, 0));
    let anew = setting.grant();
    assert_eq!(setting.levels(), (1, 1));
    assert_eq!([&inner, &later, &anew].map(|hold| setting.owner.superseded(hold)), [true, true, false]);
    // The server has said that the key is gone, so it counts no older level.
    anew.lose(LossCause::NotHeld);
    assert_eq!(setting.levels(), (0, 0));
    let last = setting.grant();
    assert!(setting.owner.superseded(&anew));
    assert!(!setting.owner.superseded(&last));
}

/// A level that had ended by the client's clock was forgotten. The server still counted it, because
/// its lease begins when it gets the request. When a request got no reply, that level was mistaken
/// for the grant.
#[test]
fn a_level_that_is_over_may_be_counted_until_the_server_must_have_dropped_it() {
    // The lease is 30 s and the margin for drift 302 ms. Events before the client's end of 29,698
    // ms extend the time until which the server may have the level.
    type Happens = fn(&Setting);
    let rows: [(&str, Happens, u64); 4] = [
        ("a grant whose reply came at once", |_| (), 30_302),
        (
            "a renewal that has from 10 s until 20 s",
            |setting| setting.owner.may_last(sent(10_000), LEASE / 3, LEASE),
            50_302,
        ),
        (
            "a shorter lease",
            |setting| setting.owner.may_last(sent(20_000), Duration::ZERO, LEASE / 30),
            30_302,
        ),
        (
            "given back meanwhile: another level",
            |setting| {
                setting.clock.set(15_000);
                let other = setting.grant();
                assert!(other.releasing());
                setting.owner.remove(other.number);
            },
            45_302,
        ),
    ];
    for (name, happens, until) in rows {
        let setting = Setting::new();
        let hold = setting.grant();
        happens(&setting);
        for (ms, levels) in [(29_697, (1, 1)), (29_698, (0, 1)), (until - 1, (0, 1)), (until, (0, 0))] {
            setting.clock.set(ms);
            // Noticing the end makes no difference.
            assert_eq!(setting.levels(), levels, "{name}, at {ms} ms");
            hold.is_valid();
            assert_eq!(setting.levels(), levels, "{name}, at {ms} ms, noticed");
        }
    }
    let setting = Setting::new();
    let hold = setting.grant();
    hold.lose(LossCause::NotHeld);
    assert_eq!(setting.levels(), (0, 0), "the server has said that it is gone");
    // A later request of the same owner makes a new key. It does not bring back old levels that
    // must be gone.
    let setting = Setting::new();
    let _hold = setting.grant();
    setting.clock.set(30_302);
    setting.owner.may_last(sent(30_302), Duration::ZERO, LEASE);
    assert_eq!(setting.levels(), (0, 0), "a request that was sent when they must be gone");
    // A read hold's lease keeps the owner's write hold, but not the other way round.
    for (field, lasts) in [("o:write", (0, 1)), ("o2", (0, 0)), ("write:o", (0, 0))] {
        let reader = Setting::new();
        let writer = Setting { owner: reader.ctx.ledger.owner(&Key::new("l"), field), ..reader };
        let _hold = writer.grant();
        let read = writer.ctx.ledger.owner(&Key::new("l"), "o");
        read.may_last(sent(20_000), Duration::ZERO, LEASE);
        writer.clock.set(30_302);
        let levels = writer.owner.levels(&Parts::WHOLE, writer.clock.boottime())[0];
        assert_eq!((levels.least, levels.most), lasts, "{field}");
    }
}

/// A lease that ends now has ended: the server may have dropped the key.
#[test]
fn a_hold_keeps_its_key_until_its_deadline_and_not_at_it() {
    let setting = Setting::new();
    let hold = setting.grant();
    for (ms, keeps) in [(29_697, true), (29_698, false), (29_699, false)] {
        setting.clock.set(ms);
        assert_eq!(hold.keeps_the_key(), keeps, "at {ms} ms");
    }
}
