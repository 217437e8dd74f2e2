//! A loop with a work queue through the program: a checklist and a scripted tracker.

use serde_json::Value;
use serde_json::json;

use crate::lab::Lab;
use crate::looping::agent;

/// Finds its item in the prompt, does it, ticks it, and says that it is done.
const TICKS: &str = r#"item=$(grep '^Work on this item:' ../prompts | tail -1 | sed 's/.*: //')
echo "$item" >> made; sed -i "s/\[ \] $item/[x] $item/" TODO.md; signal=true"#;

fn listed(work: &str) -> Lab {
    let lab = agent(work);
    lab.write(lab.home.work().join("TODO.md"), "- [ ] hull\n- [x] keel\n- [ ] sail\n");
    lab
}

fn states(document: &Value) -> Vec<(String, String)> {
    let items = document.as_array().unwrap().iter();
    items
        .map(|item| (item["id"].as_str().unwrap().to_owned(), item["state"].as_str().unwrap().to_owned()))
        .collect()
}

fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(id, state)| ((*id).to_owned(), (*state).to_owned())).collect()
}

#[test]
fn a_checklist_is_worked_off_with_one_line() {
    let lab = listed(TICKS);
    let said = lab.run(&["loop", "--no-hooks", "--work", "TODO.md", "--json"]);
    let result = said.result();
    assert_eq!((said.code, &result["outcome"]), (Some(0), &json!("completed")), "{result}");
    assert_eq!(states(&result["items"]), pairs(&[("hull", "done"), ("sail", "done")]));
    let made = std::fs::read_to_string(lab.home.work().join("made")).unwrap();
    assert_eq!(made, "hull\nsail\n");
    let sessions = lab.json(&["ls", "--all"]);
    let parents = sessions["sessions"].as_array().unwrap().iter().filter(|one| one["parent"].is_string());
    assert_eq!((parents.count(), sessions["total"].as_u64()), (2, Some(3)), "{sessions}");
    lab.assert_nothing_left();
}

#[test]
fn a_dry_run_shows_the_items_in_order_and_begins_nothing() {
    let lab = listed(TICKS);
    let plan = lab.json(&["loop", "--work", "TODO.md", "--dry-run"]);
    let ids: Vec<&str> =
        plan["items"].as_array().unwrap().iter().map(|it| it["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["hull", "sail"]);
    assert!(plan["prompt"].as_str().unwrap().contains("Work on this item: hull"), "{plan}");
    assert!(!lab.home.path().join("n").exists(), "no agent was started");
}

/// A list that is longer than is read is no list that is no JSON, and it says what would help.
#[test]
fn a_list_that_is_too_long_is_called_that() {
    let lab = listed(TICKS);
    let long = r#"python3 -c 'import json; print(json.dumps([{"id": str(n), "title": "x" * 800} for n in range(2500)]))'"#;
    let said = lab.run(&["loop", "--work", long, "--dry-run"]);
    assert_eq!(said.code, Some(1), "{}", said.stderr);
    assert!(said.stderr.contains("at most 1280 KB are read; let it list fewer items"), "{}", said.stderr);
}

/// It never ticks: work and follow-up, five times, and the loop says what it set aside. Somebody tries it again.
#[test]
fn what_was_set_aside_is_shown_and_tried_again() {
    let lab = listed("echo $n >> made; signal=true");
    lab.write(lab.home.work().join("TODO.md"), "- [ ] hull\n");
    let args = ["loop", "--no-hooks", "--work", "TODO.md", "--no-wait", "--json"];
    let said = lab.run(&args);
    // The second failure is followed by a pause of a minute, which nobody waits for here.
    assert_eq!((said.code, &said.result()["outcome"]), (Some(24), &json!("parked")), "{}", said.result());
    let status = lab.json(&["loop", "status"]);
    assert_eq!(states(&status["queue"]["items"]), pairs(&[("hull", "failed")]));
    assert_eq!(status["queue"]["items"][0]["failures"], 2);
    let list = lab.run(&["ls"]).text();
    assert!(list.contains("paused: an item that failed") && !list.contains("limit reached"), "{list}");
    assert_eq!(lab.run(&["loop", "retry", "mast"]).code, Some(5));
    assert_eq!(lab.run(&["loop", "retry", "hull"]).code, Some(0));
    assert_eq!(lab.json(&["loop", "status"])["queue"]["items"][0]["failures"], 0);
}

/// What is said of iterations is what is counted: those of the item in work too.
#[test]
fn the_iterations_of_the_item_in_work_count() {
    let lab = listed(&format!(
        "{TICKS}\n[ \"$item\" = hull ] || {{ signal=false; sed -i 's/x. sail/ ] sail/' TODO.md; }}"
    ));
    let args = ["loop", "--no-hooks", "--work", "TODO.md", "--max-iterations", "3", "--json"];
    let said = lab.run(&args);
    let result = said.result();
    assert_eq!((said.code, &result["outcome"]), (Some(26), &json!("max_iterations")), "{result}");
    assert_eq!(result["reason"], "3 of 3 iterations", "{result}");
    let id = result["session_id"].as_str().unwrap();
    let status = lab.run(&["loop", "status", id]).text();
    assert!(
        status.contains("1 done, 1 in work, 0 set aside, 0 open   3 iterations of at most 3, 2 of them"),
        "{status}"
    );
    assert_eq!(lab.run(&["loop", "resume", id, "--more", "2"]).code, Some(26));
    assert_eq!(lab.json(&["loop", "status", id])["most"], 5, "two more than all that were used");
}

/// What a finished queue names can be typed.
#[test]
fn the_hints_after_a_finished_queue_work() {
    let lab = listed(TICKS);
    let said = lab.run(&["loop", "--no-hooks", "--work", "TODO.md"]);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    let hint = said.stderr.lines().rev().find_map(|line| line.trim().strip_prefix("hint: ")).unwrap();
    for command in hint.split("   ") {
        let args: Vec<&str> = command.split_whitespace().skip(1).collect();
        let tried = lab.run(&args);
        assert_eq!(tried.code, Some(0), "{command}: {}", tried.stderr);
        assert!(!tried.text().contains("nothing was used"), "{command}: {}", tried.text());
    }
}

#[test]
fn what_makes_no_sense_is_refused() {
    let lab = listed(TICKS);
    for (args, words) in [
        (vec!["loop", "--work", "NONE.md"], "cannot read the checklist"),
        (vec!["loop", "--work", "TODO.md", "--branch", "one"], "{item}"),
        (vec!["loop", "--work", "br ready", "--work-show", "br show"], "{item}"),
        (vec!["loop", "--work", "TODO.md", "--no-signal"], "--until"),
        (vec!["loop", "--watch", "--prompt", "x", "--until", "true"], "--work"),
        (vec!["loop", "--work", "nosuchtracker ready"], "cannot tell what there is to do"),
        (vec!["loop", "--work", "TODO.md", "--max-time", "0s"], "no time at all"),
    ] {
        let said = lab.run(&args);
        assert_ne!(said.code, Some(0), "{args:?}");
        assert!(said.stderr.contains(words), "{args:?}: {}", said.stderr);
    }
    assert_eq!(lab.json(&["ls", "--all"])["sessions"], json!([]), "no session is left of any of them");
}
