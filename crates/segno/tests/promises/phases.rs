//! Workflows through the program: hooks, limits of a phase, reviews that send back, breakpoints.

use serde_json::json;

use crate::lab::Lab;
use crate::lab::until;
use crate::looping::agent;
use crate::looping::agent_of;
use crate::terminal::ENTER;
use crate::terminal::Terminal;

/// Puts a workflow of the project there, trusted by its user.
pub(crate) fn workflow(lab: &Lab, text: &str) {
    lab.write(lab.home.work().join(".segno/workflows/mine.toml"), text);
    let terminal = Terminal::open(lab);
    terminal.type_keys(&format!("$SEGNO trust{ENTER}"));
    assert_eq!(terminal.exit_code(), 0);
}

fn run(lab: &Lab, more: &[&str]) -> (Option<i32>, serde_json::Value) {
    let begin = ["loop", "--no-hooks", "--prompt", "x", "--json"];
    let said = lab.run(&begin.iter().chain(more).copied().collect::<Vec<_>>());
    (said.code, said.result())
}

fn beside(lab: &Lab, name: &str) -> String {
    std::fs::read_to_string(lab.home.work().parent().unwrap().join(name)).unwrap_or_default()
}

fn phase(name: &str, rest: &str) -> String {
    format!(
        "[[phase]]\nname = \"{name}\"\nprompt = \"work on {name}\"\non_start = [\"echo start {name} >> ../hooks\"]\n\
         on_complete = [\"echo complete {name} >> ../hooks\"]\non_error = [\"echo error {name} >> ../hooks\"]\n{rest}\n"
    )
}

const UNTIL_C: &str = "gate = \"until\"\n[[phase.evidence]]\nname = \"c\"\ncommand = \"test -e c\"\n";

#[test]
fn hooks_run_when_a_phase_begins_is_done_or_stops() {
    let lab = agent("touch c; echo $n >> log; signal=true");
    let second =
        "gate = \"until\"\nmax_iterations = 2\n[[phase.evidence]]\nname = \"d\"\ncommand = \"test -e d\"\n";
    workflow(&lab, &(phase("A", UNTIL_C) + &phase("B", second)));
    let (code, result) = run(&lab, &["--workflow", "mine"]);
    // The cap on iterations of the phase, not of the loop.
    assert_eq!((code, &result["outcome"]), (Some(26), &json!("max_iterations")), "{result}");
    assert!(result["reason"].as_str().unwrap().contains("2 of 2 iterations of the phase"), "{result}");
    assert_eq!(beside(&lab, "hooks"), "start A\ncomplete A\nstart B\nerror B\n");
    // More is allowed to the phase as well as to the loop.
    let said = lab.run(&["loop", "resume", "last", "--more", "1", "--json"]);
    assert_eq!((said.code, &said.result()["iterations"]), (Some(26), &json!(4)), "{}", said.stderr);
    // A phase outside the workflow is refused, and so is one by hand.
    for name in ["NOPE", "A"] {
        assert_eq!(lab.run(&["phase", name]).code, Some(5), "{name}");
    }
}

#[test]
fn a_phase_that_takes_too_long_is_cut_and_pauses() {
    let lab = agent("[ $n = 1 ] && echo 1 > a && sleep 600");
    workflow(&lab, &phase("A", &format!("max_seconds = 3\n{UNTIL_C}")));
    let (code, result) = run(&lab, &["--workflow", "mine"]);
    assert_eq!((code, &result["outcome"]), (Some(22), &json!("timed_out")), "{result}");
    // Without more time it stands still; with more it goes on.
    assert_eq!(lab.run(&["resume", "last"]).code, Some(22));
    let said = lab.run(&["loop", "resume", "last", "--more-time", "1m", "--json"]);
    assert_eq!((said.code, &said.result()["outcome"]), (Some(28), &json!("halted")), "{}", said.stderr);
    lab.assert_no_process_left();
}

/// Two times the work goes back, the third time a person is asked; and who judges is another model than who wrote.
#[test]
fn a_review_sends_back_twice_and_another_model_judges() {
    let work = "echo $n >> log\ncase \"$prompt\" in *'work on QA'*) \
                signal='true\\nVERDICT: REJECT\\nBLOCKING_ISSUES: 1';; *) signal=true;; esac";
    let lab = agent_of("claude-opus-4-1", work);
    let review =
        "context = \"fresh\"\ngate = \"qa\"\non_reject = { to = \"A\", most = 3, other_model = true }";
    let written = "gate = \"until\"\n[[phase.evidence]]\nname = \"log\"\ncommand = \"test -e log\"\n";
    workflow(&lab, &(phase("A", written) + &phase("QA", review)));
    let (code, result) = run(&lab, &["--workflow", "mine"]);
    assert_eq!((code, &result["outcome"]), (Some(29), &json!("needs_person")), "{result}");
    let ended = lab.journal(Some("iteration_ended"));
    let told: Vec<(&str, &str)> = ended
        .iter()
        .map(|event| {
            (event["body"]["phase"].as_str().unwrap(), event["body"]["verdict"]["verdict"].as_str().unwrap())
        })
        .collect();
    assert_eq!(
        told,
        [
            ("A", "next_phase"),
            ("QA", "back_to"),
            ("A", "next_phase"),
            ("QA", "back_to"),
            ("A", "next_phase"),
            ("QA", "needs_person")
        ]
    );
    let models: Vec<bool> =
        beside(&lab, "args").lines().map(|args| args.contains("--model sonnet")).collect();
    assert_eq!(models, [false, true, false, true, false, true]);
}

/// The nine steps; at each breakpoint the loop stays until somebody answers from another terminal.
#[test]
fn go_team_waits_at_its_breakpoints_until_somebody_elsewhere_says_that_it_goes_on() {
    let lab = agent("touch c; echo $n >> log; signal='true\\nVERDICT: APPROVE\\nBLOCKING_ISSUES: 0'");
    let live = lab.start(
        &[
            "loop",
            "--no-hooks",
            "--prompt",
            "x",
            "--workflow",
            "go-team",
            "--until",
            "test -e c",
            "--stay",
            "--json",
        ],
        None,
    );
    for name in ["requirements", "architecture", "review", "release"] {
        until(name, || {
            let shown = lab.run(&["breakpoint", "--session", "last", "--json"]);
            let told: serde_json::Value = serde_json::from_str(&shown.text()).unwrap_or_default();
            (told["breakpoint"]["name"] == json!(name)).then_some(())
        });
        let before = beside(&lab, "n");
        assert_eq!(lab.run(&["breakpoint", "continue", "--session", "last"]).code, Some(0));
        assert!(!before.is_empty());
    }
    let said = live.finish();
    assert_eq!((said.code, &said.result()["outcome"]), (Some(0), &json!("completed")), "{}", said.stderr);
    let phases: Vec<String> = lab
        .journal(Some("gate_passed"))
        .iter()
        .map(|event| event["body"]["phase"].as_str().unwrap().to_owned())
        .collect();
    let nine = "init requirements architecture implementation testing review optimization release synthesis";
    assert_eq!(phases.join(" "), nine);
    assert_eq!(beside(&lab, "n").trim(), "9", "one iteration each");
}

#[test]
fn without_stay_a_breakpoint_ends_and_resume_goes_on_after_the_answer() {
    let lab = agent("touch c; echo $n >> log; signal=true");
    workflow(&lab, &(phase("A", &format!("breakpoint = true\n{UNTIL_C}")) + &phase("B", UNTIL_C)));
    let (code, result) = run(&lab, &["--workflow", "mine"]);
    assert_eq!((code, &result["outcome"]), (Some(29), &json!("needs_person")), "{result}");
    assert_eq!(beside(&lab, "hooks"), "start A\ncomplete A\n", "a phase whose gate passed is no error");
    assert_eq!(lab.run(&["resume", "last"]).code, Some(5), "nobody has looked yet");
    assert_eq!(lab.run(&["breakpoint", "continue", "--session", "last"]).code, Some(0));
    assert_eq!(lab.run(&["resume", "last"]).code, Some(0));
    assert_eq!(beside(&lab, "hooks"), "start A\ncomplete A\nstart B\ncomplete B\n");
}

/// Both families, in both forms, end a phase; the last complete block counts.
#[test]
fn every_form_of_a_status_block_is_a_signal() {
    for says in [
        "---RALPH_STATUS---\\nEXIT_SIGNAL: true\\n---END_RALPH_STATUS---",
        "---PRP_PHASE_STATUS---\\nPHASE: WORK\\nEXIT_SIGNAL: true\\n---END_PRP_PHASE_STATUS---",
        "RALPH_STATUS:\\n  EXIT_SIGNAL: true\\n",
        "PRP_PHASE_STATUS:\\n  STATUS: COMPLETE\\n  EXIT_SIGNAL: True\\n",
    ] {
        let lab = agent(&format!("touch c; bare=1; says='{says}'"));
        let (code, result) = run(&lab, &["--until", "test -e c"]);
        assert_eq!((code, &result["iterations"]), (Some(0), &json!(1)), "{says}: {result}");
    }
}
