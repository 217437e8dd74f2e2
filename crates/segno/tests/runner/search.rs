//! `segno search`, and `segno import` of histories, as somebody types them.

use std::io::BufRead as _;

use serde_json::Value;

use crate::common::SEGNO;
use crate::common::TestEnv;

fn hits(found: &Value) -> Vec<&Value> {
    found["hits"].as_array().unwrap().iter().collect()
}

fn kinds(found: &Value) -> Vec<&str> {
    hits(found).iter().map(|hit| hit["kind"].as_str().unwrap()).collect()
}

#[test]
fn words_are_found_wherever_they_were_recorded() {
    let env = TestEnv::new();
    let first = env.json(&["new", "shop"])["session_id"].as_str().unwrap().to_owned();
    env.ok(&["decide", "which cache?", "--choice", "none: we drop redis", "--because", "one process"]);
    env.ok(&["note", "the cache of the shop is gone"]);
    env.ok(&["error", "redis: connection refused"]);
    env.ok(&["complete", &first]);
    let second = env.json(&["new", "mail"])["session_id"].as_str().unwrap().to_owned();
    env.ok(&["task", "add", "configure the relay"]);

    let found = env.json(&["search", "drop", "redis"]);
    assert_eq!(kinds(&found), ["decision"], "{found:#}");
    let hit = &found["hits"][0];
    assert_eq!((&hit["session_id"], &hit["topic"]), (&first.as_str().into(), &"shop".into()));
    let (from, to) = (hit["marks"][0][0].as_u64().unwrap(), hit["marks"][0][1].as_u64().unwrap());
    let snippet = hit["snippet"].as_str().unwrap();
    assert_eq!(&snippet[usize::try_from(from).unwrap()..usize::try_from(to).unwrap()], "drop");
    assert_eq!((&found["not_indexed"], &found["some_words"]), (&0.into(), &false.into()));

    assert_eq!(kinds(&env.json(&["search", "\"connection refused\""])), ["error"]);
    assert_eq!(kinds(&env.json(&["search", "config*"])), ["task"]);
    assert_eq!(kinds(&env.json(&["search", "redis", "status:completed", "kind:error"])), ["error"]);
    assert!(hits(&env.json(&["search", "redis", "status:active"])).is_empty());
    assert!(hits(&env.json(&["search", "redis", "since:2199-01-01"])).is_empty());
    assert_eq!(hits(&env.json(&["search", "redis", "--limit", "1"])).len(), 1);
    let some = env.json(&["search", "when", "did", "we", "decide", "to", "drop", "redis?"]);
    assert_eq!((&some["some_words"], kinds(&some)[0]), (&true.into(), "decision"));

    // What is recorded later is found by the next search.
    env.ok(&["note", "redis is back"]);
    assert_eq!(hits(&env.json(&["search", "redis", "kind:note"])).len(), 1);
    env.ok(&["rm", &second, "--yes"]);
    assert!(hits(&env.json(&["search", "relay"])).is_empty());
    let wrong = env.run(&["search", "agent:claude"]);
    assert_eq!(wrong.code, 2, "{}", wrong.stderr);
    assert!(wrong.stderr.contains("say what to look for"), "{}", wrong.stderr);
}

#[test]
fn a_damaged_index_is_found_and_made_anew() {
    let env = TestEnv::new();
    env.ok(&["new", "shop"]);
    env.ok(&["note", "redis is gone"]);
    assert_eq!(hits(&env.json(&["search", "redis"])).len(), 1);
    let index =
        env.files().into_keys().find(|path| path.to_string_lossy().ends_with("segno.db.index")).unwrap();
    std::fs::write(env.path("").join(&index), vec![7; 9_000]).unwrap();
    assert_eq!(hits(&env.json(&["search", "redis"])).len(), 1, "it follows from the store");
    env.ok(&["doctor"]);
}

#[test]
fn what_is_forgotten_is_found_no_more() {
    let env = TestEnv::new();
    env.ok(&["new", "shop"]);
    env.ok(&["note", "we call it bumblebeehoney"]);
    assert_eq!(hits(&env.json(&["search", "bumblebeehoney"])).len(), 1);
    let forgot = env.feed(&["forget", "--yes"], b"bumblebeehoney");
    assert!(forgot.status.success(), "{}", String::from_utf8_lossy(&forgot.stderr));
    assert!(hits(&env.json(&["search", "bumblebeehoney"])).is_empty());
    for (path, content) in env.files() {
        if path.to_string_lossy().contains(".index") {
            assert!(!content.windows(8).any(|part| part == b"bumblebe"), "{}", path.display());
        }
    }
}

const LINES: &str = r#"{"parentUuid":null,"isSidechain":false,"type":"user","message":{"role":"user","content":"shall we drop redis?"},"uuid":"u-1","timestamp":"2026-03-01T10:00:00.000Z","cwd":"/srv/shop","sessionId":"S","version":"2.1.0"}
{"parentUuid":"u-1","isSidechain":false,"message":{"id":"m-1","type":"message","role":"assistant","model":"claude-opus-5-5","content":[{"type":"text","text":"yes, one process is enough"}],"usage":{"input_tokens":10,"cache_creation_input_tokens":0,"cache_read_input_tokens":5,"output_tokens":7}},"type":"assistant","uuid":"u-2","timestamp":"2026-03-01T10:00:05.000Z","cwd":"/srv/shop","sessionId":"S","version":"2.1.0"}
"#;

fn totals(env: &TestEnv) -> (u64, u64) {
    let cost = env.json(&["cost", "--everywhere"]);
    let tokens = &cost["total"]["tokens"];
    (tokens["input"].as_u64().unwrap_or(0), tokens["output"].as_u64().unwrap_or(0))
}

#[test]
fn a_history_is_taken_in_once() {
    let env = TestEnv::new();
    let id = "0199a213-7f3e-7c11-9d8a-5b6c7d8e9f00";
    let place = format!("home/.claude/projects/-srv-shop/{id}.jsonl");
    env.write(&place, &LINES.replace("\"S\"", &format!("{id:?}")));
    let gone = "{\"display\":\"fix the login\",\"timestamp\":1761000000000,\"project\":\"/srv/old\",\"sessionId\":\"gone-1\"}\n";
    let listed = format!("{{\"display\":\"shall we\",\"timestamp\":1772359200000,\"sessionId\":\"{id}\"}}\n");
    env.write("home/.claude/history.jsonl", &format!("{gone}{listed}"));
    let report = env.json(&["import", "--report"]);
    let claude = &report["report"][0];
    assert_eq!(
        (&claude["listed"], &claude["left"], &claude["deleted"], &claude["keeps_days"]),
        (&2.into(), &1.into(), &1.into(), &30.into()),
        "{report:#}"
    );
    assert!(report["agents"].as_array().unwrap().is_empty(), "nothing is imported");

    let before = env.read(&place);
    let first = env.json(&["import"]);
    let claude = &first["agents"][0];
    assert_eq!((&claude["new_sessions"], &claude["only_prompts"]), (&2.into(), &1.into()), "{first:#}");
    assert_eq!(totals(&env), (10, 7));
    assert_eq!(env.read(&place), before, "the original is as it was");
    let found = env.json(&["search", "redis", "agent:claude"]);
    assert!(kinds(&found).contains(&"prompt"), "{found:#}");
    let session = found["hits"][0]["session_id"].as_str().unwrap().to_owned();
    assert!(session.starts_with("session_20260301_100000"), "it is as old as the conversation");
    let opened = env.ok(&["search", "--open", "one process is enough"]).stdout;
    assert!(
        opened.contains("shall we drop redis?") && opened.contains("yes, one process is enough"),
        "{opened}"
    );
    assert_eq!(env.run(&["search", "--open=2", "one process is enough"]).code, 1);
    let state = env.json(&["state", &session]);
    assert_eq!((&state["status"], &state["topic"]), (&"paused".into(), &"shall we drop redis?".into()));
    assert_eq!(state["run"]["native_id"], id);
    assert_eq!(state["project"]["path"], "/srv/shop");
    let shown = env.ok(&["show", &session]).stdout;
    assert!(shown.contains("17 tok used, no budget"), "{shown}");
    assert_eq!(
        hits(&env.json(&["search", "login"])).len(),
        2,
        "the prompt of the one that is gone, and its topic"
    );

    let second = env.json(&["import"]);
    assert_eq!((&second["agents"][0]["unchanged"], &second["agents"][0]["events"]), (&1.into(), &0.into()));
    // It goes on, and only that is new.
    let more = LINES.lines().nth(1).unwrap().replace("\"S\"", &format!("{id:?}"));
    let more = more.replace("m-1", "m-2").replace("u-2", "u-3").replace("10:00:05", "10:05:00");
    env.write(&place, &format!("{before}{more}\n{}", &more[..40]));
    let third = env.json(&["import", "claude"]);
    let claude = &third["agents"][0];
    assert_eq!((&claude["new_sessions"], &claude["grown"]), (&0.into(), &1.into()), "{third:#}");
    assert_eq!(claude["damage"]["unfinished"], 1);
    assert_eq!(totals(&env), (20, 14));

    // Whatever is forgotten of it, nothing is there twice.
    let index = env.files().into_keys().filter(|path| path.to_string_lossy().contains("segno.db.index"));
    for path in index.collect::<Vec<_>>() {
        std::fs::remove_file(env.path("").join(path)).unwrap();
    }
    let again = env.json(&["import"]);
    assert_eq!(again["agents"][0]["events"], 0, "{again:#}");
    assert_eq!(totals(&env), (20, 14));
    // What was removed stays so.
    env.ok(&["rm", &session, "--yes"]);
    env.write(&place, &format!("{before}{more}\n"));
    assert_eq!(env.json(&["import"])["agents"][0]["removed"], 1);
}

#[test]
fn damage_is_read_around() {
    let one = LINES.replace("\"S\"", "\"0199a213-7f3e-7c11-9d8a-5b6c7d8e9f00\"");
    let (first, second) = one.split_once('\n').unwrap();
    let second = second.trim();
    let third = second.replace("m-1", "m-2").replace("u-2", "u-3");
    let cases = [
        ("glued", format!("{first}\n{}{second}\n{third}\n", &third[..60]), ["glued", "torn"]),
        (
            "holes",
            format!("{first}\n{}\0\0\0\0\0\n{second}\n{third}\n", &third[..60]),
            ["holes", "unfinished"],
        ),
        ("crlf", format!("{first}\r\n{second}\r\n{third}\r\n"), ["", ""]),
        ("twice", format!("{first}\n{second}\n{second}\n{third}\n{third}\n"), ["", ""]),
        (
            "huge",
            format!("{first}\n{{\"x\":\"{}\"}}\n{second}\n{third}\n", "y".repeat(17 << 20)),
            ["oversized", ""],
        ),
    ];
    for (name, content, counted) in cases {
        let env = TestEnv::new();
        env.write("home/x/0199a213-7f3e-7c11-9d8a-5b6c7d8e9f00.jsonl", &content);
        let path = env.path("home/x");
        let import = env.json(&["import", path.to_str().unwrap()]);
        let claude =
            import["agents"].as_array().unwrap().iter().find(|one| one["agent"] == "claude").unwrap();
        assert_eq!(claude["new_sessions"], 1, "{name}: {import:#}");
        for what in counted.into_iter().filter(|what| !what.is_empty()) {
            assert_eq!(claude["damage"][what], 1, "{name}: {import:#}");
        }
        assert_eq!(totals(&env), (20, 14), "{name}");
        assert_eq!(env.read("home/x/0199a213-7f3e-7c11-9d8a-5b6c7d8e9f00.jsonl"), content, "{name}");
    }
}

/// What was begun before does not count, though its session went on since.
#[test]
fn costs_since_by_week_block_and_as_csv() {
    let mut env = TestEnv::new();
    env.set("TZ", "UTC");
    let line = |n: usize, at: &str, model: &str| {
        LINES
            .lines()
            .nth(1)
            .unwrap()
            .replace("m-1", &format!("m-{n}"))
            .replace("u-2", &format!("u-{}", n + 1))
            .replace("2026-03-01T10:00:05", at)
            .replace("claude-opus-5-5", model)
    };
    let now = env.json(&["new", "clock"])["session_id"].as_str().unwrap().to_owned();
    let today = format!("{}-{}-{}", &now[8..12], &now[12..14], &now[14..16]);
    let all = [
        line(1, "2026-03-01T10:00:05", "claude-sonnet-4-5"),
        line(2, "2026-03-01T14:59:59", "claude-sonnet-4-5"),
        line(3, "2026-03-01T15:00:00", "claude-sonnet-4-5"),
        line(4, &format!("{today}T00:00:00"), "claude-haiku-4-5"),
    ];
    let first = LINES.lines().next().unwrap();
    let prompt = first.replace("u-1\"", "u-5\"").replace("2026-03-01T10:00:00", &format!("{today}T00:00:00"));
    let text = [&[first.to_owned()], &all[..3], &[prompt], &all[3..]].concat().join("\n");
    env.write("home/.claude/projects/-srv-shop/S.jsonl", &format!("{text}\n"));
    env.json(&["import", "claude"]);
    let lines = |args: &[&str]| -> Vec<(String, u64)> {
        let cost = env.json(&[&["cost", "--everywhere"], args].concat());
        let lines = cost["lines"].as_array().unwrap().iter();
        lines
            .map(|line| {
                (line["name"].as_str().unwrap().to_owned(), line["tokens"]["input"].as_u64().unwrap())
            })
            .collect()
    };
    let named = |names: &[(&str, u64)]| -> Vec<(String, u64)> {
        names.iter().map(|(name, used)| ((*name).to_owned(), *used)).collect()
    };
    assert_eq!(lines(&["--by", "day"]), named(&[("2026-03-01", 30), (&today, 10)]));
    assert_eq!(lines(&["--by", "day", "--since", "2d"]), named(&[(&today, 10)]));
    assert_eq!(lines(&["--by", "week"])[0], ("2026-02-23".to_owned(), 30));
    assert_eq!(
        lines(&["--by", "block"]),
        named(&[("2026-03-01 10:00", 20), ("2026-03-01 15:00", 10), (&format!("{today} 00:00"), 10)])
    );
    assert_eq!(lines(&["--by", "block", "--since", "2d"]), named(&[(&format!("{today} 00:00"), 10)]));
    let csv = env.ok(&["cost", "--everywhere", "--by", "day", "--csv"]).stdout;
    let expected = "day,runs,input,output,cache_read,cache_write,other,dollars,by_list_price,unpriced_tokens,estimated,reasoning\n\
                    \"2026-03-01\",1,30,21,15,0,0,0.000410,0.000410,0,false,0\n";
    assert!(csv.starts_with(expected), "{csv}");
}

/// What a model only thought is a part of what it put out: shown apart where an agent tells it, and counted once.
#[test]
fn reasoning_is_shown_apart_and_counts_once() {
    let env = TestEnv::new();
    let id = "0199a213-7f3e-7c11-9d8a-5b6c7d8e9f00";
    let line = |second: u32, kind: &str, payload: &str| {
        format!(
            "{{\"timestamp\":\"2026-03-01T10:00:{second:02}.000Z\",\"type\":\"{kind}\",\"payload\":{payload}}}\n"
        )
    };
    let said = |text: &str| format!("{{\"type\":\"user_message\",\"message\":\"{text}\"}}");
    let counted = |input: u64, output: u64, reasoning: u64| {
        format!(
            "{{\"type\":\"token_count\",\"info\":{{\"total_token_usage\":{{\"input_tokens\":{input},\
             \"cached_input_tokens\":0,\"output_tokens\":{output},\"reasoning_output_tokens\":{reasoning}}}}}}}"
        )
    };
    let meta =
        format!("{{\"id\":\"{id}\",\"timestamp\":\"2026-03-01T10:00:00.000Z\",\"cwd\":\"/srv/shop\"}}");
    let rollout = [
        line(0, "session_meta", &meta),
        line(1, "turn_context", "{\"turn_id\":\"n1\",\"cwd\":\"/srv/shop\",\"model\":\"gpt-5\"}"),
        line(2, "event_msg", &said("think about it")),
        line(3, "event_msg", &counted(1_000, 100, 60)),
        line(4, "event_msg", &said("and again")),
        // Sums of the whole conversation.
        line(5, "event_msg", &counted(1_500, 180, 110)),
    ];
    let place = format!("home/.codex/sessions/2026/03/01/rollout-2026-03-01T10-00-00-{id}.jsonl");
    env.write(&place, &rollout.concat());
    env.write("home/.claude/projects/-srv-shop/0199a213-7f3e-7c11-9d8a-5b6c7d8e9f01.jsonl", LINES);
    env.json(&["import"]);
    let cost = env.json(&["cost", "--everywhere", "--by", "agent"]);
    let of = |agent: &str| {
        let lines = cost["lines"].as_array().unwrap();
        lines.iter().find(|line| line["name"] == agent).unwrap()["tokens"].clone()
    };
    assert_eq!(of("codex"), serde_json::json!({ "input": 1_500, "output": 180, "reasoning": 110 }));
    assert_eq!(of("claude").get("reasoning"), None, "it does not say");
    // 1,500 of input and 180 of output at the prices of the list: nothing is paid twice.
    let codex = cost["lines"].as_array().unwrap().iter().find(|line| line["name"] == "codex").unwrap();
    assert_eq!(codex["micros"], 1_875 + 1_800);
    let said = env.ok(&["cost", "--everywhere", "--by", "agent"]).stdout;
    assert!(said.contains("of it thought") && said.contains("110"), "{said}");
    let csv = env.ok(&["cost", "--everywhere", "--by", "agent", "--csv"]).stdout;
    assert!(csv.lines().any(|line| line.starts_with("\"codex\"") && line.ends_with(",false,110")), "{csv}");
}

/// What an agent writes while somebody watches is there without another command.
#[test]
fn watching_follows() {
    let env = TestEnv::new();
    let place = "home/.claude/projects/-srv-shop/0199a213-7f3e-7c11-9d8a-5b6c7d8e9f00.jsonl";
    env.write(place, LINES);
    let mut command = env.command(SEGNO);
    let mut child = command
        .args(["import", "--watch", "--json"])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = std::io::BufReader::new(child.stdout.take().unwrap()).lines();
    let mut claude = || -> Value {
        let line: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        line["agents"][0].clone()
    };
    assert_eq!(claude()["new_sessions"], 1);
    let more = LINES.lines().nth(1).unwrap().replace("m-1", "m-2").replace("u-2", "u-3");
    env.write(place, &format!("{LINES}{more}\n"));
    assert_eq!(claude()["grown"], 1);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(totals(&env), (20, 14));
    assert_eq!(env.json(&["import"])["agents"][0]["events"], 0);
    let refused = env.run(&["import", "no-such-file.json", "--watch"]);
    assert_eq!(refused.code, 2, "{}", refused.stderr);
}
