//! Claude Code asks whether its calls may run: a person at the terminal answers, or rules do, or nobody.

use segno_testkit::model::Op;
use segno_testkit::model::Script;
use segno_testkit::model::Turn;
use segno_testkit::recipe::Patience;
use serde_json::Value;

use super::Real;
use crate::lab::until;
use crate::terminal::ENTER;
use crate::terminal::Terminal;

/// Claude Code with settings that allow nothing by themselves.
fn strict(turns: impl IntoIterator<Item = Turn>) -> Option<Real> {
    Real::prepared("claude", Script::new(turns), Patience::default(), |mut recipe| {
        let settings = recipe.files.keys().find(|path| path.ends_with("settings.json")).cloned().unwrap();
        recipe.files.insert(settings, "{}".to_owned());
        recipe
    })
}

/// What was answered, by whom, and why.
fn answers(real: &Real) -> Vec<(String, String, Option<String>)> {
    let text = |value: &Value| value.as_str().map(ToOwned::to_owned);
    let reports = real.lab.journal(Some("reported"));
    let answered = reports.iter().filter(|event| event["body"]["what"] == "permission_answered");
    answered
        .map(|event| &event["body"]["body"])
        .map(|body| (text(&body["answer"]).unwrap(), text(&body["by"]).unwrap(), text(&body["reason"])))
        .collect()
}

fn given(answer: &str, by: &str, reason: Option<&str>) -> (String, String, Option<String>) {
    (answer.to_owned(), by.to_owned(), reason.map(ToOwned::to_owned))
}

fn states(real: &Real) -> Vec<String> {
    real.lab.tools().iter().map(|call| call["state"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_person_is_asked() {
    let (first, second) = ("echo one >> one.txt", "echo two > two.txt");
    let turns = [Turn::sh(first), Turn::sh(second), Turn::sh(first), "The end.".into()];
    let Some(real) = strict(turns) else { return };
    let terminal = Terminal::open(&real.lab);
    let answer = |place: usize, command: &str, keys: &str| {
        terminal.wait_for(place, "may it?");
        terminal.wait_for(place, command);
        terminal.wait_for(place, "no and why");
        let place = terminal.place();
        terminal.type_keys(&format!("{keys}{ENTER}"));
        place
    };
    let place = terminal.place();
    terminal.type_keys(&format!("$SEGNO run --agent claude --permissions ask --prompt go{ENTER}"));
    let place = answer(place, first, "a");
    // What is neither yes nor no is asked again.
    let place = answer(place, second, "perhaps");
    terminal.wait_for(place, "no and why");
    terminal.type_keys(&format!("no, use make{ENTER}"));
    until("the run ends", || (real.lab.state()["run"]["outcome"] == "completed").then_some(()));
    assert_eq!(terminal.exit_code(), 0);
    let once = terminal.since(0).matches("may it?").count();
    assert_eq!(once, 2, "what is always allowed is not asked again");
    assert_eq!(
        answers(&real),
        [
            given("allow", "person", None),
            given("deny", "person", Some("use make")),
            given("allow", "person", None)
        ]
    );
    assert_eq!(states(&real), ["completed", "denied", "completed"]);
    assert_eq!(std::fs::read_to_string(real.file("one.txt")).unwrap(), "one\none\n");
    assert!(!real.file("two.txt").exists());
    let told = real.model.requests().iter().any(|request| request.conversation.contains("use make"));
    assert!(told, "the model reads why");
    // Question and answer are recorded, one after the other.
    let reports = real.lab.journal(Some("reported"));
    let asked = reports.iter().filter(|event| {
        event["body"]["what"] == "permission_requested" && event["body"]["body"]["request_id"].is_string()
    });
    assert_eq!(asked.count(), 3);
    drop(terminal);
    real.lab.assert_nothing_left();
}

#[test]
fn nobody_is_there_any_more() {
    let turns = [Turn::sh("echo one > one.txt"), Turn::sh("echo two > two.txt"), "The end.".into()];
    let Some(real) = strict(turns) else { return };
    let terminal = Terminal::open(&real.lab);
    terminal.type_keys(&format!("$SEGNO run --agent claude --permissions ask --prompt go{ENTER}"));
    terminal.wait_for(0, "no and why");
    // The end of the input.
    terminal.type_keys("\u{4}");
    until("the run ends", || (!real.lab.state()["run"]["outcome"].is_null()).then_some(()));
    let gone = "segno: nobody is there to be asked any more";
    assert_eq!(answers(&real)[0], given("deny", "nobody", Some(gone)));
    assert_eq!(answers(&real)[1], given("deny", "policy", Some(gone)));
    assert_eq!(states(&real), ["denied", "denied"]);
    assert!(!real.file("one.txt").exists() && !real.file("two.txt").exists());
}

#[test]
fn a_person_who_says_nothing_has_not_said_yes() {
    let Some(real) = strict([Turn::sh("echo one > one.txt"), "The end.".into()]) else { return };
    real.lab.config("[run]\nask_seconds = 1");
    let terminal = Terminal::open(&real.lab);
    terminal.type_keys(&format!("$SEGNO run --agent claude --permissions ask --prompt go{ENTER}"));
    real.lab.running();
    until("the run ends", || (!real.lab.state()["run"]["outcome"].is_null()).then_some(()));
    assert_eq!(answers(&real), [given("deny", "nobody", Some("segno: nobody answered in time"))]);
    assert!(!real.file("one.txt").exists());
}

#[test]
fn rules_answer() {
    let turns = [
        Turn::sh("touch ok.txt"),
        Turn::sh("touch not.txt; echo more"),
        Turn::sh("cd . && rm -f ok.txt"),
        Turn::ops([Op::Write { path: "w.txt".to_owned(), content: "w".to_owned() }]),
        "The end.".into(),
    ];
    let Some(real) = strict(turns) else { return };
    real.lab.config("[run]\npermissions = \"deny\"\nallow = [\"Bash(touch *)\"]\ndeny = [\"Bash(rm *)\"]");
    let said = real.run(&[]);
    assert_eq!(said.code, Some(25), "it gave up: {}", said.stderr);
    let nobody = "segno: no rule allows it, and nobody is asked";
    assert_eq!(
        answers(&real),
        [
            given("allow", "rule", None),
            given("deny", "policy", Some(nobody)),
            given("deny", "rule", Some("segno: a rule forbids it: Bash(rm *)")),
            given("deny", "policy", Some(nobody)),
        ]
    );
    assert_eq!(states(&real), ["completed", "denied", "denied", "denied"]);
    assert!(real.file("ok.txt").exists() && !real.file("not.txt").exists() && !real.file("w.txt").exists());
    real.lab.assert_nothing_left();
}

/// What waits, once something does.
fn question(real: &Real) -> Value {
    until("a question waits", || real.lab.json(&["answer"])["questions"].as_array()?.first().cloned())
}

#[test]
fn without_a_terminal_a_question_waits_for_whoever_answers_it() {
    let (first, second) = ("echo one > one.txt", "echo two > two.txt");
    let Some(real) = strict([Turn::sh(first), Turn::sh(second), "The end.".into()]) else { return };
    real.lab.config("[notify]\ncommand = \"echo $NOTICE_WHAT $NOTICE_TEXT >> told.txt\"");
    let begun = ["run", "--detach", "--agent", "claude", "--permissions", "ask", "--prompt", "go"];
    let said = real.lab.run(&begun);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    let asked = question(&real);
    assert_eq!((&asked["kind"], &asked["answers"][0]), (&"permission".into(), &"yes".into()), "{asked}");
    let input: Value = serde_json::from_str(asked["input"].as_str().unwrap()).unwrap();
    assert_eq!(input["command"], first, "all of the input is there");
    assert!(asked["until"].is_string(), "{asked}");
    let id = asked["id"].as_str().unwrap();
    // Whoever looks sees the same.
    assert_eq!(real.lab.json(&["answer", &id[..6]])["input"], asked["input"]);
    assert!(!real.file("one.txt").exists());
    let said = real.lab.run(&["answer", &id[..6], "yes"]);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    // Once: it is answered, and then it is gone.
    let again = real.lab.run(&["answer", id, "no"]);
    assert_eq!(again.code, Some(5), "{}", again.stderr);
    assert!(again.stderr.contains(&format!("no question {id} waits")), "{}", again.stderr);
    let next = question(&real);
    let next = next["id"].as_str().unwrap();
    assert_ne!(next, id, "another input is another question");
    let said = real.lab.run(&["answer", next, "use", "make"]);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    // Its last call was refused.
    until("the run ends", || (real.lab.state()["run"]["outcome"] == "denied").then_some(()));
    assert_eq!(answers(&real), [given("allow", "person", None), given("deny", "person", Some("use make"))]);
    assert_eq!(std::fs::read_to_string(real.file("one.txt")).unwrap(), "one\n");
    assert!(!real.file("two.txt").exists());
    let told = real.model.requests().iter().any(|request| request.conversation.contains("use make"));
    assert!(told, "the model reads why");
    let by: Vec<Value> =
        real.lab.journal(Some("question_answered")).iter().map(|event| event["body"]["by"].clone()).collect();
    assert_eq!(by, ["segno answer", "segno answer"]);
    assert_eq!(real.lab.journal(Some("question_closed")).len(), 2);
    let notices = until("somebody was told", || std::fs::read_to_string(real.file("told.txt")).ok());
    assert!(notices.contains(&format!("question may it use Bash? segno answer {id}")), "{notices}");
}

#[test]
fn without_a_terminal_silence_is_a_no() {
    let Some(real) = strict([Turn::sh("echo one > one.txt"), "The end.".into()]) else { return };
    real.lab.config("[run]\nask_seconds = 1");
    let said = real.run(&["--permissions", "ask"]);
    assert!(said.stderr.contains("no terminal to ask at"), "{}", said.stderr);
    assert_eq!(answers(&real), [given("deny", "nobody", Some("segno: nobody answered in time"))]);
    assert!(!real.file("one.txt").exists());
    assert_eq!(real.lab.json(&["answer"])["questions"], Value::Array(Vec::new()));
    real.lab.assert_nothing_left();
}

#[test]
fn a_question_at_a_terminal_can_be_answered_from_another() {
    let Some(real) = strict([Turn::sh("echo one > one.txt"), "The end.".into()]) else { return };
    let terminal = Terminal::open(&real.lab);
    terminal.type_keys(&format!("$SEGNO run --agent claude --permissions ask --prompt go{ENTER}"));
    terminal.wait_for(0, "no and why");
    let asked = question(&real);
    let said = real.lab.run(&["answer", asked["id"].as_str().unwrap(), "yes"]);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    until("the run ends", || (real.lab.state()["run"]["outcome"] == "completed").then_some(()));
    assert_eq!(answers(&real), [given("allow", "person", None)]);
    assert_eq!(std::fs::read_to_string(real.file("one.txt")).unwrap(), "one\n");
}

#[test]
fn an_agent_that_cannot_ask() {
    let Some(real) = Real::with("codex", ["never said".into()]) else { return };
    let said = real.lab.run(&["run", "--agent", "codex", "--permissions", "ask", "--prompt", "go"]);
    assert_eq!(said.code, Some(2), "{}", said.stderr);
    assert!(said.stderr.contains("codex has no way to ask segno about its calls"), "{}", said.stderr);
    let sessions = real.lab.json(&["ls", "--all"]);
    assert_eq!(sessions["sessions"].as_array().map(Vec::len), Some(0), "nothing was begun: {sessions}");
}
