//! One phase, until a command succeeds.

use segno_core::Status;
use segno_core::looping::BreakerCause;
use segno_core::looping::CapKind;
use segno_core::looping::LoopVerdict;
use segno_core::looping::PersonNeed;

use segno_engine::looping::ReceiptPlace;

use super::yard::Yard;

#[test]
fn it_goes_on_until_the_command_succeeds() {
    let yard = Yard::new();
    yard.always("echo wood >> boat; finish done");
    yard.step(3, "echo sail > sail; finish done");
    let ended = yard.until("test -f sail");
    assert_eq!(ended.verdict, Some(LoopVerdict::Complete), "{}", ended.why);
    assert_eq!((ended.state.status, yard.starts()), (Status::Completed, 3));
    assert_eq!(ended.state.looping.unwrap().total, 3);
    assert_eq!((yard.kind(1), yard.kind(2)), ("new".to_owned(), "again".to_owned()));
    assert!(yard.prompt(1).contains("build a boat"), "{}", yard.prompt(1));
}

#[test]
fn who_claims_success_while_tests_fail_never_gets_out() {
    let yard = Yard::new();
    yard.test("sail", "test -f sail");
    // It also keeps busy: only the cap on iterations ends that.
    yard.always("echo wood >> boat; signal");
    let ended = yard.until_with("sh check.sh", |new| new.plan.caps.iterations = Some(4));
    assert!(
        matches!(ended.verdict, Some(LoopVerdict::Cap { which: CapKind::Iterations, .. })),
        "{:?}",
        ended.verdict
    );
    assert_eq!((ended.state.status, yard.starts()), (Status::Paused, 4));
    let gate = ended.state.looping.unwrap().gate.unwrap();
    assert!(!gate.gate_1 && !gate.can_exit);
    assert!(gate.warnings[0].contains("says that it is done"), "{:?}", gate.warnings);
}

/// Some agents end with a sentence of their own: what they said before it counts.
#[test]
fn a_status_block_before_the_last_words_is_heard() {
    let yard = Yard::new();
    let block = r"---RALPH_STATUS---\nSTATUS: COMPLETE\nEXIT_SIGNAL: true\n---END_RALPH_STATUS---";
    yard.always(&format!("echo sail > sail; say '{block}'; ended success false 'Well then.'"));
    let ended = yard.until_with("test -f sail", |new| {
        new.plan.signal = true;
        new.plan.caps.iterations = Some(2);
    });
    assert_eq!(ended.verdict, Some(LoopVerdict::Complete), "{}", ended.why);
    assert_eq!(yard.starts(), 1);
}

#[test]
fn who_does_nothing_is_halted_after_three_times() {
    let yard = Yard::new();
    yard.always("finish done");
    let ended = yard.until("test -f sail");
    assert!(matches!(ended.verdict, Some(LoopVerdict::Halt { .. })), "{:?}", ended.verdict);
    assert_eq!((ended.state.status, yard.starts()), (Status::Halted, 3));
    let why = yard.drive(ended.state.session_id).unwrap_err();
    assert_eq!(why.code(), "halted", "it stays so for whoever comes next");
    assert_eq!(yard.starts(), 3);
}

/// The command leaves another file every time; the agent still does nothing.
#[test]
fn a_report_that_the_command_writes_is_no_progress() {
    let yard = Yard::new();
    yard.always("finish done");
    let ended = yard.until("echo line >> report; test -f sail");
    assert!(matches!(ended.verdict, Some(LoopVerdict::Halt { .. })), "{:?}", ended.verdict);
    assert_eq!((ended.state.status, yard.starts()), (Status::Halted, 3));
}

#[test]
fn an_agent_that_cannot_be_started_is_no_iteration() {
    let yard = Yard::new();
    yard.remove_agent();
    let ended = yard.until("test -f sail");
    assert_eq!(ended.state.status, Status::Halted, "{}", ended.why);
    let looping = ended.state.looping.unwrap();
    assert_eq!((looping.total, looping.breaker.start_failures), (0, 3));
}

#[test]
fn a_limit_is_waited_for_and_not_counted() {
    let yard = Yard::new();
    let reset = yard.seconds(90);
    yard.always("echo sail > sail; finish done");
    yard.step(1, &format!("limit {reset}"));
    let ended = yard.until("test -f sail");
    assert_eq!(ended.verdict, Some(LoopVerdict::Complete), "{}", ended.why);
    let looping = ended.state.looping.unwrap();
    assert_eq!((yard.starts(), looping.total), (2, 1));
    assert!(yard.seconds(0) >= reset, "it waited for it");
    assert!(looping.parked_seconds >= 90);
}

#[test]
fn a_budget_that_is_used_up_pauses_and_more_of_it_completes() {
    let yard = Yard::new();
    yard.always("echo wood >> boat; finish done");
    yard.step(3, "echo sail > sail; finish done");
    let ended = yard.until_with("test -f sail", |new| {
        new.budget = Some(segno_core::TokenBudget { total_budget: 200, hard: true, ..Default::default() });
    });
    assert_eq!(ended.state.status, Status::Paused, "{}", ended.why);
    assert!(matches!(ended.verdict, Some(LoopVerdict::Cap { .. })), "{:?}", ended.verdict);
    let session = ended.state.session_id;
    yard.extend(session, 100_000);
    let ended = yard.drive(session).unwrap();
    assert_eq!((ended.state.status, yard.starts()), (Status::Completed, 3));
}

#[test]
fn questions_for_ever_are_stopped() {
    let yard = Yard::new();
    yard.always("finish 'Shall I use oak or pine?'");
    let ended = yard.until("test -f sail");
    assert!(matches!(ended.verdict, Some(LoopVerdict::Halt { .. })), "{:?}", ended.verdict);
    assert_eq!(ended.state.status, Status::Halted);
    assert_eq!(yard.starts(), 3);
}

#[test]
fn the_same_error_again_and_again_halts_whatever_else_is_done() {
    let yard = Yard::new();
    yard.always("echo wood >> boat; fails \"cannot reach the database at 10:0$n\"");
    let ended = yard.until("test -f sail");
    assert!(matches!(ended.verdict, Some(LoopVerdict::Halt { .. })), "{:?}", ended.verdict);
    let breaker = ended.state.looping.unwrap().breaker;
    assert_eq!((breaker.cause, breaker.same_error), (Some(BreakerCause::SameError), 5));
    assert_eq!((ended.state.status, yard.starts()), (Status::Halted, 5));
}

#[test]
fn healthy_but_slow_work_never_trips() {
    let yard = Yard::new();
    yard.always("echo \"step $n is thought through\" >> plan.md; finish planning");
    yard.step(9, "echo sail > sail; finish done");
    let ended = yard.until("test -f sail");
    assert_eq!(ended.verdict, Some(LoopVerdict::Complete), "{}", ended.why);
    let looping = ended.state.looping.unwrap();
    assert_eq!((yard.starts(), looping.total), (9, 9));
    assert!(looping.breaker_changes.is_empty(), "{:?}", looping.breaker_changes);
}

#[test]
fn at_a_limit_another_agent_goes_on() {
    let yard = Yard::new();
    let reset = yard.seconds(7_200);
    yard.step(1, &format!("echo wood > hull; limit {reset}"));
    let yard = yard.with_codex("echo sail > sail");
    let ended = yard.until_with("test -f sail", |new| {
        new.plan.limits.agents = vec!["claude".to_owned(), "codex".to_owned()];
    });
    assert_eq!(ended.verdict, Some(LoopVerdict::Complete), "{}", ended.why);
    let looping = ended.state.looping.unwrap();
    assert_eq!((looping.agent.as_deref(), looping.total, looping.parked_seconds), (Some("codex"), 1, 0));
    // It knows nothing of the other one's conversation: it is told where work was.
    let asked = yard.codex_prompt();
    assert!(asked.contains("## Where it was") && asked.contains("build a boat"), "{asked}");
    assert!(yard.has("hull") && yard.has("sail"));
}

#[test]
fn an_agent_that_is_not_logged_in_needs_a_person_at_once() {
    let yard = Yard::new();
    yard.always(
        "printf '{\"type\":\"result\",\"subtype\":\"success\",\"session_id\":\"%s\",\"is_error\":true,\
         \"result\":\"Invalid API key · Please run /login\",\"api_error_status\":401,\"num_turns\":1}\\n' $id; exit 1",
    );
    let ended = yard.until("test -f sail");
    assert!(
        matches!(ended.verdict, Some(LoopVerdict::NeedsPerson { need: PersonNeed::Auth, .. })),
        "{:?}",
        ended.verdict
    );
    assert_eq!((ended.state.status, yard.starts()), (Status::Paused, 1));
}

#[test]
fn a_gate_by_hand_says_what_each_condition_is_worth_and_a_receipt_can_be_checked() {
    let yard = Yard::new();
    yard.always("echo sail > sail; finish done");
    let session = yard.begin("test -f sail", |_| {});
    let (engine, stop) = (yard.engine(), segno_engine::run::Stop::default());
    let gate = engine.loop_gate(session, &yard.settings, &stop, &()).unwrap();
    let told: Vec<(String, String, bool)> =
        gate.conditions.into_iter().map(|it| (it.name, it.value, it.holds)).collect();
    assert_eq!(told, [("command until".to_owned(), "exit 1".to_owned(), false)]);
    yard.drive(session).unwrap();
    let receipts = engine.loop_receipts(session).unwrap();
    assert_eq!(receipts.iter().map(|(phase, _)| phase.as_str()).collect::<Vec<_>>(), ["WORK"]);
    let verify = || {
        engine
            .verify_receipt(ReceiptPlace::Session(session), &receipts[0].1, &yard.settings, &stop, &())
            .unwrap()
    };
    let now = verify();
    assert!(now.holds && now.same_tree, "{now:?}");
    yard.write("other", "file");
    let now = verify();
    assert!(now.holds && !now.same_tree, "{now:?}");
    std::fs::remove_file(yard.base().join("harbour/sail")).unwrap();
    assert!(!verify().holds);
}

/// A new conversation each time holds the work once, and nothing of what was asked before.
#[test]
fn a_fresh_prompt_holds_no_earlier_prompt() {
    let yard = Yard::new();
    yard.always("echo $n > part-$n; [ $n -lt 3 ] || echo cloth > sail; finish done");
    let ended = yard.until_with("test -f sail", |new| {
        new.plan.phases[0].context = segno_core::looping::Context::Fresh;
    });
    assert_eq!((ended.state.status, yard.starts()), (Status::Completed, 3), "{}", ended.why);
    assert_eq!([1, 2, 3].map(|n| yard.kind(n)), ["new", "new", "new"]);
    let third = yard.prompt(3);
    assert!(third.contains("## Where it was"), "{third}");
    assert_eq!(third.matches("## Work\n").count(), 1, "{third}");
    assert_eq!(third.matches("## Phase WORK, iteration").count(), 1, "{third}");
    assert_eq!(third.matches("## At the end of your answer").count(), 1, "{third}");
    assert_eq!(third.matches("build a boat").count(), 1, "what is to be done is told once: {third}");
    assert!(!third.contains("interrupted"), "nothing was: {third}");
}

/// The same conversation until its context is so full, then a new one with a brief.
#[test]
fn a_full_context_begins_a_new_conversation() {
    let yard = Yard::new();
    let answer = |tokens: u32, work: &str| {
        let message = format!(
            r#"{{"type":"assistant","session_id":"%s","parent_tool_use_id":null,"message":{{"id":"m","model":"scripted","content":[{{"type":"text","text":"x"}}],"usage":{{"input_tokens":{tokens},"output_tokens":0}}}}}}"#
        );
        let result = r#"{"type":"result","subtype":"success","session_id":"%s","is_error":false,"result":"x","num_turns":1,"usage":{"input_tokens":1,"output_tokens":1},"modelUsage":{"scripted":{"inputTokens":1,"outputTokens":1,"contextWindow":1000}}}"#;
        format!("{work}; printf '{message}\\n{result}\\n' $id $id")
    };
    yard.step(1, &answer(300, "echo a > hull"));
    yard.step(2, &answer(650, "echo b > hull"));
    yard.step(3, &answer(100, "echo c > hull"));
    yard.step(4, &answer(120, "echo sail > sail"));
    let ended = yard.until_with("test -f sail", |new| {
        new.plan.phases[0].context = segno_core::looping::Context::Auto { percent: 60 };
    });
    assert_eq!((ended.state.status, yard.starts()), (Status::Completed, 4), "{}", ended.why);
    assert_eq!([1, 2, 3, 4].map(|n| yard.kind(n)), ["new", "again", "new", "again"]);
    let briefed = [1, 2, 3, 4].map(|n| yard.prompt(n).contains("## Where it was"));
    assert_eq!(briefed, [false, false, true, false]);
    assert_eq!(ended.state.looping.unwrap().context_percent, Some(12));
}
