//! `archive.native` and `segno rescue`, as somebody types them.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::Value;

use crate::common::TestEnv;

const ID: &str = "0199a213-7f3e-7c11-9d8a-5b6c7d8e9f00";

fn line(n: usize, text: &str) -> String {
    let parent = if n == 0 { "null".to_owned() } else { format!("\"u-{}\"", n - 1) };
    format!(
        "{{\"parentUuid\":{parent},\"isSidechain\":false,\"type\":\"user\",\"message\":{{\"role\":\"user\",\"content\":{text:?}}},\
         \"uuid\":\"u-{n}\",\"timestamp\":\"2026-03-01T10:00:{:02}.000Z\",\"cwd\":\"/srv/shop\",\"sessionId\":\"{ID}\",\
         \"version\":\"2.1.0\"}}\n",
        n % 60
    )
}

fn lines(upto: usize) -> String {
    (0..upto).map(|n| line(n, &format!("question {n} of bumblebeehoney"))).collect()
}

fn place(id: &str) -> String {
    format!("home/.claude/projects/-srv-shop/{id}.jsonl")
}

/// A world with one conversation that is kept.
fn kept() -> TestEnv {
    let env = TestEnv::new();
    env.ok(&["config", "set", "archive.native", "true"]);
    env.write(&place(ID), &lines(20));
    std::fs::set_permissions(env.path(&place(ID)), std::fs::Permissions::from_mode(0o640)).unwrap();
    let import = env.json(&["import", "claude"]);
    assert_eq!(import["agents"][0]["kept"], 1, "{import:#}");
    env
}

fn rescued(env: &TestEnv, args: &[&str]) -> Value {
    env.json(&[&["rescue"], args].concat())["transcripts"][0].clone()
}

/// The session that it became. Its project is elsewhere.
fn session(env: &TestEnv) -> String {
    let listed = env.json(&["ls", "--all", "--everywhere"]);
    listed["sessions"][0]["session_id"].as_str().unwrap().to_owned()
}

fn standing(env: &TestEnv) -> (String, bool) {
    let one = rescued(env, &["--all"]);
    (one["standing"].as_str().unwrap().to_owned(), one["done"].as_bool().unwrap())
}

fn frames(env: &TestEnv) -> Vec<std::path::PathBuf> {
    env.files().into_keys().filter(|path| path.extension().is_some_and(|end| end == "frames")).collect()
}

#[test]
fn what_was_deleted_is_put_back_as_it_was() {
    let env = kept();
    assert_eq!(standing(&env), ("whole".into(), false));
    let path = env.path(&place(ID));
    std::fs::remove_dir_all(path.parent().unwrap()).unwrap();
    let report = env.json(&["import", "--report"]);
    let claude = &report["report"][0];
    assert_eq!((&claude["kept"], &claude["kept_and_gone"]), (&1.into(), &1.into()), "{report:#}");
    let doctor = env.ok(&["doctor"]);
    assert!(doctor.stdout.contains("1 of those that it lacks can be put back"), "{}", doctor.stdout);

    let dry = rescued(&env, &["--all", "--dry-run"]);
    assert_eq!((&dry["standing"], &dry["done"]), (&"gone".into(), &false.into()), "{dry:#}");
    assert!(!path.exists());
    assert_eq!(standing(&env), ("gone".into(), true));
    assert_eq!(env.read(&place(ID)), lines(20));
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
    assert_eq!(standing(&env), ("whole".into(), false));
    // By its session, and by what the agent calls it.
    for name in [session(&env).as_str(), ID] {
        std::fs::remove_file(&path).unwrap();
        assert_eq!(rescued(&env, &[name])["done"], true);
        assert_eq!(env.read(&place(ID)), lines(20));
    }
    let usage = env.json(&["du"]);
    assert!(usage["transcripts"].as_u64().unwrap() > 0, "{usage:#}");
}

#[test]
fn what_was_torn_is_whole_again_and_what_was_there_is_beside() {
    let whole = lines(20);
    let cut = &whole[..whole.len() - 40];
    let mut hole = whole.clone().into_bytes();
    hole[1_000..1_400].fill(0);
    let mut grown = hole.clone();
    grown.extend_from_slice(line(20, "it went on").as_bytes());
    let glued = whole.replacen("\"}\n{", "\"}{", 3);
    let after = |more: &str| format!("{whole}{more}").into_bytes();
    let cases = [
        ("cut", cut.as_bytes().to_vec(), whole.clone().into_bytes()),
        ("hole", hole, whole.clone().into_bytes()),
        ("hole, and more behind it", grown, after(&line(20, "it went on"))),
        ("glued", glued.into_bytes(), whole.clone().into_bytes()),
        ("emptied", Vec::new(), whole.clone().into_bytes()),
    ];
    for (name, torn, expected) in cases {
        for import_between in [false, true] {
            let env = kept();
            std::fs::write(env.path(&place(ID)), &torn).unwrap();
            if import_between {
                env.json(&["import", "claude"]);
            }
            let one = rescued(&env, &["--all"]);
            let said = (one["standing"].as_str().unwrap(), one["done"].as_bool().unwrap());
            assert_eq!(said, ("torn", true), "{name} {import_between}: {one:#}");
            let found = std::fs::read(env.path(&place(ID))).unwrap();
            assert!(found == expected, "{name} {import_between}");
            let beside = format!("{}.before-rescue-1", place(ID));
            assert!(std::fs::read(env.path(&beside)).unwrap() == torn, "{name} {import_between}");
            assert_eq!(env.json(&["import", "--report"])["report"][0]["left"], 1, "it is no transcript");
        }
    }
}

#[test]
fn nothing_that_is_readable_is_replaced() {
    let env = kept();
    // Whole, and less: somebody may have wanted that.
    env.write(&place(ID), &lines(10));
    assert_eq!(standing(&env), ("shorter".into(), false));
    assert_eq!(env.read(&place(ID)), lines(10));
    // Longer.
    env.write(&place(ID), &lines(30));
    assert_eq!(standing(&env), ("whole".into(), false));
    // Another, and damaged: what is kept does not have all of it.
    let other = format!("{}{}\0\0\0", lines(10), line(77, "only here"));
    env.write(&place(ID), &other);
    assert_eq!(standing(&env), ("differs".into(), false));
    assert_eq!(rescued(&env, &[&session(&env)])["done"], false);
    assert_eq!(env.read(&place(ID)), other);
    // A link leads elsewhere.
    std::fs::remove_file(env.path(&place(ID))).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", env.path(&place(ID))).unwrap();
    let said = env.run(&["rescue", "--all"]);
    assert_ne!(said.code, 0, "{}", said.stdout);
    assert!(std::fs::symlink_metadata(env.path(&place(ID))).unwrap().is_symlink());
}

#[test]
fn whoever_has_it_open_is_at_work() {
    let env = kept();
    env.write(&place(ID), &lines(20)[..500]);
    let open = std::fs::File::open(env.path(&place(ID))).unwrap();
    assert_eq!(standing(&env), ("at_work".into(), false));
    drop(open);
    assert_eq!(standing(&env), ("torn".into(), true));
}

#[test]
fn it_is_private_and_goes_with_its_session() {
    let env = kept();
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let found = frames(&env);
    assert_eq!(found.len(), 1);
    let file = env.path("").join(&found[0]);
    assert_eq!((mode(&file), mode(file.parent().unwrap())), (0o600, 0o700));
    env.ok(&["rm", &session(&env), "--yes"]);
    assert!(frames(&env).is_empty());
    // What was removed is not kept again, nor taken in.
    let import = env.json(&["import", "claude"]);
    assert_eq!((&import["agents"][0]["kept"], frames(&env).len()), (&0.into(), 0), "{import:#}");
    env.write(&place(ID), &lines(21));
    env.json(&["import", "claude"]);
    assert!(frames(&env).is_empty());
    assert_eq!(env.run(&["rescue", "--all"]).code, 1);
}

#[test]
fn what_is_forgotten_is_kept_no_more() {
    for of_session in [false, true] {
        let env = kept();
        let id = session(&env);
        let args =
            if of_session { vec!["--session", &id, "forget", "--yes"] } else { vec!["forget", "--yes"] };
        let said = env.feed(&args, b"bumblebeehoney");
        assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
        env.write(&place(ID), &lines(25));
        env.json(&["import", "claude"]);
        let kept = std::fs::metadata(env.path("").join(&frames(&env)[0])).unwrap().len();
        assert!(kept < 500, "{kept} bytes: only what it is of");
        let again = env.feed(&["forget", "--dry-run", "--json"], b"bumblebeehoney");
        let found: Value = serde_json::from_slice(&again.stdout).unwrap();
        assert_eq!(found["found"]["transcripts"], Value::Array(Vec::new()), "{found:#}");
    }
}

#[test]
fn damage_is_told_and_healed_while_the_original_is_there() {
    let env = kept();
    let file = env.path("").join(&frames(&env)[0]);
    let mut bytes = std::fs::read(&file).unwrap();
    let last = bytes.len() - 10;
    bytes[last] ^= 1;
    std::fs::write(&file, &bytes).unwrap();
    let said = env.run(&["doctor"]);
    assert_eq!(said.code, 10, "{}", said.stdout);
    assert!(said.stdout.contains("frames: damaged"), "{}", said.stdout);
    // The original is still there: the next import that looks at it keeps it anew.
    let content = lines(21);
    env.write(&place(ID), &content);
    env.json(&["import", "claude"]);
    std::fs::remove_file(env.path(&place(ID))).unwrap();
    assert_eq!(rescued(&env, &["--all"])["done"], true);
    assert_eq!(env.read(&place(ID)), content);
}

#[test]
fn a_second_import_reads_nothing() {
    let env = kept();
    let index = env.files().into_keys().filter(|path| path.to_string_lossy().ends_with("segno.db.index"));
    assert_eq!(index.count(), 1);
    // Nobody could read it: it is not read.
    std::fs::set_permissions(env.path(&place(ID)), std::fs::Permissions::from_mode(0o000)).unwrap();
    let import = env.json(&["import", "claude"]);
    let claude = &import["agents"][0];
    assert_eq!((&claude["unchanged"], &claude["kept"]), (&1.into(), &0.into()), "{import:#}");
    assert_eq!(claude["notices"], Value::Array(Vec::new()), "{import:#}");
}

/// The name of a transcript of Gemini CLI has only the beginning of its id.
#[test]
fn what_is_left_is_not_taken_for_deleted() {
    let env = TestEnv::new();
    env.ok(&["config", "set", "archive.native", "true"]);
    let place = "home/.gemini/tmp/shop/chats/session-2026-03-01T10-00-0199a213.jsonl";
    let content = format!(
        "{{\"sessionId\":{ID:?},\"projectHash\":\"x\",\"startTime\":\"2026-03-01T10:00:00.000Z\",\"lastUpdated\":\"2026-03-01T10:00:00.000Z\",\"kind\":\"main\"}}\n\
         {{\"id\":\"m-1\",\"timestamp\":\"2026-03-01T10:00:01.000Z\",\"type\":\"user\",\"content\":[{{\"text\":\"drop redis\"}}]}}\n"
    );
    env.write(place, &content);
    env.json(&["import", "gemini"]);
    let gone = || env.json(&["import", "--report"])["report"][0]["kept_and_gone"].clone();
    assert_eq!(gone(), 0);
    // All of them are gone, and nothing else is left of the agent.
    std::fs::remove_dir_all(env.path("home/.gemini")).unwrap();
    assert_eq!(gone(), 1);
    assert_eq!(standing(&env), ("gone".into(), true));
    assert_eq!(env.read(place), content);
}
