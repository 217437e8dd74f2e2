//! `segno mcp`, spoken to line by line: what an agent does with its own session, and what becomes of it afterwards.

use std::io::BufRead as _;
use std::io::BufReader;
use std::io::Lines;
use std::io::Write as _;
use std::process::Child;
use std::process::ChildStdin;
use std::process::ChildStdout;
use std::process::Stdio;

use serde_json::Value;
use serde_json::json;

use crate::common::SEGNO;
use crate::common::TestEnv;

/// A client that knows what it sends.
struct Client {
    child: Child,
    input: Option<ChildStdin>,
    output: Lines<BufReader<ChildStdout>>,
    last: u64,
    /// What it says to a question of the server.
    answers: Value,
    /// What the server asked.
    questions: Vec<String>,
}

impl Client {
    fn start(env: &TestEnv, capabilities: Value) -> Self {
        let mut child = env
            .command(SEGNO)
            .arg("mcp")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut client = Self { child, input, output, last: 0, answers: Value::Null, questions: Vec::new() };
        let greeting = client.ask(
            "initialize",
            json!({
                "protocolVersion": "2025-11-25", "capabilities": capabilities,
                "clientInfo": { "name": "test", "version": "1" },
            }),
        );
        assert_eq!(greeting["result"]["protocolVersion"], "2025-11-25", "{greeting}");
        assert_eq!(greeting["result"]["serverInfo"]["name"], "segno", "{greeting}");
        client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        client
    }

    fn send(&mut self, message: &Value) {
        let input = self.input.as_mut().unwrap();
        writeln!(input, "{message}").unwrap();
        input.flush().unwrap();
    }

    fn hear(&mut self) -> Value {
        let line = self.output.next().unwrap().unwrap();
        serde_json::from_str(&line).unwrap_or_else(|_| panic!("no message: {line}"))
    }

    /// Asks, answers what the server asks meanwhile, and gives the answer.
    fn ask(&mut self, method: &str, params: Value) -> Value {
        self.last += 1;
        let id = self.last;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        loop {
            let heard = self.hear();
            match heard["method"].as_str() {
                Some("elicitation/create") => {
                    self.questions.push(heard["params"]["message"].as_str().unwrap().to_owned());
                    let result = self.answers.clone();
                    self.send(&json!({ "jsonrpc": "2.0", "id": heard["id"], "result": result }));
                }
                Some(other) => panic!("the server asks for {other}"),
                None if heard["id"] == id => return heard,
                None => panic!("an answer to something else: {heard}"),
            }
        }
    }

    fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.ask("tools/call", json!({ "name": tool, "arguments": arguments }))
    }

    /// Calls a tool that has to do what it was asked.
    fn ok(&mut self, tool: &str, arguments: Value) -> Value {
        let said = self.call(tool, arguments);
        assert_ne!(said["result"]["isError"], true, "{tool}: {said}");
        assert!(said["error"].is_null(), "{tool}: {said}");
        said["result"]["structuredContent"].clone()
    }

    /// Calls a tool that has to refuse, and gives its words.
    fn refused(&mut self, tool: &str, arguments: Value) -> String {
        let said = self.call(tool, arguments);
        assert_eq!(said["result"]["isError"], true, "{tool}: {said}");
        said["result"]["content"][0]["text"].as_str().unwrap().to_owned()
    }

    /// Goes away as clients do.
    fn leave(mut self) {
        drop(self.input.take());
        assert!(self.child.wait().unwrap().success());
    }

    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

fn status(env: &TestEnv, id: &str) -> Value {
    env.json(&["show", id])["session"].clone()
}

#[test]
fn an_initializer_and_a_worker_share_a_session() {
    let env = TestEnv::new();
    let mut first = Client::start(&env, json!({}));
    let made = first.ok("new", json!({ "topic": "shop", "intent": "it sells", "phases": ["RED", "GREEN"] }));
    let id = made["session_id"].as_str().unwrap().to_owned();
    assert_eq!((&made["status"], &made["phase"]), (&"active".into(), &"RED".into()), "{made}");
    first.ok("task", json!({ "add": "write the page" }));
    first.ok(
        "decide",
        json!({ "question": "db?", "choice": "sqlite", "because": "small", "alternatives": ["pg"] }),
    );
    first.ok("output", json!({ "name": "plan", "content": "@not a file" }));
    first.ok("tokens", json!({ "input": 1200, "output": 300 }));
    let paused = first.ok("pause", json!({ "reason": "context is full" }));
    assert_eq!(paused["status"], "paused", "{paused}");
    first.leave();
    assert_eq!(status(&env, &id)["status"], "paused");

    let mut second = Client::start(&env, json!({}));
    let resumed = second.ok("resume", json!({ "session": &id[id.len() - 6..] }));
    assert_eq!(resumed["session_id"], id.as_str(), "{resumed}");
    let brief = second.ok("brief", json!({}));
    assert!(brief.to_string().contains("write the page"), "{brief}");
    assert_eq!(second.ok("output", json!({ "name": "plan" }))["content"], "@not a file");
    second.ok("phase", json!({ "name": "GREEN", "verify": "pass", "details": "3 tests" }));
    second.ok("task", json!({ "done": 1 }));
    second.ok("metric", json!({ "name": "coverage", "value": 87.5 }));
    second.ok("milestone", json!({ "name": "page" }));
    second.ok("note", json!({ "text": "-looks like a flag" }));
    second.ok("error", json!({ "message": "refused", "kind": "network" }));
    second.ok("memory", json!({ "query": "how?", "result": "so" }));
    second.ok("progress", json!({ "percent": 80 }));
    env.write("project/page.html", "x");
    second.ok("artifact", json!({ "path": "page.html", "change": "created" }));
    let fits = second.ok("budget_check", json!({ "tokens": 1000 }));
    assert_eq!(fits["can_continue"], true, "{fits}");
    let does_not = second.ok("budget_check", json!({ "tokens": 99_000 }));
    assert_eq!(
        (&does_not["can_continue"], &does_not["tokens_remaining"]),
        (&Value::Null, &98_500.into()),
        "{does_not}"
    );
    let decisions = second.ok("show", json!({ "part": "decisions" }));
    assert_eq!(decisions["items"][0]["choice"], "sqlite", "{decisions}");
    let done = second.ok("complete", json!({ "summary": "sells" }));
    assert_eq!(done["status"], "completed", "{done}");
    second.leave();
    let end = env.json(&["state", &id]);
    assert_eq!((&end["status"], &end["phase"]), (&"completed".into(), &"GREEN".into()), "{end}");
    assert_eq!(
        (&end["budget"]["tokens_used"], &end["metrics"]["coverage"]),
        (&1500.into(), &87.5.into()),
        "{end}"
    );
}

#[test]
fn a_server_that_is_killed_is_noticed_and_one_that_is_left_pauses() {
    let env = TestEnv::new();
    let mut client = Client::start(&env, json!({}));
    let id = client.ok("new", json!({ "topic": "one" }))["session_id"].as_str().unwrap().to_owned();
    client.ok("note", json!({ "text": "half-way" }));
    assert_eq!(status(&env, &id)["status"], "active");
    client.kill();
    assert_eq!(status(&env, &id)["status"], "interrupted");

    let mut client = Client::start(&env, json!({}));
    client.ok("resume", json!({ "session": id }));
    client.leave();
    let left = status(&env, &id);
    assert_eq!((&left["status"], &left["reason"]["what"]), (&"paused".into(), &"run ended".into()), "{left}");
}

#[test]
fn who_holds_a_session_does_what_others_ask() {
    let env = TestEnv::new();
    let mut client = Client::start(&env, json!({}));
    let id = client.ok("new", json!({ "topic": "one" }))["session_id"].as_str().unwrap().to_owned();
    let said = env.ok(&["pause", &id]);
    assert!(said.stderr.contains("its driver was asked to pause"), "{}", said.stderr);
    // Whatever is called next comes after the answer.
    let seen = client.ok("status", json!({}));
    let seen = if seen["status"] == "active" { client.ok("status", json!({})) } else { seen };
    assert_eq!(seen["status"], "paused", "{seen}");
    client.leave();
}

#[test]
fn files_go_back_only_if_a_person_confirms() {
    let mut env = TestEnv::new();
    env.set("SEGNO_CHECKPOINT_FILES", "true");
    // Snapshots are made with git.
    env.set("PATH", "/usr/local/bin:/usr/bin:/bin");
    env.write("project/a.txt", "before");
    let mut mute = Client::start(&env, json!({}));
    mute.ok("new", json!({ "topic": "one" }));
    let kept = mute.ok("checkpoint", json!({ "name": "good" }));
    let checkpoint = kept["checkpoint"].as_str().unwrap().to_owned();
    env.write("project/a.txt", "after");
    let words = mute.refused("restore", json!({ "checkpoint": checkpoint }));
    assert!(words.contains(&format!("segno checkpoint restore {checkpoint}")), "{words}");
    assert_eq!(env.read("project/a.txt"), "after");
    mute.ok("pause", json!({}));
    mute.leave();

    let mut asked = Client::start(&env, json!({ "elicitation": {} }));
    asked.ok("resume", json!({}));
    for no in [json!({ "action": "decline" }), json!({ "action": "accept", "content": { "confirm": false } })]
    {
        asked.answers = no;
        let words = asked.refused("restore", json!({ "checkpoint": checkpoint }));
        assert_eq!(words, "the person did not confirm it; nothing was changed");
        assert_eq!(env.read("project/a.txt"), "after");
    }
    asked.answers = json!({ "action": "accept", "content": { "confirm": true } });
    let back = asked.ok("restore", json!({ "checkpoint": checkpoint }));
    assert_eq!(back["to"], checkpoint.as_str(), "{back}");
    assert_eq!(env.read("project/a.txt"), "before");
    asked.leave();
}

/// The status of a loop that works in the background, when it has come to its end.
fn ended(client: &mut Client, id: &str) -> Value {
    let begun = std::time::Instant::now();
    loop {
        let shown = client.ok("status", json!({ "session": id }));
        if shown["status"] != "active" {
            return shown;
        }
        assert!(begun.elapsed().as_secs() < 120, "{shown}");
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
}

#[test]
fn a_loop_begins_when_the_person_has_seen_its_commands() {
    let mut env = TestEnv::new();
    env.set("PATH", "/usr/local/bin:/usr/bin:/bin");
    let block = "---RALPH_STATUS---\\nSTATUS: COMPLETE\\nEXIT_SIGNAL: true\\n---END_RALPH_STATUS---\\n";
    env.write("tick", &format!("cat > /dev/null\necho made > made\nprintf 'I made it.\\n{block}'\n"));
    let script = env.path("tick").display().to_string();
    env.write(
        "config/segno/config.toml",
        &format!("[agents.tick]\ncommand = [\"sh\", {script:?}]\nprompt = \"stdin\"\nformat = \"text\"\n"),
    );
    let wanted =
        json!({ "prompt": "make it", "until": ["test -e made"], "agent": "tick", "max_iterations": 3 });
    let mut mute = Client::start(&env, json!({}));
    let words = mute.refused("loop", wanted.clone());
    let typed = "segno loop '--prompt=make it' '--until=test -e made' '--agent=tick' '--max-iterations=3'";
    assert!(words.ends_with(typed), "{words}");
    assert!(mute.refused("loop", json!({ "prompt": "x", "until": [] })).contains("until"));
    mute.leave();
    assert!(!env.path("project/made").exists());

    let mut asked = Client::start(&env, json!({ "elicitation": {} }));
    let own = asked.ok("new", json!({ "topic": "shop" }))["session_id"].as_str().unwrap().to_owned();
    asked.answers = json!({ "action": "decline" });
    let words = asked.refused("loop", wanted.clone());
    assert_eq!(words, "the person did not confirm it; nothing was changed");
    asked.answers = json!({ "action": "accept", "content": { "confirm": true } });
    let begun = asked.ok("loop", wanted);
    let id = begun["session_id"].as_str().unwrap().to_owned();
    assert_ne!(id, own, "it has a session of its own");
    let question = asked.questions.last().unwrap();
    assert!(question.contains("\n  test -e made\n") && question.contains("make it"), "{question}");
    let end = ended(&mut asked, &id);
    assert_eq!(end["status"], "completed", "{end}");
    assert_eq!(env.read("project/made"), "made\n");
    let state = env.json(&["show", &id])["state"].clone();
    assert_eq!(state["run"]["below"], own.as_str(), "it is a child of the session that asked: {state:#}");
    asked.leave();
}

#[test]
fn only_a_person_answers() {
    let env = TestEnv::new();
    let mut client = Client::start(&env, json!({}));
    let id = client.ok("new", json!({ "topic": "shop" }))["session_id"].as_str().unwrap().to_owned();
    client.ok("breakpoint", json!({ "name": "look at the plan" }));
    let waiting = env.json(&["answer"])["questions"].clone();
    let question = waiting[0]["id"].as_str().unwrap().to_owned();
    assert_eq!((&waiting[0]["kind"], &waiting[0]["session_id"]), (&"breakpoint".into(), &id.as_str().into()));
    assert_eq!(client.ok("answer", json!({}))["questions"], waiting);
    // Whoever started the server that holds the session may be its agent, and so may be whatever it starts.
    let said = env.run(&["answer", &question, "yes"]);
    assert_eq!(said.code, 5, "{}", said.stderr);
    assert!(said.stderr.contains("an agent cannot answer for you"), "{}", said.stderr);
    let words = client.refused("answer", json!({ "question": question, "answer": "yes" }));
    assert!(words.contains(&format!("segno answer {question}")), "{words}");
    client.leave();

    let mut asked = Client::start(&env, json!({ "elicitation": {} }));
    asked.ok("load", json!({ "session": id }));
    asked.answers = json!({ "action": "decline" });
    let answer = json!({ "question": question, "answer": "yes" });
    let words = asked.refused("answer", answer.clone());
    assert_eq!(words, "the person did not confirm it; nothing was changed");
    assert_eq!(env.json(&["answer"])["questions"], waiting);
    asked.answers = json!({ "action": "accept", "content": { "confirm": true } });
    asked.ok("answer", answer.clone());
    assert_eq!(env.json(&["answer"])["questions"], json!([]));
    let gone = asked.refused("answer", answer);
    assert!(gone.contains("no question"), "{gone}");
    asked.leave();

    // A person at a terminal of their own.
    env.ok(&["resume", &id, "--no-run"]);
    env.ok(&["breakpoint", "wait", "again"]);
    let next = env.json(&["answer"])["questions"][0]["id"].as_str().unwrap().to_owned();
    assert_ne!(next, question, "another breakpoint is another question");
    let no = env.run(&["answer", &next, "no"]);
    assert_eq!(no.code, 5, "{}", no.stderr);
    assert!(no.stderr.contains("segno abort"), "{}", no.stderr);
    let later = env.run(&["answer", &next, "later"]);
    assert_eq!(later.code, 2, "{}", later.stderr);
    assert!(later.stderr.contains("only yes is") && later.stderr.contains(" yes, later"), "{}", later.stderr);
    assert_eq!(env.json(&["breakpoint"])["breakpoint"]["name"], "again");
    env.ok(&["answer", &next, "yes,", "looks", "fine"]);
    assert!(env.ok(&["log", "--kind", "breakpoint_continued", "--json"]).stdout.contains("looks fine"));
    assert_eq!(env.json(&["breakpoint"])["breakpoint"], Value::Null);
}

#[test]
fn what_does_not_fit_is_refused_in_words() {
    let env = TestEnv::new();
    let mut client = Client::start(&env, json!({}));
    client.ok("new", json!({ "topic": "one" }));
    let wrong = [
        ("phase", json!({}), "missing field `name`"),
        ("note", json!({ "text": "x", "loud": true }), "unknown field `loud`"),
        ("progress", json!({ "percent": 101 }), "from 0 to 100"),
        ("task", json!({ "add": "x", "done": 1 }), "give one of add, done and drop"),
        ("show", json!({ "part": "secrets" }), "there is no list secrets"),
        ("artifact", json!({ "path": "a", "change": "eaten" }), "eaten is none of"),
        ("artifact", json!({ "path": "/etc/passwd", "change": "created" }), "outside of the project"),
        ("load", json!({ "session": "../../x" }), "a session is named by"),
        ("resume-loop", json!({}), "no loop"),
        ("pause-loop", json!({}), "no loop"),
    ];
    for (tool, arguments, part) in wrong {
        let words = client.refused(tool, arguments);
        assert!(words.contains(part), "{tool}: {words}");
    }
    let unknown = client.call("budget_extend", json!({ "tokens": 5 }));
    assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
    let again = client.refused("new", json!({ "topic": "two" }));
    assert!(again.contains("already"), "{again}");
    client.leave();
}

#[test]
fn the_list_of_tools_is_small_and_whole() {
    let env = TestEnv::new();
    let mut client = Client::start(&env, json!({}));
    let listed = client.ask("tools/list", json!({}))["result"]["tools"].clone();
    let names: Vec<&str> =
        listed.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    for wanted in [
        "new",
        "load",
        "pause",
        "resume",
        "complete",
        "abort",
        "status",
        "brief",
        "answer",
        "phase",
        "tokens",
        "budget_check",
        "decide",
        "artifact",
        "output",
        "metric",
        "milestone",
        "intent",
        "breakpoint",
        "note",
        "error",
        "memory",
        "task",
        "checkpoint",
        "list",
        "diff",
        "restore",
        "rollback",
        "run",
        "loop",
        "pause-loop",
        "resume-loop",
    ] {
        assert!(names.contains(&wanted), "{wanted} is missing in {names:?}");
    }
    // A model is sent this with every request: about four bytes to a token.
    let bytes = listed.to_string().len();
    assert!(bytes < 10_000, "{bytes} bytes are too many");
    client.leave();
}

#[test]
fn resources_and_prompts() {
    let env = TestEnv::new();
    let mut client = Client::start(&env, json!({}));
    let read = |client: &mut Client, uri: &str| -> Value {
        let said = client.ask("resources/read", json!({ "uri": uri }));
        let text =
            said["result"]["contents"][0]["text"].as_str().unwrap_or_else(|| panic!("{said}")).to_owned();
        serde_json::from_str(&text).unwrap()
    };
    assert_eq!(read(&mut client, "bp://dashboard/status")["status"], "idle");
    client.ok("new", json!({ "topic": "shop" }));
    assert_eq!(read(&mut client, "segno://session")["session"]["topic"], "shop");
    let sessions = read(&mut client, "segno://sessions");
    assert!(sessions.to_string().contains("\"topic\":\"shop\""), "{sessions}");
    let listed = client.ask("resources/list", json!({}))["result"]["resources"].clone();
    assert_eq!(listed.as_array().unwrap().len(), 10, "{listed}");
    let none = client.ask("resources/read", json!({ "uri": "segno://../x" }));
    assert_eq!(none["error"]["code"], -32002, "{none}");
    let prompt =
        client.ask("prompts/get", json!({ "name": "initializer", "arguments": { "task": "a shop" } }));
    let text = prompt["result"]["messages"][0]["content"]["text"].as_str().unwrap();
    assert!(text.contains("a shop") && text.contains("`pause`"), "{text}");
    client.leave();
}

/// What a client of tasks sends with each request.
fn with_tasks(mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {
            "extensions": { "io.modelcontextprotocol/tasks": {} },
        },
    });
    params
}

/// An agent that works until there is a file `go`, and then leaves one called `finished`.
fn with_agent_that_waits(env: &TestEnv) {
    env.write("waits", "until [ -e go ]; do sleep 0.02; done\necho done > finished\n");
    let script = env.path("waits").display().to_string();
    env.write(
        "config/segno/config.toml",
        &format!("[agents.waits]\ncommand = [\"sh\", {script:?}]\nprompt = \"none\"\nformat = \"text\"\n"),
    );
}

/// The status of a session when it is another one than this.
fn no_more(env: &TestEnv, id: &str, status: &str) -> Value {
    let begun = std::time::Instant::now();
    loop {
        let shown = self::status(env, id);
        if shown["status"] != status {
            return shown;
        }
        assert!(begun.elapsed().as_secs() < 120, "{shown}");
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
}

#[test]
fn a_task_works_until_it_is_over_and_only_who_began_it_stops_it() {
    let mut env = TestEnv::new();
    env.set("PATH", "/usr/local/bin:/usr/bin:/bin");
    with_agent_that_waits(&env);
    let mine = env.json(&["new", "mine"])["session_id"].as_str().unwrap().to_owned();
    std::fs::create_dir_all(env.path("other/.segno")).unwrap();
    let mut begin = env.command(SEGNO);
    let begun = begin.args(["new", "theirs", "--json"]).current_dir(env.path("other")).output().unwrap();
    let elsewhere: Value = serde_json::from_slice(&begun.stdout).unwrap();
    let elsewhere = elsewhere["session_id"].as_str().unwrap().to_owned();

    let mut client = Client::start(&env, json!({}));
    let run = json!({ "name": "run", "arguments": { "agent": "waits", "prompt": "x" } });
    let begun = client.ask("tools/call", with_tasks(run))["result"].clone();
    assert_eq!(begun["status"], "working", "{begun}");
    let task = begun["taskId"].as_str().unwrap().to_owned();
    let look =
        |client: &mut Client, task: &str| client.ask("tasks/get", with_tasks(json!({ "taskId": task })));
    let cancel =
        |client: &mut Client, task: &str| client.ask("tasks/cancel", with_tasks(json!({ "taskId": task })));
    assert_eq!(look(&mut client, &task)["result"]["status"], "working");
    assert_eq!(look(&mut client, &elsewhere)["error"]["code"], -32602, "of another project");
    for theirs in [&mine, &elsewhere] {
        let said = cancel(&mut client, theirs);
        let words = said["error"]["message"].as_str().unwrap_or_else(|| panic!("{said}"));
        assert!(words.contains("was not begun here"), "{words}");
        assert_eq!(status(&env, theirs)["status"], "active");
    }
    client.leave();
    // Another server did not begin it either.
    let mut other = Client::start(&env, json!({}));
    assert!(!cancel(&mut other, &task)["error"].is_null());
    assert_eq!(look(&mut other, &task)["result"]["status"], "working", "but it knows how far it is");
    other.ok("load", json!({ "session": mine }));
    let run = json!({ "name": "run", "arguments": { "agent": "waits", "prompt": "y" } });
    let begun = other.ask("tools/call", with_tasks(run))["result"].clone();
    let below = begun["taskId"].as_str().unwrap().to_owned();
    let said = cancel(&mut other, &below);
    assert!(said["error"].is_null(), "{said}");
    let end = no_more(&env, &below, "active");
    assert_eq!(end["status"], "paused", "{end}");
    assert!(end.to_string().contains("the client that began it cancelled its task"), "{end}");
    env.write("project/go", "");
    assert_eq!(no_more(&env, &task, "active")["status"], "completed");
    let over = look(&mut other, &task)["result"].clone();
    assert_eq!((&over["status"], &over["result"]["isError"]), (&"completed".into(), &false.into()), "{over}");
    other.leave();
}

#[test]
fn an_agent_does_not_pass_a_breakpoint() {
    let env = TestEnv::new();
    let mut client = Client::start(&env, json!({}));
    let id = client.ok("new", json!({ "topic": "shop" }))["session_id"].as_str().unwrap().to_owned();
    client.ok("breakpoint", json!({ "name": "look" }));
    for (tool, arguments) in
        [("resume", json!({})), ("complete", json!({})), ("resume", json!({ "session": id }))]
    {
        let words = client.refused(tool, arguments);
        assert!(!words.contains("segno breakpoint continue"), "{tool}: {words}");
        if tool == "resume" {
            assert!(words.contains("breakpoint look") && words.contains("segno answer"), "{tool}: {words}");
        }
        let now = status(&env, &id);
        assert_eq!((&now["status"], &now["open_questions"]), (&"paused".into(), &1.into()), "{now}");
    }
    // Nor by the command line.
    for words in [vec!["resume", &id, "--no-run"], vec!["complete", &id], vec!["breakpoint", "continue"]] {
        let said = env.run(&words);
        assert_eq!(said.code, 5, "{words:?}: {}", said.stderr);
    }
    client.leave();
    // A person who goes on has looked.
    env.ok(&["breakpoint", "continue"]);
    env.ok(&["resume", &id, "--no-run"]);
    env.ok(&["complete", &id]);
}

#[test]
fn what_a_run_began_outlives_it() {
    let mut env = TestEnv::new();
    env.set("PATH", "/usr/local/bin:/usr/bin:/bin");
    let line = |message: Value| format!("printf '%s\\n' '{message}' >&3\n");
    let greeting = json!({
        "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" },
        },
    });
    let begin = json!({
        "jsonrpc": "2.0", "id": 2, "method": "tools/call",
        "params": { "name": "run", "arguments": { "agent": "waits", "prompt": "long" } },
    });
    with_agent_that_waits(&env);
    let (said, asked) = (env.path("said").display().to_string(), env.path("asked").display().to_string());
    let caller = format!(
        "mkfifo {asked}\n{SEGNO} mcp < {asked} > {said} &\nexec 3> {asked}\n{}{}{}until grep -q '\"id\":2' {said}; do sleep \
         0.02; done\n",
        line(greeting),
        line(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })),
        line(begin)
    );
    env.write("caller", &caller);
    let script = env.path("caller").display().to_string();
    let mut config = env.read("config/segno/config.toml");
    config.push_str(&format!(
        "[agents.caller]\ncommand = [\"sh\", {script:?}]\nprompt = \"none\"\nformat = \"text\"\n"
    ));
    env.write("config/segno/config.toml", &config);
    let above = env.run(&["run", "--agent", "caller", "--prompt", "x", "--json"]);
    assert_eq!(above.code, 0, "{} {}", above.stdout, above.stderr);
    let answer: Value = serde_json::from_str(env.read("said").lines().last().unwrap()).unwrap();
    let child = answer["result"]["structuredContent"]["session_id"].as_str().unwrap().to_owned();
    assert_eq!(status(&env, &child)["status"], "active");
    env.write("project/go", "");
    let end = no_more(&env, &child, "active");
    assert_eq!(end["status"], "completed", "{end}");
    assert_eq!(env.read("project/finished"), "done\n");
}
