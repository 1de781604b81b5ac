//! Tests for the text of the metrics, and for the answers to requests.

use std::collections::BTreeMap;

use lockstorm::audit::Settings;

use super::*;

fn figures() -> Figures {
    let mut lateness = [0; 11];
    (lateness[3], lateness[8], lateness[10]) = (5, 1, 2);
    let totals = Totals {
        findings: BTreeMap::from([(Kind::Late, 2), (Kind::NearMiss, 1)]),
        commands: 1_000,
        locks: 3,
        held: 2,
        waiters: 4,
        grants: 10,
        refusals: 7,
        renewals: 8,
        releases: 6,
        expiries: 1,
        lateness,
        passed_percent: 475,
    };
    let node =
        NodeFigures { name: "10.0.0.5:6379".to_owned(), is_open: true, lag_us: 12_500, read_bytes: 4_096 };
    Figures { totals, nodes: vec![node], locks: Vec::new() }
}

fn shared(figures: Figures) -> Arc<Shared> {
    Arc::new(Shared(Mutex::new(figures)))
}

#[test]
fn the_text_has_the_values_and_ends() {
    let text = text(&shared(figures())).expect("it is encoded");
    let lines: Vec<&str> = text.lines().collect();
    for line in [
        "# HELP lockstorm_audit_findings Findings by kind",
        "# TYPE lockstorm_audit_findings counter",
        "lockstorm_audit_findings_total{kind=\"late\"} 2",
        "lockstorm_audit_findings_total{kind=\"granted-twice\"} 0",
        "lockstorm_audit_notices_total{kind=\"near-miss\"} 1",
        "# TYPE lockstorm_audit_held_locks gauge",
        "lockstorm_audit_locks 3",
        "lockstorm_audit_held_locks 2",
        "lockstorm_audit_waiters 4",
        "lockstorm_audit_grants_total 10",
        "lockstorm_audit_refusals_total 7",
        "lockstorm_audit_renewals_total 8",
        "lockstorm_audit_releases_total 6",
        "lockstorm_audit_expiries_total 1",
        "lockstorm_audit_commands_total 1000",
        "# TYPE lockstorm_audit_renewal_lease_ratio histogram",
        "lockstorm_audit_renewal_lease_ratio_sum 4.75",
        "lockstorm_audit_renewal_lease_ratio_count 8",
        "lockstorm_audit_renewal_lease_ratio_bucket{le=\"0.3\"} 0",
        "lockstorm_audit_renewal_lease_ratio_bucket{le=\"0.4\"} 5",
        "lockstorm_audit_renewal_lease_ratio_bucket{le=\"0.9\"} 6",
        "lockstorm_audit_renewal_lease_ratio_bucket{le=\"1.0\"} 6",
        "lockstorm_audit_renewal_lease_ratio_bucket{le=\"+Inf\"} 8",
        "# UNIT lockstorm_audit_lag_seconds seconds",
        "lockstorm_audit_lag_seconds{node=\"10.0.0.5:6379\"} 0.0125",
        "lockstorm_audit_monitored{node=\"10.0.0.5:6379\"} 1.0",
        "lockstorm_audit_read_bytes_total{node=\"10.0.0.5:6379\"} 4096",
    ] {
        assert!(lines.contains(&line), "{line:?} is not in\n{text}");
    }
    assert!(!text.contains("near-miss\"} 0") && !text.contains("_lock_"), "{text}");
    assert_eq!(lines.last(), Some(&"# EOF"));
}

#[test]
fn locks_are_labels_only_when_asked_for_and_each_once() {
    let line = |text: &str| format!("1700000100.{text}\n");
    let lines = [
        line("000000 [0 10.0.0.1:1] \"SET\" \"a\\\"b\" \"token\" \"NX\" \"PX\" \"10000\""),
        line("100000 [0 10.0.0.1:1] \"DEL\" \"a\\\"b\""),
        line("200000 [0 10.0.0.1:1] \"SET\" \"a\\\"b\" \"token\" \"NX\" \"PX\" \"10000\""),
    ];
    let mut audit = Audit::new(Settings::default());
    let node = audit.node("n1");
    audit.take_text(node, 1, b"1700000000.000000 [0 10.0.0.1:1] \"PING\"");
    lines.iter().for_each(|line| audit.take_text(node, 2, line.trim_end().as_bytes()));
    let mut rows = audit.rows_of(&mut Chosen::new(LOCKS_MAX), &[]);
    rows.extend(rows.clone());
    let text = text(&shared(Figures { locks: rows, ..figures() })).expect("it is encoded");
    let labels = r#"{node="n1",db="0",lock="a\"b"}"#;
    for line in [
        format!("lockstorm_audit_lock_held{labels} 1.0"),
        format!("lockstorm_audit_lock_waiters{labels} 0.0"),
        format!("lockstorm_audit_lock_grants_total{labels} 2"),
        format!("lockstorm_audit_lock_refusals_total{labels} 0"),
        format!("lockstorm_audit_lock_renewals_total{labels} 0"),
        format!("lockstorm_audit_lock_expiries_total{labels} 0"),
    ] {
        assert_eq!(text.lines().filter(|one| **one == line).count(), 1, "{line}\n{text}");
    }
    assert!(!text.contains("token"), "{text}");
}

#[test]
fn counters_do_not_fall() {
    let before = figures().totals;
    let now = Totals { grants: 11, held: 1, ..Totals::default() };
    let risen = risen(now, &before);
    assert_eq!(risen, Totals { grants: 11, held: 1, locks: 0, waiters: 0, ..before });
}

#[test]
fn only_get_of_the_metrics_is_answered_with_them() {
    let figures = shared(figures());
    let asked = |method: Method, path: &str| {
        let request = Request::builder().method(method).uri(path).body(()).expect("a request");
        respond(&request, &figures)
    };
    let given = asked(Method::GET, "/metrics?a=b");
    assert_eq!(
        (given.status(), given.headers()[CONTENT_TYPE].as_bytes()),
        (StatusCode::OK, FORMAT.as_bytes())
    );
    assert!(given.body().ends_with("# EOF\n"), "{}", given.body());
    assert_eq!(asked(Method::GET, "/").status(), StatusCode::NOT_FOUND);
    let refused = asked(Method::POST, "/metrics");
    assert_eq!(refused.status(), StatusCode::METHOD_NOT_ALLOWED);
    assert_eq!(refused.headers()[ALLOW], "GET, HEAD");
}
