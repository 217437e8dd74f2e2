//! A cap stops: it is looked at before every start, goes along whatever way work goes on, and shows whenever one looks.

use segno_testkit::lines::claude;
use segno_testkit::scripted::SignalName;
use segno_testkit::scripted::Step;
use serde_json::Value;
use serde_json::json;

use crate::lab::Lab;
use crate::lab::Said;

/// An agent that reads its prompt, says who it is, and dies in the middle of a call.
fn dies() -> Vec<Step> {
    let call = claude::tool_use("${session}", "toolu_1", "Bash", json!({ "command": "make" }));
    vec![
        Step::Stdin(0),
        Step::Json(claude::init("${session}")),
        Step::Json(call),
        Step::Kill(SignalName::Kill),
    ]
}

/// An agent that says at the end what it used: input, output, read from the cache, written to it.
fn uses(input: u64, output: u64, read: u64, written: u64) -> Vec<Step> {
    let mut result = claude::result("${session}", "done");
    result["usage"] = json!({
        "input_tokens": input, "output_tokens": output,
        "cache_read_input_tokens": read, "cache_creation_input_tokens": written,
    });
    result["modelUsage"] = json!({ "scripted": {
        "inputTokens": input, "outputTokens": output,
        "cacheReadInputTokens": read, "cacheCreationInputTokens": written, "costUSD": 0.01,
    } });
    vec![Step::Stdin(0), Step::Json(claude::init("${session}")), Step::Json(result)]
}

fn lab(steps: &[Step]) -> Lab {
    let mut lab = Lab::new();
    lab.stand_in("claude", steps);
    lab
}

fn run(lab: &Lab, more: &[&str]) -> Said {
    lab.run(&["run", "--no-hooks", "--prompt", "go"].iter().chain(more).copied().collect::<Vec<_>>())
}

/// A described agent that says how much input it used, and then waits for a file.
fn counting_agent(lab: &Lab, used: u64, wait: &str) {
    let line = lab.scripted(
        "counter",
        &[Step::Json(json!({ "used": used })), Step::WaitFor { path: lab.path(wait), seconds: 60 }],
    );
    lab.config(&format!(
        "[agents.counter]\ncommand = {line:?}\nprompt = \"none\"\nformat = \"json\"\n\
         [[agents.counter.rules]]\nkind = \"tokens\"\nfields = {{ input = \"$.used\" }}"
    ));
}

promise!(
    /// A fresh start keeps the caps with what was used of them, the workflow, the intent and the open tasks, and begins
    /// at the first step without outputs.
    fn a_fresh_start_keeps_caps_and_plan() {
        let lab = lab(&dies());
        lab.write(
            lab.home.path().join(".config/segno/prices.toml"),
            "[models]\nscripted = { input = 1, output = 1 }\n",
        );
        let made = lab.run(&[
            "new",
            "login",
            "--phases",
            "red,green",
            "--intent",
            "it works",
            "--budget",
            "5000",
            "--cost",
            "1",
        ]);
        assert_eq!(made.code, Some(0), "{}", made.stderr);
        for args in [
            &["task", "add", "write it"][..],
            &["output", "set", "plan", "text"],
            &["phase", "green"],
            &["tokens", "40"],
        ] {
            assert_eq!(lab.run(args).code, Some(0), "{args:?}");
        }
        run(&lab, &["--session", "last"]);
        let old = lab.state();
        assert_eq!(old["status"], "interrupted");
        lab.run(&["resume", "last", "--from", "fresh"]);
        let new = lab.state();
        assert_ne!(new["session_id"], old["session_id"]);
        assert_eq!(new["continues"], old["session_id"]);
        assert_eq!((&new["budget"]["total_budget"], &new["budget"]["hard"]), (&json!(5000), &json!(true)));
        assert!(new["budget"]["tokens_used"].as_u64() >= old["budget"]["tokens_used"].as_u64(), "{new}");
        assert_eq!((&new["cost"]["limit_micros"], &new["cost"]["hard"]), (&json!(1_000_000), &json!(true)));
        assert_eq!(new["workflow"], old["workflow"]);
        assert_eq!((&new["phase"], &new["step"]), (&json!("red"), &json!(1)));
        assert_eq!(new["intent"], "it works");
        assert_eq!(new["tasks"]["open"], json!({ "1": "write it" }));
        assert!(new["outputs"].is_null() && new["phases_completed"].is_null(), "{new}");
    }
);

promise!(
    /// `--continue-from` keeps the caps, with what was used of them.
    fn continue_from_keeps_caps() {
        let lab = lab(&uses(300, 100, 0, 0));
        run(&lab, &["--budget", "5000", "--cost", "1"]);
        let old = lab.state();
        assert_eq!(old["status"], "completed");
        run(&lab, &["--continue-from", "last"]);
        let new = lab.state();
        assert_eq!(new["continues"], old["session_id"]);
        assert_eq!((&new["budget"]["total_budget"], &new["budget"]["hard"]), (&json!(5000), &json!(true)));
        assert_eq!((&new["cost"]["limit_micros"], &new["cost"]["hard"]), (&json!(1_000_000), &json!(true)));
        assert!(new["budget"]["tokens_used"].as_u64() >= old["budget"]["tokens_used"].as_u64(), "{new}");
        assert!(old["budget"]["tokens_used"].as_u64() >= Some(400), "{old}");
    }
);

promise!(
    /// What is left of a cap is there once, however often and over whatever ways somebody goes on from a session.
    fn the_rest_of_a_cap_is_there_once() {
        let lab = lab(&uses(1_000, 0, 0, 0));
        let used = |lab: &Lab| lab.state()["budget"]["tokens_used"].as_u64().unwrap();
        let id = |lab: &Lab| lab.state()["session_id"].as_str().unwrap().to_owned();
        run(&lab, &["--budget", "5500", "--cost", "1"]);
        let (first, one) = (id(&lab), used(&lab));
        assert_eq!(one, 1_000);
        run(&lab, &["--continue-from", &first]);
        let second = id(&lab);
        assert_eq!(used(&lab), 2_000);
        // From the first once more: the second has used some of it.
        run(&lab, &["--continue-from", &first]);
        assert_eq!(used(&lab), 3_000);
        // From the second, which knows nothing of the third.
        run(&lab, &["--continue-from", &second]);
        let fourth = id(&lab);
        assert_eq!(used(&lab), 4_000);
        assert_eq!(lab.state()["cost"]["used_micros"], 40_000);
        // Of one that was taken to another place and back.
        let file = lab.path("fourth.json");
        assert_eq!(lab.run(&["export", &fourth, "-o", &file]).code, Some(0));
        assert_eq!(lab.run(&["rm", &fourth, "--yes"]).code, Some(0));
        let said = lab.run(&["import", &file]);
        assert_eq!(said.code, Some(0), "{}", said.stderr);
        run(&lab, &["--continue-from", &fourth]);
        assert_eq!(used(&lab), 5_000);
        let fifth = id(&lab);
        run(&lab, &["--continue-from", &first]);
        assert_eq!(used(&lab), 6_000);
        for session in [&first, &second, &fourth, &fifth] {
            let said = run(&lab, &["--continue-from", session]);
            assert_eq!(said.code, Some(8), "{}{}", said.text(), said.stderr);
        }
    }
);

promise!(
    /// A cap that is used up lets nothing start: no command, no agent, neither by `run` nor by `resume`; and the way on
    /// is said.
    fn a_used_up_cap_starts_nothing() {
        let lab = lab(&dies());
        let started = lab.path("started");
        lab.run(&["new", "t", "--budget", "100"]);
        lab.run(&["tokens", "101"]);
        let said = lab.run(&["run", "--session", "last", "--", "touch", &started]);
        assert_eq!(said.code, Some(8), "{}", said.stderr);
        assert!(said.stderr.contains("segno budget extend"), "{}", said.stderr);
        assert!(!std::path::Path::new(&started).exists());
        assert_eq!(lab.journal(Some("run_started")).len(), 0);
        lab.run(&["abort", "last"]);
        run(&lab, &["--budget", "5000"]);
        assert_eq!(lab.journal(Some("run_started")).len(), 1);
        lab.run(&["tokens", "--session", "last", "5000"]);
        let said = lab.run(&["resume", "last"]);
        assert_eq!(said.code, Some(8), "{}", said.stderr);
        assert!(said.stderr.contains("segno budget extend"), "{}", said.stderr);
        assert_eq!(lab.journal(Some("run_started")).len(), 1, "no agent was started");
        lab.run(&["budget", "extend", "10k", "--session", "last"]);
        lab.run(&["resume", "last"]);
        assert_eq!(lab.journal(Some("run_started")).len(), 2, "with a larger budget it goes on");
    }
);

promise!(
    /// A run that a budget stopped says how to allow more.
    fn a_budget_stop_says_how_to_go_on() {
        let lab = Lab::new();
        counting_agent(&lab, 5000, "never");
        let said = lab.run(&["run", "--agent", "counter", "--budget", "1000", "--grace", "100"]);
        assert_eq!(said.code, Some(8), "{}", said.stderr);
        assert!(said.stderr.contains("segno budget extend"), "{}", said.stderr);
        assert!(!said.stderr.contains("does not say what it uses"), "{}", said.stderr);
    }
);

promise!(
    /// A run that passes the cap on its day by what it uses itself is stopped at once, not when another session begins.
    fn a_run_that_uses_up_the_day_by_itself_is_stopped() {
        let lab = Lab::new();
        counting_agent(&lab, 5000, "never");
        lab.config("[budget]\nday_tokens = 3000");
        let said = lab.run(&["run", "--agent", "counter", "--grace", "100"]);
        assert_eq!(said.code, Some(8), "{}", said.stderr);
        assert!(said.stderr.contains("of today is used up"), "{}", said.stderr);
        assert_eq!(lab.state()["status"], "paused");
        lab.assert_no_process_left();
    }
);

promise!(
    /// That a budget runs low shows whenever one looks: in `ls`, `show` and `budget`, for people and for programs.
    fn a_low_budget_shows_whenever_one_looks() {
        let lab = Lab::new();
        lab.run(&["new", "t", "--budget", "100"]);
        lab.run(&["tokens", "85"]);
        for args in [&["budget"][..], &["show"], &["ls"]] {
            let said = lab.run(args);
            let words = format!("{}{}", said.text(), said.stderr);
            assert!(words.contains("low"), "{args:?}: {words}");
        }
        assert_eq!(lab.json(&["ls"])["sessions"][0]["budget_warning"], true);
        assert_eq!(lab.json(&["show"])["session"]["budget_warning"], true);
    }
);

promise!(
    /// `segno budget check N` answers a script whether so many tokens still fit.
    fn a_script_can_ask_whether_a_budget_is_left() {
        let lab = Lab::new();
        lab.run(&["new", "t", "--budget", "100"]);
        lab.run(&["tokens", "85"]);
        assert_eq!(lab.run(&["budget", "check"]).code, Some(0));
        assert_eq!(lab.run(&["budget", "check", "15"]).code, Some(0));
        assert_eq!(lab.run(&["budget", "check", "16"]).code, Some(8));
        let said = lab.run(&["budget", "check", "16", "--json"]);
        let answer: Value = serde_json::from_slice(&said.stdout).unwrap();
        assert_eq!((said.code, &answer["can_continue"]), (Some(8), &json!(false)));
        lab.run(&["tokens", "15"]);
        assert_eq!(lab.run(&["budget", "check"]).code, Some(8));
    }
);

promise!(
    /// What is said on the command line wins over the arguments that the configuration adds.
    fn flags_win_over_configured_arguments() {
        let records = "records";
        let mut lab = Lab::new();
        let steps = [
            Step::Stdin(0),
            Step::Record(lab.path(records)),
            Step::Json(claude::init("${session}")),
            Step::Json(claude::result("${session}", "heard")),
        ];
        lab.stand_in("claude", &steps);
        lab.config("[agents.claude]\nextra_args = [\"--model\", \"configured\", \"--max-turns=99\", \"--verbose-too\"]");
        run(&lab, &["--model", "typed", "--max-turns", "3"]);
        let file = std::fs::read_dir(lab.path(records)).unwrap().next().unwrap().unwrap().path();
        let record: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
        let args: Vec<&str> = record["args"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        assert!(!args.contains(&"configured") && !args.contains(&"--max-turns=99"), "{args:?}");
        assert!(args.contains(&"--verbose-too"), "{args:?}");
        let model = args.iter().position(|arg| *arg == "--model").unwrap();
        assert_eq!(args[model + 1], "typed");
    }
);

promise!(
    /// Reading from the vendor's cache is shown, and does not count towards a cap unless somebody wants it to.
    fn cache_reads_do_not_count() {
        let mut lab = lab(&uses(100, 20, 1_000_000, 30));
        let said = run(&lab, &["--budget", "5000"]);
        assert_eq!(said.code, Some(0), "{}", said.stderr);
        let state = lab.state();
        assert_eq!(state["budget"]["tokens_used"], 150, "{state}");
        assert_eq!(state["tokens"]["cache_read"], 1_000_000);
        let shown = lab.run(&["show", "last"]).text();
        assert!(shown.contains("read from cache, not counted"), "{shown}");
        lab.env.insert("SEGNO_BUDGET_COUNT".to_owned(), "all".to_owned());
        run(&lab, &["--budget", "5000"]);
        assert_eq!(lab.state()["budget"]["tokens_used"], 1_000_150);
    }
);

promise!(
    /// What an agent's own `segno run` uses counts towards the caps of the run that it is below, and stops it.
    fn a_cap_counts_runs_below_it() {
        let lab = Lab::new();
        counting_agent(&lab, 5000, "never");
        let inner = format!("'{}' run --agent counter --grace 100", lab.segno.display());
        let said = lab.run(&["run", "--budget", "1000", "--grace", "300", "--", "sh", "-c", &inner]);
        assert_eq!(said.code, Some(8), "{}", said.stderr);
        let sessions = lab.json(&["ls", "--all"])["sessions"].take();
        let outer =
            sessions.as_array().unwrap().iter().find(|session| session["token_budget"] == 1000).unwrap();
        assert!(outer["tokens_used"].as_u64().unwrap() >= 5000, "{outer}");
        lab.assert_no_process_left();
    }
);

promise!(
    /// What a run below a cap used counts there, once, also if its driver died before it could say so.
    fn a_cap_counts_a_run_below_it_whose_driver_died() {
        let lab = Lab::new();
        let (ready, go) = (lab.path("ready"), lab.path("go"));
        let steps = [
            Step::Write { path: ready.clone(), content: String::new() },
            Step::WaitFor { path: go.clone(), seconds: 60 },
            Step::Json(json!({ "used": 5000 })),
        ];
        let line = lab.scripted("counter", &steps);
        lab.config(&format!(
            "[agents.counter]\ncommand = {line:?}\nprompt = \"none\"\nformat = \"json\"\n\
             [[agents.counter.rules]]\nkind = \"tokens\"\nfields = {{ input = \"$.used\" }}"
        ));
        let outer = lab.run(&["new", "outer", "--budget", "100000"]).text().trim().to_owned();
        let mut command = lab.segno(&["run", "--agent", "counter", "--json"]);
        let run = "0199aaaa00007000800000000000000a";
        command.envs([("SEGNO_SESSION", outer.as_str()), ("SEGNO_RUN", run), ("SEGNO_EPOCH", "1")]);
        let live = lab.start_command(&mut command, None);
        crate::lab::until("it has begun", || std::fs::exists(&ready).unwrap().then_some(()));
        lab.running();
        live.signal(rustix::process::Signal::KILL);
        live.finish();
        let used = || lab.json(&["show", &outer])["state"]["budget"]["tokens_used"].take();
        assert_eq!(used(), 0);
        std::fs::write(&go, "").unwrap();
        lab.assert_no_process_left();
        for _ in 0..2 {
            assert_eq!(lab.run(&["ls"]).code, Some(0));
            assert_eq!(used(), 5000);
        }
    }
);

promise!(
    /// Where an agent tells only at its end what it used, a start with a cap says so.
    fn an_agent_that_tells_late_is_named_at_the_start() {
        let mut lab = Lab::new();
        lab.stand_in("gemini", &[Step::Stdin(0), Step::Exit(1)]);
        let said = lab.run(&["run", "--agent", "gemini", "--prompt", "go", "--budget", "5000"]);
        assert!(said.stderr.contains("only at its end"), "{}", said.stderr);
    }
);

promise!(
    /// An agent that calls `segno pause` in its own run is stopped gently after the call.
    fn a_pause_from_inside_ends_the_run() {
        let lab = Lab::new();
        let inner = format!("'{}' pause; echo paused; sleep 1000", lab.segno.display());
        let said = lab.run(&["run", "--json", "--grace", "300", "--", "sh", "-c", &inner]);
        assert_eq!(said.code, Some(23), "{}", said.stderr);
        let state = lab.state();
        assert_eq!(
            (&state["status"], &state["run"]["outcome"]),
            (&json!("paused"), &json!("stopped")),
            "{state}"
        );
        lab.assert_nothing_left();
    }
);

promise!(
    /// What a described agent says it used counts as a fraction and as a text too; what cannot be counted is recorded
    /// as it came, and said.
    fn a_use_that_is_told_in_another_form_counts() {
        let lab = Lab::new();
        let line = lab.scripted(
            "counter",
            &[
                Step::Json(json!({ "used": 900.0 })),
                Step::Json(json!({ "used": "900" })),
                Step::Json(json!({ "used": "plenty" })),
                Step::Json(json!({ "used": -3 })),
            ],
        );
        lab.config(&format!(
            "[agents.counter]\ncommand = {line:?}\nprompt = \"none\"\nformat = \"json\"\n\
             [[agents.counter.rules]]\nkind = \"tokens\"\nfields = {{ input = \"$.used\" }}"
        ));
        let said = lab.run(&["run", "--agent", "counter", "--budget", "100k"]);
        assert_eq!(said.code, Some(0), "{}", said.stderr);
        let state = lab.state();
        assert_eq!(state["budget"]["tokens_used"], 1800, "{state}");
        let journal = lab.journal(None);
        for raw in ["plenty", "-3"] {
            assert!(journal.iter().any(|event| event.to_string().contains(raw)), "{raw}: {journal:#?}");
        }
        assert!(said.stderr.contains("could not be counted"), "{}", said.stderr);
    }
);

promise!(
    /// Where nothing tells what a run uses, a start with a cap says so.
    fn an_agent_that_tells_nothing_is_named_at_the_start() {
        let lab = Lab::new();
        lab.config("[agents.mute]\ncommand = [\"echo\", \"x\"]\nprompt = \"none\"");
        for how in [&["--", "echo", "x"][..], &["--agent", "mute"]] {
            for (cap, warned) in [(&["--budget", "10"][..], true), (&["--cost", "1"], true), (&[], false)] {
                let said = lab.run(&[&["run"][..], cap, how].concat());
                assert_eq!(said.code, Some(0), "{how:?} {cap:?}: {}", said.stderr);
                let words = "does not say what it uses";
                assert_eq!(said.stderr.contains(words), warned, "{how:?} {cap:?}: {}", said.stderr);
            }
        }
    }
);
