//! How full the context of a conversation is, as the real agents tell it, and what a loop makes of it.

use rstest::rstest;
use segno_testkit::model::Op;
use segno_testkit::model::Turn;
use segno_testkit::model::Usage;

use super::Real;

/// The first answer fills more than 60 % of the context, so the next iteration begins a new conversation; that one is
/// nearly empty, and is gone on with.
#[rstest]
#[case("claude", 700_000)]
#[case("codex", 230_000)]
fn a_full_context_begins_a_new_conversation(#[case] agent: &'static str, #[case] full: u64) {
    let says =
        |text: &str, input: u64| Turn::text(text).usage(Usage { input, output: 10, ..Usage::default() });
    let turns = [
        says("thinking", full),
        says("still thinking", 1_000),
        Turn::ops([Op::sh("touch done")]),
        says("done", 1_000),
    ];
    let Some(real) = Real::with(agent, turns) else { return };
    let begin =
        ["loop", "--json", "--agent", agent, "--prompt", "go", "--until", "test -e done", "--no-signal"];
    let said = real.lab.run(&begin);
    real.describe(&said);
    assert_eq!(said.code, Some(0));
    let fills: Vec<u64> = real
        .lab
        .journal(Some("iteration_ended"))
        .iter()
        .map(|event| event["body"]["observation"]["context_percent"].as_u64().unwrap())
        .collect();
    assert!(fills[0] >= 60 && fills[1] < 60, "{fills:?}");
    let resumed: Vec<bool> = real
        .lab
        .journal(Some("run_started"))
        .iter()
        .map(|event| event["body"]["resumed"].is_string())
        .collect();
    assert_eq!(resumed, [false, false, true]);
    let window = real.lab.journal(Some("run_ended"))[0]["body"]["context"].clone();
    assert_eq!(window["used"].as_u64(), Some(full + 10), "{window}");
}
