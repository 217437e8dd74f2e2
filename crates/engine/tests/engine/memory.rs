//! What agents ask of memories is found in the ledger, told to who goes on, and handed over once.

use segno_core::Fact;
use segno_core::List;
use segno_core::event::CallEnd;
use segno_core::event::Source;
use segno_core::rows::MemoryRow;
use segno_engine::memory::MemoryTools;
use segno_engine::resume::BriefLimits;
use serde_json::json;

use crate::common::Room;

fn call(id: &str, tool: &str, input: serde_json::Value, end: CallEnd, output: &str) -> [Fact; 2] {
    let source = Source::Hook;
    [
        Fact::ToolStarted { call: id.to_owned(), tool: tool.to_owned(), input, write_ahead: true, source },
        Fact::ToolEnded { call: id.to_owned(), tool: None, end, output: Some(output.into()), source },
    ]
}

#[test]
fn calls_to_memories_are_known_by_their_names() {
    let env = Room::new();
    let mut options = env.options();
    options.memory = MemoryTools {
        queries: vec!["*hindsight*recall*".to_owned()],
        lookups: vec!["*context7*".to_owned()],
    };
    let engine = segno_engine::Engine::new(Box::new(env.store()), options);
    let id = engine.create(env.new_session()).unwrap().state.session_id;
    let secret = format!("ghp_{}", "16C7e42F292c6912E7710c838347Ae178B4a");
    for facts in [
        call(
            "1",
            "mcp__hindsight__recall",
            json!({ "query": "how do we deploy?" }),
            CallEnd::Completed,
            "with make",
        ),
        call("2", "Bash", json!({ "command": "recall" }), CallEnd::Completed, "x"),
        call("3", "mcp__context7__docs", json!({ "libraryName": "serde" }), CallEnd::Completed, &secret),
        call("4", "mcp__hindsight__recall", json!({ "query": "lost" }), CallEnd::Failed, "no"),
    ] {
        engine.act_all(id, facts, None).unwrap();
    }
    assert_eq!(engine.note_memory(id).unwrap(), 2);
    assert_eq!(engine.note_memory(id).unwrap(), 0, "each once");
    let rows: Vec<MemoryRow> =
        engine.items(id, List::Memory).unwrap().iter().map(|item| item.row()).collect();
    let told: Vec<_> = rows
        .iter()
        .map(|row| {
            let (query, result) = (row.query.as_ref().unwrap(), row.result.as_ref().unwrap());
            (row.usage.as_str(), row.source.as_deref().unwrap(), query.excerpt(), result.excerpt())
        })
        .collect();
    assert_eq!(told[0], ("query", "hindsight", "how do we deploy?", "with make"));
    assert_eq!((told[1].0, told[1].1, told[1].2), ("lookup", "context7", "serde"));
    assert!(!told[1].3.contains(&secret), "{told:?}");
    let state = engine.load(id).unwrap().state;
    assert_eq!((state.counts.memory_queries, state.counts.memory_lookups), (1, 1));
    let brief = engine.brief(id, BriefLimits::default()).unwrap().text(BriefLimits::default());
    assert!(brief.contains("hindsight: `how do we deploy?` → `with make`"), "{brief}");
    let project = state.project.path.clone();
    let found = engine.remembered(&project, "DEPLOY how", 10).unwrap();
    assert_eq!(found.iter().map(|one| one.result.as_str()).collect::<Vec<_>>(), ["with make"]);
    assert_eq!(engine.remembered(&project, "deploy elsewhere", 10).unwrap(), []);
}

#[test]
fn a_brief_leaves_room_for_what_matters_more() {
    let env = Room::new();
    let mut options = env.options();
    options.memory = MemoryTools { queries: vec!["recall".to_owned()], lookups: Vec::new() };
    let engine = segno_engine::Engine::new(Box::new(env.store()), options);
    let id = engine.create(env.new_session()).unwrap().state.session_id;
    for number in 0..10 {
        let input = json!({ "query": format!("question {number}") });
        let facts = call(&number.to_string(), "recall", input, CallEnd::Completed, &"word ".repeat(200));
        engine.act_all(id, facts, None).unwrap();
    }
    let limits = BriefLimits { tokens: 2_000, entries: 12 };
    let brief = engine.brief(id, limits).unwrap().text(limits);
    let from_memory = brief.split("What memories said").nth(1).unwrap();
    assert!(from_memory.contains("question 9") && !from_memory.contains("question 0"), "{from_memory}");
    assert!(from_memory.len() <= 2_100, "{}", from_memory.len());
}
