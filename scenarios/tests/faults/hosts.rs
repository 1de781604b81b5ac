//! Faults of hosts.

use super::{Row, WHOLE};

pub(super) const ROWS: &[Row] = &[
    Row {
        name: "a client pauses",
        until: WHOLE,
        faults: r#"
[fault.a]
pause = "c"
at = "1.5s"
for = "2s"
"#,
        differs: &[
            "acquired: 1000+2 3500+2 3504+2 4000+2 5000+2 6000+2",
            "granted: m@1001 m@3501 m@3505 m@4001 m@5001 m@6001",
            "lives: m:Started@0 r:Started@0 c:Started@0 c:Paused@1500 c:Resumed@3500",
            "told: [c stands still 1500..3500]",
        ],
    },
    Row {
        name: "a node pauses",
        until: WHOLE,
        faults: r#"
[fault.a]
pause = "m"
at = "1.5s"
for = "2s"
"#,
        differs: &[
            "acquired: 1000+2 2000+1501 3503+2 4000+2 5000+2 6000+2",
            "granted: m@1001 m@3500 m@3504 m@4001 m@5001 m@6001",
            "lives: m:Started@0 r:Started@0 c:Started@0 m:Paused@1500 m:Resumed@3500",
            "told: [m stands still 1500..3500]",
        ],
    },
    Row {
        name: "a short pause within a long one",
        until: WHOLE,
        faults: r#"
[fault.a]
pause = "c"
at = "1.5s"
for = "2s"
[fault.b]
pause = "c"
at = "1.7s"
for = "300ms"
"#,
        differs: &[
            "acquired: 1000+2 3500+2 3504+2 4000+2 5000+2 6000+2",
            "granted: m@1001 m@3501 m@3505 m@4001 m@5001 m@6001",
            "lives: m:Started@0 r:Started@0 c:Started@0 c:Paused@1500 c:Resumed@3500",
            "told: [c stands still 1500..3500] [c stands still 1700..2000]",
        ],
    },
    Row {
        name: "a client is suspended",
        until: WHOLE,
        faults: r#"
[fault.a]
suspend = "c"
at = "1.5s"
for = "2s"
"#,
        differs: &[
            "acquired: 1000+2 3500+2 3504+2 4000+2 5000+2 6000+2",
            "clocks: c:Monotonic-2000@5s c:Monotonic-2000@10s",
            "granted: m@1001 m@3501 m@3505 m@4001 m@5001 m@6001",
            "lives: m:Started@0 r:Started@0 c:Started@0 c:Suspended@1500 c:Resumed@3500",
            "told: [c is suspended 1500..3500]",
        ],
    },
    Row {
        name: "a node is suspended",
        until: WHOLE,
        faults: r#"
[fault.a]
suspend = "m"
at = "1.5s"
for = "2s"
"#,
        differs: &[
            "acquired: 1000+2 2000+1502 3504+2 4000+2 5000+2 6000+2",
            "clocks: m:Monotonic-2000@5s m:Monotonic-2000@10s",
            "granted: m@1001 m@3501 m@3505 m@4001 m@5001 m@6001",
            "lives: m:Started@0 r:Started@0 c:Started@0 m:Suspended@1500 m:Resumed@3500",
            "told: [m is suspended 1500..3500]",
        ],
    },
    Row {
        name: "suspensions that overlap, and a pause that outlasts them",
        until: WHOLE,
        faults: r#"
[fault.a]
suspend = "c"
at = "1.5s"
for = "1s"
[fault.b]
suspend = "c"
at = "1.7s"
for = "1s"
[fault.c]
pause = "c"
at = "2.6s"
for = "1s"
"#,
        differs: &[
            "acquired: 1000+2 3600+2 3604+2 4000+2 5000+2 6000+2",
            "clocks: c:Monotonic-1200@5s c:Monotonic-1200@10s",
            "granted: m@1001 m@3601 m@3605 m@4001 m@5001 m@6001",
            "lives: m:Started@0 r:Started@0 c:Started@0 c:Suspended@1500 c:Paused@2700 c:Resumed@3600",
            "told: [c is suspended 1500..2500] [c is suspended 1700..2700] [c stands still 2600..3600]",
        ],
    },
    Row {
        name: "a client crashes",
        until: 3500,
        faults: r#"
[fault.a]
crash = "c"
at = "1.5s"
for = "2s"
"#,
        differs: &[
            "acquired: 1000+2 3500+?",
            "dialled: m@0 r@0 m@3500 r@3500",
            "granted: m@1001",
            "lives: m:Started@0 r:Started@0 c:Started@0 c:Crashed@1500 c:Started@3500",
            "told: [c crashes 1500..3500]",
        ],
    },
    Row {
        name: "crashes that overlap: up with the end of the last",
        until: 3500,
        faults: r#"
[fault.a]
crash = "c"
at = "1.5s"
for = "1s"
[fault.b]
crash = "c"
at = "2s"
for = "1.5s"
"#,
        differs: &[
            "acquired: 1000+2 3500+?",
            "dialled: m@0 r@0 m@3500 r@3500",
            "granted: m@1001",
            "lives: m:Started@0 r:Started@0 c:Started@0 c:Crashed@1500 c:Started@3500",
            "told: [c crashes 1500..2500] [c crashes 2000..3500]",
        ],
    },
    Row {
        name: "a short crash within a long one",
        until: 3500,
        faults: r#"
[fault.a]
crash = "c"
at = "1.5s"
for = "2s"
[fault.b]
crash = "c"
at = "2s"
for = "300ms"
"#,
        differs: &[
            "acquired: 1000+2 3500+?",
            "dialled: m@0 r@0 m@3500 r@3500",
            "granted: m@1001",
            "lives: m:Started@0 r:Started@0 c:Started@0 c:Crashed@1500 c:Started@3500",
            "told: [c crashes 1500..3500] [c crashes 2000..2300]",
        ],
    },
    Row {
        name: "a host that is started comes up, whatever keeps it down",
        until: 3500,
        faults: r#"
[fault.a]
crash = "c"
at = "1.5s"
for = "4s"
[fault.b]
crash = "c"
at = "2s"
for = "5s"
[fault.up]
restart = "c"
at = "3.5s"
"#,
        differs: &[
            "acquired: 1000+2 3500+?",
            "dialled: m@0 r@0 m@3500 r@3500",
            "granted: m@1001",
            "lives: m:Started@0 r:Started@0 c:Started@0 c:Crashed@1500 c:Started@3500",
            "told: [c crashes 1500..3500] [c crashes 2000..3500] [c comes up again 3500..]",
        ],
    },
    Row {
        name: "a host that runs is restarted",
        until: 1500,
        faults: r#"
[fault.up]
restart = "c"
at = "1.5s"
"#,
        differs: &[
            "acquired: 1000+2 1500+?",
            "dialled: m@0 r@0 m@1500 r@1500",
            "lives: m:Started@0 r:Started@0 c:Started@0 c:Crashed@1500 c:Started@1500",
            "told: [c comes up again 1500..]",
        ],
    },
    Row {
        name: "a crash within a pause: the host comes up and still stands",
        until: 3500,
        faults: r#"
[fault.a]
pause = "c"
at = "1.5s"
for = "2s"
[fault.b]
crash = "c"
at = "2s"
for = "500ms"
"#,
        differs: &[
            "acquired: 1000+2 3500+?",
            "dialled: m@0 r@0 m@3500 r@3500",
            "granted: m@1001",
            "lives: m:Started@0 r:Started@0 c:Started@0 c:Paused@1500 c:Crashed@2000 c:Started@2500 c:Paused@2500 c:Resumed@3500",
            "told: [c stands still 1500..3500] [c crashes 2000..2500]",
        ],
    },
    Row {
        name: "a suspension that begins while the host is down",
        until: 3500,
        faults: r#"
[fault.a]
crash = "c"
at = "1.5s"
for = "500ms"
[fault.b]
suspend = "c"
at = "1.7s"
for = "1.8s"
"#,
        differs: &[
            "acquired: 1000+2 3500+?",
            "clocks: c:Monotonic-1800@5s c:Monotonic-1800@10s",
            "dialled: m@0 r@0 m@3500 r@3500",
            "granted: m@1001",
            "lives: m:Started@0 r:Started@0 c:Started@0 c:Crashed@1500 c:Started@2000 c:Suspended@2000 c:Resumed@3500",
            "told: [c crashes 1500..2000] [c is suspended 1700..3500]",
        ],
    },
];
