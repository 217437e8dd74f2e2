use segno_core::Mark;
use segno_core::SessionId;
use segno_core::Timestamp;
use segno_core::Uid;
use segno_core::event::Maker;
use segno_core::event::Project;
use segno_core::event::SessionCreated;
use segno_core::state::BelowMark;

use super::*;

const NOON: i64 = 1_795_000_000_000_000;

fn run(name: &str, agent: &str, model: Option<&str>, tokens: TokenUse, micros: Option<u64>) -> RunRow {
    RunRow {
        run: name.to_owned(),
        agent: agent.to_owned(),
        model: model.map(ToOwned::to_owned),
        tokens: Some(tokens),
        cost_micros: micros,
        started_at: Some(Timestamp::from_micros(NOON)),
        phase: Some(if name < "r3" { "RED" } else { "GREEN" }.to_owned()),
        iteration: 1,
        ..RunRow::default()
    }
}

fn tokens(input: u64, output: u64) -> TokenUse {
    TokenUse { input, output, ..TokenUse::default() }
}

fn state(tokens: TokenUse, micros: u64) -> State {
    let at = Timestamp::from_micros(NOON);
    let creation = SessionCreated {
        project: Project { path: "/shop".to_owned(), ..Project::default() },
        ..SessionCreated::new(SessionId::at(at), Uid::new(uuid::Uuid::nil()), Maker::Run)
    };
    let created = segno_core::create(creation).unwrap();
    let mut state = State::begin(&Mark { seq: 1, at, run: None }, &created).unwrap();
    state.tokens = tokens;
    state.cost.used_micros = micros;
    state
}

fn lines(costs: &Costs) -> Vec<(String, u64, u64, u64)> {
    let line = |line: &Line| {
        (line.name.clone(), line.sum.micros, line.sum.by_list_price_micros, line.sum.unpriced_tokens)
    };
    costs.lines.iter().map(line).collect()
}

/// Claude Code says what it cost, Codex does not, and of a third nobody knows.
fn three() -> Vec<RunRow> {
    vec![
        run("r1", "claude", Some("claude-sonnet-4-5"), tokens(1_000, 100), Some(420)),
        run("r2", "codex", Some("gpt-5"), tokens(1_000, 100), None),
        run("r3", "mine", Some("some-model"), tokens(70, 7), None),
    ]
}

fn add_up(used: Vec<Used>, by: By, sessions: u64, prices: &Prices) -> Costs {
    let zone = TimeZone::UTC;
    let mut sums = Sums::new(by, &zone);
    used.iter().for_each(|used| sums.add(used));
    sums.finish(sessions, prices)
}

fn costs(by: By) -> Costs {
    let prices = Prices::built_in();
    let all = state(tokens(2_070, 207), 420);
    add_up(used_in(&all, three(), &prices, &TimeZone::UTC), by, 1, &prices)
}

#[test]
fn what_the_agent_says_counts_first_then_list_prices_and_the_rest_is_unpriced() {
    let costs = costs(By::Agent);
    assert_eq!(
        lines(&costs),
        [
            ("codex".to_owned(), 2_250, 2_250, 0),
            ("claude".to_owned(), 420, 0, 0),
            ("mine".to_owned(), 0, 0, 77)
        ]
    );
    let Sum { runs, micros, by_list_price_micros, unpriced_tokens, .. } = costs.total;
    assert_eq!((runs, micros, by_list_price_micros, unpriced_tokens), (3, 2_670, 2_250, 77));
    assert_eq!(costs.prices_as_of, Some(Prices::built_in().as_of));
}

/// A review sent the work back to GREEN: that is another iteration than the first one of GREEN. One that was begun again is
/// the same.
#[test]
fn iterations_of_a_phase_that_is_gone_back_to_are_apart() {
    let phases = ["GREEN", "GREEN", "QA", "GREEN"];
    let runs = phases.iter().enumerate().map(|(at, phase)| RunRow {
        phase: Some((*phase).to_owned()),
        ..run(&format!("r{at}"), "mine", None, tokens(10, 1), Some(5))
    });
    let prices = Prices::built_in();
    let all = state(tokens(40, 4), 20);
    let used = used_in(&all, runs.collect(), &prices, &TimeZone::UTC);
    let costs = add_up(used, By::Iteration, 1, &prices);
    let shown: Vec<_> = costs.lines.iter().map(|line| (line.name.as_str(), line.sum.runs)).collect();
    let want = [("…000000    1  GREEN 1", 2), ("…000000    2  QA 1", 1), ("…000000    3  GREEN 1", 1)];
    assert_eq!(shown, want);
}

#[test]
fn by_anything() {
    let names = |by| costs(by).lines.into_iter().map(|line| line.name).collect::<Vec<_>>();
    assert_eq!(names(By::Phase), ["RED", "GREEN"]);
    assert_eq!(names(By::Iteration), ["…000000    1  RED 1", "…000000    2  GREEN 1"]);
    assert_eq!(names(By::Run), ["r1", "r2", "r3"]);
    assert_eq!(names(By::Model), ["gpt-5", "claude-sonnet-4-5", "some-model"]);
    assert_eq!(names(By::Day), ["2026-11-18"]);
    assert_eq!(names(By::Week), ["2026-11-16"]);
    assert_eq!(names(By::Branch), ["(branch not known)"]);
    assert_eq!(names(By::Project), ["/shop"]);
    assert_eq!(names(By::Session).len(), 1);
}

#[test]
fn what_was_recorded_by_hand_counts_once_and_what_ran_below_counts_where_it_ran() {
    let prices = Prices::built_in();
    // 2,277 in the runs, 100 by hand, and 5,000 of a run below, which has a session of its own.
    let mut all = state(tokens(2_070 + 100 + 5_000, 207), 420 + 900);
    all.below.insert("r9".to_owned(), BelowMark { tokens: tokens(5_000, 0), micros: 900 });
    let costs = add_up(used_in(&all, three(), &prices, &TimeZone::UTC), By::Agent, 1, &prices);
    let hand = costs.lines.iter().find(|line| line.name == "(recorded by hand)").unwrap();
    assert_eq!((hand.sum.tokens.total(), hand.sum.micros, hand.sum.unpriced_tokens), (100, 0, 100));
    assert_eq!(costs.total.tokens.total(), 2_277 + 100);
    assert_eq!(costs.total.micros, 2_670);
}

#[test]
fn nothing_is_nothing() {
    let prices = Prices::built_in();
    let costs =
        add_up(used_in(&state(tokens(0, 0), 0), Vec::new(), &prices, &TimeZone::UTC), By::Day, 1, &prices);
    assert_eq!((costs.lines.len(), costs.total, costs.prices_as_of), (0, Sum::default(), None));
}

#[test]
fn what_was_recorded_by_a_list_stays_and_zero_is_no_word_about_a_price() {
    let prices = Prices::built_in();
    let mut recorded = run("r1", "codex", Some("gpt-5"), tokens(1_000, 0), None);
    recorded.list_micros = 777;
    let free = run("r2", "opencode", Some("some-model"), tokens(50, 0), Some(0));
    let all = state(tokens(1_050, 0), 777);
    let costs = add_up(used_in(&all, vec![recorded, free], &prices, &TimeZone::UTC), By::Agent, 1, &prices);
    let expected = [("codex".to_owned(), 777, 777, 0), ("opencode".to_owned(), 0, 0, 50)];
    assert_eq!(lines(&costs), expected, "and nothing was recorded by hand");
}

#[test]
fn a_day_is_one_of_the_user() {
    let zone = TimeZone::posix("EST5").unwrap();
    let monday = |text: &str| week(text.parse().unwrap(), &zone);
    assert_eq!(monday("2026-11-16T04:59:59Z"), "2026-11-09");
    assert_eq!(monday("2026-11-16T05:00:00Z"), "2026-11-16");
    let at = |text: &str| day(text.parse().unwrap(), &zone);
    assert_eq!(at("2026-11-18T04:59:59Z"), "2026-11-17");
    assert_eq!(at("2026-11-18T05:00:00Z"), "2026-11-18");
}
