//! Anything that can be asked of a session, sensible or not.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::strategy::Union;
use segno_core::Command;
use segno_core::Fact;
use segno_core::Input;
use segno_core::Text;
use segno_core::Timestamp;
use segno_core::TokenUse;
use segno_core::event::*;
use segno_core::text::Aside;
use serde_json::Value;

/// Any characters, control characters among them.
pub(crate) fn string() -> BoxedStrategy<String> {
    let char = prop_oneof![3 => any::<char>(), 1 => select("\u{1b}[]()0123456789:/.#\\ \n\t'\"".chars().collect::<Vec<_>>())];
    vec(char, 0..60).prop_map(String::from_iter).boxed()
}

/// Names that meet each other now and then.
fn word() -> BoxedStrategy<String> {
    let odd = [
        String::new(),
        " ".into(),
        "a\nb".into(),
        "\u{1b}[31mred\u{1b}[0m".into(),
        "\0".into(),
        "\u{202e}right to left".into(),
        "cp-01-x".into(),
        "../../etc/passwd".into(),
        "🛒".repeat(200),
        "ä".repeat(201),
        "x".repeat(4_001),
        "$blob".into(),
        "error at line 12 of /tmp/a.rs:3:4".into(),
    ];
    prop_oneof![
        8 => select(vec!["a", "b", "c", "red", "green", "main"]).prop_map(str::to_owned),
        2 => (0..100_u8).prop_map(|n| format!("name {n}")),
        1 => vec(any::<char>(), 0..8).prop_map(String::from_iter),
        1 => select(odd.to_vec()),
    ]
    .boxed()
}

pub(crate) fn text() -> BoxedStrategy<Text> {
    let aside = (word(), number(), word(), any::<bool>())
        .prop_map(|(hash, bytes, excerpt, json)| Text::Aside(Aside { hash, bytes, excerpt, json }));
    prop_oneof![4 => word().prop_map(Text::Whole), 1 => aside].boxed()
}

fn number() -> BoxedStrategy<u64> {
    prop_oneof![6 => 0..6_u64, 2 => 0..50_000_u64, 1 => any::<u64>(), 1 => Just(u64::MAX)].boxed()
}

fn small() -> BoxedStrategy<u32> {
    prop_oneof![8 => 0..6_u32, 1 => any::<u32>()].boxed()
}

fn json() -> BoxedStrategy<Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        word().prop_map(Value::from),
    ];
    let tree = leaf.prop_recursive(2, 6, 3, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..3).prop_map(Value::from),
            vec((word(), inner), 0..3).prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    });
    let deep =
        (90..127_usize).prop_map(|levels| (0..levels).fold(Value::from(1), |v, _| Value::from(vec![v])));
    prop_oneof![12 => tree, 1 => deep].boxed()
}

fn source() -> BoxedStrategy<Source> {
    select(vec![Source::Hand, Source::Stream, Source::Hook]).boxed()
}

fn change() -> BoxedStrategy<Change> {
    select(vec![Change::Created, Change::Modified, Change::Deleted]).boxed()
}

fn unit() -> BoxedStrategy<Unit> {
    select(vec![Unit::Tokens, Unit::Cost]).boxed()
}

/// Where an event lands: the clock jumps, and several runs speak at once.
pub(crate) fn mark() -> BoxedStrategy<(Timestamp, Option<String>)> {
    let at = prop_oneof![
        6 => 1_700_000_000_000_000..1_800_000_000_000_000_i64,
        1 => any::<i64>(),
    ];
    let run = option::weighted(0.8, select(vec!["run-1", "run-2", "run-3"]).prop_map(str::to_owned));
    (at.prop_map(Timestamp::from_micros), run).boxed()
}

/// A strategy for a command or a fact as one for both.
trait AsInput: Strategy {
    fn input(self) -> BoxedStrategy<Input>;
}

impl<S: Strategy<Value: Into<Input>> + 'static> AsInput for S {
    fn input(self) -> BoxedStrategy<Input> {
        self.prop_map(Into::into).boxed()
    }
}

fn lifecycle() -> Vec<(u32, BoxedStrategy<Input>)> {
    let details = || option::of(text());
    let pauses = [
        PauseReason::Asked,
        PauseReason::Signal,
        PauseReason::Budget,
        PauseReason::Limit,
        PauseReason::Timeout,
        PauseReason::Error,
        PauseReason::Ended,
    ];
    let requests = [Request::Pause, Request::Stop, Request::Kill, Request::Complete, Request::Abort];
    let interrupts = [InterruptReason::Crash, InterruptReason::Killed, InterruptReason::PowerLoss];
    let holder = (word(), word()).prop_map(|(host, what)| Holder { host, what, ..Holder::default() });
    vec![
        (
            6,
            (select(pauses.to_vec()), details())
                .prop_map(|(reason, details)| Command::Pause { reason, details })
                .input(),
        ),
        (
            30,
            (any::<bool>(), details())
                .prop_map(|(reset_breaker, details)| Command::Resume { reset_breaker, details })
                .input(),
        ),
        (
            6,
            (select(interrupts.to_vec()), details())
                .prop_map(|(reason, details)| Command::Interrupt { reason, details, at: None })
                .input(),
        ),
        (4, text().prop_map(|reason| Command::Halt { reason }).input()),
        (1, details().prop_map(|summary| Command::Complete { summary }).input()),
        (1, details().prop_map(|reason| Command::Abort { reason }).input()),
        (1, details().prop_map(|reason| Command::Fail { reason }).input()),
        (20, (number(), holder).prop_map(|(epoch, holder)| Command::AttachDriver { epoch, holder }).input()),
        (4, number().prop_map(|epoch| Fact::DriverDetached { epoch }).input()),
        (
            8,
            (select(requests.to_vec()), details())
                .prop_map(|(request, details)| Command::MakeRequest { request, details })
                .input(),
        ),
        (
            20,
            (0..200_u64, any::<bool>(), details())
                .prop_map(|(request, obeyed, details)| Command::AnswerRequest { request, obeyed, details })
                .input(),
        ),
        (8, question().prop_map(|asked| Command::AskQuestion(Box::new(asked))).input()),
        (
            8,
            (question_name(), any::<bool>(), details(), word())
                .prop_map(|(id, allow, details, by)| QuestionAnswered { id, allow, details, by })
                .prop_map(Command::AnswerQuestion)
                .input(),
        ),
        (
            4,
            (question_name(), word())
                .prop_map(|(id, why)| Command::CloseQuestion(QuestionClosed { id, why }))
                .input(),
        ),
    ]
}

/// Of few names, so that some are answered that were asked.
fn question_name() -> BoxedStrategy<String> {
    (0..4_u8).prop_map(|number| format!("q{number}")).boxed()
}

fn question() -> BoxedStrategy<QuestionAsked> {
    (question_name(), option::of(word()), word(), text())
        .prop_map(|(id, call, tool, input)| QuestionAsked { id, call, tool, input, until: None })
        .boxed()
}

fn plan() -> Vec<BoxedStrategy<Input>> {
    let project =
        (word(), word(), option::of(word())).prop_map(|(path, name, kind)| Project { path, name, kind });
    let workflow = (word(), vec(word(), 0..5)).prop_map(|(name, phases)| Workflow { name, phases });
    let verdict = select(vec![Verdict::Pass, Verdict::Fail, Verdict::Skip]);
    vec![
        word().prop_map(|topic| Fact::TopicSet { topic }).input(),
        (
            option::of(word()),
            vec(word(), 0..3),
            vec(word(), 0..2),
            option::of(any::<bool>()),
            option::of(any::<bool>()),
        )
            .prop_map(|(topic, tags_added, tags_removed, pinned, archived)| {
                Command::Arrange(SessionArranged { topic, tags_added, tags_removed, pinned, archived })
            })
            .input(),
        text().prop_map(|intent| Command::SetIntent { intent }).input(),
        project.prop_map(|project| Command::SetProject { project }).input(),
        option::of(word()).prop_map(|branch| Command::SetGitBranch { branch, commit: None }).input(),
        workflow.prop_map(|workflow| Command::SetWorkflow { workflow }).input(),
        (word(), option::of(small()), option::of(small()))
            .prop_map(|(to, step, of)| Command::AdvancePhase { to, step, of })
            .input(),
        (small(), option::of(small())).prop_map(|(step, of)| Command::SetStep { step, of }).input(),
        Just(Command::StartIteration).input(),
        Just(Command::StartAttempt).input(),
        (option::of(word()), word(), verdict, option::of(text()))
            .prop_map(|(phase, check, verdict, details)| Command::VerifyPhase {
                phase,
                check,
                verdict,
                details,
            })
            .input(),
        json().prop_map(|state| Command::SetWorkflowState { state }).input(),
        any::<u8>().prop_map(|percent| Command::SetProgress { percent }).input(),
    ]
}

fn budget() -> Vec<BoxedStrategy<Input>> {
    let tokens = (number(), number(), number(), number(), number()).prop_map(
        |(input, output, cache_read, cache_write, other)| TokenUse {
            input,
            output,
            cache_read,
            cache_write,
            other,
            reasoning: output / 2,
        },
    );
    vec![
        (tokens, any::<bool>(), source())
            .prop_map(|(tokens, estimated, source)| Fact::TokensRecorded { tokens, estimated, source })
            .input(),
        (0..20_000_u64, source())
            .prop_map(|(tokens, source)| Fact::TokensRecorded {
                tokens: TokenUse::of(tokens),
                estimated: true,
                source,
            })
            .input(),
        (number(), source()).prop_map(|(micros, source)| Fact::CostRecorded { micros, source }).input(),
        (0..3_u32, 0..10_u32)
            .prop_map(|(model, price)| Command::PriceByList {
                rates: segno_core::rates::Rates {
                    model: format!("model-{model}"),
                    as_of: "2025-11-30".to_owned(),
                    input: f64::from(price),
                    output: f64::from(price),
                    ..segno_core::rates::Rates::default()
                },
            })
            .input(),
        (0..400_u32, 0..5_000_u64, 0..5_000_u64)
            .prop_map(|(run, tokens, micros)| Command::CountBelow {
                run: format!("run-{run:03}"),
                tokens: TokenUse::of(tokens),
                micros,
            })
            .input(),
        (unit(), option::of(number()), option::of(any::<bool>()), option::of(0..120_u8))
            .prop_map(|(unit, total, hard, warn_percent)| Command::SetBudget {
                unit,
                total,
                hard,
                warn_percent,
                count: None,
            })
            .input(),
        (unit(), number()).prop_map(|(unit, added)| Command::ExtendBudget { unit, added }).input(),
    ]
}

fn work() -> Vec<BoxedStrategy<Input>> {
    let phase = || option::of(word());
    let details = || option::of(text());
    let outputs = vec![OutputKind::Document, OutputKind::Code, OutputKind::Partial];
    let metric =
        prop_oneof![any::<f64>().prop_map(Metric::Number), any::<bool>().prop_map(Metric::Flag)].boxed();
    vec![
        (word(), change(), phase())
            .prop_map(|(path, artifact_type, phase)| Command::RecordArtifact { path, artifact_type, phase })
            .input(),
        (word(), change(), option::of(word()))
            .prop_map(|(path, change, call)| Fact::FileChanged { path, change, call })
            .input(),
        (word(), phase(), details())
            .prop_map(|(action, phase, details)| Fact::HistoryNoted { action, phase, details })
            .input(),
        (word(), select(outputs), text())
            .prop_map(|(name, kind, content)| Command::RecordOutput { name, kind, content })
            .input(),
        (word(), metric).prop_map(|(name, value)| Command::SetMetric { name, value }).input(),
        text().prop_map(|text| Command::AddTask { text }).input(),
        (number(), any::<bool>()).prop_map(|(task, done)| Command::EndTask { task, done }).input(),
        word().prop_map(|to| Command::SwitchAgent { to }).input(),
        (word(), any::<bool>(), json())
            .prop_map(|(agent, active, state)| Command::SetAgentState { agent, active, state })
            .input(),
        (option::of(word()), option::of(number()))
            .prop_map(|(file, line)| Command::SetPosition { file, line })
            .input(),
        (word(), details()).prop_map(|(name, details)| Command::ReachMilestone { name, details }).input(),
        (word(), details()).prop_map(|(name, details)| Command::ReachBreakpoint { name, details }).input(),
        details().prop_map(|details| Command::ContinueBreakpoint { details }).input(),
        (text(), text(), details(), vec(text(), 0..3), option::of(number()), option::of(word()))
            .prop_map(|(question, choice, reason, alternatives, parent, branch)| Command::Decide {
                question,
                choice,
                reason,
                alternatives,
                parent,
                branch,
            })
            .input(),
        (word(), option::of(number()))
            .prop_map(|(branch, from)| Command::SwitchBranch { branch, from })
            .input(),
    ]
}

fn ledger_and_memory() -> Vec<BoxedStrategy<Input>> {
    let ends = vec![CallEnd::Completed, CallEnd::Failed, CallEnd::Denied, CallEnd::InDoubt];
    let reasons = vec![CheckpointReason::Asked, CheckpointReason::Milestone];
    let start = (word(), word(), json(), any::<bool>(), source()).prop_map(
        |(call, tool, input, write_ahead, source)| Fact::ToolStarted {
            call,
            tool,
            input,
            write_ahead,
            source,
        },
    );
    let end = (word(), option::of(word()), select(ends), option::of(text()), source())
        .prop_map(|(call, tool, end, output, source)| Fact::ToolEnded { call, tool, end, output, source });
    vec![
        start.clone().input(),
        start.input(),
        end.clone().input(),
        end.input(),
        (word(), select(vec![CallEnd::Completed, CallEnd::Failed]), option::of(text()), word())
            .prop_map(|(call, end, output, evidence)| Command::SettleCall { call, end, output, evidence })
            .input(),
        (1..4_u64, 1..4_u64, text())
            .prop_map(|(attempt, of, why)| {
                Fact::ResumeAttempted(ResumeAttempted { attempt, of, delay_ms: 0, why })
            })
            .input(),
        (option::of(word()), any::<bool>())
            .prop_map(|(target, automatic)| {
                let chosen = RecoveryChosen { target, automatic, ..RecoveryChosen::default() };
                Fact::RecoveryChosen(Box::new(chosen))
            })
            .input(),
        (select(vec![MemoryUse::Query, MemoryUse::Lookup]), option::of(word()), text(), option::of(text()))
            .prop_map(|(usage, source, query, result)| Fact::MemoryUsed { usage, source, query, result })
            .input(),
        (word(), json()).prop_map(|(key, value)| Command::SetCache { key, value }).input(),
        word().prop_map(|key| Command::RemoveCache { key }).input(),
        (text(), option::of(word()))
            .prop_map(|(message, error_kind)| Fact::ErrorRecorded { message, error_kind })
            .input(),
        (option::of(word()), select(reasons))
            .prop_map(|(name, reason)| Command::CreateCheckpoint { name, reason })
            .input(),
    ]
}

fn going_back() -> Vec<BoxedStrategy<Input>> {
    let ordinal = || 0..9_u64;
    let kinds = vec![RestoreKind::Restore, RestoreKind::Rollback, RestoreKind::Undo, RestoreKind::Redo];
    let tree = select(vec!["t1", "t2", "t3"]).prop_map(str::to_owned);
    vec![
        (ordinal(), option::of(tree), any::<bool>())
            .prop_map(|(ordinal, tree, aside)| {
                let snapshot = tree.map(|tree| SnapshotMark { tree, ..SnapshotMark::default() });
                Command::ReadyCheckpoint(Box::new(CheckpointReady {
                    ordinal,
                    snapshot,
                    safety_only: aside,
                    ..CheckpointReady::default()
                }))
            })
            .input(),
        (ordinal(), text()).prop_map(|(ordinal, why)| Command::FailCheckpoint { ordinal, why }).input(),
        (ordinal(), any::<bool>())
            .prop_map(|(ordinal, pinned)| Command::PinCheckpoint { ordinal, pinned })
            .input(),
        (ordinal(), word()).prop_map(|(ordinal, why)| Command::DropCheckpoint { ordinal, why }).input(),
        ordinal().prop_map(|after| Command::InvalidateCheckpoints { after }).input(),
        (select(kinds), ordinal(), ordinal(), any::<bool>())
            .prop_map(|(kind, to, safety, whole)| {
                Command::RecordRestore(FilesRestored { kind, to, safety, whole, ..FilesRestored::default() })
            })
            .input(),
    ]
}

fn runs() -> Vec<BoxedStrategy<Input>> {
    let run = || select(vec!["run-1", "run-2", "run-3"]).prop_map(str::to_owned);
    let outcome = || select(vec!["completed", "failed", "interrupted"]).prop_map(str::to_owned);
    let channel = select(vec![Channel::Text, Channel::Thinking, Channel::Input]);
    vec![
        (run(), word(), option::of(word()), option::of(text()))
            .prop_map(|(run, agent, native_id, prompt)| {
                Command::StartRun(Box::new(RunStarted {
                    run,
                    agent,
                    native_id,
                    prompt,
                    ..RunStarted::default()
                }))
            })
            .input(),
        (run(), word(), option::of(word()), option::of(word()))
            .prop_map(|(run, native_id, model, version)| {
                Fact::RunNamed(RunNamed { run, native_id, model, version })
            })
            .input(),
        (run(), number()).prop_map(|(run, epoch)| Command::AdoptRun { run, epoch }).input(),
        (run(), outcome(), text(), option::of(word()))
            .prop_map(|(run, outcome, reason, native_id)| {
                Command::EndRun(Box::new(RunEnded { run, outcome, reason, native_id, ..RunEnded::default() }))
            })
            .input(),
        (channel, text(), option::of(word()), option::of(word()))
            .prop_map(|(channel, text, message, parent)| Fact::Said { channel, text, message, parent })
            .input(),
        (number(), option::of(number()), option::of(number()))
            .prop_map(|(turn, steps, duration_ms)| {
                Fact::TurnCompleted(TurnCompleted { turn, steps, duration_ms })
            })
            .input(),
        (word(), json()).prop_map(|(what, body)| Fact::Reported { what, body }).input(),
    ]
}

/// Any command or fact. Those that end a session are rare, or every story would be short.
pub(crate) fn input() -> BoxedStrategy<Input> {
    let often = [plan(), budget(), work(), ledger_and_memory(), going_back(), runs()].concat();
    let all = often.into_iter().map(|strategy| (12, strategy)).chain(lifecycle());
    Union::new_weighted(all.collect()).boxed()
}

/// A command or fact, when it comes, and for which run.
pub(crate) fn line() -> BoxedStrategy<(Input, Timestamp, Option<String>)> {
    (input(), mark()).prop_map(|(input, (at, run))| (input, at, run)).boxed()
}
