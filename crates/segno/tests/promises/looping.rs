//! The loop through the program: what completes it, what never does, and how it stands still.

use serde_json::Value;
use serde_json::json;

use crate::lab::Lab;
use crate::lab::until;

/// A stand-in for Claude Code: a shell script that does `work` in the project and ends its answer with a status block
/// that has `$signal` in it, or with nothing but `$says` if it sets `bare`. Every prompt and command line is kept; the
/// prompt is in `$prompt`.
pub(crate) fn agent(work: &str) -> Lab {
    agent_of("gpt-5", work)
}

/// The same with another model.
pub(crate) fn agent_of(model: &str, work: &str) -> Lab {
    let lab = Lab::new();
    let script = format!(
        r#"#!/bin/sh
case "$*" in *--version*) echo "2.1.325 (Claude Code)"; exit 0;; esac
echo "$*" >> ../args
id=none; while [ $# -gt 0 ]; do case "$1" in --session-id|--resume) id=$2;; esac; shift; done
prompt=$(cat); echo "$prompt" >> ../prompts; echo "=====" >> ../prompts
n=$(( $(cat ../n 2>/dev/null || echo 0) + 1 )); echo $n > ../n; signal=false; says="done with $n"; bare=
printf '{{"type":"system","subtype":"init","session_id":"%s","model":"{model}","tools":[]}}\n' "$id"
{work}
[ -n "$bare" ] || says="$says\\n---RALPH_STATUS---\\nSTATUS: IN_PROGRESS\\nEXIT_SIGNAL: $signal\\n---END_RALPH_STATUS---\\n"
printf '{{"type":"result","subtype":"success","is_error":false,"session_id":"%s","num_turns":1,"duration_ms":1,"duration_api_ms":1,"total_cost_usd":0.01,"usage":{{"input_tokens":100,"output_tokens":10}},"result":"%s"}}\n' "$id" "$says"
"#
    );
    let path = lab.home.path().join("claude");
    lab.write(&path, &script);
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    lab.config(&format!("[agents.claude]\nprogram = {:?}\n", path.display().to_string()));
    lab
}

const UNTIL: &[&str] = &["loop", "--no-hooks", "--prompt", "make three files", "--until", "test -e c"];

fn run(lab: &Lab, more: &[&str]) -> (Option<i32>, Value) {
    let args: Vec<&str> = UNTIL.iter().chain(more).chain(&["--json"]).copied().collect();
    let said = lab.run(&args);
    (said.code, said.result())
}

fn verdicts(lab: &Lab) -> Vec<String> {
    let ended = lab.journal(Some("iteration_ended"));
    ended.iter().map(|event| event["body"]["verdict"]["verdict"].as_str().unwrap().to_owned()).collect()
}

/// One more file each time, and it says that it is done when it is.
const HONEST: &str =
    "for f in a b c; do [ -e $f ] || { echo $n > $f; break; }; done\n[ -e c ] && signal=true";

#[test]
fn a_loop_of_one_line_completes_when_the_command_succeeds_and_the_agent_says_so() {
    let lab = agent(HONEST);
    let (code, result) = run(&lab, &[]);
    assert_eq!(
        (code, &result["outcome"], &result["iterations"]),
        (Some(0), &json!("completed"), &json!(3)),
        "{result}"
    );
    assert_eq!(verdicts(&lab), ["continue", "continue", "complete"]);
    let state = lab.state();
    assert_eq!((&state["status"], &state["made_by"]), (&json!("completed"), &json!("loop")));
    assert_eq!(lab.json(&["cost", "--by", "iteration"])["total"]["micros"], 30_000);
    lab.assert_nothing_left();
}

#[test]
fn who_claims_success_with_a_failing_command_never_completes() {
    let lab = agent("echo $n >> claims; signal=true; says='All tests pass, the project is complete.'");
    let (code, result) = run(&lab, &["--max-iterations", "4"]);
    assert_eq!((code, &result["outcome"]), (Some(26), &json!("max_iterations")), "{result}");
    assert_eq!(verdicts(&lab), ["continue", "continue", "continue", "cap"]);
    assert_eq!(lab.state()["status"], "paused");
}

#[test]
fn a_command_that_succeeds_is_not_enough_without_the_signal_unless_somebody_says_so() {
    let lab = agent("touch c; echo $n >> log");
    let (code, _) = run(&lab, &["--max-iterations", "2"]);
    assert_eq!((code, verdicts(&lab)), (Some(26), vec!["continue".to_owned(), "cap".to_owned()]));
    let lab = agent("touch c; echo $n >> log");
    let (code, result) = run(&lab, &["--no-signal"]);
    assert_eq!((code, &result["iterations"]), (Some(0), &json!(1)), "{result}");
}

#[test]
fn nothing_that_moves_halts_it_and_it_says_why() {
    let lab = agent("true");
    let (code, result) = run(&lab, &[]);
    assert_eq!(
        (code, &result["outcome"], &result["session_status"]),
        (Some(28), &json!("halted"), &json!("halted")),
        "{result}"
    );
    assert_eq!(verdicts(&lab), ["continue", "continue", "halt"]);
    let breaker = lab.json(&["breaker", "status"]);
    assert_eq!(breaker["breaker"]["state"], "OPEN");
    assert!(breaker["breaker"]["reason"].as_str().unwrap().contains("progress"), "{breaker}");
    // It does not go on by itself, and a person can close it.
    assert_ne!(lab.run(&["loop", "resume", "last"]).code, Some(0));
    assert_eq!(lab.run(&["breaker", "reset", "last", "--because", "it can now"]).code, Some(0));
    let state = lab.state();
    assert_eq!(state["looping"]["breaker"]["state"], "CLOSED");
}

#[test]
fn a_note_of_the_operator_is_in_the_next_prompt_once() {
    let lab = agent(&format!(
        "{HONEST}\n[ $n = 1 ] && touch ../first && while [ ! -e ../go ]; do sleep 0.02; done"
    ));
    let live = lab.start(&UNTIL.iter().chain(&["--json"]).copied().collect::<Vec<_>>(), None);
    let home = lab.home.work().parent().unwrap().to_owned();
    until("the first iteration runs", || home.join("first").exists().then_some(()));
    assert_eq!(lab.run(&["loop", "say", "use no tabs", "last"]).code, Some(0));
    std::fs::write(home.join("go"), "").unwrap();
    assert_eq!(live.finish().code, Some(0));
    let prompts = std::fs::read_to_string(home.join("prompts")).unwrap();
    let told: Vec<bool> = prompts.split("=====").map(|prompt| prompt.contains("use no tabs")).collect();
    assert_eq!(told, [false, true, false, false]);
    assert!(prompts.split("=====").take(3).all(|prompt| prompt.contains("make three files")), "{prompts}");
}

#[test]
fn a_killed_loop_goes_on_with_the_same_decisions() {
    let lab = agent(&format!("{HONEST}\n[ $n = 2 ] && touch ../second && sleep 60"));
    let live = lab.start(UNTIL, None);
    let home = lab.home.work().parent().unwrap().to_owned();
    until("the second iteration runs", || home.join("second").exists().then_some(()));
    live.signal(rustix::process::Signal::KILL);
    drop(live.finish());
    let resumed = lab.run(&["resume", "last", "--json"]);
    assert_eq!(resumed.code, Some(0), "{}", resumed.stderr);
    assert_eq!(resumed.result()["outcome"], "completed");
    assert_eq!(verdicts(&lab).last().unwrap(), "complete");
    assert_eq!(lab.state()["status"], "completed");
    lab.assert_no_agent_left();
}

#[test]
fn what_would_be_done_is_shown_and_nothing_is_begun() {
    let lab = agent("true");
    let said =
        lab.run(&["loop", "--prompt", "build it", "--workflow", "prp", "--until", "make test", "--dry-run"]);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    let text = said.text();
    assert!(text.contains("RED → GREEN → REFACTOR → DOCUMENT") && text.contains("build it"), "{text}");
    assert!(!lab.home.work().parent().unwrap().join("prompts").exists());
    let nothing = lab.run(&["loop", "--prompt", "build it"]);
    assert_eq!(nothing.code, Some(2), "what measures it is missing");
}

#[test]
fn a_workflow_of_an_untrusted_project_is_refused_whole() {
    let lab = agent("true");
    assert_eq!(lab.run(&["workflow", "new", "mine", "--from", "prp"]).code, Some(0));
    let path = lab.home.work().join(".segno/workflows/mine.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, format!("{text}\n[[phase.evidence]]\nname = \"x\"\ncommand = \"touch ../ran\"\n"))
        .unwrap();
    assert_eq!(lab.run(&["workflow", "check", "mine"]).code, Some(0));
    let refused = lab.run(&["loop", "--prompt", "x", "--workflow", "mine"]);
    assert_eq!(refused.code, Some(13), "{}", refused.stderr);
    assert!(refused.stderr.contains("trust"), "{}", refused.stderr);
    assert!(!lab.home.work().parent().unwrap().join("ran").exists());
    let misspelt = lab.run(&["loop", "--prompt", "x", "--workflow", "prq", "--until", "true"]);
    assert!(misspelt.code == Some(13) && misspelt.stderr.contains("prp"), "{}", misspelt.stderr);
}

/// What stands in a file beside the project, if it is there.
fn beside(lab: &Lab, name: &str) -> String {
    std::fs::read_to_string(lab.home.work().parent().unwrap().join(name)).unwrap_or_default()
}

#[test]
fn an_agent_lets_itself_through_nowhere_and_a_person_allows_more() {
    let tries = [
        "complete",
        "phase WORK",
        "iteration",
        "attempt",
        "loop say x",
        "breaker reset",
        "gate accept --because x",
    ];
    let tries: Vec<String> = tries.iter().map(|words| format!("'{words}'")).collect();
    let work = format!(
        "echo $n >> log\nfor c in {}; do {} $c > /dev/null 2>&1 && echo \"$c\" >> ../through; done",
        tries.join(" "),
        crate::lab::SEGNO
    );
    let lab = agent(&work);
    let (code, result) = run(&lab, &["--max-iterations", "1"]);
    assert_eq!((code, beside(&lab, "through").as_str()), (Some(26), ""), "{result}");
    let more = lab.run(&["loop", "resume", "last", "--more", "2", "--json"]);
    assert_eq!((more.code, &more.result()["iterations"]), (Some(26), &json!(3)), "{}", more.stderr);
}

#[test]
fn a_pause_holds_though_the_agent_ends_by_itself_right_after_it() {
    let lab = agent(&format!("echo $n >> log\n{} pause > /dev/null 2>&1", crate::lab::SEGNO));
    let (code, result) = run(&lab, &[]);
    assert_eq!((code, &result["session_status"]), (Some(23), &json!("paused")), "{result}");
    assert_eq!(beside(&lab, "n").trim(), "1", "nothing was asked of the agent after it");
}

#[test]
fn what_would_not_be_measured_as_it_was_typed_is_refused() {
    let mut lab = agent("touch c; signal=true");
    let directory = lab.home.work().join(".segno/workflows");
    std::fs::create_dir_all(&directory).unwrap();
    let signal = "[[phase]]\nname = \"WORK\"\nprompt = \"go\"\ngate = \"signal\"\n";
    std::fs::write(directory.join("simple.toml"), signal).unwrap();
    let foreign = run_words(&lab, &["--until", "test -e c"]);
    assert!(foreign.0 == Some(13) && foreign.1.contains("not trusted"), "{foreign:?}");
    std::fs::remove_file(directory.join("simple.toml")).unwrap();
    lab.env.insert("MY_API_KEY".to_owned(), "zq9Zq8Zq7Zq6Zq5Zq4wwT".to_owned());
    let secret = run_words(&lab, &["--until", "! grep -q zq9Zq8Zq7Zq6Zq5Zq4wwT c"]);
    assert!(secret.0 == Some(2) && secret.1.contains("secret"), "{secret:?}");
    assert_eq!(beside(&lab, "n"), "", "no agent was asked");
}

fn run_words(lab: &Lab, more: &[&str]) -> (Option<i32>, String) {
    let said =
        lab.run(&["loop", "--no-hooks", "--prompt", "x"].iter().chain(more).copied().collect::<Vec<_>>());
    (said.code, said.stderr)
}

/// What the program keeps in mind and what the state holds do not grow with the iterations.
#[cfg(target_os = "linux")]
#[test]
fn a_long_loop_takes_no_more_than_a_short_one() {
    let lab = agent(
        "while [ ! -e ../driver ]; do sleep 0.02; done\n\
         sed -n 's/^RssAnon:[^0-9]*\\([0-9]*\\).*/\\1/p' /proc/$(cat ../driver)/status >> ../memory\necho $n >> log",
    );
    // More than the state remembers one by one.
    let args: Vec<&str> = UNTIL.iter().chain(&["--max-iterations", "36", "--json"]).copied().collect();
    let live = lab.start(&args, None);
    let driver = lab.home.work().parent().unwrap().join("driver");
    std::fs::write(driver.with_extension("new"), live.pid().to_string()).unwrap();
    std::fs::rename(driver.with_extension("new"), &driver).unwrap();
    assert_eq!(live.finish().code, Some(26));
    let memory: Vec<u64> = beside(&lab, "memory").lines().map(|line| line.parse().unwrap()).collect();
    assert_eq!(memory.len(), 36);
    // The store keeps up to 8 MiB of its pages in memory; these fill while a loop goes on. Nothing else may.
    assert!(memory[35] < memory[9] + 10_240, "kilobytes after each iteration: {memory:?}");
    let size = || lab.state()["looping"].to_string().len();
    let before = size();
    let more = lab.run(&["loop", "resume", "last", "--more", "6"]);
    assert_eq!(more.code, Some(26), "{}", more.stderr);
    let after = size();
    assert!(after < before + 500, "{before} bytes after 36 iterations, {after} after 42");
}

/// What scrolls by tells things in the order in which they happened: a phase begins after the one before it has ended.
/// What is said at the end says why, and does not say the last iteration's line once more.
#[test]
fn a_loop_that_stands_still_says_why_once() {
    let lab = agent("true");
    let said = lab.run(UNTIL);
    assert_eq!(said.code, Some(28), "{}", said.stderr);
    let error = said.stderr.lines().find(|line| line.contains("stands still")).unwrap();
    assert_eq!(error, "error: the loop stands still: halted: 3 iterations without progress");
    let at = |words: &str| said.stderr.find(words).unwrap_or_else(|| panic!("{words}: {}", said.stderr));
    assert!(at("phase WORK (1 of 1)") < at("cp-01-run-start"), "{}", said.stderr);
    assert_eq!(said.stderr.matches("phase WORK (1 of 1)").count(), 1, "{}", said.stderr);
}

#[test]
fn a_phase_is_said_to_begin_after_the_one_before_it_has_ended() {
    let lab =
        agent("case $n in 1) echo 'test -f sail' > tests/sail.sh;; *) echo x > sail;; esac; signal=true");
    let check = "n=0; bad=0\nfor t in tests/*.sh; do n=$((n+1)); if sh $t; then echo \"ok $n - $t\"; \
                 else echo \"not ok $n - $t\"; bad=1; fi; done\necho \"1..$n\"; exit $bad\n";
    lab.write(lab.home.work().join("check.sh"), check);
    lab.write(lab.home.work().join("tests/hull.sh"), "true\n");
    let said = lab.run(&[
        "loop",
        "--no-hooks",
        "--prompt",
        "a sail",
        "--workflow",
        "prp",
        "--until",
        "sh check.sh",
        "--max-iterations",
        "2",
    ]);
    let at = |words: &str| said.stderr.find(words).unwrap_or_else(|| panic!("{words}: {}", said.stderr));
    let order = [at("phase RED"), at("iter 1  RED"), at("phase GREEN"), at("iter 2  GREEN")];
    assert!(order.is_sorted(), "{}", said.stderr);
}

/// Nothing is begun for an agent that is not there, and a loop whose agent went away stays as it was.
#[test]
fn an_agent_that_is_not_there_is_said_before_anything_is_done() {
    let mut lab = Lab::new();
    lab.env.insert("PATH".to_owned(), "/usr/bin:/bin".to_owned());
    let missing = |said: &crate::lab::Said| {
        assert_eq!(said.code, Some(27), "{}", said.stderr);
        assert!(said.stderr.contains("error: claude is not installed"), "{}", said.stderr);
        assert!(said.stderr.contains("  hint: install it with: "), "{}", said.stderr);
    };
    missing(&lab.run(UNTIL));
    let phase = "[[phase]]\nname = \"WORK\"\nprompt = \"go\"\ngate = \"until\"\n";
    crate::phases::workflow(&lab, &format!("[limits]\nagents = [\"claude\", \"codex\"]\n\n{phase}"));
    missing(&lab.run(&UNTIL.iter().chain(&["--workflow", "mine"]).copied().collect::<Vec<_>>()));
    assert_eq!(lab.json(&["ls", "--all"])["sessions"], json!([]), "no session was made");

    let mut lab = agent("echo $n >> log");
    let (code, result) = run(&lab, &["--max-iterations", "1"]);
    assert_eq!((code, &result["session_status"]), (Some(26), &json!("paused")), "{result}");
    lab.env.insert("PATH".to_owned(), "/usr/bin:/bin".to_owned());
    let (before, program) = (lab.state(), lab.home.path().join("claude"));
    std::fs::remove_file(&program).unwrap();
    for args in [&["loop", "resume", "last", "--more", "2"][..], &["resume", "last"]] {
        let said = lab.run(args);
        assert_eq!(said.code, Some(27), "{args:?}: {}", said.stderr);
        assert!(said.stderr.contains("error: claude is not installed"), "{args:?}: {}", said.stderr);
        assert_eq!(lab.state(), before, "{args:?}");
    }
}

/// An agent that only prints lines says a status block in many of them.
#[test]
fn a_text_agent_says_in_lines_that_it_is_done() {
    let lab = Lab::new();
    let block =
        "---RALPH_STATUS---\\nSTATUS: COMPLETE\\nEXIT_SIGNAL: true\\n---END_RALPH_STATUS---\\nGood bye.\\n";
    let script = format!("#!/bin/sh\ncat > /dev/null\necho done > c\nprintf 'I made it.\\n{block}'\n");
    let path = lab.home.path().join("tick");
    lab.write(&path, &script);
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    lab.config(&format!(
        "[agents.tick]\ncommand = [{:?}]\nprompt = \"stdin\"\nformat = \"text\"\n",
        path.display().to_string()
    ));
    let (code, result) = run(&lab, &["--agent", "tick", "--max-iterations", "2"]);
    assert_eq!((code, &result["iterations"]), (Some(0), &json!(1)), "{result}");
}

/// What halted a loop is not said of it any more when its breaker is closed again.
#[test]
fn a_breaker_that_was_reset_is_not_said_to_be_open() {
    let lab = agent("true");
    assert_eq!(run(&lab, &[]).0, Some(28));
    assert!(lab.run(&["ls"]).text().contains("without progress"));
    assert_eq!(lab.run(&["breaker", "reset", "last"]).code, Some(0));
    let listed = lab.run(&["ls"]).text();
    assert!(listed.contains("halted: breaker reset, resume goes on"), "{listed}");
}

/// Who asks about a loop means the newest loop, not the newest session.
#[test]
fn the_newest_loop_is_meant_where_a_loop_is_asked_about() {
    let lab = agent("true");
    let (_, result) = run(&lab, &["--max-iterations", "1"]);
    assert_eq!(lab.run(&["new", "something else"]).code, Some(0));
    for args in [&["loop", "status"][..], &["gate", "show"], &["gate", "receipts"], &["breaker", "status"]] {
        assert_eq!(lab.json(args)["session_id"], result["session_id"], "{args:?}");
    }
    let lab = Lab::new();
    assert_eq!(lab.run(&["new", "no loop"]).code, Some(0));
    for args in [&["loop", "status"][..], &["gate", "show"], &["gate", "receipts"], &["breaker", "status"]] {
        let said = lab.run(args);
        assert!(said.stderr.contains("is no loop\n  hint: segno loop --help"), "{args:?}: {}", said.stderr);
    }
}

/// A loop whose budget is used up says so before anybody resumes it, and on a terminal the refusal is the last thing there.
#[test]
fn a_used_up_budget_is_said_and_a_refused_resume_leaves_no_lines() {
    let lab = agent("echo $n >> log");
    let (_, result) = run(&lab, &["--budget", "50"]);
    assert_eq!(
        (&result["outcome"], &result["session_status"]),
        (&json!("budget"), &json!("paused")),
        "{result}"
    );
    let status = lab.run(&["loop", "status"]).text();
    assert!(status.contains("next       nothing until its budget is extended"), "{status}");
    assert!(status.contains("budget     110 of 50 tok"), "{status}");
    let hint = lab.run(&["show", "last"]).stderr;
    assert!(hint.contains("hint: segno budget extend") && hint.contains("then: segno resume"), "{hint}");
    let panel = lab.run(&["resume", "--options"]).text();
    assert!(panel.contains("of tokens is used up; no agent starts before segno budget extend"), "{panel}");
    let terminal = crate::terminal::Terminal::open(&lab);
    terminal.type_keys(&format!("TERM=xterm \"$SEGNO\" resume --from live{}", crate::terminal::ENTER));
    // The sentence is broken between words where the line ends.
    terminal.wait_for(0, "was started");
    assert_eq!(terminal.exit_code(), 8);
    let shown = terminal.since(0);
    let (_, after) = shown.split_once("was started").unwrap();
    assert!(!after.contains("breaker"), "the lines were drawn again: {after:?}");
}

#[test]
fn a_completed_loop_says_what_came_of_it_all() {
    let lab = agent(HONEST);
    assert_eq!(run(&lab, &[]).0, Some(0));
    let shown = lab.run(&["show", "last"]).text();
    assert!(shown.contains("completed: the gate of WORK passed after 3 iterations"), "{shown}");
    assert!(!shown.contains("iter 3"), "no line of an iteration: {shown}");
    // The view rests while the loop works, and shows the end all the same.
    let id = lab.state()["session_id"].as_str().unwrap().to_owned();
    let view = lab.home.work().join(format!(".segno/sessions/{id}/session.yaml"));
    let view = std::fs::read_to_string(view).unwrap();
    assert!(view.lines().any(|line| line == "state: completed"), "{view}");
    assert!(view.lines().any(|line| line == "iteration: 3"), "{view}");
}

#[test]
fn a_command_behind_two_dashes_is_no_file_and_no_agent() {
    let lab = agent(HONEST);
    for line in [
        &["loop", "--", "./agent.sh"][..],
        &["loop", "--prompt", "x", "--until", "true", "--", "./agent.sh", "-v"],
    ] {
        let said = lab.run(line);
        assert_eq!(said.code, Some(2), "{line:?}: {}", said.stderr);
        assert!(said.stderr.contains("a command behind -- is for segno run"), "{}", said.stderr);
        assert!(said.stderr.contains("[agents.mine] command = [\"./agent.sh\""), "{}", said.stderr);
    }
    assert_eq!(lab.json(&["ls", "--all"])["sessions"].as_array().unwrap().len(), 0);
}

/// A described agent that is said to tell its cost, and never does: a cap on money does not let it go on for ever.
#[test]
fn an_agent_that_never_tells_its_cost_does_not_pass_a_cap_on_money() {
    for tokens in [true, false] {
        let lab = Lab::new();
        let script = lab.path("agent.sh");
        lab.write(&script, "date +%N > made; echo '{\"used\": 500}'\n");
        let rule = "[[agents.counter.rules]]\nkind = \"tokens\"\nfields = { input = \"$.used\" }\n";
        lab.config(&format!(
            "[agents.counter]\ncommand = [\"sh\", {script:?}]\nprompt = \"none\"\nformat = \"json\"\n\
             [[agents.counter.rules]]\nkind = \"cost\"\nfields = {{ usd = \"$.cost\" }}\n{}",
            if tokens { rule } else { "" }
        ));
        let said = lab.run(&[
            "loop",
            "--agent",
            "counter",
            "--prompt",
            "x",
            "--until",
            "false",
            "--cost",
            "5",
            "--max-iterations",
            "4",
        ]);
        assert_eq!(said.code, Some(8), "{}", said.stderr);
        assert!(said.stderr.contains("is known only as far as its rule finds it"), "{}", said.stderr);
        assert!(said.stderr.contains("what it cost is not known"), "{}", said.stderr);
        assert_eq!(lab.journal(Some("run_started")).len(), 1, "with tokens: {tokens}");
    }
}

/// An agent whose description names no arguments for a model cannot be told one: that is said, once.
#[test]
fn a_model_that_an_agent_cannot_be_told_is_said_once() {
    let lab = Lab::new();
    let script = lab.path("agent.sh");
    lab.write(&script, "date +%N > made\n");
    lab.config(&format!("[agents.mine]\ncommand = [\"sh\", {script:?}]\nprompt = \"none\"\n"));
    let words = "mine is not told to use big";
    let begin = ["--agent", "mine", "--model", "big", "--prompt", "x"];
    let args = [&["loop"][..], &begin, &["--until", "false", "--max-iterations", "3"]].concat();
    let said = lab.run(&args);
    assert_eq!((said.code, said.stderr.matches(words).count()), (Some(26), 1), "{}", said.stderr);
    let said = lab.run(&[&["run"][..], &begin].concat());
    assert_eq!((said.code, said.stderr.matches(words).count()), (Some(0), 1), "{}", said.stderr);
}

/// `--more` takes nothing away, and a resume that is refused leaves all as it was.
#[test]
fn more_iterations_are_never_fewer_and_a_refused_resume_allows_nothing() {
    let lab = agent("echo $n >> log");
    let (code, result) = run(&lab, &["--max-iterations", "30", "--budget", "50"]);
    assert_eq!(code, Some(8), "{result}");
    let caps = || lab.state()["looping"]["plan"]["caps"]["iterations"].clone();
    let before = lab.state();
    let refused = lab.run(&["loop", "resume", "last", "--more", "40"]);
    assert_eq!(refused.code, Some(8), "{}", refused.stderr);
    assert_eq!(lab.state(), before, "it was refused, and allowed nothing");
    let extended = lab.run(&["budget", "extend", "110"]);
    assert_eq!(extended.code, Some(0), "{}", extended.stderr);
    assert_eq!(lab.run(&["loop", "resume", "last", "--more", "10"]).code, Some(8));
    assert_eq!(caps(), 30, "ten more than were used are fewer than it has");
    assert_eq!(lab.run(&["budget", "extend", "110"]).code, Some(0));
    let used = lab.state()["looping"]["total"].as_u64().unwrap();
    assert_eq!(lab.run(&["loop", "resume", "last", "--more", "40"]).code, Some(8));
    assert_eq!(caps(), used + 40);
}

/// The cap and the breaker may be full in the same iteration: what the hint says works all the same.
#[test]
fn a_loop_at_its_cap_and_its_breaker_goes_on_as_its_hint_says() {
    let lab = agent("true");
    let said = lab.run(&[UNTIL, &["--max-iterations", "3"]].concat());
    assert_eq!(said.code, Some(26), "{}", said.stderr);
    assert!(said.stderr.contains("--more 10"), "{}", said.stderr);
    assert!(said.stderr.contains("its breaker is open too"), "{}", said.stderr);
    let more = lab.run(&["loop", "resume", "last", "--more", "10"]);
    assert_eq!(more.code, Some(28), "one more was tried, and brought nothing: {}", more.stderr);
    assert_eq!(beside(&lab, "n").trim(), "4");
    assert_eq!(lab.state()["looping"]["plan"]["caps"]["iterations"], 13);
}

/// A pattern that cannot be meant is refused, and one that matches nothing is said, before anything is spent.
#[test]
fn a_pattern_that_protects_nothing_is_said() {
    let lab = agent("touch c; signal=true");
    for pattern in ["[test_cart.py", "tests/{a,b"] {
        let said = lab.run(&[UNTIL, &["--protect", pattern]].concat());
        assert_eq!(said.code, Some(2), "{pattern}: {}", said.stderr);
        assert!(said.stderr.contains("that is not closed"), "{}", said.stderr);
    }
    assert_eq!((beside(&lab, "n").as_str(), lab.json(&["ls", "--all"])["sessions"].clone()), ("", json!([])));
    lab.write(lab.home.work().join("app/[id]/page.tsx"), "");
    let said = lab.run(&[UNTIL, &["--protect", "tset/**", "--protect", "app/[id]/**"]].concat());
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    assert!(said.stderr.contains("warning: no file matches tset/**"), "{}", said.stderr);
    assert!(!said.stderr.contains("no file matches app"), "{}", said.stderr);
    let directory = lab.home.work().join(".segno/workflows");
    let phase = "[[phase]]\nname = \"WORK\"\nprompt = \"go\"\ngate = \"signal\"\n";
    lab.write(directory.join("mine.toml"), &format!("{phase}protect = [\"[x\"]\n"));
    let said = lab.run(&["workflow", "check", "mine"]);
    assert!(said.code == Some(13) && said.stderr.contains("that is not closed"), "{}", said.stderr);
    lab.write(directory.join("mine.toml"), &format!("{phase}protect = [\"tset/**\"]\n"));
    let said = lab.run(&["workflow", "check", "mine"]);
    assert!(said.code == Some(0) && said.stderr.contains("no file matches tset/**"), "{}", said.stderr);
}

/// Whoever ends a loop by hand ends it without its gate: `segno loop … && deploy` does not deploy.
#[test]
fn a_loop_that_somebody_ends_meanwhile_has_not_passed() {
    for (verb, status, words) in [
        ("complete", "completed", "somebody completed it; its gate has not passed"),
        ("abort", "aborted", "somebody gave it up"),
    ] {
        let lab = agent("touch ../first; while [ ! -e ../go ]; do sleep 0.02; done");
        let live = lab.start(UNTIL, None);
        let home = lab.home.work().parent().unwrap().to_owned();
        until("the first iteration runs", || home.join("first").exists().then_some(()));
        let asked = lab.start(&[verb, "last"], None);
        until("it is asked for", || {
            let state = lab.state();
            let open = state["requests"].as_array().is_some_and(|requests| !requests.is_empty());
            (open || state["status"] != "active").then_some(())
        });
        std::fs::write(home.join("go"), "").unwrap();
        let ended = live.finish();
        assert_eq!(asked.finish().code, Some(0));
        assert_eq!((ended.code, &lab.state()["status"]), (Some(23), &json!(status)), "{}", ended.stderr);
        assert!(ended.stderr.contains(words), "{}", ended.stderr);
        let hint = ended.stderr.lines().rev().find(|line| line.contains("hint:")).unwrap();
        assert!(hint.contains("segno show") && !hint.contains("segno resume"), "{hint}");
    }
}

/// No agent is paid for work that nothing can measure; what the work itself may bring is only warned of.
#[test]
fn a_command_that_cannot_be_run_is_said_before_anything_is_spent() {
    let lab = agent("touch c; signal=true");
    for command in ["nosuchtool --x", "true && nosuchtool", "./made"] {
        let (code, said) = run_words(&lab, &["--until", command]);
        assert_eq!(code, Some(12), "{said}");
        assert!(said.contains(&format!("{command}: exit 127: ")) && said.contains("not found"), "{said}");
        assert_eq!((beside(&lab, "n").as_str(), &lab.json(&["ls", "--all"])["sessions"]), ("", &json!([])));
    }
    // What a program that it runs misses may come with the work. One that it names would be a part of what measures, and count
    // as changed.
    let lab = agent("printf '#!/bin/sh\\n' > dep; chmod +x dep; signal=true");
    lab.write(lab.home.work().join("check.sh"), "exec ./$(echo dep)\n");
    let (code, said) = run_words(&lab, &["--until", "sh check.sh"]);
    assert!(code == Some(0) && said.contains("warning: sh check.sh: exit 127: "), "{code:?} {said}");
}

/// What a command printed that fails and counts no tests stands below the line of the iteration, once.
#[test]
fn what_a_failing_command_printed_is_shown() {
    let lab = agent("echo $n >> log");
    let (code, said) =
        run_words(&lab, &["--until", "echo no anchor aboard; exit 3", "--max-iterations", "2"]);
    assert_eq!(code, Some(26), "{said}");
    let lines: Vec<&str> = said.lines().collect();
    let at = lines.iter().position(|line| *line == "    no anchor aboard").unwrap();
    assert!(lines[..at].iter().any(|line| line.contains("iter 1")), "{said}");
    assert_eq!(
        said.matches("no anchor aboard").count(),
        1 + said.matches("echo no anchor aboard").count(),
        "{said}"
    );
}

/// Of a halted loop in its last phase, what is named can be typed, one after the other.
#[test]
fn a_halted_loop_in_its_last_phase_names_what_can_be_done() {
    let lab = agent("true");
    assert_eq!(run(&lab, &[]).0, Some(28));
    let complete = lab.run(&["complete", "last"]);
    let skip = lab.run(&["loop", "skip-phase", "last"]);
    assert_eq!((complete.code, skip.code), (Some(5), Some(2)), "{}{}", complete.stderr, skip.stderr);
    for said in [&complete, &skip] {
        let hint = said.stderr.lines().find_map(|line| line.trim().strip_prefix("hint: segno ")).unwrap();
        assert!(hint.contains(" --no-run --reset-breaker   then: segno complete "), "{hint}");
    }
    let hint = skip.stderr.lines().find_map(|line| line.trim().strip_prefix("hint: ")).unwrap();
    let (first, rest) = hint.split_once("   then: ").unwrap();
    for command in [first, rest.split_once("   (or:").unwrap().0] {
        let said = lab.run(&command.split_whitespace().skip(1).collect::<Vec<_>>());
        assert_eq!(said.code, Some(0), "{command}: {}", said.stderr);
    }
    assert_eq!(lab.state()["status"], "completed");
}

#[test]
fn a_measurement_by_hand_says_that_it_measures() {
    let lab = agent("echo $n >> log");
    assert_eq!(run(&lab, &["--max-iterations", "1"]).0, Some(26));
    let terminal = crate::terminal::Terminal::open(&lab);
    let place = terminal.place();
    terminal.type_keys(&format!("\"$SEGNO\" gate last{}", crate::terminal::ENTER));
    terminal.wait_for(place, "measures WORK: until");
    assert_eq!(terminal.exit_code(), 1);
}

/// What the list says of a loop is what the loop says: which cap it met.
#[test]
fn a_list_says_of_a_loop_what_the_loop_says() {
    let lab = agent("echo $n > made");
    assert_eq!(run(&lab, &["--max-iterations", "2"]).0, Some(26));
    let list = lab.run(&["ls"]).text();
    assert!(list.contains("paused: 2 of 2 iterations") && !list.contains("budget"), "{list}");
    let hint = lab.run(&["show", "last"]).stderr;
    assert!(hint.contains(" --more 10"), "resume alone would stand still at once: {hint}");
}
