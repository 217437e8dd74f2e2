//! One session as its pages show it: where it stands, what it needs, and what belongs to it.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use segno_engine::Engine;
use segno_engine::board::Course;
use segno_engine::core::List;
use segno_engine::core::SessionId;
use segno_engine::core::State;
use segno_engine::core::Status;
use segno_engine::core::looping::BreakerState;
use segno_engine::core::looping::LoopStatus;
use segno_engine::core::looping::loop_status;
use segno_engine::core::rows::DecisionRow;
use segno_engine::tree::Checkpoint;
use segno_engine::waiting::Waiting;
use segno_engine::waiting::WaitingKind;

use super::chart;
use super::chart::Chart;
use super::problem::Problem;
use super::views::Times;
use super::views::brief_line;
use super::views::encoded;
use super::views::one_line;
use super::views::project_name;
use super::views::status_words;
use super::views::topic;
use crate::command_context::short;
use crate::output::units;

/// How many decisions and checkpoints a page shows.
const MOST: usize = 1_000;

/// Something to read on a line, with a class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fact {
    pub(super) name: &'static str,
    pub(super) value: String,
    pub(super) class: &'static str,
}

/// How much of something is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Meter {
    pub(super) name: String,
    pub(super) percent: u8,
    pub(super) words: String,
    pub(super) class: &'static str,
}

/// A question that waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct QuestionView {
    pub(super) id: String,
    pub(super) session: String,
    pub(super) topic: String,
    pub(super) text: String,
    pub(super) input: String,
    pub(super) until: String,
    pub(super) answers: Vec<String>,
    /// What each of them does, where the words do not say it.
    pub(super) means: Vec<(String, String)>,
    /// Whether words of one's own are an answer too.
    pub(super) words: bool,
}

impl QuestionView {
    pub(super) fn of(engine: &Engine, waiting: &Waiting, times: &Times) -> Self {
        let asked = match &waiting.input {
            // All of it stands below.
            Some(_) => waiting.text.split_once('?').map_or(waiting.text.as_str(), |(asked, _)| asked),
            None => waiting.text.trim_end_matches('?'),
        };
        let input = waiting.input.as_deref().map(|input| {
            let value = serde_json::from_str::<serde_json::Value>(input).ok();
            value
                .and_then(|value| serde_json::to_string_pretty(&value).ok())
                .unwrap_or_else(|| input.to_owned())
        });
        Self {
            id: waiting.id.clone(),
            session: waiting.session_id.to_string(),
            topic: topic(waiting.topic.as_deref()),
            text: format!("{}?", one_line(asked)),
            input: crate::output::sanitize::block(&input.unwrap_or_default()).into_owned(),
            until: waiting.until.map(|until| times.clock(until)).unwrap_or_default(),
            answers: waiting.answers.iter().filter(|word| *word != "TEXT").cloned().collect(),
            means: if waiting.kind == WaitingKind::Resume { ways(engine, waiting) } else { Vec::new() },
            words: waiting.answers.iter().any(|word| word == "TEXT"),
        }
    }

    /// Whether it asks how to go on.
    pub(super) fn is_about_going_on(&self) -> bool {
        !self.means.is_empty()
    }
}

/// The ways to go on, with what each of them loses.
fn ways(engine: &Engine, waiting: &Waiting) -> Vec<(String, String)> {
    let report = engine.load(waiting.session_id).and_then(|loaded| engine.recovery_report(&loaded.state));
    let offered = report.ok().flatten().map(|report| report.recovery_options).unwrap_or_default();
    let means = |word: &String| {
        let option = offered.iter().find(|option| option.recovery.as_str() == word)?;
        let best = if option.recommended { " (recommended)" } else { "" };
        Some((word.clone(), format!("{}: {}{best}", one_line(&option.text), option.loses)))
    };
    waiting.answers.iter().filter_map(means).collect()
}

/// Whether a breaker keeps a session from going on.
pub(super) fn has_open_breaker(state: &State) -> bool {
    state.looping.as_ref().is_some_and(|it| it.breaker.state == BreakerState::Open)
        || (state.status == Status::Halted && state.breaker_holds())
}

/// One phase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PhaseView {
    pub(super) name: String,
    pub(super) state: String,
    pub(super) class: &'static str,
    pub(super) words: String,
}

/// The head of a session's pages, and what stands beside them.
#[derive(Clone, Debug)]
pub(super) struct Head {
    pub(super) id: String,
    pub(super) short: String,
    pub(super) topic: String,
    pub(super) status: String,
    pub(super) class: &'static str,
    pub(super) project: String,
    pub(super) project_name: String,
    pub(super) age: String,
    pub(super) seq: u64,
    pub(super) facts: Vec<Fact>,
    pub(super) meters: Vec<Meter>,
    pub(super) phases: Vec<PhaseView>,
    pub(super) questions: Vec<QuestionView>,
    pub(super) notices: Vec<String>,
    pub(super) doubts: Vec<String>,
    pub(super) open: bool,
    pub(super) running: bool,
    pub(super) can_pause: bool,
    pub(super) can_resume: bool,
    pub(super) breaker_open: bool,
    pub(super) is_loop: bool,
}

/// What a head is made of.
pub(super) struct Stand {
    pub(super) state: State,
    pub(super) looping: Option<LoopStatus>,
    pub(super) head: Head,
}

/// Reads where a session stands.
pub(super) fn stand(engine: &Engine, session: SessionId, times: &Times) -> Result<Stand, Problem> {
    let loaded = engine.load(session)?;
    let (state, mut notices) = (loaded.state, loaded.notices);
    let lease = engine.lease(session)?.filter(|lease| segno_engine::lease::life(lease).may_live());
    let driven = lease.is_some();
    let (status, class) = status_words(state.status, state.reason.as_ref(), driven);
    let looping = loop_status(&state, engine.now());
    let questions: Vec<QuestionView> = match engine.waiting_of(session) {
        Ok(waiting) => waiting.iter().map(|waiting| QuestionView::of(engine, waiting, times)).collect(),
        Err(why) => {
            notices.push(format!("what waits for an answer cannot be read: {why}"));
            Vec::new()
        }
    };
    let doubts = state.calls.in_doubt.values().map(|call| {
        let input = brief_line(&call.input, 200);
        format!("{} {input}, begun {}", one_line(&call.tool), times.clock(call.at))
    });
    let head = Head {
        id: session.to_string(),
        short: short(session),
        topic: topic(state.topic.as_deref()),
        status,
        class,
        project: one_line(&state.project.path),
        project_name: project_name(&state.project.path),
        age: times.ago(state.updated_at),
        seq: state.seq,
        facts: facts(&state, looping.as_ref(), lease.as_ref().map(|lease| lease.holder.pid), times),
        meters: meters(&state, times),
        phases: phases(&state, looping.as_ref()),
        can_resume: matches!(state.status, Status::Paused | Status::Interrupted | Status::Halted)
            && !driven
            && !questions.iter().any(QuestionView::is_about_going_on),
        questions,
        notices: notices.iter().map(|notice| one_line(notice)).collect(),
        doubts: doubts.collect(),
        open: state.status.is_open(),
        running: driven,
        can_pause: state.status == Status::Active,
        breaker_open: has_open_breaker(&state),
        is_loop: looping.is_some(),
    };
    Ok(Stand { state, looping, head })
}

fn facts(state: &State, looping: Option<&LoopStatus>, pid: Option<u32>, times: &Times) -> Vec<Fact> {
    let mut facts = Vec::new();
    let mut fact = |name: &'static str, value: Option<String>, class: &'static str| {
        facts.extend(value.filter(|value| !value.is_empty()).map(|value| Fact { name, value, class }));
    };
    let run = state.run.as_ref();
    let model = run.and_then(|run| run.model.as_deref()).map(|model| format!(" ({})", one_line(model)));
    let agent = state.agent.as_deref().or(run.map(|run| run.agent.as_str())).map(one_line);
    fact("agent", agent.map(|agent| agent + model.as_deref().unwrap_or_default()), "plain");
    fact("driven by", pid.map(|pid| format!("process {pid}")), "plain");
    fact("intent", state.intent.as_deref().map(|intent| brief_line(intent, 300)), "plain");
    fact(
        "work item",
        state.work_item.as_ref().map(|it| brief_line(&format!("{} {}", it.id, it.title), 120)),
        "plain",
    );
    fact("phase", state.phase_label().map(|phase| one_line(&phase)), "plain");
    if let Some(it) = looping {
        let most = it.most.map_or(String::new(), |most| format!(" of {most}"));
        fact(
            "iteration",
            Some(format!("{}{most} in all, {} in this phase", it.total, it.iteration)),
            "plain",
        );
        let tests = it.tests.as_ref().map(|tests| format!("{} of {} pass", tests.passed, tests.total));
        fact("tests", tests, "plain");
        let breaker = it.breaker.state.as_str();
        let why =
            it.breaker.reason.as_deref().map_or(String::new(), |why| format!(": {}", brief_line(why, 160)));
        let class = if breaker == "OPEN" { "bad" } else { "plain" };
        fact("breaker", Some(format!("{}{why}", breaker.to_lowercase().replace('_', " "))), class);
        fact("waits for", it.waiting_for.as_deref().map(|why| brief_line(why, 160)), "waits");
        fact(
            "until",
            it.waiting_until.map(|until| format!("{}, in {}", times.clock(until), times.left(until))),
            "waits",
        );
        fact("next", Some(brief_line(&it.next, 200)), "plain");
    }
    fact("progress", state.progress().map(|percent| format!("{percent} %")), "plain");
    fact("branch", state.branch.as_deref().map(one_line), "plain");
    fact("last", state.last_action.as_deref().map(|last| brief_line(last, 160)), "plain");
    let calls = &state.calls;
    if calls.total > 0 {
        let open = calls.open.len() as u64 + calls.open_beyond;
        let parts = [
            (calls.completed, "completed"),
            (calls.failed, "failed"),
            (calls.denied, "denied"),
            (open, "open"),
        ];
        let parts =
            parts.into_iter().filter(|(count, _)| *count > 0).map(|(count, word)| format!("{count} {word}"));
        fact("calls", Some(parts.collect::<Vec<_>>().join(", ")), "plain");
        let doubt = calls.in_doubt.len() as u64;
        fact("in doubt", (doubt > 0).then(|| units::things(doubt, "call")), "doubt");
    }
    fact(
        "tasks",
        (state.tasks.added > 0)
            .then(|| format!("{} open, {} done", state.tasks.open.len(), state.tasks.done)),
        "plain",
    );
    fact("began", Some(times.clock(state.created_at)), "plain");
    fact("journal", Some(units::things(state.seq, "event")), "plain");
    facts
}

fn meters(state: &State, times: &Times) -> Vec<Meter> {
    let mut meters = Vec::new();
    let percent = |used: u64, of: u64| {
        u8::try_from(used.saturating_mul(100).checked_div(of).unwrap_or(0).min(100)).unwrap_or(100)
    };
    let budget = &state.budget;
    let kind = |over: bool, low: bool| {
        if over {
            "bad"
        } else if low {
            "waits"
        } else {
            "plain"
        }
    };
    if !budget.is_unlimited() {
        let how = if budget.hard { "stops there" } else { "warns only" };
        meters.push(Meter {
            name: "tokens".to_owned(),
            percent: percent(budget.tokens_used, budget.total_budget),
            words: format!(
                "{} of {}, {how}",
                units::about(budget.tokens_used, state.tokens_estimated),
                units::count(budget.total_budget)
            ),
            class: kind(budget.is_exhausted(), budget.is_warning()),
        });
    }
    let cost = &state.cost;
    let money = units::money(cost.used_micros, state.unpriced_tokens());
    match cost.limit_micros {
        Some(limit) => meters.push(Meter {
            name: "money".to_owned(),
            percent: percent(cost.used_micros, limit),
            words: format!(
                "{money} of {}, {}",
                units::dollars(limit),
                if cost.hard { "stops there" } else { "warns only" }
            ),
            class: kind(cost.is_exhausted(), cost.is_warning()),
        }),
        None if cost.used_micros > 0 || state.unpriced_tokens() > 0 => meters.push(Meter {
            name: "money".to_owned(),
            percent: 0,
            words: format!("{money}, no cap"),
            class: "none",
        }),
        None => {}
    }
    for window in state.limits.values() {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "bounded before")]
        let used = window.utilization.map(|used| (used * 100.0).clamp(0.0, 100.0) as u8);
        let opens = window.resets_at.map(|at| format!(", opens {}", times.clock(at))).unwrap_or_default();
        let said = window.status.as_deref().map(one_line).unwrap_or_default();
        let share = used.map(|used| format!("{used} %")).unwrap_or(said.clone());
        meters.push(Meter {
            name: format!("{} {}", one_line(&window.agent), one_line(&window.window).replace('_', " ")),
            percent: used.unwrap_or(0),
            words: format!("{share}{opens}"),
            class: match said.as_str() {
                "rejected" => "bad",
                "warning" => "waits",
                _ if used.is_none() => "none",
                _ => "plain",
            },
        });
    }
    meters
}

fn phases(state: &State, looping: Option<&LoopStatus>) -> Vec<PhaseView> {
    if let Some(it) = looping {
        let one = |phase: &segno_engine::core::looping::PhaseStatus| {
            let cost = if phase.cost_micros > 0 {
                format!(", {}", units::dollars(phase.cost_micros))
            } else {
                String::new()
            };
            PhaseView {
                name: one_line(&phase.name),
                state: phase.state.to_owned(),
                class: match phase.state {
                    "done" => "good",
                    "now" => "works",
                    "skipped" | "sent back" => "waits",
                    _ => "plain",
                },
                words: format!(
                    "{}, {}{cost}",
                    units::things(phase.iterations, "iteration"),
                    units::tokens(phase.tokens)
                ),
            }
        };
        return it.phases.iter().map(one).collect();
    }
    let all = state.workflow.as_ref().map_or(&[][..], |workflow| &workflow.phases);
    let one = |name: &String| {
        let (word, class) = if state.phase.as_ref() == Some(name) && state.status.is_open() {
            ("now", "works")
        } else if state.phases_completed.contains(name) {
            ("done", "good")
        } else {
            ("to come", "plain")
        };
        PhaseView { name: one_line(name), state: word.to_owned(), class, words: String::new() }
    };
    all.iter().map(one).collect()
}

/// A condition of a gate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ConditionView {
    pub(super) name: String,
    pub(super) wanted: String,
    pub(super) value: String,
    pub(super) holds: bool,
}

/// What the page of a loop shows: phases with gate and breaker, and why.
#[derive(Clone, Debug, Default)]
pub(super) struct LoopView {
    pub(super) conditions: Vec<ConditionView>,
    pub(super) gate: String,
    pub(super) warnings: Vec<String>,
    pub(super) breaker: String,
    pub(super) counters: Vec<(String, String, bool)>,
    pub(super) changes: Vec<String>,
    pub(super) line: String,
    pub(super) next: String,
    pub(super) notes: Vec<String>,
    pub(super) tests: Option<Chart>,
}

impl LoopView {
    pub(super) fn of(it: &LoopStatus, times: &Times) -> Self {
        let conditions = it.gate.iter().flat_map(|gate| &gate.conditions).map(|condition| ConditionView {
            name: one_line(&condition.name),
            wanted: one_line(&condition.wanted),
            value: one_line(&condition.value),
            holds: condition.holds,
        });
        let gate = match &it.gate {
            None => "was not measured yet".to_owned(),
            Some(gate) if gate.can_exit => "passed: the phase is done".to_owned(),
            Some(gate) if !gate.gate_1 => "stays shut: conditions do not hold".to_owned(),
            Some(_) => "stays shut: the agent did not say that it is done".to_owned(),
        };
        let counter = |counter: &segno_engine::core::looping::Counter| {
            let limit = if counter.limit == 0 {
                "never opens it".to_owned()
            } else {
                format!("opens at {}", counter.limit)
            };
            (
                counter.name.to_owned(),
                format!("{}, {limit}", counter.value),
                counter.limit > 0 && counter.value >= counter.limit,
            )
        };
        let change = |change: &segno_engine::core::looping::BreakerChange| {
            let (from, to) = (change.from.as_str().to_lowercase(), change.to.as_str().to_lowercase());
            let (from, to) = (from.replace('_', " "), to.replace('_', " "));
            format!(
                "{}, iteration {}: {from} to {to}: {}",
                times.clock(change.at),
                change.iteration,
                brief_line(&change.reason, 200)
            )
        };
        Self {
            conditions: conditions.collect(),
            gate,
            warnings: it
                .gate
                .iter()
                .flat_map(|gate| &gate.warnings)
                .map(|why| brief_line(why, 300))
                .collect(),
            breaker: it.breaker.state.as_str().to_lowercase().replace('_', " "),
            counters: it.breaker.counters.iter().map(counter).collect(),
            changes: it.breaker.changes.iter().rev().take(20).map(change).collect(),
            line: it.line.as_deref().map(|line| brief_line(line, 400)).unwrap_or_default(),
            next: brief_line(&it.next, 300),
            notes: it.notes.iter().map(|note| brief_line(note, 300)).collect(),
            tests: tests(it),
        }
    }
}

fn tests(it: &LoopStatus) -> Option<Chart> {
    let columns: Vec<chart::Column> = it
        .recent
        .iter()
        .filter_map(|recent| {
            let (passed, all) = recent.tests?;
            let missing = all.saturating_sub(passed);
            let parts = vec![
                (passed, "good", format!("{passed} pass")),
                (missing, "bad", format!("{missing} do not pass")),
            ];
            Some(chart::Column { name: recent.iteration.to_string(), parts })
        })
        .collect();
    let last = it.recent.iter().rev().find_map(|recent| recent.tests);
    let words =
        last.map_or(String::new(), |(passed, all)| format!("{passed} of {all} tests pass at the end."));
    let heads = ["iteration", "pass", "do not pass"];
    chart::bars("Tests over iterations", words, &heads, &columns, |count| count.to_string())
}

/// Pictures of money and tokens over time.
pub(super) fn course_charts(course: &Course, state: &State, times: &Times) -> Vec<Chart> {
    let when = |at: i64| times.clock_us(at);
    let money: Vec<(i64, u64)> = course.points.iter().map(|point| (point.at_us, point.micros)).collect();
    let tokens: Vec<(i64, u64)> = course.points.iter().map(|point| (point.at_us, point.tokens)).collect();
    let spent = money.last().is_some_and(|(_, micros)| *micros > 0);
    let money = spent
        .then(|| chart::steps("Money over time", &money, state.cost.limit_micros, units::dollars, when))
        .flatten();
    let limit = Some(state.budget.total_budget).filter(|_| !state.budget.is_unlimited());
    let used = tokens.last().is_some_and(|(_, tokens)| *tokens > 0);
    let tokens = used.then(|| chart::steps("Tokens over time", &tokens, limit, units::count, when)).flatten();
    money.into_iter().chain(tokens).collect()
}

/// A checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CheckpointView {
    pub(super) id: String,
    pub(super) link: String,
    pub(super) name: String,
    pub(super) why: String,
    pub(super) clock: String,
    pub(super) phase: String,
    pub(super) state: &'static str,
    pub(super) usable: bool,
    pub(super) seq: u64,
}

/// The checkpoints of a session, the oldest first, and the line of them.
pub(super) fn checkpoints(
    all: &[Checkpoint],
    base: &str,
    times: &Times,
) -> (Vec<CheckpointView>, Option<Chart>) {
    let skip = all.len().saturating_sub(MOST);
    let one = |it: &Checkpoint| {
        let why = crate::output::event_words::recorded_reason(&it.reason);
        let usable = it.valid && it.ready && it.snapshot.is_some();
        CheckpointView {
            id: one_line(&it.id),
            link: encoded(&it.id),
            name: one_line(&it.name),
            why,
            clock: times.clock(it.created_at),
            phase: it.of_phase().map(one_line).unwrap_or_default(),
            state: match (it.valid, it.ready, it.snapshot.is_some()) {
                (false, ..) => "was rolled back over",
                (_, false, _) => "is not ready",
                (.., false) => "has no files",
                _ if it.aside => "made before something was put back",
                _ => "",
            },
            usable,
            seq: it.seq,
        }
    };
    let views: Vec<CheckpointView> = all.iter().skip(skip).map(one).collect();
    let spots: Vec<(i64, &'static str, String, String)> = all
        .iter()
        .skip(skip)
        .zip(&views)
        .map(|(it, view)| {
            let class = if view.usable { "usable" } else { "gone" };
            let title = format!("{} {} ({})", view.clock, view.id, view.why);
            (it.created_at.as_micros(), class, title, format!("{base}/checkpoints/{}", view.link))
        })
        .collect();
    let words = units::things(views.len() as u64, "checkpoint");
    let line = chart::line("Checkpoints", words, &spots);
    (views, line)
}

/// A decision, with how deep it stands below others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DecisionView {
    pub(super) number: u64,
    pub(super) depth: usize,
    /// What it follows, where that does not stand just above it.
    pub(super) after: Option<u64>,
    pub(super) branch: String,
    pub(super) question: String,
    pub(super) choice: String,
    pub(super) reason: String,
    pub(super) alternatives: Vec<String>,
    pub(super) clock: String,
    pub(super) phase: String,
}

/// The decisions of a session as a tree.
pub(super) fn decisions(
    engine: &Engine,
    session: SessionId,
    times: &Times,
) -> Result<Vec<DecisionView>, Problem> {
    let page = segno_engine::Page::first(MOST);
    let rows: Vec<DecisionRow> =
        engine.page(session, List::Decisions, &page)?.items.iter().map(segno_engine::Item::row).collect();
    let known: BTreeSet<u64> = rows.iter().map(|row| row.decision).collect();
    // A parent comes before its children; anything else would be a ring.
    let parent_of =
        |row: &DecisionRow| row.parent.filter(|parent| *parent < row.decision && known.contains(parent));
    let mut children: BTreeMap<Option<u64>, Vec<&DecisionRow>> = BTreeMap::new();
    for row in &rows {
        children.entry(parent_of(row)).or_default().push(row);
    }
    let is_branch = |row: &DecisionRow| {
        parent_of(row).is_some_and(|parent| children.get(&Some(parent)).is_some_and(|all| all.len() > 1))
    };
    let mut views: Vec<DecisionView> = Vec::new();
    let mut open: Vec<(&DecisionRow, usize)> =
        children.get(&None).into_iter().flatten().rev().map(|row| (*row, 0)).collect();
    while let Some((row, depth)) = open.pop() {
        let text = |text: &Option<segno_engine::core::Text>| {
            text.as_ref().map(|text| brief_line(text.excerpt(), 600)).unwrap_or_default()
        };
        let before = views.last().map(|view| view.number);
        views.push(DecisionView {
            number: row.decision,
            // A line of thought without another beside it is no deeper.
            depth,
            after: parent_of(row).filter(|parent| before != Some(*parent)),
            branch: one_line(&row.branch),
            question: text(&row.question),
            choice: text(&row.choice),
            reason: text(&row.reason),
            alternatives: row.alternatives.iter().map(|it| brief_line(it.excerpt(), 300)).collect(),
            clock: row.decided_at.map(|at| times.clock(at)).unwrap_or_default(),
            phase: row.phase.as_deref().map(one_line).unwrap_or_default(),
        });
        let below = children.get(&Some(row.decision)).map_or(&[][..], Vec::as_slice);
        let deeper = if below.len() > 1 || is_branch(row) { depth + 1 } else { depth };
        open.extend(below.iter().rev().map(|row| (*row, deeper.min(8))));
    }
    Ok(views)
}
