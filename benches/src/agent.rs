//! What running agents costs: a hook, taking in what an agent prints, and a real run beside a bare one.

use std::io::Write;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;
use std::process::Stdio;
use std::time::Duration;
use std::time::Instant;

use segno_benches::Times;
use segno_benches::add_session;
use segno_benches::attach;
use segno_benches::detach;
use segno_benches::end_calls;
use segno_benches::fail;
use segno_benches::fill;
use segno_benches::open;
use segno_engine::Actor;
use segno_engine::Engine;
use segno_engine::EngineOptions;
use segno_engine::run::hook_server;
use segno_engine::run::hook_server::HookServer;
use segno_engine::run::hook_server::RunIdentity;
use segno_store::Store;
use segno_testkit::home::Home;
use segno_testkit::model::Model;
use segno_testkit::model::Op;
use segno_testkit::model::Script;
use segno_testkit::model::Then;
use segno_testkit::model::Turn;
use segno_testkit::recipe;

use crate::Bench;
use crate::ok;
use crate::ratio;

/// How often each hook takes turns with its floor.
const HOOKS: usize = 200;
/// How many hooks run at once.
const AT_ONCE: [usize; 3] = [1, 8, 32];
/// How many pairs of real runs there are.
const PAIRS: usize = 30;
/// How much an agent prints, in bytes.
const STREAM: usize = 200 << 20;

/// How long what hooks bring is.
pub(crate) const PAYLOADS: [(&str, usize); 2] = [("2 KB", 2_000), ("200 KB", 200_000)];

/// How many rounds warm the caches up.
const WARM: usize = 10;
/// The conversation of an agent that was started by hand.
const WATCHED: &str = "5f0c0f0e-7c00-4000-8000-00805f9b34fb";

/// What a hook is called with.
#[derive(Clone)]
struct Hook {
    session: String,
    file: PathBuf,
    door: Option<PathBuf>,
}

impl Bench {
    /// `segno hook` on a store of a million events, against a C program that appends the same bytes.
    pub(crate) fn hooks(&self) {
        println!("\nsegno hook on a store of 1,000,000 events, {HOOKS} rounds");
        let project = self.project("hooks");
        let path = self.home.join("hooks.db");
        let session =
            ok(open(&path).and_then(|store| add_session(&store, &project.display().to_string(), 0)));
        ok(fill(&path, session, 1_000_000));
        let spool = self.home.join("hook-spool");
        let file = hook_file(&self.home, &path, &spool);
        let hook = Hook { session: session.to_string(), file, door: None };
        {
            // As in a run: its driver has the store open, looks after it, and hears hooks at its door.
            let driver = Engine::new(Box::new(ok(attach(&path, session))), EngineOptions::default());
            let beside = ok(open(&path));
            let end = |calls: &[String]| ok(end_calls(&beside, session, calls));
            let door = HookServer::open(&self.home).unwrap_or_else(|| fail("no door"));
            std::thread::scope(|scope| {
                let actor = Actor { run: Some("bench".to_owned()), ..Actor::default() };
                let _porter = door.serve(scope, &driver, RunIdentity { session, actor });
                let hook = Hook { door: Some(self.home.join(hook_server::NAME)), ..hook.clone() };
                for (name, size) in PAYLOADS {
                    for at_once in AT_ONCE {
                        self.hook(&project, &hook, (name, size), at_once, &end);
                    }
                }
            });
            println!("  straight to the store, as when the driver does not answer");
            self.hook(&project, &hook, PAYLOADS[0], 1, &end);
        }
        ok(detach(&path, session));
        // As whoever drove it does in the end.
        ok(open(&path).and_then(|store| store.maintain()));
        println!("  without a driver: each process opens the store alone");
        let end = |calls: &[String]| ok(open(&path).and_then(|store| end_calls(&store, session, calls)));
        self.hook(&project, &hook, PAYLOADS[0], 1, &end);
        self.watched_hooks(&project, &path);
        self.node();
        let watched = self.home.join(".local/state/segno/spool");
        let spooled: usize =
            [&spool, &watched].iter().map(|dir| std::fs::read_dir(dir).map_or(0, Iterator::count)).sum();
        println!("  spooled because the store was busy: {spooled}");
    }

    /// The hooks of `segno init`, called by an agent that nobody here started: this process.
    fn watched_hooks(&self, project: &Path, store: &Path) {
        println!("  started by hand (segno hook --watch): nobody has the store open");
        for payload in PAYLOADS {
            for at_once in AT_ONCE {
                self.watched_hook(project, store, payload, at_once);
            }
        }
    }

    /// One kind of them.
    pub(crate) fn watched_hook(
        &self,
        project: &Path,
        store: &Path,
        payload: (&str, usize),
        at_once: usize,
    ) -> (Times, Times) {
        let url = format!("sqlite:{}", store.display());
        let command = || {
            let mut command = self.segno(project, &["hook", "--watch", "claude"]);
            command.env("SEGNO_STORE", &url);
            command
        };
        let told = |event: &str, more: serde_json::Value| {
            let mut payload =
                serde_json::json!({ "session_id": WATCHED, "cwd": project, "hook_event_name": event });
            if let (Some(all), serde_json::Value::Object(more)) = (payload.as_object_mut(), more) {
                all.extend(more);
            }
            together(1, &mut command.clone(), |_| payload.to_string().into_bytes());
        };
        told("SessionStart", serde_json::json!({ "source": "startup" }));
        told("UserPromptSubmit", serde_json::json!({ "prompt": "go" }));
        let end = |calls: &[String]| {
            for call in calls {
                let more = serde_json::json!({
                    "tool_name": "Write", "tool_use_id": call, "tool_input": {}, "tool_response": "done",
                });
                told("PostToolUse", more);
            }
        };
        self.beside_floor(payload, at_once, &command, &end)
    }

    /// What a hook in JavaScript would take at least.
    fn node(&self) {
        match node() {
            Some(times) => println!("  node -e 0, beside                 {}", times.line()),
            None => println!("  node is not installed"),
        }
    }

    /// Calls that were begun are ended by `end`, not measured: a session with hundreds of open calls is none of ours.
    fn hook(
        &self,
        project: &Path,
        hook: &Hook,
        payload: (&str, usize),
        at_once: usize,
        end: &dyn Fn(&[String]),
    ) {
        let hooked = || {
            let mut command = self.segno(project, &["hook", "claude"]);
            command.env("SEGNO_SESSION", &hook.session).env("SEGNO_RUN", "bench");
            command.env("SEGNO_HOOK", &hook.file);
            command.envs(hook.door.iter().map(|door| (hook_server::VARIABLE, door)));
            command
        };
        let _ = self.beside_floor(payload, at_once, &hooked, end);
    }

    /// One kind of hook, taking turns with its floor: what each of them took.
    fn beside_floor(
        &self,
        (name, size): (&str, usize),
        at_once: usize,
        hooked: &dyn Fn() -> Command,
        end: &dyn Fn(&[String]),
    ) -> (Times, Times) {
        let (mut ours, mut floors) = (Times::default(), Times::default());
        let log = self.home.join("hook-floor.log");
        for round in 0..HOOKS / at_once.min(8) + WARM {
            let call = format!("{}-{round}", self.fresh());
            let payload = payload(&call, size);
            let mut floor = || {
                let mut command = Command::new(&self.floor);
                command.arg(&log).arg("-");
                command
            };
            let floor = together(at_once, &mut floor, |index| numbered(&payload, index));
            let taken = together(at_once, &mut || hooked(), |index| numbered(&payload, index));
            if round >= WARM {
                floor.into_iter().for_each(|time| floors.push(time));
                taken.into_iter().for_each(|time| ours.push(time));
            }
            let calls: Vec<String> = (0..at_once).map(|index| format!("toolu_{call}_{index}")).collect();
            end(&calls);
        }
        println!("  {name:>6}, {at_once} at once: C floor    {}", floors.line());
        println!("  {name:>6}, {at_once} at once: segno hook {}", ours.line());
        ratio("    hook / C floor", ours.median().as_secs_f64() / floors.median().as_secs_f64(), 2.0);
        let aim = if at_once > 8 { 50 } else { 10 };
        println!("    p99 {:.1} ms (aim: at most {aim} ms)", ours.at(0.99).as_secs_f64() * 1e3);
        (ours, floors)
    }

    /// Everything a long run prints, recorded by segno, against a program that only parses each line and inserts it.
    pub(crate) fn ingest(&self) {
        println!("\ningest of {} MB that an agent prints", STREAM >> 20);
        let project = self.project("ingest");
        let stream = self.home.join("stream.jsonl");
        let lines = write_stream(&stream);
        let replay = self.home.join("replay");
        let script = format!("#!/bin/sh\ncat > /dev/null\nexec cat '{}'\n", stream.display());
        std::fs::write(&replay, script).unwrap_or_else(|why| fail(&why.to_string()));
        make_executable(&replay);
        let agents = format!("[claude]\nprogram = \"{}\"", replay.display());
        let (mut ours, mut peers) = (Times::default(), Times::default());
        for round in 0..3 {
            let store = format!("sqlite:{}", self.home.join(format!("ingest-{round}.db")).display());
            let started = Instant::now();
            let mut command =
                self.segno(&project, &["--store", &store, "--quiet", "run", "--prompt", "x", "--no-hooks"]);
            let output = command.env("SEGNO_AGENTS", &agents).stdin(Stdio::null()).output();
            let output = output.unwrap_or_else(|why| fail(&why.to_string()));
            ours.push(started.elapsed());
            if !output.status.success() {
                return fail(&String::from_utf8_lossy(&output.stderr));
            }
            let started = Instant::now();
            peer(&stream, &self.home.join(format!("peer-{round}.db")));
            peers.push(started.elapsed());
        }
        let speed = |times: &Times| STREAM as f64 / 1e6 / times.median().as_secs_f64();
        println!("  {lines} lines");
        println!("  parse and insert only     {:6.1} MB/s", speed(&peers));
        println!("  segno run                 {:6.1} MB/s", speed(&ours));
        println!("  segno / parse and insert: {:.2} (aim: at least 0.6)", speed(&ours) / speed(&peers));
    }

    /// A real Claude Code under segno and bare, taking turns.
    pub(crate) fn real(&self) {
        println!("\nClaude Code under segno and bare, {PAIRS} pairs");
        let Some(program) = segno_testkit::agents::find_or_skip("claude") else { return };
        let home = Home::new().unwrap_or_else(|why| fail(&why.to_string()));
        let turns =
            [Turn::ops([Op::sh("echo one")]), Turn::ops([Op::write("a.txt", "x\n")]), Turn::text("done")];
        let script = Script { then: Then::Loop, ..Script::new(turns) };
        let model = Model::start(script).unwrap_or_else(|why| fail(&why.to_string()));
        let recipe = recipe::claude(&program, &home, &model, recipe::Patience::default());
        recipe.install().unwrap_or_else(|why| fail(&why.to_string()));
        let (mut ours, mut bare) = (Times::default(), Times::default());
        for round in 0..PAIRS + 2 {
            let arguments = ["-p", "--output-format", "stream-json", "--verbose"];
            let alone = prompted(recipe.command(arguments));
            let mut command = Command::new(&self.segno);
            command.args(["--quiet", "run", "--prompt", "work"]);
            command.env_clear().envs(&recipe.env).current_dir(&recipe.cwd);
            command.env("SEGNO_AGENTS", format!("[claude]\nprogram = \"{}\"", program.display()));
            let under = prompted(command);
            if round >= 2 {
                bare.push(alone);
                ours.push(under);
            }
        }
        println!("  bare                      {}", bare.line());
        println!("  under segno               {}", ours.line());
        ratio("  under segno / bare", ours.median().as_secs_f64() / bare.median().as_secs_f64(), 1.03);
    }
}

/// How long Node.js takes to do nothing; none if it is not here.
pub(crate) fn node() -> Option<Times> {
    let mut times = Times::default();
    for _ in 0..40 {
        let started = Instant::now();
        let ended = Command::new("node").args(["-e", "0"]).stdin(Stdio::null()).status();
        if !ended.is_ok_and(|status| status.success()) {
            return None;
        }
        times.push(started.elapsed());
    }
    Some(times)
}

/// What a driver writes down for the hooks of its run.
pub(crate) fn hook_file(home: &Path, store: &Path, spool: &Path) -> PathBuf {
    let file = home.join("hook.json");
    let content = serde_json::json!({
        "store": store, "spool": spool, "tag_key": vec![7; 32], "secrets_of_environment": true, "rules": [],
    });
    std::fs::write(&file, content.to_string()).unwrap_or_else(|why| fail(&why.to_string()));
    file
}

/// A payload as Claude Code sends it before a call.
pub(crate) fn payload(round: &str, size: usize) -> String {
    let text: String =
        "let total = items.iter().map(|item| item.price).sum();\n".chars().cycle().take(size).collect();
    let call = format!("toolu_{round}_");
    serde_json::json!({
        "session_id": WATCHED, "transcript_path": "t.jsonl",
        "permission_mode": "default", "hook_event_name": "PreToolUse", "tool_name": "Write",
        "tool_input": { "file_path": "a.rs", "content": text }, "tool_use_id": call,
    })
    .to_string()
}

/// Calls that happen at once have ids of their own.
fn numbered(payload: &str, index: usize) -> Vec<u8> {
    payload.replace("_\"", &format!("_{index}\"")).into_bytes()
}

/// Starts several processes at once, each with its input, and says how long each took.
fn together(
    count: usize,
    command: &mut dyn FnMut() -> Command,
    input: impl Fn(usize) -> Vec<u8>,
) -> Vec<Duration> {
    let mut threads = Vec::new();
    for index in 0..count {
        let mut command = command();
        let input = input(index);
        threads.push(std::thread::spawn(move || {
            command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
            let started = Instant::now();
            let mut child = command.spawn().unwrap_or_else(|why| fail(&why.to_string()));
            if let Some(mut stdin) = child.stdin.take() {
                let _ = stdin.write_all(&input);
            }
            let status = child.wait().unwrap_or_else(|why| fail(&why.to_string()));
            let taken = started.elapsed();
            if status.success() { taken } else { fail("a hook failed") }
        }));
    }
    threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| fail("a hook failed"))).collect()
}

fn prompted(mut command: Command) -> Duration {
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let started = Instant::now();
    let mut child = command.spawn().unwrap_or_else(|why| fail(&why.to_string()));
    if let Some(mut stdin) = child.stdin.take() {
        let _ = stdin.write_all(b"work");
    }
    let status = child.wait().unwrap_or_else(|why| fail(&why.to_string()));
    let taken = started.elapsed();
    if status.success() { taken } else { fail(&format!("{command:?} ended with {status}")) }
}

/// Lines as Claude Code prints them: text, calls and their results, of sizes as they come.
fn write_stream(path: &Path) -> usize {
    let file = std::fs::File::create(path).unwrap_or_else(|why| fail(&why.to_string()));
    let mut out = std::io::BufWriter::new(file);
    let session = "5f0c0f0e-7c00-4000-8000-00805f9b34fb";
    let (mut written, mut lines) = (0, 0);
    let mut put = |value: serde_json::Value| {
        let line = format!("{value}\n");
        out.write_all(line.as_bytes()).unwrap_or_else(|why| fail(&why.to_string()));
        written += line.len();
        lines += 1;
        written
    };
    put(serde_json::json!({
        "type": "system", "subtype": "init", "session_id": session, "model": "claude-opus-5-5", "cwd": "/tmp",
        "tools": ["Bash", "Write"], "claude_code_version": "2.1.325", "uuid": "u-0",
    }));
    let code = "    let total: u64 = items.iter().map(|item| item.price * item.count).sum();\n";
    for index in 0.. {
        let call = format!("toolu_{index:08}");
        let usage =
            serde_json::json!({ "input_tokens": 4, "output_tokens": 1, "cache_read_input_tokens": 900 });
        put(serde_json::json!({
            "type": "assistant", "session_id": session, "uuid": format!("a-{index}"), "parent_tool_use_id": null,
            "message": { "id": format!("msg_{index}"), "model": "claude-opus-5-5", "usage": usage, "content": [
                { "type": "text", "text": "I will look at the next part of the program and then change it.".repeat(1 + index % 3) },
            ] },
        }));
        put(serde_json::json!({
            "type": "assistant", "session_id": session, "uuid": format!("b-{index}"), "parent_tool_use_id": null,
            "message": { "id": format!("msg_{index}"), "model": "claude-opus-5-5", "usage": usage, "content": [
                { "type": "tool_use", "id": call, "name": "Bash", "input": { "command": format!("sed -n {index},+40p src/shop.rs") } },
            ] },
        }));
        let size = [300, 1_200, 400, 6_000][index % 4];
        let output: String = code.chars().cycle().take(size).collect();
        let far = put(serde_json::json!({
            "type": "user", "session_id": session, "uuid": format!("c-{index}"), "parent_tool_use_id": null,
            "message": { "role": "user", "content": [
                { "type": "tool_result", "tool_use_id": call, "content": output, "is_error": false },
            ] },
        }));
        if far >= STREAM {
            break;
        }
    }
    put(serde_json::json!({
        "type": "result", "subtype": "success", "is_error": false, "num_turns": 9, "result": "done",
        "session_id": session, "duration_ms": 5, "total_cost_usd": 0.1, "uuid": "r-0",
    }));
    lines
}

/// The least that has to be done: each line parsed, and inserted in transactions of the same size.
fn peer(stream: &Path, database: &Path) {
    let run = || -> Result<(), Box<dyn std::error::Error>> {
        let mut connection = rusqlite::Connection::open(database)?;
        connection.execute_batch(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
             CREATE TABLE events (id INTEGER PRIMARY KEY, kind TEXT, body TEXT);",
        )?;
        let mut file = std::fs::File::open(stream)?;
        let mut buffer = vec![0; 256 * 1024];
        let mut rest: Vec<u8> = Vec::new();
        loop {
            let count = std::io::Read::read(&mut file, &mut buffer)?;
            if count == 0 {
                return Ok(());
            }
            rest.extend_from_slice(&buffer[..count]);
            let end = rest.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
            let transaction = connection.transaction()?;
            {
                let mut insert =
                    transaction.prepare_cached("INSERT INTO events (kind, body) VALUES (?1, ?2)")?;
                for line in rest[..end].split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
                    let value: serde_json::Value = serde_json::from_slice(line)?;
                    let kind = value.get("type").and_then(serde_json::Value::as_str).unwrap_or("");
                    insert.execute((kind, std::str::from_utf8(line)?))?;
                }
            }
            transaction.commit()?;
            rest.drain(..end);
        }
    };
    run().unwrap_or_else(|why| fail(&why.to_string()));
}

pub(crate) fn make_executable(path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(path, mode).unwrap_or_else(|why| fail(&why.to_string()));
}
