//! Claude Code, for real: how runs go and fail.

use segno_agents::ErrorClass;
use segno_agents::OutcomeKind;
use segno_testkit::model::End;
use segno_testkit::model::Script;
use segno_testkit::model::Then;
use segno_testkit::model::Turn;
use segno_testkit::recipe::Patience;

use crate::support::Lab;

#[test]
fn no_answer_at_all() {
    let fault = segno_testkit::model::Fault::Stall { after: None, ms: None };
    let script = Script::new([Turn::from(fault)]).then(Then::Repeat);
    let Some(lab) = Lab::new("claude", script, Patience::short()) else { return };
    let ran = lab.prompt("try");
    assert_eq!(ran.outcome.outcome, OutcomeKind::Failed);
    assert_eq!(ran.outcome.error.unwrap().class, ErrorClass::Network);
    assert!(lab.model.requests().iter().all(|request| request.end == End::ClientGone));
}
