//! Sessions as files: out, in again elsewhere, and files that are not what they say.

use std::fs;
use std::io::Write as _;
use std::time::Duration;
use std::time::Instant;

use crate::common::TestEnv;
use crate::common::another_uid;
use crate::day;

fn text(path: &std::path::Path) -> String {
    path.to_str().unwrap().to_owned()
}

#[test]
fn out_and_in_again() {
    let from = TestEnv::new();
    day::work(&from);
    let large = "the same line again and again\n".repeat(10_000);
    assert!(from.feed(&["output", "set", "large", "-"], large.as_bytes()).status.success());
    let id = from.json(&["show"])["session"]["session_id"].as_str().unwrap().to_owned();
    let printed = from.raw(&["export"]).stdout;
    for name in ["a.json", "b.json.gz", "c.json.zst", "d.yaml", "e.yaml.gz", "f.md", "g.yml.zst"] {
        let said = from.ok(&["export", &id, "-o", name]);
        assert!(said.stdout.is_empty() && said.stderr.starts_with("exported …tail_1 to "), "{}", said.stderr);
    }
    let document: serde_json::Value = serde_json::from_slice(&printed).unwrap();
    let file: serde_json::Value = serde_json::from_str(&from.read("project/a.json")).unwrap();
    for part in ["segno_export", "session", "lists", "events"] {
        assert_eq!(document[part], file[part], "{part}");
    }
    assert!(from.read("project/f.md").starts_with("# login form\n"));
    assert_eq!(from.raw(&["export", "--format", "yaml"]).stdout, from.read("project/d.yaml").as_bytes());
    assert!(fs::metadata(from.path("project/c.json.zst")).unwrap().len() * 4 < printed.len() as u64);

    let before = from.json(&["show"]);
    for name in ["a.json", "b.json.gz", "c.json.zst", "d.yaml", "e.yaml.gz", "g.yml.zst"] {
        let to = TestEnv::new();
        let taken = to.json(&["import", &text(&from.path("project").join(name))]);
        assert_eq!(taken["imported"], serde_json::json!([id]), "{name}");
        let after = to.json(&["show", &id]);
        for field in [
            "uid",
            "topic",
            "status",
            "phase",
            "progress",
            "tokens_used",
            "cost_micros",
            "open_tasks",
            "agent",
        ] {
            assert_eq!(after["session"][field], before["session"][field], "{name}: {field}");
        }
        for list in
            ["--decisions", "--tasks", "--artifacts", "--files", "--errors", "--milestones", "--outputs"]
        {
            let total = |env: &TestEnv| env.json(&["show", &id, list])["total"].clone();
            assert_eq!(total(&to), total(&from), "{name}: {list}");
        }
        // A view is a picture; an export is everything.
        if name.contains("json") {
            assert!(
                to.raw(&["output", "get", "large", "--session", &id]).stdout == large.as_bytes(),
                "{name}"
            );
        }
        assert_eq!(
            after["state"]["project"]["path"],
            text(&to.path("project")),
            "it belongs to this project now"
        );
        to.ok(&["note", "it goes on here", "--session", &id]);
        to.ok(&["complete", &id]);
        assert_eq!(to.run(&["doctor"]).code, 0);
    }
}

#[test]
fn what_import_says() {
    let from = TestEnv::new();
    let id = from.start(&["first", "--budget", "5m", "--cost", "100"]);
    from.ok(&["tokens", "10"]);
    from.ok(&["export", "-o", "a.json"]);
    from.ok(&["complete"]);
    from.ok(&["export", &id, "-o", "ended.json"]);
    let file = text(&from.path("project/a.json"));

    let to = TestEnv::new();
    to.normalise(&id);
    let normal = |shown: String| shown.replace(&text(&from.path("")), "$FROM/");
    let first =
        to.show_all(&[&["import", &file], &["budget"], &["import", &file], &["import", &file, "--json"]]);
    // The same name, but another session.
    let uid = from.json(&["show", &id])["session"]["uid"].as_str().unwrap().to_owned();
    let other = from.read("project/a.json").replace(&uid, &another_uid(&uid, 1));
    to.write("other.json", &other.replace("\"first\"", "\"second\""));
    let clash = to.show_all(&[&["import", "../other.json"], &["ls"]]);

    let keeping = TestEnv::new();
    keeping.normalise(&id);
    let kept = keeping
        .show_all(&[&["import", &file, "--keep-budget", "--keep-project"], &["budget", "--session", &id]]);
    assert_eq!(
        keeping.json(&["show", &id])["state"]["project"]["path"],
        text(&from.path("project")),
        "--keep-project"
    );
    insta::assert_snapshot!("transfer_import", normal([first, clash, kept].join("\n")));
}

#[test]
fn files_that_cannot_be_taken_in() {
    let env = TestEnv::new();
    env.start(&["whole"]);
    env.ok(&["export", "-o", "whole.json"]);
    env.ok(&["export", "-o", "whole.json.zst"]);
    env.ok(&["complete"]);
    let whole = env.read("project/whole.json");
    let packed = fs::read(env.path("project/whole.json.zst")).unwrap();
    env.write("project/half.json", &whole[..whole.len() / 2]);
    fs::write(env.path("project/half.zst"), &packed[..packed.len() / 2]).unwrap();
    env.write("project/words.txt", "this is no session at all");
    env.write("project/empty", "");
    env.write("project/list.json", "[1, 2]");
    env.write("project/other.json", "{\"segno_export\": 99, \"session\": {}, \"lists\": {}}");
    env.write("project/newer.json", &whole.replacen("\"segno_export\":1", "\"segno_export\":2", 1));
    env.write("project/deep.json", &format!("{{\"segno_export\":1,\"session\":{}", "[".repeat(200_000)));
    env.write("project/laughs.yaml", &laughs());
    fs::write(env.path("project/binary"), [0xff, 0x00, 0xfe]).unwrap();
    let before = env.files();
    let mut all = Vec::new();
    for name in [
        "none.json",
        ".",
        "/dev/null",
        "half.json",
        "half.zst",
        "words.txt",
        "empty",
        "list.json",
        "other.json",
        "newer.json",
        "deep.json",
        "laughs.yaml",
        "binary",
    ] {
        let start = Instant::now();
        let said = env.run(&["import", name]);
        assert!(start.elapsed() < Duration::from_secs(10), "{name} took {:?}", start.elapsed());
        assert_ne!(said.code, 0, "{name}");
        assert!(said.stdout.is_empty(), "{name}");
        assert!(said.stderr.len() < 2_000, "{name}: {}", said.stderr);
        all.push(format!("{name}: exit code {}\n{}", said.code, said.stderr));
    }
    // Where a file is cut in half depends on the length of the paths in it.
    insta::with_settings!({filters => [(r"column \d+", "column [n]"), (r"parsing an? \w+ at", "parsing at")]}, {
        insta::assert_snapshot!("transfer_damaged", all.join("\n"));
    });
    assert_eq!(env.json(&["ls", "--all"])["total"], 1);
    let after = env.files();
    for (path, content) in before.iter().filter(|(path, _)| path.starts_with(env.path("project"))) {
        assert!(after.get(path) == Some(content), "{} was changed", path.display());
    }
}

/// Names that stand for lists of names that stand for lists.
fn laughs() -> String {
    let mut text = String::from("a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol]\n");
    for n in 1..12 {
        let below = format!("*a{}", n - 1);
        text += &format!("a{n}: &a{n} [{}]\n", [below.as_str(); 9].join(", "));
    }
    text
}

/// A third of a megabyte that unpacks to ten gigabytes; and gzip, which cannot grow as much, full of nothing.
#[test]
fn bombs_are_refused_quickly() {
    let env = TestEnv::new();
    let mut bomb = vec![0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x38];
    let blocks = (10_u64 << 30) / (128 << 10);
    for block in 1..=blocks {
        // A block that repeats one byte: last or not, its kind, its length.
        let header = u32::from(block == blocks) | 1 << 1 | (128 << 10) << 3;
        bomb.extend_from_slice(&header.to_le_bytes()[..3]);
        bomb.push(b' ');
    }
    fs::write(env.path("bomb.zst"), &bomb).unwrap();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    for _ in 0..(16 << 4) {
        gzip.write_all(&[b' '; 1 << 16]).unwrap();
    }
    fs::write(env.path("bomb.gz"), gzip.finish().unwrap()).unwrap();
    for name in ["bomb.zst", "bomb.gz"] {
        let start = Instant::now();
        // Half a gigabyte of memory must be more than enough to find out.
        let said = env.shell(&format!("ulimit -v 1000000; $SEGNO import ../{name}"));
        let took = start.elapsed();
        assert_eq!(said.code, 10, "{}", said.stderr);
        let why = if name.ends_with("zst") { "it unpacks to more than" } else { "the file is empty" };
        assert!(said.stderr.contains(why), "{}", said.stderr);
        assert!(took < Duration::from_secs(15), "{name} took {took:?}");
    }
}

#[test]
fn a_closed_pipe_is_no_failure() {
    let env = TestEnv::new();
    env.start(&["piped"]);
    let text = "some line\n".repeat(100_000);
    assert!(env.feed(&["output", "set", "large", "-"], text.as_bytes()).status.success());
    for command in ["export", "output get large", "log --json"] {
        let said = env.shell(&format!("{{ sleep 0.1; $SEGNO {command}; echo $? >&2; }} | true"));
        assert_eq!(said.stderr, "0\n", "{command}");
    }
}

#[test]
fn where_an_export_cannot_go() {
    let env = TestEnv::new();
    env.start(&["x"]);
    env.write("project/there.json", "mine");
    insta::assert_snapshot!(
        "transfer_places",
        env.show_all(&[
            &["export", "-o", "none/x.json"],
            &["export", "-o", "."],
            &["export", "last", "--format", "xml"]
        ])
    );
}
