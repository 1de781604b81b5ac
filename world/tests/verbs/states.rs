//! The notifications about hosts that begin or cease to run.

use lockstorm_world::{World, time::True};

use super::{MS, verb};

#[test]
fn the_state_of_a_host_is_told_when_it_changes_and_at_no_other_time() {
    let rows: &[(&[(i64, &str)], &str)] = &[
        (&[], ""),
        (&[(1, "pause:a h"), (2, "pause:b h"), (3, "resume:b h"), (9, "resume:a h")], "Paused@1 Running@9"),
        (
            &[(1, "pause h"), (2, "suspend h"), (3, "wake h"), (4, "resume h")],
            "Paused@1 Suspended@2 Paused@3 Running@4",
        ),
        (&[(1, "crash:a h"), (3, "crash:b h"), (5, "up:a h"), (7, "up:b h")], "Down@1 Running@7"),
        (&[(1, "crash:a h"), (3, "crash:b h"), (5, "up:b h"), (7, "up:a h")], "Down@1 Running@7"),
        (&[(1, "crash h"), (5, "restart h"), (7, "up h")], "Down@1 Running@5"),
        (&[(1, "restart h")], "Down@1 Running@1"),
        (&[(1, "kill h"), (2, "restart h")], "Down@1 Running@2"),
        (
            &[(1, "pause h"), (2, "crash h"), (3, "up h"), (4, "resume h")],
            "Paused@1 Down@2 Paused@3 Running@4",
        ),
        (&[(1, "crash h"), (2, "pause h"), (3, "resume h"), (4, "up h")], "Down@1 Running@4"),
        (&[(1, "pause h"), (2, "suspend h"), (3, "calm")], "Paused@1 Suspended@2 Running@3"),
    ];
    for (orders, expected) in rows {
        let told = std::rc::Rc::new(std::cell::RefCell::new(vec![]));
        let telling = told.clone();
        let hook = move |at: True, host: &str, _, state| {
            assert_eq!(host, "h");
            telling.borrow_mut().push(format!("{state:?}@{}", at.as_millis()));
        };
        let mut world = World::builder(1).host("h", |_| std::future::pending()).state_hook(hook).build();
        for (at, text) in *orders {
            world.control().at(MS(*at), verb(text));
        }
        world.run(MS(10)).expect("it runs");
        drop(world);
        assert_eq!(told.borrow().join(" "), format!("Running@0 {expected}").trim(), "{orders:?}");
    }
}
