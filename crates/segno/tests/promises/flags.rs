//! A flag does what it says or is refused, with every kind of session.

use segno_testkit::lines::claude;
use segno_testkit::scripted::SignalName;
use segno_testkit::scripted::Step;
use serde_json::Value;
use serde_json::json;

use crate::lab::Lab;
use crate::setup::git;
use crate::setup::ok;

/// A lab in a repository with one commit on master.
fn in_git() -> Lab {
    let lab = Lab::new();
    git(&lab, &["init", "-q", "-b", "master"]);
    git(&lab, &["commit", "-q", "--allow-empty", "-m", "first"]);
    lab
}

fn sessions(lab: &Lab) -> usize {
    lab.json(&["ls", "--all"])["sessions"].as_array().map_or(0, Vec::len)
}

promise!(
    /// A cap that is given to a run in an open session is that session's from then on, as `budget set` would make it:
    /// it stops, and a larger one lets a session go on whose cap was used up.
    fn a_cap_holds_in_a_session_that_is_there() {
        let lab = Lab::new();
        ok(&lab, &["new", "t"]);
        ok(&lab, &["tokens", "40"]);
        ok(&lab, &["run", "--session", "last", "--budget", "500", "--cost", "2", "--", "true"]);
        let state = lab.state();
        assert_eq!((&state["budget"]["total_budget"], &state["budget"]["hard"]), (&json!(500), &json!(true)));
        assert_eq!(state["budget"]["tokens_used"], 40, "{state}");
        assert_eq!(
            (&state["cost"]["limit_micros"], &state["cost"]["hard"]),
            (&json!(2_000_000), &json!(true))
        );
        ok(&lab, &["tokens", "500"]);
        assert_eq!(lab.run(&["run", "--session", "last", "--", "true"]).code, Some(8));
        assert_eq!(lab.run(&["run", "--session", "last", "--budget", "510", "--", "true"]).code, Some(8));
        ok(&lab, &["run", "--session", "last", "--budget", "1k", "--", "true"]);
        assert_eq!(lab.state()["budget"]["total_budget"], 1000);
    }
);

promise!(
    /// An agent cannot lift a cap that stops it by starting a run in its session, or by going on from it.
    fn an_agent_lifts_no_cap_by_a_run() {
        let lab = Lab::new();
        let segno = lab.segno.display();
        let inner = format!("'{segno}' run --session last --budget 9k -- true; echo $? > code");
        ok(&lab, &["run", "--budget", "1000", "--", "sh", "-c", &inner]);
        assert_eq!(std::fs::read_to_string(lab.home.work().join("code")).unwrap().trim(), "5");
        assert_eq!(lab.state()["budget"]["total_budget"], 1000);
    }
);

promise!(
    /// What only a new session can have is refused for one that is there, before anything is recorded.
    fn what_a_new_session_gets_is_refused_for_an_old_one() {
        let lab = in_git();
        ok(&lab, &["new", "t"]);
        let before = lab.state()["seq"].clone();
        for flag in [["--topic", "other"], ["--branch", "other"]] {
            let said = lab.run(&["run", "--session", "last", flag[0], flag[1], "--", "true"]);
            assert_eq!(said.code, Some(2), "{}", said.stderr);
            assert!(said.stderr.contains(flag[0]), "{}", said.stderr);
        }
        assert_eq!(lab.state()["seq"], before);
        assert_eq!(git(&lab, &["branch", "--show-current"]), "master");
    }
);

promise!(
    /// A cap that is given to a run that goes on from another session keeps what was used; one that is used up is
    /// refused before a session is made.
    fn a_run_that_goes_on_keeps_what_was_used() {
        let mut lab = Lab::new();
        let mut result = claude::result("${session}", "done");
        result["usage"] = json!({ "input_tokens": 300, "output_tokens": 100,
            "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0 });
        lab.stand_in("claude", &[Step::Stdin(0), Step::Json(claude::init("${session}")), Step::Json(result)]);
        let go = ["run", "--no-hooks", "--prompt", "go"];
        let with = |more: &[&str]| lab.run(&[&go[..], more].concat());
        with(&["--budget", "5000"]);
        let used = lab.state()["budget"]["tokens_used"].as_u64().unwrap();
        assert!(used >= 400, "{used}");
        with(&["--continue-from", "last", "--budget", "6000"]);
        let state = lab.state();
        assert_eq!(state["budget"]["total_budget"], 6000);
        assert!(state["budget"]["tokens_used"].as_u64().unwrap() > used, "{state}");
        let count = sessions(&lab);
        let said = with(&["--continue-from", "last", "--budget", "100"]);
        assert_eq!(said.code, Some(8), "{}", said.stderr);
        assert_eq!(sessions(&lab), count, "nothing was recorded");
    }
);

promise!(
    /// In the background, too, a run that a cap does not let begin has the exit code of that.
    fn a_detached_run_that_is_refused_says_why() {
        let lab = Lab::new();
        ok(&lab, &["new", "t", "--budget", "100"]);
        ok(&lab, &["tokens", "101"]);
        let said = lab.run(&["run", "--session", "last", "--detach", "--", "true"]);
        assert_eq!(said.code, Some(8), "{}", said.stderr);
    }
);

promise!(
    /// Work does not go on on another branch unknowingly, whatever kind of session it is.
    fn a_session_goes_on_on_its_branch() {
        let lab = in_git();
        ok(&lab, &["new", "t", "--branch", "nb"]);
        ok(&lab, &["pause"]);
        git(&lab, &["checkout", "-q", "master"]);
        let said = lab.run(&["resume", "last"]);
        assert_eq!(said.code, Some(5), "{}", said.stderr);
        assert!(said.stderr.contains("--checkout-branch"), "{}", said.stderr);
        assert_eq!(lab.state()["status"], "paused");
        let said = lab.run(&["run", "--session", "last", "--", "true"]);
        assert_eq!(said.code, Some(5), "{}", said.stderr);
        assert!(said.stderr.contains("--checkout-branch"), "{}", said.stderr);
        assert_eq!((&lab.state()["branch"], &lab.state()["status"]), (&json!("nb"), &json!("paused")));
        let said = ok(&lab, &["resume", "last", "--any-branch"]);
        assert!(
            said.stderr.contains("branch master") && !said.stderr.contains("branch nb"),
            "{}",
            said.stderr
        );
        ok(&lab, &["run", "--session", "last", "--", "true"]);
    }
);

promise!(
    /// What is for an agent is refused where none goes on.
    fn what_is_for_an_agent_needs_one() {
        let lab = Lab::new();
        ok(&lab, &["new", "t"]);
        ok(&lab, &["pause"]);
        for flags in [&["-p", "more"][..], &["-i"], &["--arg", "x"], &["--same-args"]] {
            let said = lab.run(&[&["resume", "last"], flags].concat());
            assert_eq!(said.code, Some(2), "{flags:?}: {}", said.stderr);
            assert!(said.stderr.contains("agent"), "{}", said.stderr);
            assert_eq!(lab.state()["status"], "paused");
        }
        ok(&lab, &["abort", "last"]);
        lab.run(&["run", "--", "sh", "-c", "kill -9 $$"]);
        assert_eq!(lab.run(&["resume", "last", "-p", "more"]).code, Some(2));
        assert_eq!(lab.state()["status"], "interrupted");
    }
);

promise!(
    /// `resume -i` needs a terminal, as `run -i` does, and `-y` is "do not ask".
    fn resume_refuses_a_terminal_that_is_not_there() {
        let mut lab = Lab::new();
        lab.stand_in(
            "claude",
            &[Step::Stdin(0), Step::Json(claude::init("${session}")), Step::Kill(SignalName::Kill)],
        );
        lab.run(&["run", "--no-hooks", "--prompt", "go"]);
        let said = lab.run(&["resume", "last", "-i"]);
        assert_eq!(said.code, Some(2), "{}", said.stderr);
        assert!(said.stderr.contains("terminal"), "{}", said.stderr);
        assert_eq!(lab.state()["status"], "interrupted");
        let said = lab.run(&["resume", "last", "-y", "--no-run"]);
        assert_eq!((said.code, &lab.state()["status"]), (Some(0), &json!("active")), "{}", said.stderr);
    }
);

promise!(
    /// A session whose project is gone is named by `resume --all`, and not among those that go on.
    fn resume_all_says_which_projects_are_gone() {
        let mut lab = Lab::new();
        lab.stand_in(
            "claude",
            &[Step::Stdin(0), Step::Json(claude::init("${session}")), Step::Kill(SignalName::Kill)],
        );
        let gone = lab.home.work().join("gone");
        std::fs::create_dir(&gone).unwrap();
        let place = gone.to_str().unwrap();
        lab.run(&["--project", place, "run", "--no-hooks", "--prompt", "go"]);
        std::fs::remove_dir_all(&gone).unwrap();
        let said = lab.run(&["resume", "--all", "--yes", "--json"]);
        let answer: Value = serde_json::from_slice(&said.stdout).unwrap();
        assert_eq!(answer["resumed"], json!([]), "{answer}");
        assert!(said.stderr.contains("gone"), "{}", said.stderr);
    }
);

promise!(
    /// What would be ignored is refused: `--session` where no session is meant, `--no-hooks` for a command without hooks.
    fn what_would_be_ignored_is_refused() {
        let lab = Lab::new();
        ok(&lab, &["new", "t"]);
        for command in [&["ls"][..], &["doctor"], &["du"], &["workflow", "list"]] {
            let said = lab.run(&[&["--session", "last"], command].concat());
            assert_eq!(said.code, Some(2), "{command:?}: {}", said.stderr);
            assert!(
                said.stderr.contains("--session is for commands that are about one session"),
                "{}",
                said.stderr
            );
        }
        let said = lab.run(&["run", "--no-hooks", "--", "true"]);
        assert_eq!(said.code, Some(2), "{}", said.stderr);
        assert!(said.stderr.contains("--no-hooks is for agents, not for a command"), "{}", said.stderr);
        assert_eq!(sessions(&lab), 1);
    }
);
