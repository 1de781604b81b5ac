//! Faults of links.

use super::{Row, WHOLE};

pub(super) const ROWS: &[Row] = &[
    Row {
        name: "one link is slow",
        until: WHOLE,
        faults: r#"
[fault.a]
slow = { from = "c", to = "m", by = "300ms" }
at = "1.5s"
for = "3s"
"#,
        differs: &[
            "acquired: 1000+2 2000+302 3000+302 4000+302 5000+2 6000+2",
            "granted: m@1001 m@2301 m@3301 m@4301 m@5001 m@6001",
            "told: [packets from c to m take 300ms longer 1500..4500]",
        ],
    },
    Row {
        name: "a short slowness within a long one adds to it",
        until: WHOLE,
        faults: r#"
[fault.a]
slow = { from = "c", to = "m", by = "300ms" }
at = "1.5s"
for = "4s"
[fault.b]
slow = { from = "c", to = "m", by = "50ms" }
at = "2.5s"
for = "1s"
"#,
        differs: &[
            "acquired: 1000+2 2000+302 3000+352 4000+302 5000+302 6000+2",
            "granted: m@1001 m@2301 m@3351 m@4301 m@5301 m@6001",
            "told: [packets from c to m take 300ms longer 1500..5500] [packets from c to m take 50ms longer 2500..3500]",
        ],
    },
    Row {
        name: "every packet is lost once",
        until: WHOLE,
        faults: r#"
[fault.a]
loss = { from = "c", to = "m", share = "100%" }
at = "1.5s"
for = "3s"
"#,
        differs: &[
            "acquired: 1000+2 2000+402 3000+402 4000+402 5000+2 6000+2",
            "granted: m@1001 m@2201 m@3201 m@4201 m@5001 m@6001",
            "told: [100% of the packets between c and m are lost 1500..4500]",
        ],
    },
    Row {
        name: "a short loss within a long one",
        until: WHOLE,
        faults: r#"
[fault.a]
loss = { from = "c", to = "m", share = "100%" }
at = "1.5s"
for = "3s"
[fault.b]
loss = { from = "m", to = "c", share = "100%" }
at = "2.5s"
for = "1s"
"#,
        differs: &[
            "acquired: 1000+2 2000+402 3000+402 4000+402 5000+2 6000+2",
            "granted: m@1001 m@2201 m@3201 m@4201 m@5001 m@6001",
            "told: [100% of the packets between c and m are lost 1500..4500] [100% of the packets between m and c are lost 2500..3500]",
        ],
    },
    Row {
        name: "a cut both ways",
        until: WHOLE,
        faults: r#"
[fault.a]
cut = { from = "c", to = "m" }
at = "1.5s"
for = "2s"
"#,
        differs: &[
            "acquired: 1000+2 2000+1502 3504+2 4000+2 5000+2 6000+2",
            "granted: m@1001 m@3501 m@3505 m@4001 m@5001 m@6001",
            "told: [nothing gets through between c and m 1500..3500]",
        ],
    },
    Row {
        name: "a short cut within a long one, slow and lossy",
        until: WHOLE,
        faults: r#"
[fault.a]
cut = { from = "c", to = "m", one_way = true }
at = "1.5s"
for = "2s"
[fault.b]
cut = { from = "@clients", to = "m" }
at = "1.8s"
for = "300ms"
[fault.c]
slow = { from = "c", to = "m", by = "100ms" }
at = "1.9s"
for = "2s"
[fault.d]
loss = { from = "c", to = "m", share = "100%" }
at = "3.6s"
for = "1s"
"#,
        differs: &[
            "acquired: 1000+2 2000+1802 4304+402 4708+2 5000+2 6000+2",
            "granted: m@1001 m@3601 m@4505 m@4709 m@5001 m@6001",
            "told: [nothing gets from c to m 1500..3500] [nothing gets through between c and m 1800..2100] [packets from c to m take 100ms longer 1900..3900] [100% of the packets between c and m are lost 3600..4600]",
        ],
    },
    Row {
        name: "connections break",
        until: 2000,
        faults: r#"
[fault.a]
reset = { from = "c", to = "m" }
at = "1.5s"
"#,
        differs: &["dialled: m@0 r@0 m@2000 r@2000", "told: [the connections between c and m break 1500..]"],
    },
];
