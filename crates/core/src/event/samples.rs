//! Samples of every kind, for the frozen form and for tests of readers: each with all it can hold, and where
//! something may be left out, once more without it.

use std::collections::BTreeMap;

use serde_json::json;

use super::*;
use crate::budget::CostBudget;
use crate::budget::TokenBudget;
use crate::budget::TokenUse;
use crate::id::SessionId;
use crate::id::Uid;
use crate::project::List;
use crate::state::*;
use crate::status::Status;
use crate::text::Aside;
use crate::text::Text;
use crate::time::Timestamp;

/// The moment that all samples count from.
pub(crate) fn at(seconds: i64) -> Timestamp {
    "2026-11-15T14:35:12.804211Z".parse::<Timestamp>().unwrap().plus_seconds(seconds)
}

pub(crate) fn id() -> SessionId {
    SessionId::at(at(0))
}

pub(crate) fn uid() -> Uid {
    "01932f6e-7c00-7000-8000-00805f9b34fb".parse().unwrap()
}

fn aside() -> Text {
    let hash = "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262".to_owned();
    Text::Aside(Aside { hash, bytes: 9_216, excerpt: "error[E0308]: mismatched".into(), json: false })
}

fn text(text: &str) -> Option<Text> {
    Some(text.into())
}

fn workflow() -> Workflow {
    Workflow { name: "tdflow".into(), phases: ["red", "green", "refactor"].map(Into::into).into() }
}

fn project() -> Project {
    Project { path: "/home/ann/shop".into(), name: "shop".into(), kind: Some("rust".into()) }
}

fn holder() -> Holder {
    Holder {
        host: "ann-laptop".into(),
        pid_namespace: "4026531836".into(),
        boot_id: "9c6f0f0c-8f5e-4f55-9f9a-0f6f2f0f7c11".into(),
        pid: 4_121,
        process_start: 118_923,
        what: "segno run".into(),
    }
}

fn created() -> [Event; 2] {
    let full = SessionCreated {
        id: id(),
        uid: uid(),
        made_by: Maker::Run,
        topic: Some("checkout: die Kasse 🛒".into()),
        intent: text("Make the checkout\nwork offline."),
        project: project(),
        workflow: Some(workflow()),
        phase: Some("red".into()),
        budget: TokenBudget {
            total_budget: 50_000,
            tokens_used: 0,
            warn_percent: 75,
            hard: true,
            count: crate::budget::Counting::All,
        },
        cost: CostBudget { limit_micros: Some(5_000_000), used_micros: 0, warn_percent: 90, hard: true },
        continues: Some(SessionId::at(at(-86_400))),
        cap_from: Some(SessionId::at(at(-172_800))),
        file: None,
    };
    let bare = SessionCreated {
        project: Project { path: "/srv/x".into(), name: "x".into(), kind: None },
        ..SessionCreated::new(full.id, full.uid, Maker::New)
    };
    [full.into(), bare.into()]
}

/// A state in which everything that can be there is there.
pub(crate) fn full_state() -> State {
    let call = |tool: &str, seq| OpenCall {
        tool: tool.into(),
        seq,
        at: at(50),
        write_ahead: true,
        input: r#"{"command":"cargo test"}"#.into(),
    };
    let token_source = |run: &str, source| TokenSource { run: run.into(), source };
    let agents = [("coder", true, json!({ "turn": 3 })), ("reviewer", false, json!(null))];
    State {
        session_id: id(),
        uid: uid(),
        seq: 61,
        made_by: Maker::Run,
        tags: ["shop".to_owned()].into(),
        pinned: true,
        archived: false,
        topic: Some("checkout".into()),
        intent: Some("Make it work offline.".into()),
        project: project(),
        continues: Some(SessionId::at(at(-86_400))),
        cap_from: Some(CapFrom { session: SessionId::at(at(-172_800)), micros: 250_000 }),
        branch: Some("segno/shop".into()),
        status: Status::Paused,
        reason: Some(Reason { what: "limit reached".into(), details: Some("resets 3pm".into()) }),
        created_at: at(0),
        updated_at: at(60),
        completed_at: None,
        workflow: Some(workflow()),
        phase: Some("green".into()),
        phase_since: at(20),
        step: Some(2),
        of: Some(3),
        iteration: 4,
        attempt: 2,
        phases_completed: vec!["red".into()],
        verification: BTreeMap::from([("tests".into(), Verdict::Fail), ("build".into(), Verdict::Pass)]),
        workflow_state: Some(json!({ "gate": { "open": false } })),
        progress_set: Some(40),
        budget: TokenBudget {
            total_budget: 50_000,
            tokens_used: 41_000,
            warn_percent: 80,
            hard: true,
            count: crate::budget::Counting::All,
        },
        tokens: TokenUse {
            input: 1_000,
            output: 4_000,
            cache_read: 30_000,
            cache_write: 5_000,
            other: 1_000,
            reasoning: 2_500,
        },
        cost: CostBudget {
            limit_micros: Some(2_000_000),
            used_micros: 750_000,
            warn_percent: 90,
            hard: false,
        },
        tokens_estimated: true,
        unpriced: BTreeMap::from([("new-model".into(), TokenUse::of(5))]),
        lately: serde_json::from_value(json!([[1_980_000, 6, 7, 8]])).unwrap(),
        warned: Warned { tokens: true, tokens_over: false, cost: false, cost_over: false },
        below: [("run-9".to_owned(), BelowMark { tokens: TokenUse::of(7), micros: 1 })].into(),
        token_source: Some(token_source("run-2", Source::Stream)),
        earlier_token_sources: [token_source("run-1", Source::Hook)].into(),
        limits: BTreeMap::from([(
            "claude:five_hour".to_owned(),
            WindowMark {
                agent: "claude".into(),
                window: "five_hour".into(),
                status: Some("warning".into()),
                utilization: Some(0.93),
                resets_at: Some(Timestamp::from_micros(9)),
                model: None,
                at: Timestamp::from_micros(8),
            },
        )]),
        metrics: BTreeMap::from([
            ("test_coverage".into(), Metric::Number(87.5)),
            ("files".into(), Metric::Number(12.0)),
            ("build_pass".into(), Metric::Flag(true)),
        ]),
        phase_metrics: BTreeMap::new(),
        outputs: BTreeMap::from([("spec".into(), OutputMark { kind: OutputKind::Document, bytes: 9_216 })]),
        tasks: Tasks { added: 5, done: 2, dropped: 1, open: [(4, "write docs".into())].into() },
        agent: Some("coder".into()),
        agents: agents.map(|(name, active, state)| (name.to_owned(), AgentMark { active, state })).into(),
        position: Some(Position { file: "src/cart.rs".into(), line: Some(42) }),
        milestone: Some("first green".into()),
        breakpoint: Some(Breakpoint { name: "design review".into(), since: at(45) }),
        decisions: Decisions {
            count: 3,
            branch: "sqlite".into(),
            heads: [("main".into(), 2), ("sqlite".into(), 3)].into(),
        },
        calls: Calls {
            total: 9,
            completed: 4,
            failed: 1,
            denied: 1,
            open: [("toolu_07".into(), call("Bash", 58))].into(),
            in_doubt: [("toolu_03".into(), call("Write", 31))].into(),
            open_beyond: 1,
            closed: [305_419_896, 7].into(),
            done_by_hook: [7].into(),
            seen: Default::default(),
            newest: None,
        },
        cache: BTreeMap::from([("greeting".into(), json!(["hi", null, 1.5]))]),
        errors: Errors {
            count: 3,
            last: Some("00ab54a98ceb1f0a".into()),
            in_a_row: 2,
            message: Some("2 of 14 fail".into()),
        },
        counts: Counts {
            history: 12,
            artifacts: 2,
            files_created: 1,
            files_modified: 3,
            files_deleted: 1,
            milestones: 1,
            memory_queries: 2,
            memory_lookups: 1,
            checkpoints: 2,
            runs: 2,
            turns: 5,
        },
        checkpoint: Some(CheckpointMark { id: "cp-02-red".parse().unwrap(), seq: 40, at: at(40) }),
        tree: TreeMark {
            at: Some(2),
            tree: Some("t2".into()),
            redo: vec![4, 3],
            restores: 1,
            restored: Default::default(),
        },
        actions_since_checkpoint: 6,
        actions: 30,
        last_action: Some("modified src/cart.rs".into()),
        file: Some("docs/task.md".into()),
        work_item: Some(WorkItemMark { id: "seg-7".into(), title: "Fix it".into() }),
        asked: Some(3),
        recovery: Some(Box::new(RecoveryMark {
            interrupted_at: at(60),
            interrupt_reason: "limit reached".into(),
            last_known_state: LastKnown {
                phase: Some("green".into()),
                step: Some(2),
                iteration: 4,
                agent: Some("claude".into()),
                action: Some("modified src/cart.rs".into()),
                error: Some("2 of 14 fail".into()),
            },
            in_doubt: 2,
            settled: 1,
            offered: Vec::new(),
            recovery_type: Some(Recovery::Live),
            target: None,
            recovered_at: Some(at(61)),
            attempts: 1,
        })),
        looping: None,
        run: Some(RunMark {
            id: "run-2".into(),
            agent: "claude".into(),
            version: Some("2.1.325".into()),
            model: Some("claude-opus".into()),
            native_id: Some("1945e8e4-5ef5-4b3c-a6f2-2c8e9f6f5a10".into()),
            pid: 4_200,
            process_start: 119_001,
            adopted: Some(7),
            ledger: Ledger::WriteAhead,
            directory: "/home/ann/shop".into(),
            interactive: false,
            seq: 44,
            started_at: at(41),
            ended_at: None,
            outcome: None,
            turns: 1,
            below: Some(SessionId::at(at(-3_600))),
            before: BelowMark { tokens: TokenUse::of(1), micros: 2 },
            unpriced: TokenUse::of(3),
            list_micros: 4,
            elsewhere: true,
            limit: Some(Box::new(LimitSeen { class: Some("plan".into()), ..LimitSeen::default() })),
        }),
        driver: Some(Driver { epoch: 7, holder: holder(), since: at(10) }),
        requests: vec![OpenRequest { seq: 60, request: Request::Pause, details: None }],
        questions: vec![OpenQuestion {
            id: "5f0c".into(),
            seq: 61,
            at: at(11),
            until: Some(at(12)),
            tool: "Bash".into(),
            input: "{}".into(),
            answer: Some(GivenAnswer {
                allow: false,
                details: Some("use make".into()),
                by: "terminal".into(),
            }),
        }],
        late: 1,
        unknown: 2,
    }
}

/// A new session without anything.
pub(crate) fn bare_state() -> State {
    let [_, bare] = created();
    State::begin(&Mark { seq: 1, at: at(0), run: None }, &bare).unwrap()
}

fn lifecycle() -> Vec<Event> {
    let items = vec![
        ImportedItem {
            key: "00000000000000000003".into(),
            body: json!({ "timestamp": at(3), "action": "checkpoint", "phase": "red", "details": null }),
        },
        ImportedItem { key: "00000000000000000004".into(), body: json!({ "action": "session_paused" }) },
    ];
    vec![
        SessionImported {
            state: Box::new(full_state()),
            renamed_from: Some(SessionId::at(at(-1))),
            source: "/media/stick/session.yaml".into(),
        }
        .into(),
        SessionImported { state: Box::new(bare_state()), renamed_from: None, source: "bundle".into() }.into(),
        JournalImported {
            id: SessionId::at(at(5)),
            renamed_from: Some(SessionId::at(at(4))),
            source: "session.json.zst".into(),
            project: Project { path: "/home/me/here".into(), name: "here".into(), kind: None },
            budget: TokenBudget {
                total_budget: 5_000,
                tokens_used: 0,
                warn_percent: 80,
                hard: true,
                count: crate::budget::Counting::All,
            },
            cost: CostBudget { limit_micros: Some(2_000_000), used_micros: 0, warn_percent: 80, hard: true },
            redacted: 2,
        }
        .into(),
        TextsForgotten { what: Forgotten::Secret, events: vec![3, 17] }.into(),
        TextsForgotten { what: Forgotten::Texts, events: vec![1] }.into(),
        ItemsImported { list: List::History, items }.into(),
        ItemsImported { list: List::Tools, items: vec![] }.into(),
        SessionPaused { reason: PauseReason::Limit, details: text("resets 3pm") }.into(),
        SessionPaused { reason: PauseReason::Asked, details: None }.into(),
        SessionResumed { breaker_reset: true, details: text("looked at it") }.into(),
        SessionResumed { breaker_reset: false, details: None }.into(),
        SessionInterrupted {
            reason: InterruptReason::PowerLoss,
            details: text("boot id changed"),
            at: Some(Timestamp::from_micros(1)),
        }
        .into(),
        SessionInterrupted { reason: InterruptReason::Unknown, details: None, at: None }.into(),
        SessionHalted { reason: "no progress in 3 iterations".into() }.into(),
        SessionCompleted { summary: text("all tests pass") }.into(),
        SessionCompleted { summary: None }.into(),
        SessionAborted { reason: text("wrong idea") }.into(),
        SessionAborted { reason: None }.into(),
        SessionFailed { reason: text("5 resumes in vain") }.into(),
        SessionFailed { reason: None }.into(),
        DriverAttached { epoch: 7, holder: holder() }.into(),
        DriverDetached { epoch: 7 }.into(),
        RequestMade { request: Request::Stop, details: text("lunch") }.into(),
        RequestMade { request: Request::Abort, details: None }.into(),
        RequestMade { request: Request::Kill, details: None }.into(),
        RequestAnswered { request: 19, obeyed: false, details: text("still writing") }.into(),
        RequestAnswered { request: 19, obeyed: true, details: None }.into(),
        QuestionAsked {
            id: "5f0c".into(),
            call: Some("c1".into()),
            tool: "Bash".into(),
            input: aside(),
            until: Some(at(12)),
        }
        .into(),
        QuestionAsked { id: "5f0d".into(), call: None, tool: "Bash".into(), input: "{}".into(), until: None }
            .into(),
        QuestionAnswered {
            id: "5f0c".into(),
            allow: false,
            details: text("use make"),
            by: "segno answer".into(),
        }
        .into(),
        QuestionAnswered { id: "5f0d".into(), allow: true, details: None, by: "terminal".into() }.into(),
        QuestionClosed { id: "5f0c".into(), why: "answered".into() }.into(),
        LateRecorded { epoch: 6, kind: "topic_set".into(), version: 1, body: json!({ "topic": "x" }) }.into(),
    ]
}

fn plan() -> Vec<Event> {
    vec![
        TopicSet { topic: "checkout".into() }.into(),
        SessionArranged {
            topic: Some("checkout".into()),
            tags_added: vec!["shop".into()],
            tags_removed: vec!["old".into()],
            pinned: Some(true),
            archived: Some(false),
        }
        .into(),
        IntentSet { intent: aside() }.into(),
        GitBranchSet { branch: Some("segno/shop".into()), commit: Some("1f".into()) }.into(),
        GitBranchSet { branch: None, commit: None }.into(),
        ProjectSet { project: project() }.into(),
        ProjectSet { project: Project { kind: None, ..project() } }.into(),
        WorkflowSet { workflow: workflow() }.into(),
        WorkflowSet { workflow: Workflow { name: "spec".into(), phases: vec![] } }.into(),
        PhaseAdvanced { from: Some("red".into()), to: "green".into(), step: Some(2), of: Some(3) }.into(),
        PhaseAdvanced { from: None, to: "analyze".into(), step: None, of: None }.into(),
        StepSet { step: 2, of: Some(9) }.into(),
        StepSet { step: 2, of: None }.into(),
        IterationStarted { iteration: 5 }.into(),
        AttemptStarted { attempt: 2 }.into(),
        PhaseVerified {
            phase: Some("green".into()),
            check: "tests".into(),
            verdict: Verdict::Fail,
            details: text("2 of 14 fail"),
        }
        .into(),
        PhaseVerified { phase: None, check: "build".into(), verdict: Verdict::Skip, details: None }.into(),
        WorkflowStateSet { state: json!({ "gate": { "open": false }, "scores": [1, 2.5, -3] }) }.into(),
        WorkflowStateSet { state: json!(null) }.into(),
        ProgressSet { percent: 40 }.into(),
    ]
}

fn budget() -> Vec<Event> {
    let tokens =
        TokenUse { input: 10, output: 20, cache_read: 300, cache_write: 40, other: 5, reasoning: 15 };
    vec![
        TokensRecorded { tokens, estimated: false, source: Source::Stream, below: None }.into(),
        TokensRecorded {
            tokens: TokenUse::of(u64::MAX),
            estimated: true,
            source: Source::Hand,
            below: Some("run-9".into()),
        }
        .into(),
        CostRecorded { micros: 12_345, source: Source::Hook, below: None, list: None }.into(),
        CostRecorded { micros: 1, source: Source::Hand, below: Some("run-9".into()), list: None }.into(),
        CostRecorded {
            micros: 540,
            source: Source::Stream,
            below: None,
            list: Some(ListPrice { model: "gpt-5".into(), as_of: "2025-11-30".into(), earlier: false }),
        }
        .into(),
        BudgetSet {
            unit: Unit::Tokens,
            total: 200_000,
            hard: true,
            warn_percent: 80,
            count: Some(crate::budget::Counting::Uncached),
        }
        .into(),
        BudgetSet { unit: Unit::Cost, total: 5_000_000, hard: false, warn_percent: 90, count: None }.into(),
        BudgetExtended { unit: Unit::Tokens, added: 50_000 }.into(),
        BudgetWarned { unit: Unit::Tokens, used: 80_000, total: 100_000 }.into(),
        BudgetExceeded { unit: Unit::Cost, used: 5_000_001, total: 5_000_000 }.into(),
    ]
}

fn work() -> Vec<Event> {
    vec![
        ArtifactRecorded {
            path: "src/cart.rs".into(),
            artifact_type: Change::Created,
            phase: Some("green".into()),
        }
        .into(),
        ArtifactRecorded { path: "README.md".into(), artifact_type: Change::Modified, phase: None }.into(),
        FileChanged { path: "old.rs".into(), change: Change::Deleted, call: Some("toolu_02".into()) }.into(),
        FileChanged { path: "new.rs".into(), change: Change::Created, call: None }.into(),
        HistoryNoted { action: "reviewed".into(), phase: Some("red".into()), details: text("by Ann") }.into(),
        HistoryNoted { action: "lunch".into(), phase: None, details: None }.into(),
        OutputRecorded { name: "spec".into(), kind: OutputKind::Document, content: aside() }.into(),
        OutputRecorded { name: "draft".into(), kind: OutputKind::Partial, content: "".into() }.into(),
        MetricSet { name: "test_coverage".into(), value: Metric::Number(87.5) }.into(),
        MetricSet { name: "files".into(), value: Metric::Number(12.0) }.into(),
        MetricSet { name: "race_free".into(), value: Metric::Flag(false) }.into(),
        TaskAdded { task: 4, text: "write docs".into() }.into(),
        TaskEnded { task: 4, done: true }.into(),
        AgentSwitched { from: Some("coder".into()), to: "reviewer".into() }.into(),
        AgentSwitched { from: None, to: "coder".into() }.into(),
        AgentStateSet { agent: "coder".into(), active: true, state: json!({ "turn": 3 }) }.into(),
        PositionSet { file: Some("src/cart.rs".into()), line: Some(42) }.into(),
        PositionSet { file: None, line: None }.into(),
        MilestoneReached { name: "first green".into(), details: text("14 tests") }.into(),
        MilestoneReached { name: "released".into(), details: None }.into(),
        BreakpointReached { name: "design review".into(), details: text("look at ADR 3") }.into(),
        BreakpointReached { name: "stop".into(), details: None }.into(),
        BreakpointContinued { name: "design review".into(), details: text("fine") }.into(),
        BreakpointContinued { name: "stop".into(), details: None }.into(),
        DecisionMade {
            decision: 3,
            parent: Some(2),
            branch: "sqlite".into(),
            question: "where to store?".into(),
            choice: "SQLite".into(),
            reason: text("one file"),
            alternatives: vec!["files".into(), aside()],
        }
        .into(),
        DecisionMade {
            decision: 1,
            parent: None,
            branch: "main".into(),
            question: "language?".into(),
            choice: "Rust".into(),
            reason: None,
            alternatives: vec![],
        }
        .into(),
        BranchSwitched { branch: "sqlite".into(), from: Some(2) }.into(),
        BranchSwitched { branch: "main".into(), from: None }.into(),
        MemoryUsed {
            usage: MemoryUse::Query,
            source: Some("project notes".into()),
            query: "how are carts merged?".into(),
            result: Some(aside()),
        }
        .into(),
        MemoryUsed { usage: MemoryUse::Lookup, source: None, query: "serde".into(), result: None }.into(),
        CacheSet { key: "greeting".into(), value: json!(["hi", null, 1.5]) }.into(),
        CacheRemoved { key: "greeting".into() }.into(),
        ErrorRecorded {
            message: "error[E0308]: mismatched types".into(),
            error_kind: Some("build".into()),
            phase: Some("green".into()),
            iteration: 4,
            fingerprint: "00ab54a98ceb1f0a".into(),
            history: true,
        }
        .into(),
        ErrorRecorded {
            message: aside(),
            error_kind: None,
            phase: None,
            iteration: 0,
            fingerprint: "00ab54a98ceb1f0a".into(),
            history: false,
        }
        .into(),
    ]
}

fn ledger_and_keep() -> Vec<Event> {
    vec![
        ToolStarted {
            call: "toolu_08".into(),
            tool: "Read".into(),
            input: json!({ "file_path": "a.rs" }),
            write_ahead: false,
            source: Source::Stream,
            recurs: true,
        }
        .into(),
        ToolEnded {
            call: "toolu_08".into(),
            tool: None,
            end: CallEnd::Completed,
            output: None,
            source: Source::Stream,
            evidence: None,
            recurs: true,
        }
        .into(),
        ToolStarted {
            call: "toolu_07".into(),
            tool: "Bash".into(),
            input: json!({ "command": "cargo test", "timeout": 60 }),
            write_ahead: true,
            source: Source::Hook,
            recurs: false,
        }
        .into(),
        ToolEnded {
            call: "toolu_07".into(),
            tool: Some("Bash".into()),
            end: CallEnd::Failed,
            output: Some(aside()),
            source: Source::Stream,
            evidence: None,
            recurs: false,
        }
        .into(),
        ToolEnded {
            call: "toolu_08".into(),
            tool: None,
            end: CallEnd::InDoubt,
            output: None,
            source: Source::Hand,
            evidence: None,
            recurs: false,
        }
        .into(),
        ToolEnded {
            call: "toolu_08".into(),
            tool: None,
            end: CallEnd::Completed,
            output: text("ok"),
            source: Source::Hand,
            evidence: Some("the conversation that claude keeps".into()),
            recurs: false,
        }
        .into(),
        CheckpointCreated {
            id: "cp-03-green".parse().unwrap(),
            ordinal: 3,
            name: "green".into(),
            reason: CheckpointReason::PhaseComplete,
            tool_count: 9,
            progress: Some(66),
        }
        .into(),
        CheckpointCreated {
            id: "cp-01-asked".parse().unwrap(),
            ordinal: 1,
            name: "asked".into(),
            reason: CheckpointReason::Asked,
            tool_count: 0,
            progress: None,
        }
        .into(),
    ]
}

fn going_back() -> Vec<Event> {
    let snapshot = SnapshotMark {
        name: "s/3".into(),
        commit: "c0ffee".into(),
        tree: "7ree".into(),
        files: 12,
        bytes: 3_400,
        changed: 2,
        left_out: 1,
    };
    let conversation = ConversationMark {
        agent: "claude".into(),
        native_id: "1945e8e4".into(),
        message: Some("m-9".into()),
        offset: Some(512),
        exact: true,
    };
    let head = HeadMark { commit: Some("abc".into()), branch: Some("refs/heads/main".into()) };
    vec![
        CheckpointReady {
            ordinal: 3,
            seq: 61,
            snapshot: Some(snapshot),
            parent: Some(2),
            tree_changed: true,
            safety_only: false,
            conversation: Some(conversation),
            head: Some(head),
            checksum: "5eed".into(),
        }
        .into(),
        CheckpointReady { ordinal: 1, ..CheckpointReady::default() }.into(),
        CheckpointFailed { ordinal: 2, why: "git was not found".into() }.into(),
        CheckpointPinned { ordinal: 2, pinned: true }.into(),
        CheckpointDropped { ordinal: 1, why: "more than 100".into() }.into(),
        CheckpointsInvalidated { after: 1, up_to: 3 }.into(),
        FilesRestored {
            kind: RestoreKind::Rollback,
            to: 1,
            safety: 4,
            whole: true,
            written: 2,
            removed: 1,
            kept: 1,
            branch: Some("refs/heads/main".into()),
        }
        .into(),
        FilesRestored { kind: RestoreKind::Undo, to: 1, safety: 4, ..FilesRestored::default() }.into(),
        StateRestored { to: 1, state: Box::new(bare_state()) }.into(),
    ]
}

fn runs() -> Vec<Event> {
    let native_id = || Some("1945e8e4-5ef5-4b3c-a6f2-2c8e9f6f5a10".to_owned());
    vec![
        RunStarted {
            run: "run-2".into(),
            agent: "claude".into(),
            version: Some("2.1.325".into()),
            native_id: native_id(),
            resumed: native_id(),
            pid: 4_200,
            process_start: 119_001,
            ledger: Ledger::WriteAhead,
            prompt: text("Make the tests pass."),
            command: vec!["claude".into(), "-p".into()],
            environment: json!({ "LANG": "C.UTF-8" }),
            directory: "/home/ann/shop".into(),
            interactive: false,
            args: vec!["--add-dir".into()],
            file: Some("docs/task.md".into()),
            work_item: Some(WorkItemMark { id: "seg-7".into(), title: "Fix it".into() }),
            below: Some(SessionId::at(at(-3_600))),
            briefed: true,
        }
        .into(),
        RunStarted { run: "run-1".into(), agent: "plain".into(), ..RunStarted::default() }.into(),
        RunNamed {
            run: "run-2".into(),
            native_id: native_id().unwrap(),
            model: Some("claude-opus".into()),
            version: Some("2.1.325".into()),
        }
        .into(),
        RunAdopted { run: "run-2".into(), epoch: 7 }.into(),
        RunEnded {
            run: "run-2".into(),
            outcome: "failed".into(),
            reason: "the provider is overloaded".into(),
            native_id: native_id(),
            exit_code: Some(1),
            signal: None,
            turns: 3,
            duration_ms: 61_204,
            tokens: TokenUse {
                input: 10,
                output: 20,
                cache_read: 30,
                cache_write: 40,
                other: 0,
                reasoning: 0,
            },
            cost_micros: Some(71_000),
            denials: 1,
            unparsed: 2,
            swept: 3,
            text: Some(aside()),
            error: text("529 overloaded"),
            stderr: text("warning: slow"),
            at: Some(Timestamp::from_micros(2)),
            estimated: false,
            context: Some(ContextFill { used: 120_000, window: 200_000 }),
            limit: None,
            model: None,
        }
        .into(),
        RunEnded {
            run: "run-3".into(),
            outcome: "limit".into(),
            limit: Some(Box::new(LimitSeen {
                agent: Some("claude".into()),
                class: Some("plan".into()),
                status: Some("rejected".into()),
                window: Some("five_hour".into()),
                utilization: Some(1.25),
                resets_at: Some(1_794_815_184),
                model: Some("opus".into()),
                windows: vec![WindowSeen {
                    name: "five_hour".into(),
                    utilization: Some(1.25),
                    resets_at: Some(1_794_815_184),
                }],
                overage: Some("rejected".into()),
                overage_disabled_reason: Some("out_of_credits".into()),
                using_overage: Some(false),
            })),
            ..RunEnded::default()
        }
        .into(),
        RunEnded {
            run: "run-1".into(),
            outcome: "interrupted".into(),
            signal: Some(9),
            model: Some("scout-2".into()),
            ..RunEnded::default()
        }
        .into(),
        Said {
            channel: Channel::Thinking,
            text: aside(),
            message: Some("msg_01".into()),
            parent: Some("toolu_01".into()),
        }
        .into(),
        Said { channel: Channel::Text, text: "done".into(), message: None, parent: None }.into(),
        Said { channel: Channel::Input, text: "go on".into(), message: None, parent: None }.into(),
        TurnCompleted { turn: 2, steps: Some(4), duration_ms: Some(9_120) }.into(),
        TurnCompleted { turn: 1, steps: None, duration_ms: None }.into(),
        Reported { what: "retry".into(), body: json!({ "attempt": 2 }) }.into(),
        RecoveryChosen {
            recovery: Recovery::Checkpoint,
            target: Some("cp-03-green".into()),
            offered: vec![OptionOffered {
                recovery: Recovery::Checkpoint,
                target: Some("cp-03-green".into()),
                text: "last checkpoint cp-03-green".into(),
                loses: "loses 2 actions".into(),
                actions_lost: 2,
                files_lost: Some(2),
                recommended: true,
            }],
            automatic: true,
        }
        .into(),
        ResumeAttempted { attempt: 1, of: 3, delay_ms: 5_000, why: "it was killed".into() }.into(),
    ]
}

/// At least one event of every kind.
pub(crate) fn samples() -> Vec<Event> {
    let looping = looping_samples::looping();
    [
        created().into(),
        lifecycle(),
        plan(),
        budget(),
        work(),
        ledger_and_keep(),
        going_back(),
        runs(),
        looping,
    ]
    .concat()
}
