//! What the real agents write of conversations that nobody recorded, taken in afterwards: every token counts once.

use std::path::PathBuf;

use rstest::rstest;
use segno_engine::agents::LogUse;
use segno_engine::agents::ReaderOptions;
use segno_testkit::model::Op;
use segno_testkit::model::Script;
use segno_testkit::model::Turn;
use segno_testkit::model::Usage;
use segno_testkit::model::When;
use segno_testkit::recipe::Patience;
use serde_json::Value;

use super::Real;
use crate::lab::program;

/// What each answer of the model uses: no two of them the same.
fn usage(turn: u64) -> Usage {
    Usage { input: 100 + turn, output: 20 + turn, cache_read: 1_000 + turn, cache_write: 0 }
}

fn script() -> Script {
    let turns = [
        Turn::ops([Op::write("made.txt", "written\n")]),
        Turn::text("the first is done: we drop redis"),
        Turn::sh("echo from-the-shell"),
        Turn::text("the second is done"),
        Turn::text("the third is done"),
        Turn::text("the copy is done"),
        Turn::text("more"),
    ];
    Script::new((0..).zip(turns).map(|(index, turn)| turn.usage(usage(index))))
}

impl Real {
    /// The only conversation of the agent so far.
    fn conversation(&self) -> String {
        let report = self.lab.json(&["import", "--report"]);
        let own = report["report"].as_array().unwrap().iter().find(|one| one["agent"] == self.agent).unwrap();
        assert_eq!(own["left"], 1, "{report:#}");
        let import = self.lab.json(&["import"]);
        assert_eq!(self.imported(&import)["new_sessions"], 1, "{import:#}");
        self.lab.state()["run"]["native_id"].as_str().unwrap().to_owned()
    }

    fn imported<'a>(&self, import: &'a Value) -> &'a Value {
        import["agents"].as_array().unwrap().iter().find(|one| one["agent"] == self.agent).unwrap()
    }

    /// What was used by what the model was asked in conversations.
    fn asked_for(&self) -> (u64, u64, u64) {
        let turns = self.asked().into_iter().filter_map(|request| request.turn);
        turns.fold((0, 0, 0), |sum, turn| {
            let used = usage(u64::try_from(turn).unwrap());
            (sum.0 + used.input, sum.1 + used.output, sum.2 + used.cache_read)
        })
    }

    /// What `segno cost` says of all sessions.
    fn counted(&self) -> (u64, u64, u64) {
        let cost = self.lab.json(&["cost", "--everywhere"]);
        let tokens = &cost["total"]["tokens"];
        let of = |name: &str| tokens[name].as_u64().unwrap_or(0);
        (of("input"), of("output"), of("cache_read"))
    }

    /// Copies the conversation, as a person would.
    fn copy(&self, id: &str, prompt: &str) {
        let words: Vec<&str> = match self.agent {
            "claude" => vec!["-p", "--resume", id, "--fork-session", prompt],
            "codex" => vec!["exec", "--skip-git-repo-check", "fork", id, prompt],
            "opencode" => vec!["run", "--session", id, "--fork", prompt],
            other => panic!("{other}"),
        };
        let mut command = program(self.agent);
        command.args(words).env_clear().envs(&self.lab.env).current_dir(self.lab.home.work());
        let said =
            self.lab.start_command(&mut command, None).finish_within(std::time::Duration::from_secs(180));
        self.describe(&said);
        assert_eq!(said.code, Some(0), "{}", said.stderr);
    }

    /// The files that the agent keeps of its conversations.
    pub(super) fn transcripts(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        let mut dirs = vec![self.lab.home.path().to_owned()];
        while let Some(dir) = dirs.pop() {
            for entry in std::fs::read_dir(dir).unwrap().flatten() {
                let path = entry.path();
                let own = [".claude/projects/", ".codex/sessions/", "/chats/"];
                if path.is_dir() {
                    dirs.push(path);
                } else if path.extension().is_some_and(|end| end == "jsonl")
                    && own.iter().any(|part| path.to_string_lossy().contains(part))
                {
                    found.push(path);
                }
            }
        }
        found
    }
}

/// Resumed twice, copied once, taken in after each: `segno cost` is exact to the token.
#[rstest]
fn every_token_counts_once(#[values("claude", "codex", "gemini", "opencode")] agent: &'static str) {
    let Some(real) = Real::new(agent, script(), Patience::default()) else { return };
    real.hand("make the first", None);
    let id = real.conversation();
    assert_eq!(real.counted(), real.asked_for(), "after the first");
    real.hand("make the second", Some(&id));
    real.hand("make the third", Some(&id));
    let import = real.lab.json(&["import"]);
    assert_eq!(real.imported(&import)["grown"], 1, "{import:#}");
    assert_eq!(real.counted(), real.asked_for(), "resumed twice");
    if agent != "gemini" {
        real.copy(&id, "make a copy");
        let import = real.lab.json(&["import"]);
        assert_eq!(real.imported(&import)["new_sessions"], 1, "{import:#}");
        assert_eq!(real.counted(), real.asked_for(), "and copied");
        assert_eq!(real.sessions().len(), 2);
    }
    let again = real.lab.json(&["import"]);
    assert_eq!(real.imported(&again)["events"], 0, "{again:#}");
    assert_eq!(real.counted(), real.asked_for());
    let found = real.lab.json(&["search", "drop redis", "kind:said"]);
    assert_eq!(found["hits"].as_array().unwrap().len(), 1, "{found:#}");
    for original in real.transcripts() {
        assert!(std::fs::metadata(original).unwrap().len() > 0);
    }
}

/// What a sub-agent does is part of the session that started it, and its call ends when it does.
#[test]
fn a_sub_agent_is_part_of_its_session() {
    let main = [
        Turn::ops([Op::task("helper-task: look around")]),
        Turn::text("it is on its way"),
        Turn::text("it came back"),
        Turn::text("and that is all"),
    ];
    let sub = [Turn::sh("echo from-the-helper"), Turn::text("the helper is done")];
    let counted = |first: u64, turns: Vec<Turn>| -> Vec<Turn> {
        (first..).zip(turns).map(|(index, turn)| turn.usage(usage(index))).collect()
    };
    let script = Script::new(counted(0, main.to_vec()));
    let script = script.track("sub", When::first_user("helper-task"), counted(10, sub.to_vec()));
    let Some(real) = Real::new("claude", script, Patience::default()) else { return };
    real.hand("make it", None);
    real.conversation();
    let requests = real.model.requests().into_iter().filter(|request| request.track != "side");
    let asked = requests.fold((0, 0, 0), |sum, request| {
        let first = if request.track == "sub" { 10 } else { 0 };
        let used = usage(first + u64::try_from(request.turn.unwrap()).unwrap());
        (sum.0 + used.input, sum.1 + used.output, sum.2 + used.cache_read)
    });
    assert_eq!(real.counted(), asked);
    let calls = real.lab.tools();
    let states: Vec<&str> = calls.iter().map(|call| call["state"].as_str().unwrap()).collect();
    assert_eq!(states, ["completed", "completed"], "{calls:#?}");
    assert_eq!(real.sessions().len(), 1);
}

/// What segno ran itself is not there twice; what somebody did in that conversation by hand is a session that goes on.
#[rstest]
fn what_was_recorded_is_not_doubled(#[values("claude", "codex")] agent: &'static str) {
    let Some(real) = Real::new(agent, script(), Patience::default()) else { return };
    let ran = real.run(&[]).result();
    let import = real.lab.json(&["import"]);
    let one = real.imported(&import);
    assert_eq!((&one["new_sessions"], &one["recorded"]), (&0.into(), &1.into()), "{import:#}");
    assert_eq!(real.sessions().len(), 1);
    assert_eq!(real.counted(), real.asked_for());
    real.hand("make the second", ran["native_id"].as_str());
    let import = real.lab.json(&["import"]);
    assert_eq!(real.imported(&import)["new_sessions"], 1, "{import:#}");
    assert_eq!(real.counted(), real.asked_for());
    assert_eq!(real.lab.state()["continues"], ran["session_id"]);
}

/// What was taken in goes on in its own conversation, or with a brief in a new one if the agent has deleted it.
#[rstest]
fn it_goes_on(#[values("claude", "codex")] agent: &'static str) {
    let Some(real) = Real::new(agent, script(), Patience::default()) else { return };
    real.hand("make the first", None);
    let id = real.conversation();
    let said = real.lab.run(&["resume", "last", "--json"]);
    real.describe(&said);
    assert_eq!(said.result()["native_id"], id.as_str(), "{}", said.stderr);
    let asked = real.asked();
    assert!(asked[2].conversation.contains("we drop redis"), "the whole conversation went on");
    let import = real.lab.json(&["import"]);
    assert_eq!(real.imported(&import)["new_sessions"], 0, "{import:#}");
    assert_eq!(real.counted(), real.asked_for());
    assert_eq!(real.sessions().len(), 1);

    for transcript in real.transcripts() {
        std::fs::remove_file(transcript).unwrap();
    }
    let said = real.lab.run(&["resume", "last", "--json"]);
    real.describe(&said);
    let native = said.result()["native_id"].clone();
    assert!(native.is_string() && native != id.as_str(), "{}", said.stderr);
    assert!(real.asked().last().unwrap().conversation.contains("make the first"), "the brief tells of it");
}

/// Cut at every byte of its last three lines, a transcript of a real agent loses no event that is whole.
#[rstest]
fn cut_anywhere(#[values("claude", "codex", "gemini")] agent: &'static str) {
    let Some(real) = Real::new(agent, script(), Patience::default()) else { return };
    real.hand("make the first", None);
    let path = real.transcripts().pop().unwrap();
    let bytes = std::fs::read(&path).unwrap();
    let log = segno_engine::agents::by_name(agent).unwrap().conversation_log().unwrap();
    let events = |bytes: &[u8]| {
        let mut reader = log.reader(&ReaderOptions::default(), LogUse::History).unwrap();
        let mut count = 0_usize;
        reader.feed(bytes, &mut |_| count += 1);
        count
    };
    let ends: Vec<usize> =
        bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1).collect();
    let third = ends[ends.len() - 4];
    for cut in third..=bytes.len() {
        let whole = ends.iter().rev().find(|end| **end <= cut).unwrap();
        assert_eq!(events(&bytes[third..cut]), events(&bytes[third..*whole]), "{cut}");
    }
}

/// Whatever happened to a transcript of a real agent: what is whole in it counts, once, and the file stays as it is.
#[rstest]
fn damaged_in_every_way(#[values("claude", "codex", "gemini")] agent: &'static str) {
    let Some(real) = Real::new(agent, script(), Patience::default()) else { return };
    real.hand("make the first", None);
    let path = real.transcripts().pop().unwrap();
    let whole = std::fs::read(&path).unwrap();
    let taken_in = |name: &str, bytes: &[u8]| {
        let dir = real.lab.home.path().join("variants").join(name);
        std::fs::create_dir_all(&dir).unwrap();
        let file = dir.join(path.file_name().unwrap());
        std::fs::write(&file, bytes).unwrap();
        let store = format!("sqlite:{}", dir.join("s.db").display());
        let import = real.lab.json(&["--store", &store, "import", file.to_str().unwrap()]);
        let cost = real.lab.json(&["--store", &store, "cost", "--everywhere"]);
        assert!(std::fs::read(&file).unwrap() == bytes, "{name}: the original is as it was");
        let one = real.imported(&import);
        (one["events"].as_u64().unwrap(), cost["total"]["tokens"].clone(), one["damage"].clone())
    };
    let lines: Vec<&[u8]> = whole.split_inclusive(|byte| *byte == b'\n').collect();
    let middle = lines.len() / 2;
    let without = [&lines[..middle], &lines[middle + 1..]].concat().concat();
    let at: usize = lines[..middle].iter().map(|line| line.len()).sum();
    let mut hole = whole.clone();
    hole[at + 5..at + lines[middle].len() - 5].fill(0);
    let mut glued = whole.clone();
    glued.remove(at + lines[middle].len() - 1);
    let crlf = lines.iter().flat_map(|line| [&line[..line.len() - 1], b"\r\n".as_slice()].concat()).collect();
    let twice = lines.iter().flat_map(|line| [*line, *line].concat()).collect();
    let huge = [&whole[..at], b"{\"x\":\"", &vec![b'y'; 200 << 20], b"\"}\n", &whole[at..]].concat();

    let (events, tokens, damage) = taken_in("whole", &whole);
    assert!(damage.as_object().unwrap().values().all(|count| *count == 0), "{damage}");
    let less = taken_in("without", &without);
    for (name, bytes, expected) in [
        ("hole", hole, (less.0, &less.1)),
        ("glued", glued, (events, &tokens)),
        ("crlf", crlf, (events, &tokens)),
        ("twice", twice, (events, &tokens)),
        ("huge", huge, (events, &tokens)),
    ] {
        let found = taken_in(name, &bytes);
        assert_eq!((found.0, &found.1), expected, "{name}: {}", found.2);
    }
}
