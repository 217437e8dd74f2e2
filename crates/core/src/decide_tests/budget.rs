//! Tokens and money.

use rstest::rstest;

use crate::budget::CostBudget;
use crate::budget::TokenBudget;
use crate::command::Command;
use crate::event::*;
use crate::fact::Fact;
use crate::refusal::Refusal;
use crate::state::Applied;
use crate::story::*;

fn spend(micros: u64) -> Fact {
    Fact::CostRecorded { micros, source: Source::Hand }
}

fn set(unit: Unit, total: u64) -> Command {
    Command::SetBudget { unit, total: Some(total), hard: None, warn_percent: None, count: None }
}

fn warnings(events: &[Event]) -> Vec<&str> {
    kinds(events).into_iter().filter(|kind| matches!(*kind, "budget_warned" | "budget_exceeded")).collect()
}

#[test]
fn half_used_is_no_warning() {
    let mut story = Story::new();
    assert_eq!(kinds(&story.ok(tokens(50_000, Source::Hand))), ["tokens_recorded"]);
    let budget = story.state.budget;
    assert_eq!((budget.tokens_used, budget.tokens_remaining()), (50_000, 50_000));
    assert!(!budget.is_warning() && !story.state.is_over_budget());
}

#[test]
fn the_warning_comes_once_at_the_threshold() {
    let mut story = Story::told(inputs![tokens(79_999, Source::Hand)]);
    let events = story.ok(tokens(1, Source::Hand));
    let warned = BudgetWarned { unit: Unit::Tokens, used: 80_000, total: 100_000 };
    assert_eq!(events[1..], [warned.into()]);
    for _ in 0..3 {
        assert_eq!(warnings(&story.ok(tokens(1, Source::Hand))), Vec::<&str>::new());
    }
    assert_eq!(story.state.counts.history, 2, "the beginning and one warning");
}

#[test]
fn passing_the_budget_marks_the_session_but_refuses_nothing() {
    let mut story = Story::told(inputs![tokens(95_000, Source::Hand)]);
    assert!(!story.state.budget.can_continue(10_000));
    assert_eq!(warnings(&story.ok(tokens(5_000, Source::Hand))), Vec::<&str>::new(), "all used, none over");
    assert!(!story.state.is_over_budget());
    let events = story.ok(tokens(1, Source::Hand));
    let exceeded = BudgetExceeded { unit: Unit::Tokens, used: 100_001, total: 100_000 };
    assert_eq!(events[1..], [exceeded.into()]);
    assert!(story.state.is_over_budget());
    assert!(!story.state.budget.is_exhausted(), "an advisory budget never stops");
    assert_eq!(warnings(&story.ok(tokens(1, Source::Hand))), Vec::<&str>::new());
    assert_eq!(story.state.status, crate::status::Status::Active);
}

#[test]
fn one_record_may_warn_and_exceed() {
    let mut story = Story::new();
    assert_eq!(warnings(&story.ok(tokens(u64::MAX, Source::Hand))), ["budget_warned", "budget_exceeded"]);
    assert_eq!(story.state.budget.tokens_used, u64::MAX);
    assert_eq!(story.state.budget.tokens_remaining(), 0);
    story.ok(tokens(u64::MAX, Source::Hand));
    assert_eq!(story.state.budget.tokens_used, u64::MAX);
}

#[test]
fn after_an_extension_both_lines_can_be_crossed_again() {
    let mut story = Story::told(inputs![tokens(100_001, Source::Hand), extend(Unit::Tokens, 50_000)]);
    assert_eq!(story.state.budget.total_budget, 150_000);
    assert!(!story.state.is_over_budget() && story.state.budget.can_continue(10_000));
    assert_eq!(warnings(&story.ok(tokens(19_999, Source::Hand))), ["budget_warned"]);
    assert_eq!(warnings(&story.ok(tokens(30_001, Source::Hand))), ["budget_exceeded"]);
}

#[test]
fn an_extension_that_is_too_small_warns_no_second_time() {
    let mut story = Story::told(inputs![tokens(100_000, Source::Hand), extend(Unit::Tokens, 1_000)]);
    assert_eq!(warnings(&story.ok(tokens(1, Source::Hand))), Vec::<&str>::new());
    assert_eq!(warnings(&story.ok(tokens(1_000, Source::Hand))), ["budget_exceeded"]);
}

#[test]
fn a_budget_set_below_what_is_used_warns_with_the_next_record() {
    let mut story = Story::told(inputs![tokens(500, Source::Hand)]);
    assert_eq!(kinds(&story.ok(set(Unit::Tokens, 100))), ["budget_set"]);
    assert!(story.state.is_over_budget());
    assert_eq!(warnings(&story.ok(tokens(0, Source::Hand))), ["budget_warned", "budget_exceeded"]);
}

#[test]
fn what_is_not_said_of_a_budget_stays() {
    let mut story = Story::new();
    let hard = Command::SetBudget {
        unit: Unit::Tokens,
        total: None,
        hard: Some(true),
        warn_percent: None,
        count: None,
    };
    story.ok(hard);
    story.ok(Command::SetBudget {
        unit: Unit::Tokens,
        total: Some(10),
        hard: None,
        warn_percent: Some(50),
        count: None,
    });
    story.ok(set(Unit::Tokens, 20));
    let expected = TokenBudget {
        total_budget: 20,
        tokens_used: 0,
        warn_percent: 50,
        hard: true,
        ..TokenBudget::default()
    };
    assert_eq!(story.state.budget, expected);
    assert_eq!(warnings(&story.ok(tokens(10, Source::Hand))), ["budget_warned"]);
    story.ok(tokens(10, Source::Hand));
    assert!(story.state.budget.is_exhausted(), "a hard budget stops when nothing is left");
}

#[test]
fn money_has_no_limit_until_one_is_set() {
    let mut story = Story::told(inputs![spend(9_000_000)]);
    let refusal = story.refused(extend(Unit::Cost, 1));
    assert_eq!(refusal, Refusal::bad("extension", "no cost budget is set"));
    let nothing = Command::SetBudget {
        unit: Unit::Cost,
        total: None,
        hard: Some(true),
        warn_percent: None,
        count: None,
    };
    assert_eq!(story.refused(nothing), Refusal::bad("budget", "a budget is more than 0"));
    story.ok(set(Unit::Cost, 10_000_000));
    assert_eq!(story.state.cost.remaining_micros(), Some(1_000_000));
    assert_eq!(warnings(&story.ok(spend(1))), ["budget_warned"]);
    assert_eq!(warnings(&story.ok(spend(1_000_000))), ["budget_exceeded"]);
    assert!(story.state.is_over_budget());
    story.ok(extend(Unit::Cost, 5_000_000));
    assert!(!story.state.is_over_budget());
    let expected =
        CostBudget { limit_micros: Some(15_000_000), used_micros: 10_000_001, ..CostBudget::default() };
    assert_eq!(story.state.cost, expected);
}

#[rstest]
#[case::nothing(set(Unit::Tokens, 0), "bad budget: a budget is more than 0")]
#[case::no_money(set(Unit::Cost, 0), "bad budget: a budget is more than 0")]
#[case::no_extension(extend(Unit::Tokens, 0), "bad extension: it is 0")]
#[case::percent(
    Command::SetBudget { unit: Unit::Tokens, total: None, hard: None, warn_percent: Some(101), count: None },
    "bad percentage: 101 is more than 100"
)]
fn nonsense_is_refused(#[case] command: Command, #[case] why: &str) {
    assert_eq!(Story::new().refused(command).to_string(), why);
}

#[test]
fn tokens_of_a_run_come_from_the_source_that_spoke_first() {
    let mut story = Story::new();
    story.run = Some("run-1".to_owned());
    story.ok(tokens(10, Source::Stream));
    story.ok(tokens(99, Source::Hook));
    story.ok(tokens(5, Source::Stream));
    assert_eq!(story.state.budget.tokens_used, 15);
    // The next run has its own first source.
    story.run = Some("run-2".to_owned());
    story.ok(tokens(7, Source::Hook));
    story.ok(tokens(99, Source::Stream));
    assert_eq!(story.state.budget.tokens_used, 22);
    // A late word about the run before is still the second source of it.
    story.run = Some("run-1".to_owned());
    story.ok(tokens(99, Source::Hook));
    story.ok(tokens(1, Source::Stream));
    story.run = Some("run-2".to_owned());
    story.ok(tokens(99, Source::Stream));
    assert_eq!(story.state.budget.tokens_used, 23);
    // What is said by hand, or of no run, counts always.
    story.ok(tokens(2, Source::Hand));
    story.run = None;
    story.ok(tokens(3, Source::Stream));
    story.ok(tokens(4, Source::Hook));
    assert_eq!(story.state.budget.tokens_used, 32);
    assert_eq!(story.state.tokens.total(), 32);
}

#[test]
fn only_so_many_runs_are_remembered() {
    let mut story = Story::new();
    for run in 0..100 {
        story.run = Some(format!("run-{run}"));
        story.ok(tokens(1, Source::Stream));
    }
    assert_eq!(story.state.earlier_token_sources.len(), crate::limits::EARLIER_RUNS);
    assert_eq!(story.state.earlier_token_sources.back().unwrap().run, "run-98");
}

/// The rules cannot know the run, so they warn by what they were told; the fold knows better.
#[test]
fn tokens_that_do_not_count_warn_of_nothing() {
    let mut story = Story::new();
    story.run = Some("run-1".to_owned());
    story.ok(tokens(60_000, Source::Stream));
    story.ok(tokens(60_000, Source::Hook));
    assert_eq!(story.state.budget.tokens_used, 60_000);
    assert_eq!(story.state.warned, Default::default());
    assert_eq!(story.state.counts.history, 1);
    assert_eq!(story.column(crate::project::List::History, "action"), Vec::<String>::new());
    // So the true crossing still warns, once.
    assert_eq!(warnings(&story.ok(tokens(20_000, Source::Stream))), ["budget_warned"]);
    assert!(story.state.warned.tokens);
    let again = BudgetWarned { unit: Unit::Tokens, used: 80_000, total: 100_000 };
    assert_eq!(story.record(&again.into()), Applied::Repeated);
    assert_eq!(story.state.counts.history, 2);
}

/// A run of this model has used so many tokens of input.
fn run_used(story: &mut Story, run: &str, model: Option<&str>, input: u64) {
    story.run = Some(run.to_owned());
    let named =
        RunNamed { run: run.to_owned(), native_id: "n".into(), model: model.map(Into::into), version: None };
    story.ok(Fact::RunNamed(named));
    let tokens = crate::TokenUse { input, ..Default::default() };
    story.ok(Fact::TokensRecorded { tokens, estimated: false, source: Source::Stream });
}

fn by_list(model: &str, input: f64) -> Command {
    let rates =
        crate::rates::Rates { model: model.into(), as_of: "2025-11-30".into(), input, ..Default::default() };
    Command::PriceByList { rates }
}

fn started(run: &str) -> Command {
    Command::StartRun(Box::new(RunStarted { run: run.into(), agent: "codex".into(), ..Default::default() }))
}

#[test]
fn what_no_agent_tells_is_reckoned_once_and_what_it_tells_counts_instead() {
    let mut story = Story::told(inputs![attach(1), started("run-1")]);
    run_used(&mut story, "run-1", Some("gpt-5"), 1_000);
    assert_eq!(kinds(&story.ok(by_list("gpt-5", 2.0))), ["cost_recorded"]);
    assert_eq!(story.state.cost.used_micros, 2_000);
    for (model, price) in [("gpt-5", 2.0), ("other", 9.0)] {
        let refusal = story.refused(by_list(model, price));
        assert!(matches!(refusal, Refusal::Already(_)), "{model}: {refusal}");
    }
    run_used(&mut story, "run-1", Some("gpt-5"), 500);
    story.ok(by_list("gpt-5", 2.0));
    let told = |micros| Fact::CostRecorded { micros, source: Source::Stream };
    assert_eq!(story.state.cost.used_micros, 3_000);
    story.ok(told(1_200));
    assert_eq!((story.state.cost.used_micros, story.state.unpriced_tokens()), (1_200, 0));
    story.ok(told(300));
    assert_eq!(story.state.cost.used_micros, 1_500, "what is told is added");
    let day = story.state.lately.since(crate::Timestamp::from_micros(0));
    assert_eq!((day.uncached, day.micros), (1_500, 1_500));
}

#[test]
fn what_nobody_can_price_is_kept_by_its_model_until_somebody_can() {
    let mut story = Story::told(inputs![attach(1), started("run-1")]);
    story.state.cost = CostBudget { limit_micros: Some(1_000_000), hard: true, ..CostBudget::default() };
    run_used(&mut story, "run-1", Some("new-model"), 1_000);
    assert!(!story.state.is_cost_unknown(), "its agent may tell it at its end");
    story.run = None;
    let ended = RunEnded { run: "run-1".into(), outcome: "completed".into(), ..RunEnded::default() };
    story.ok(Command::EndRun(Box::new(ended)));
    assert!(story.state.is_cost_unknown());
    story.ok(started("run-2"));
    run_used(&mut story, "run-2", None, 30);
    assert_eq!(story.state.unpriced["new-model"].input, 1_000);
    let events = story.ok(by_list("new-model", 3.0));
    assert_eq!(kinds(&events), ["cost_recorded", "cost_recorded"], "the newest run names no model");
    assert_eq!((story.state.cost.used_micros, story.state.unpriced.len()), (3_090, 0));
    assert_eq!(story.column(crate::project::List::Runs, "list_micros"), ["", "90"]);
}

#[test]
fn a_price_list_warns_like_anything_else_that_spends() {
    let mut story = Story::told(inputs![attach(1), set(Unit::Cost, 1_000), started("run-1")]);
    run_used(&mut story, "run-1", Some("gpt-5"), 900);
    assert_eq!(warnings(&story.ok(by_list("gpt-5", 1.0))), ["budget_warned"]);
    let told = Fact::CostRecorded { micros: 950, source: Source::Stream };
    assert_eq!(warnings(&story.ok(told)), Vec::<&str>::new(), "what was reckoned is not spent twice");
    assert_eq!(story.state.cost.used_micros, 950);
}
