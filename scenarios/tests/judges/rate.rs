//! The definition of `rate`. A grant is in the window until the wall clock of its node shows, at
//! some instant, more than at some earlier instant since the grant by the length of the window.
//! `most` is the largest number of permits of the grants in the window when one of them is made,
//! that one included; `over` is its excess over the rate; `most_in_true_time` is the same for
//! windows of true time. A request could be granted at an instant if its permits and those in the
//! window together do not exceed the rate. `starved_in_storm` is the longest uninterrupted time
//! that a request could be granted, up to its grant, its giving up or the end of the run, with only
//! earlier grants counted; `starved` is the same after the storm. If each client has a rate by
//! itself, only the grants of one process count together. The grant of a request that succeeded is
//! the last one for as many permits that its client got during the request. The layer is violated
//! iff `over` is not zero or `starved` exceeds the bound. It is undecided if the storm never ended,
//! or if nothing was granted or asked for.

use std::time::Duration;

use lockstorm::judge::history::{Call, ClockId, EventKind, History, Host, Lock, LockKind, Outcome, Owner};
use lockstorm_world::time::True;

use crate::{
    Answer,
    past::{calls, given_up},
};

struct Grant {
    at: True,
    gone: True,
    client: Host,
    process: String,
    permits: u64,
}

/// The ID of a process: the part of its owners' names before the last colon. A grant that names no
/// owner belongs to its host.
fn process(history: &History, client: Host, owner: Option<Owner>) -> String {
    let Some(owner) = owner else { return history.host_name(client).to_owned() };
    let name = &history.owners[owner.0 as usize].name;
    let end = name.rfind(':').unwrap_or(name.len());
    name[..end].to_owned()
}

/// Returns true if a wall clock has advanced by `by` nanoseconds between two instants.
fn advanced(history: &History, host: Host, from: i64, until: i64, by: i64) -> bool {
    let clock = history.clock(host);
    let pieces = clock.segments().iter().map(|piece| piece.from.as_nanos());
    let mut instants = vec![from, until];
    // The clock may jump where a new piece begins.
    instants.extend(pieces.flat_map(|begin| [begin - 1, begin]).filter(|at| (from..=until).contains(at)));
    instants.sort_unstable();
    let readings: Vec<i64> =
        instants.iter().map(|at| clock.reading(ClockId::Wall, True::from_nanos(*at))).collect();
    readings
        .iter()
        .enumerate()
        .any(|(at, low)| readings[at..].iter().any(|high| *high >= low.saturating_add(by)))
}

/// The first instant at which the host's wall clock has advanced by `window` since `at`, if that is
/// before the end of the run; the end of time otherwise.
fn gone(history: &History, host: Host, at: True, window: Duration) -> True {
    let by = i64::try_from(window.as_nanos()).expect("a short window");
    let (mut no, mut yes) = (at.as_nanos(), history.header.end.as_nanos() + 1);
    if !advanced(history, host, at.as_nanos(), yes, by) {
        return True::MAX;
    }
    if advanced(history, host, no, no, by) {
        return at;
    }
    while yes - no > 1 {
        let middle = no + (yes - no) / 2;
        if advanced(history, host, at.as_nanos(), middle, by) {
            yes = middle;
        } else {
            no = middle;
        }
    }
    True::from_nanos(yes)
}

fn grants(history: &History, lock: Lock, window: Duration) -> Vec<Grant> {
    let groups = &history.lock(lock).authority.groups;
    let of_group =
        history.events.iter().filter(|event| groups.iter().any(|group| group.contains(&event.host)));
    let grant = of_group.filter_map(|event| match event.kind {
        EventKind::Passed { lock: of, by, permits } if of == lock => Some(Grant {
            at: event.at,
            gone: gone(history, event.host, event.at, window),
            client: by.client,
            process: process(history, by.client, by.owner),
            permits: permits.into(),
        }),
        _ => None,
    });
    grant.collect()
}

/// The uninterrupted time up to `end`, and since `begin` at the earliest, in which these grants
/// have at most `room` permits in the window.
fn could(grants: &[&Grant], room: u64, begin: True, end: True) -> Duration {
    let mut instants: Vec<True> = grants.iter().flat_map(|grant| [grant.at, grant.gone]).collect();
    instants.push(begin);
    instants.retain(|at| begin <= *at && *at < end);
    instants.sort_unstable();
    let mut since = None;
    for at in instants {
        let within = grants.iter().filter(|grant| grant.at <= at && at < grant.gone);
        let fits = within.map(|grant| grant.permits).sum::<u64>() <= room;
        since = if fits { since.or(Some(at)) } else { None };
    }
    since.map_or(Duration::ZERO, |since| end.since(since))
}

pub(crate) fn judge(history: &History) -> Answer {
    let header = &history.header;
    let calm = header.calm.unwrap_or(True::MAX);
    let (mut most, mut over, mut in_true_time, mut asked) = (0, 0, 0, 0);
    let (mut starved, mut in_storm) = (Duration::ZERO, Duration::ZERO);
    for lock in header.locks() {
        let LockKind::Rate { permits: rate, window_ms, per_client } = history.lock(lock).kind else {
            continue;
        };
        let window = Duration::from_millis(window_ms);
        let all = grants(history, lock, window);
        let mut most_of_lock = 0;
        for (number, grant) in all.iter().enumerate() {
            let before = all[..=number].iter().filter(|one| !per_client || one.process == grant.process);
            let sum = |within: &dyn Fn(&Grant) -> bool| -> u64 {
                before.clone().filter(|one| within(one)).map(|one| one.permits).sum()
            };
            most_of_lock = most_of_lock.max(sum(&|one| grant.at < one.gone));
            in_true_time = in_true_time.max(sum(&|one| grant.at < one.at + window));
        }
        // Another limiter may have another rate.
        over = over.max(most_of_lock.saturating_sub(rate.into()));
        most = most.max(most_of_lock);
        for call in calls(history).iter().filter(|call| call.lock == lock) {
            let Call::Take { permits, .. } = call.call else { continue };
            if permits > rate {
                continue;
            }
            asked += 1;
            let (made, ended) = call.times(history);
            let client = history.events[call.made].host;
            let of = process(history, client, Some(call.owner));
            let grants: Vec<&Grant> = all.iter().filter(|one| !per_client || one.process == of).collect();
            let own = grants.iter().rposition(|grant| {
                (grant.client, grant.permits) == (client, permits.into())
                    && made <= grant.at
                    && grant.at <= ended
            });
            let own = own.filter(|_| call.outcome == Some(&Outcome::Ok));
            let before = grants.iter().take_while(|grant| grant.at < ended).count();
            let (end, before) = own.map_or((ended, before), |own| (grants[own].at, own));
            let room = u64::from(rate - permits);
            let could = |begin: True| could(&grants[..before], room, begin, end);
            in_storm = in_storm.max(could(made));
            starved = starved.max(could(made.max(calm)));
        }
    }
    let word = match header.calm {
        _ if over > 0 || starved > header.bounds.progress => "violated",
        None => "undecided",
        Some(_) if given_up(history) || most == 0 || asked == 0 => "undecided",
        Some(_) => "holds",
    };
    let answer = Answer::of(word).count("most", most as usize).count("over", over as usize);
    let answer = answer.count("most_in_true_time", in_true_time as usize);
    answer.time("starved", starved).time("starved_in_storm", in_storm)
}
