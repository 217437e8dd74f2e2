//! Gates by hand, receipts, halted loops and what outlives a killed one, through the program.

use rustix::process::Signal;
use serde_json::Value;
use serde_json::json;

use crate::lab::Lab;
use crate::lab::until;
use crate::looping::agent;
use crate::terminal::ENTER;
use crate::terminal::Terminal;

fn halted() -> Lab {
    let lab = agent("[ -e ../help ] && touch c && signal=true");
    let said = lab.run(&["loop", "--no-hooks", "--prompt", "make it", "--until", "test -e c", "--json"]);
    assert_eq!(said.code, Some(28), "{}", said.stderr);
    lab
}

fn help(lab: &Lab) {
    std::fs::write(lab.home.work().parent().unwrap().join("help"), "").unwrap();
}

#[test]
fn a_gate_by_hand_shows_each_condition_and_a_receipt_can_be_checked_again() {
    let lab = agent("touch c; signal=true");
    let begun = ["loop", "--no-hooks", "--prompt", "make it", "--until", "sh check.sh", "--json"];
    lab.write(lab.home.work().join("check.sh"), "test -e c\n");
    assert_eq!(lab.run(&begun).code, Some(0));
    let gate = lab.json(&["gate", "last"]);
    assert_eq!(gate["phase"], "WORK");
    let conditions: Vec<(&Value, &Value)> = gate["gate"]["conditions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (&one["name"], &one["value"]))
        .collect();
    assert_eq!(conditions, [(&json!("command until"), &json!("exit 0"))]);
    let receipts = lab.json(&["gate", "receipts", "last"]);
    assert_eq!(receipts["receipts"][0]["receipt"]["commands"], json!(["sh check.sh"]));
    let verified = lab.json(&["gate", "last", "--verify", "WORK"]);
    let told = |verified: &Value| {
        ["holds", "same_results", "same_commands", "same_tree"].map(|key| verified[key].clone())
    };
    assert_eq!(told(&verified), [true; 4].map(Value::from));
    // Another file: the results are the same, the tree is not.
    lab.write(lab.home.work().join("other"), "x");
    assert_eq!(
        told(&lab.json(&["gate", "last", "--verify", "work"])),
        [true, true, true, false].map(Value::from)
    );
    assert_eq!(lab.run(&["gate", "last", "--verify", "WORK", "--same-tree"]).code, Some(1));
    // From a file, as somebody else has it.
    let file = lab.path("receipt.json");
    lab.write(&file, &receipts.to_string());
    assert_eq!(lab.run(&["gate", "last", "--verify", &file]).code, Some(0));
    let foreign = receipts.to_string().replace("sh check.sh", "touch ../pwned");
    lab.write(&file, &foreign);
    let said = lab.run(&["gate", "last", "--verify", &file]);
    assert_eq!(said.code, Some(13), "{}", said.stderr);
    assert!(!lab.home.work().parent().unwrap().join("pwned").exists());
    // An easier script passes, and is not what was measured.
    lab.write(lab.home.work().join("check.sh"), "true\n");
    let said = lab.run(&["gate", "last", "--verify", "WORK"]);
    assert_eq!(said.code, Some(1), "{}", said.stderr);
    assert!(said.stderr.contains("no longer use the same scripts"), "{}", said.stderr);
    std::fs::remove_file(lab.home.work().join("c")).unwrap();
    lab.write(lab.home.work().join("check.sh"), "test -e c\n");
    let said = lab.run(&["gate", "last", "--verify", "WORK"]);
    assert!(said.stderr.contains("not what the receipt says"), "{}", said.stderr);
    assert_eq!(lab.run(&["gate", "last"]).code, Some(1), "and the gate is closed");
    assert_eq!(lab.run(&["gate", "last", "--verify", "GREEN"]).code, Some(5));
}

/// Whoever has the files and trusts them needs no loop of their own to measure a receipt again.
#[test]
fn a_receipt_can_be_checked_by_somebody_else() {
    let lab = agent("touch c; signal=true");
    lab.write(lab.home.work().join("check.sh"), "test -e c\n");
    let begun = ["loop", "--no-hooks", "--prompt", "make it", "--until", "sh check.sh", "--json"];
    assert_eq!(lab.run(&begun).code, Some(0));
    let receipts = lab.json(&["gate", "receipts", "last"]);
    let other = Lab::new();
    other.write(other.home.work().join("check.sh"), "test -e c\n");
    other.write(other.home.work().join("c"), "");
    let file = other.path("receipt.json");
    other.write(&file, &receipts.to_string());
    let said = other.run(&["gate", "--verify", &file]);
    assert_eq!(said.code, Some(13), "commands that nobody here chose: {}", said.stderr);
    let terminal = Terminal::open(&other);
    terminal.type_keys(&format!("$SEGNO trust{ENTER}"));
    assert_eq!(terminal.exit_code(), 0);
    let verified = other.json(&["gate", "--verify", &file]);
    let told =
        ["session_id", "phase", "holds", "same_results", "same_commands"].map(|key| verified[key].clone());
    assert_eq!(told, [json!(null), json!("WORK"), json!(true), json!(true), json!(true)]);
    std::fs::remove_file(other.home.work().join("c")).unwrap();
    assert_eq!(other.run(&["gate", "--verify", &file]).code, Some(1));
}

/// A source file that ends the process of the tests, by mistake or not, has passed no test.
#[test]
fn tests_that_never_ran_complete_nothing() {
    let lab = agent("printf 'import os\\n# it ends here\\nos._exit(0)\\n' > shop.py; signal=true");
    lab.write(lab.home.work().join("shop.py"), "def price(): return 1\n");
    lab.write(
        lab.home.work().join("test_shop.py"),
        "import unittest, shop\nclass T(unittest.TestCase):\n    def test_price(self): self.assertEqual(shop.price(), 2)\n",
    );
    let begun = ["loop", "--no-hooks", "--prompt", "mend it", "--max-iterations", "1", "--json", "--until"];
    let said = lab.run(&[&begun[..], &["python3 -m unittest -v"]].concat());
    assert_eq!(
        (said.code, &said.result()["outcome"]),
        (Some(26), &json!("max_iterations")),
        "{}",
        said.stderr
    );
    let conditions = said.result()["gate"]["conditions"].clone();
    let open: Vec<&Value> =
        conditions.as_array().unwrap().iter().filter(|one| one["holds"] == false).collect();
    assert_eq!(open.len(), 2, "{open:?}");
    assert_eq!(
        [&open[0]["name"], &open[0]["value"], &open[1]["name"], &open[1]["value"]],
        ["tests", "none were seen", "tests of until", "none were seen of unittest"]
    );
}

/// The first measurement comes before any agent ran. What it leaves behind could act as if it were a person.
#[test]
fn what_the_first_measurement_leaves_behind_is_ended() {
    let lab = agent("touch c; signal=true");
    let until_command = "(env -i setsid sleep 471300 &); test -e c";
    let said = lab.run(&["loop", "--no-hooks", "--prompt", "x", "--until", until_command, "--json"]);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    let left = std::fs::read_dir("/proc").unwrap().flatten().filter(|entry| {
        let line = std::fs::read_to_string(entry.path().join("cmdline")).unwrap_or_default();
        line == "sleep\x00471300\0"
    });
    assert_eq!(left.count(), 0);
}

/// A pipe that nobody writes to stands for a file that cannot be read, and holds nobody up.
#[test]
fn a_pipe_among_the_files_that_are_compared_holds_nothing_up() {
    let lab = agent("rm -f pytest.ini spec check.sh; mkfifo pytest.ini spec check.sh; signal=true");
    lab.write(lab.home.work().join("check.sh"), "test -e c\n");
    lab.write(lab.home.work().join("spec"), "two\n");
    let begun =
        ["loop", "--no-hooks", "--prompt", "x", "--max-iterations", "1", "--json", "--protect", "spec"];
    let until_command = "timeout 1 sh check.sh && pytest";
    let said = lab.run(&[&begun[..], &["--until", until_command]].concat());
    assert_eq!(said.code, Some(26), "{}", said.stderr);
}

#[test]
fn without_a_terminal_a_halted_loop_says_what_to_type() {
    let lab = halted();
    for command in [&["resume", "last"][..], &["loop", "resume", "last"]] {
        let said = lab.run(command);
        assert_eq!(said.code, Some(28), "{}", said.stderr);
        for hint in ["segno breaker reset", "segno loop say", "--stay", "segno abort"] {
            assert!(said.stderr.contains(hint), "{hint}: {}", said.stderr);
        }
    }
}

#[test]
fn after_a_reset_resume_goes_on() {
    let lab = halted();
    help(&lab);
    assert_eq!(lab.run(&["breaker", "reset", "last"]).code, Some(0));
    let said = lab.run(&["resume", "last", "--json"]);
    assert_eq!((said.code, &said.result()["outcome"]), (Some(0), &json!("completed")), "{}", said.stderr);
}

#[test]
fn a_note_lets_a_halted_loop_be_tried_once() {
    let lab = halted();
    help(&lab);
    assert_eq!(lab.run(&["loop", "say", "the key is under the mat", "last"]).code, Some(0));
    let said = lab.run(&["resume", "last", "--json"]);
    assert_eq!((said.code, &said.result()["outcome"]), (Some(0), &json!("completed")), "{}", said.stderr);
    let changes = lab.journal(Some("breaker_changed"));
    assert_eq!(
        (&changes[0]["body"]["by"], &changes[0]["body"]["to"]),
        (&json!("cause_gone"), &json!("HALF_OPEN"))
    );
}

#[test]
fn a_blocked_agent_that_says_done_is_not_done() {
    let lab = agent("touch c; echo $n >> log; signal='true\\nBLOCKERS: no key'");
    let said = lab.run(&[
        "loop",
        "--no-hooks",
        "--prompt",
        "x",
        "--until",
        "test -e c",
        "--max-iterations",
        "2",
        "--json",
    ]);
    assert_eq!(said.code, Some(26), "{}", said.stderr);
    let ended = lab.journal(Some("iteration_ended"));
    let line = ended[0]["body"]["line"].as_str().unwrap();
    assert!(line.contains("its status block contradicts itself: BLOCKERS names"), "{line}");
}

#[test]
fn what_measures_dies_with_a_loop_that_is_killed() {
    let lab = agent("echo $n > a");
    let until_command = "touch ../measuring; (setsid sleep 4711 &); sleep 4712";
    let live = lab.start(&["loop", "--no-hooks", "--prompt", "x", "--until", until_command, "--json"], None);
    let mark = lab.home.work().parent().unwrap().join("measuring");
    until("it is measured", || mark.exists().then_some(()));
    until("all of it runs", || {
        let all = lab.processes();
        ["sleep 4711", "sleep 4712"].iter().all(|one| all.iter().any(|line| line.contains(one))).then_some(())
    });
    live.signal(Signal::KILL);
    live.finish();
    // Nobody types anything: the guard does it.
    lab.assert_no_process_left();
}

/// The panel of a halted loop: each key does what it says.
#[test]
fn on_a_terminal_a_halted_loop_shows_its_ways_out() {
    let lab = halted();
    let terminal = Terminal::open(&lab);
    let ask = |keys: &str| {
        let place = terminal.place();
        terminal.type_keys(&format!("$SEGNO resume last{ENTER}"));
        terminal.wait_for(place, "[q] nothing");
        let shown = terminal.since(place);
        terminal.type_keys(keys);
        (shown, terminal.exit_code())
    };
    let (shown, code) = ask(&format!("q{ENTER}"));
    assert_eq!(code, 14);
    for told in ["the circuit breaker is OPEN", "3 iterations without progress", "phase", "WORK", "tree"] {
        assert!(shown.contains(told), "{told}: {shown}");
    }
    assert!(!shown.contains("[s]"), "the only phase cannot be skipped: {shown}");
    // Another approach: what is said is in the next prompt, and one iteration is tried.
    let (_, code) = ask(&format!("m{ENTER}Look Under The Mat{ENTER}"));
    assert_eq!(code, 28);
    let prompts = std::fs::read_to_string(lab.home.work().parent().unwrap().join("prompts")).unwrap();
    assert!(prompts.contains("Look Under The Mat"), "{prompts}");
    assert_eq!(lab.state()["looping"]["total"], 4);
    // Reset: it goes on, and now it can.
    help(&lab);
    let (_, code) = ask(&format!("r{ENTER}"));
    assert_eq!(code, 0);
    assert_eq!(lab.state()["status"], "completed");
}

#[test]
fn a_halted_loop_can_be_given_up_at_the_panel_and_is_asked_about_before_something_new() {
    let lab = halted();
    let terminal = Terminal::open(&lab);
    let place = terminal.place();
    terminal.type_keys(&format!("$SEGNO loop --no-hooks --prompt y --until true --no-signal{ENTER}"));
    terminal.wait_for(place, "was halted");
    terminal.type_keys(&format!("r{ENTER}"));
    terminal.wait_for(place, "[a] abort");
    terminal.type_keys(&format!("a{ENTER}"));
    assert_eq!(terminal.exit_code(), 0);
    assert_eq!(lab.state()["status"], "aborted");
}

#[test]
fn an_imported_loop_says_what_to_type_and_runs_nothing() {
    let lab = halted();
    let file = lab.path("loop.json");
    assert_eq!(lab.run(&["export", "last", "--output", &file]).code, Some(0));
    let other = Lab::new();
    let said = other.run(&["import", &file]);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    let typed = "segno loop --workflow simple --until 'test -e c' --prompt 'make it'";
    assert!(said.stderr.contains("it was a loop") && said.stderr.contains(typed), "{}", said.stderr);
    assert_eq!(other.run(&["loop", "resume", "last"]).code, Some(5));
}
