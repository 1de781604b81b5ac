//! Faults of clocks.

use super::{Row, WHOLE};

pub(super) const ROWS: &[Row] = &[
    Row {
        name: "the clocks of a client stand",
        until: WHOLE,
        faults: r#"
[fault.a]
clock_freeze = "c"
at = "1.5s"
for = "2s"
"#,
        differs: &[
            "clocks: c:Wall-2000@5s c:Monotonic-2000@5s c:Boottime-2000@5s c:Wall-2000@10s c:Monotonic-2000@10s c:Boottime-2000@10s",
            "told: [the clocks of c stand still 1500..3500]",
        ],
    },
    Row {
        name: "a short freeze within a long one",
        until: WHOLE,
        faults: r#"
[fault.a]
clock_freeze = "c"
at = "1.5s"
for = "2s"
[fault.b]
clock_freeze = "c"
at = "1.7s"
for = "300ms"
"#,
        differs: &[
            "clocks: c:Wall-2000@5s c:Monotonic-2000@5s c:Boottime-2000@5s c:Wall-2000@10s c:Monotonic-2000@10s c:Boottime-2000@10s",
            "told: [the clocks of c stand still 1500..3500] [the clocks of c stand still 1700..2000]",
        ],
    },
    Row {
        name: "the clocks of a node run fast",
        until: WHOLE,
        faults: r#"
[fault.a]
clock_rate = { host = "m", rate = "+10%" }
at = "1s"
for = "2s"
"#,
        differs: &[
            "clocks: m:Wall+200@5s m:Monotonic+200@5s m:Boottime+200@5s m:Wall+200@10s m:Monotonic+200@10s m:Boottime+200@10s",
            "told: [the clocks of m run +10% off 1000..3000]",
        ],
    },
    Row {
        name: "rates that overlap add up, and what a clock is off by itself stays",
        until: WHOLE,
        faults: r#"
[fault.a]
clock_rate = { host = "r", rate = "+10%" }
at = "1s"
for = "3s"
[fault.b]
clock_rate = { host = "r", rate = "-20%" }
at = "2s"
for = "1s"
[node.own]
replica_of = "m"
clock = { rate = "+1%" }
[fault.c]
clock_rate = { host = "own", rate = "+10%" }
at = "1s"
for = "3s"
"#,
        differs: &[
            "clocks: r:Wall+100@5s r:Monotonic+100@5s r:Boottime+100@5s r:Wall+100@10s r:Monotonic+100@10s r:Boottime+100@10s own:Wall+350@5s own:Monotonic+350@5s own:Boottime+350@5s own:Wall+400@10s own:Monotonic+400@10s own:Boottime+400@10s",
            "console: r:REPLICAOF_m_6379@0 own:REPLICAOF_m_6379@0",
            "dialled: m@0 r@0 own@0",
            "hung up: r@7 own@7",
            "lives: m:Started@0 r:Started@0 own:Started@0 c:Started@0",
            "roles: r:Replica@0 own:Replica@0",
            "told: [the clocks of r run +10% off 1000..4000] [the clocks of own run +10% off 1000..4000] [the clocks of r run -20% off 2000..3000]",
        ],
    },
    Row {
        name: "the wall clock is slewed",
        until: WHOLE,
        faults: r#"
[fault.a]
clock_slew = { host = "m", by = "+1s", over = "8s" }
at = "1s"
"#,
        differs: &[
            "clocks: m:Wall+500@5s m:Wall+1000@10s",
            "told: [the wall clock of m is slewed by +1s over 8s 1000..]",
        ],
    },
    Row {
        name: "slews that overlap add up",
        until: WHOLE,
        faults: r#"
[fault.a]
clock_slew = { host = "m", by = "+1s", over = "8s" }
at = "1s"
[fault.b]
clock_slew = { host = "m", by = "-3s", over = "6s" }
at = "2s"
"#,
        differs: &[
            "clocks: m:Wall-1000@5s m:Wall-2000@10s",
            "told: [the wall clock of m is slewed by +1s over 8s 1000..] [the wall clock of m is slewed by -3s over 6s 2000..]",
        ],
    },
    Row {
        name: "the wall clock is stepped",
        until: WHOLE,
        faults: r#"
[fault.a]
clock_step = { host = "m", by = "+31s" }
at = "1.5s"
"#,
        differs: &[
            "clocks: m:Wall+31000@5s m:Wall+31000@10s",
            "told: [the wall clock of m jumps by +31s 1500..]",
        ],
    },
    Row {
        name: "all faults of clocks at once",
        until: WHOLE,
        faults: r#"
[fault.a]
clock_step = { host = "m", by = "+31s" }
at = "2s"
[fault.b]
clock_freeze = "m"
at = "1s"
for = "1s"
[fault.c]
clock_rate = { host = "m", rate = "+50%" }
at = "1.5s"
for = "1.5s"
[fault.d]
clock_slew = { host = "m", by = "+1s", over = "1s" }
at = "3s"
[fault.e]
suspend = "r"
at = "3s"
for = "1s"
[fault.f]
clock_rate = { host = "r", rate = "+50%" }
at = "3s"
for = "2s"
"#,
        differs: &[
            "clocks: m:Wall+31500@5s m:Monotonic-500@5s m:Boottime-500@5s m:Wall+31500@10s m:Monotonic-500@10s m:Boottime-500@10s r:Wall+1000@5s r:Monotonic-500@5s r:Boottime+1000@5s r:Wall+1000@10s r:Monotonic-500@10s r:Boottime+1000@10s",
            "lives: m:Started@0 r:Started@0 c:Started@0 r:Suspended@3000 r:Resumed@4000",
            "told: [the clocks of m stand still 1000..2000] [the clocks of m run +50% off 1500..3000] [the wall clock of m jumps by +31s 2000..] [the wall clock of m is slewed by +1s over 1s 3000..] [r is suspended 3000..4000] [the clocks of r run +50% off 3000..5000]",
        ],
    },
    Row {
        name: "a drawn step is told as it was drawn",
        until: WHOLE,
        faults: r#"
[fault.a]
clock_step = { host = "m", by = "+1s..+9s" }
at = "1s..2s"
"#,
        differs: &[
            "clocks: m:Wall+4925@5s m:Wall+4925@10s",
            "told: [the wall clock of m jumps by +4.92522051s 1061..]",
        ],
    },
];
