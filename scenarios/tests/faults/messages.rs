//! Faults of messages, and commands at a node's console.

use super::{Row, WHOLE};

pub(super) const ROWS: &[Row] = &[
    Row {
        name: "commands at a console",
        until: WHOLE,
        faults: r#"
[fault.a]
command = { node = "m", run = ["SET", "x%", "1"], times = 2 }
at = "1.5s"
"#,
        differs: &[
            "console: r:REPLICAOF_m_6379@0 m:SET_x1_1@1500 m:SET_x2_1@1500",
            "told: [somebody runs SET x% 1 on m 2 times 1500..]",
        ],
    },
    Row {
        name: "a replica is promoted",
        until: WHOLE,
        faults: r#"
[fault.a]
promote = "r"
at = "1.5s"
"#,
        differs: &[
            "console: r:REPLICAOF_m_6379@0 r:REPLICAOF_NO_ONE@1500",
            "roles: r:Replica@0 r:Master@1500",
            "told: [r is promoted 1500..]",
        ],
    },
    Row {
        name: "a command at a console after a promotion",
        until: WHOLE,
        faults: r#"
[fault.a]
promote = "r"
at = "1.5s"
[fault.b]
command = { node = "m", run = ["SET", "x", "1"] }
on = { event = "promoted", delay = "250ms" }
"#,
        differs: &[
            "console: r:REPLICAOF_m_6379@0 r:REPLICAOF_NO_ONE@1500 m:SET_x_1@1750",
            "roles: r:Replica@0 r:Master@1500",
            "told: [r is promoted 1500..] [somebody runs SET x 1 on m 1750..]",
        ],
    },
    Row {
        name: "a replica is promoted and follows again",
        until: WHOLE,
        faults: r#"
[fault.a]
promote = "r"
at = "1.5s"
[fault.b]
follow = { node = "r", master = "m" }
at = "4.5s"
"#,
        differs: &[
            "console: r:REPLICAOF_m_6379@0 r:REPLICAOF_NO_ONE@1500 r:REPLICAOF_m_6379@4500",
            "roles: r:Replica@0 r:Master@1500 r:Replica@4500",
            "told: [r is promoted 1500..] [r now follows m 4500..]",
        ],
    },
    Row {
        name: "a request is late",
        until: WHOLE,
        faults: r#"
[fault.a]
delay = { of = { command = "EVALSHA", client = "c", nth = 1 }, request = "400ms" }
at = "1.5s"
"#,
        differs: &[
            "acquired: 1000+2 2000+402 3000+2 4000+2 5000+2 6000+2",
            "granted: m@1001 m@2401 m@3001 m@4001 m@5001 m@6001",
            "told: [EVALSHA from c comes 400ms late 1500..]",
        ],
    },
    Row {
        name: "a request and its reply are late",
        until: WHOLE,
        faults: r#"
[fault.a]
delay = { of = { command = "EVALSHA", client = "c", nth = 1 }, request = "400ms", reply = "200ms" }
at = "1.5s"
"#,
        differs: &[
            "acquired: 1000+2 2000+602 3000+2 4000+2 5000+2 6000+2",
            "granted: m@1001 m@2401 m@3001 m@4001 m@5001 m@6001",
            "told: [EVALSHA from c comes 400ms late, and its reply 200ms later 1500..]",
        ],
    },
    Row {
        name: "delays of one command add up",
        until: WHOLE,
        faults: r#"
[fault.a]
delay = { of = { command = "EVALSHA", client = "c", nth = 1 }, request = "400ms" }
at = "1.5s"
[fault.b]
delay = { of = { command = "EVALSHA", node = "m", nth = 1 }, request = "50ms", reply = "30ms" }
at = "1.6s"
for = "2s"
"#,
        differs: &[
            "acquired: 1000+2 2000+482 3000+2 4000+2 5000+2 6000+2",
            "granted: m@1001 m@2451 m@3001 m@4001 m@5001 m@6001",
            "told: [EVALSHA from c comes 400ms late 1500..] [EVALSHA to m comes 50ms late, and its reply 30ms later 1600..3600]",
        ],
    },
    Row {
        name: "a rule that has ended does nothing, and the other still does",
        until: WHOLE,
        faults: r#"
[fault.a]
delay = { of = { command = "EVALSHA", client = "c", nth = 1 }, request = "400ms" }
at = "1.5s"
for = "2s"
[fault.b]
delay = { of = { command = "EVALSHA", client = "c", nth = 1 }, request = "400ms" }
at = "1.6s"
for = "200ms"
"#,
        differs: &[
            "acquired: 1000+2 2000+402 3000+2 4000+2 5000+2 6000+2",
            "granted: m@1001 m@2401 m@3001 m@4001 m@5001 m@6001",
            "told: [EVALSHA from c comes 400ms late 1500..3500] [EVALSHA from c comes 400ms late 1600..1800]",
        ],
    },
    Row {
        name: "a reply is lost",
        until: 4900,
        faults: r#"
[fault.a]
lose_reply = { command = "EVALSHA", client = "c", nth = 1 }
at = "1.5s"
"#,
        differs: &[
            "acquired: 1000+2 2000+?",
            "granted: m@1001 m@2001",
            "told: [the reply to EVALSHA from c is lost 1500..]",
        ],
    },
    Row {
        name: "a connection breaks before a command is executed",
        until: 2001,
        faults: r#"
[fault.a]
drop_connection = { of = { command = "EVALSHA", client = "c", nth = 1 }, before = true }
at = "1.5s"
"#,
        differs: &[
            "granted: m@1001",
            "hung up: r@7 m@2001",
            "told: [the connection breaks before EVALSHA from c is executed 1500..]",
        ],
    },
    Row {
        name: "a connection breaks after a late command is executed",
        until: 2401,
        faults: r#"
[fault.a]
drop_connection = { of = { command = "EVALSHA", client = "c", nth = 1 } }
at = "1.5s"
[fault.b]
delay = { of = { command = "EVALSHA", client = "c", nth = 1 }, request = "400ms" }
at = "1.5s"
"#,
        differs: &[
            "acquired: 1000+2 2000+?",
            "granted: m@1001 m@2401",
            "hung up: r@7 m@2401",
            "told: [the connection breaks after EVALSHA from c is executed 1500..] [EVALSHA from c comes 400ms late 1500..]",
        ],
    },
];
