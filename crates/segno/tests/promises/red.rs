//! The list of promises that do not hold yet.

use std::collections::BTreeSet;
use std::panic::AssertUnwindSafe;
use std::panic::catch_unwind;

/// The promises that do not hold yet, one `module::name` per line.
const RED: &str = include_str!("red.txt");

/// A test of a promise: `promise!(fn name() { … });`, with a doc comment that says the promise.
macro_rules! promise {
    ($(#[$meta:meta])* fn $name:ident() $body:block) => {
        $(#[$meta])*
        #[test]
        fn $name() {
            $crate::red::judge(concat!(module_path!(), "::", stringify!($name)), || $body);
        }
    };
}

fn listed() -> impl Iterator<Item = &'static str> {
    RED.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'))
}

/// Runs the test of a promise. One that stands in the list has to fail.
pub(crate) fn judge(path: &str, body: impl FnOnce()) {
    let name = path.split_once("::").map_or(path, |(_program, name)| name);
    if !listed().any(|red| red == name) {
        return body();
    }
    assert!(
        catch_unwind(AssertUnwindSafe(body)).is_err(),
        "{name} holds now: take its line out of tests/promises/red.txt"
    );
}

#[test]
fn every_red_promise_has_a_test() {
    let names: Vec<&str> = listed().collect();
    assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len(), "a line stands there twice");
    for name in names {
        let (module, function) = name.split_once("::").unwrap();
        let path = format!("{}/tests/promises/{module}.rs", env!("CARGO_MANIFEST_DIR"));
        let source = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            source.contains(&format!("fn {function}()")),
            "{name} stands in red.txt, and no such test exists"
        );
    }
}
