//! Codex, for real: how runs go and fail.

use segno_agents::ErrorClass;
use segno_agents::OutcomeKind;
use segno_testkit::model::Script;
use segno_testkit::model::Then;
use segno_testkit::model::Turn;
use segno_testkit::recipe::Patience;

use crate::support::Lab;

#[test]
fn a_stream_that_never_recovers() {
    let script = Script::new([Turn::stall(3)]).then(Then::Repeat);
    let Some(lab) = Lab::new("codex", script, Patience::short()) else { return };
    let ran = lab.prompt("try");
    assert_eq!(ran.outcome.outcome, OutcomeKind::Failed);
    assert_eq!(ran.outcome.error.unwrap().class, ErrorClass::Network);
}
