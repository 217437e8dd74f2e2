//! Work items one after another, from a scripted tracker and from a checklist.

use std::os::unix::fs::PermissionsExt as _;

use segno_core::SessionId;
use segno_core::Status;
use segno_core::event::ItemEnd;
use segno_core::looping::CapKind;
use segno_core::looping::ItemStand;
use segno_core::looping::LoopCommand;
use segno_core::looping::LoopVerdict;
use segno_core::looping::PersonNeed;
use segno_core::looping::QueuePlan;
use segno_core::looping::show_for;
use segno_engine::looping::LoopEnded;
use segno_engine::looping::NewLoop;

use super::yard::Yard;

/// A tracker that keeps each item in a file: `br ready`, `br show ID`, `br close ID`.
const BR: &str = r#"#!/bin/sh
cd @DIR@/items || exit 1
echo "$*" >> ../asked
case "$1" in
ready) [ -e ../broken ] && { echo "database is locked" >&2; exit 3; }
  printf '{"issues":['; first=1
  for f in *; do grep -q '"status":"open"' $f || continue; [ $first = 1 ] || printf ','; first=0; cat $f; done
  printf ']}\n';;
show) printf '['; cat "$2"; printf ']\n';;
close) sed -i 's/"status":"[a-z_]*"/"status":"closed"/' "$2";;
esac
"#;

/// What the agent begins with: the item that it was asked to do.
pub(super) const ITEM: &str = "item=$(sed -n 's/^Do //p' $DIR/prompt-$n | head -1)\n";
/// Does it and closes it.
pub(super) const HONEST: &str = "echo $item >> made; $DIR/br close $item; finish done";

/// A yard with a tracker.
pub(super) fn tracked(script: &str) -> Yard {
    let yard = Yard::new();
    let program = yard.base().join("br");
    std::fs::create_dir(yard.base().join("items")).unwrap();
    std::fs::write(&program, BR.replace("@DIR@", &yard.base().display().to_string())).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    yard.always(&format!("{ITEM}{script}"));
    yard
}

/// An item of the tracker.
pub(super) fn item(yard: &Yard, id: &str, more: &str) {
    let text = format!(r#"{{"id":"{id}","title":"build {id}","status":"open"{more}}}"#);
    std::fs::write(yard.base().join("items").join(id), text).unwrap();
}

/// A loop on that tracker.
pub(super) fn begin(yard: &Yard, change: impl FnOnce(&mut NewLoop)) -> SessionId {
    let list = format!("{}/br ready --json", yard.base().display());
    yard.begin("true", |new| {
        new.plan.work = "Do {item}".into();
        new.plan.caps.iterations = None;
        new.plan.queue =
            Some(QueuePlan { show: show_for(&list), command: Some(list), ..QueuePlan::default() });
        change(new);
    })
}

pub(super) fn queue(new: &mut NewLoop) -> &mut QueuePlan {
    new.plan.queue.as_mut().unwrap()
}

fn stand(ended: &LoopEnded, id: &str) -> ItemStand {
    ended.state.looping.as_ref().unwrap().items[id].clone()
}

fn child(yard: &Yard, ended: &LoopEnded, id: &str) -> segno_core::State {
    yard.engine().load(stand(ended, id).session.unwrap()).unwrap().state
}

#[test]
fn items_are_done_in_order_each_in_a_session_of_its_own() {
    let yard = tracked(HONEST);
    item(&yard, "late", r#","priority":2,"created_at":"2026-01-01T00:00:00Z""#);
    item(&yard, "young", r#","priority":1,"created_at":"2026-01-03T00:00:00Z""#);
    item(
        &yard,
        "old",
        r#","priority":1,"created_at":"2026-01-02T00:00:00Z","description":"the {title} of it""#,
    );
    item(&yard, "epic", r#","priority":0,"issue_type":"epic""#);
    item(&yard, "stuck", r#","priority":0,"blocked_by":["epic"]"#);
    let session = begin(&yard, |_| {});
    let ended = yard.drive(session).unwrap();
    assert_eq!((ended.verdict.clone(), ended.state.status), (Some(LoopVerdict::Complete), Status::Completed));
    assert_eq!(yard.read("made"), "old\nyoung\nlate\n");
    assert_eq!((1..=3).map(|n| yard.kind(n)).collect::<Vec<_>>(), ["new", "new", "new"]);
    assert!(yard.prompt(1).contains("old: build old\n\nthe {title} of it"), "{}", yard.prompt(1));
    let looping = ended.state.looping.clone().unwrap();
    assert_eq!((looping.items_done, looping.total, looping.micros), (3, 3, 30_000));
    assert_eq!(ended.state.cost.used_micros, 30_000, "what items use is the loop's");
    let old = child(&yard, &ended, "old");
    assert_eq!((old.status, old.topic.as_deref()), (Status::Completed, Some("build old")));
    let loop_of = old.looping.unwrap();
    assert_eq!((loop_of.parent, loop_of.item.unwrap().id), (Some(session), "old".to_owned()));
    assert_eq!(old.work_item.unwrap().id, "old", "the run knows it too");
    assert!(stand(&ended, "old").session != stand(&ended, "late").session);
}

#[test]
fn nothing_to_do_is_done() {
    let yard = tracked(HONEST);
    let ended = yard.drive(begin(&yard, |_| {})).unwrap();
    assert_eq!(
        (ended.verdict, ended.state.status, yard.starts()),
        (Some(LoopVerdict::Complete), Status::Completed, 0)
    );
}

#[test]
fn a_tracker_that_does_not_answer_is_not_an_empty_one() {
    let yard = tracked(HONEST);
    item(&yard, "a", "");
    std::fs::write(yard.base().join("broken"), "").unwrap();
    let session = begin(&yard, |_| {});
    let ended = yard.drive(session).unwrap();
    assert!(
        matches!(ended.verdict, Some(LoopVerdict::NeedsPerson { need: PersonNeed::Setup, .. })),
        "{:?}",
        ended.verdict
    );
    assert!(ended.why.contains("database is locked"), "{}", ended.why);
    assert_eq!((ended.state.status, yard.starts()), (Status::Paused, 0));
    let asked = std::fs::read_to_string(yard.base().join("asked")).unwrap();
    assert_eq!(asked.lines().count(), 3, "it is asked again first");
    std::fs::remove_file(yard.base().join("broken")).unwrap();
    assert_eq!(yard.drive(session).unwrap().verdict, Some(LoopVerdict::Complete));
}

/// The gate of the item `bad` never passes.
const BAD: &str = "rm -f bad-now; [ $item = bad ] && { echo $n > bad-now; finish no; exit; }\n\
    echo $item >> made; $DIR/br close $item; finish done";

fn with_a_bad_one(yard: &Yard) -> SessionId {
    item(yard, "bad", r#","priority":0"#);
    item(yard, "good", r#","priority":1"#);
    begin(yard, |new| {
        new.plan.phases[0].evidence[0].command = "test ! -e bad-now".into();
        new.plan.phases[0].max_iterations = Some(1);
    })
}

fn asked_to_do(yard: &Yard) -> Vec<String> {
    let what = |n| yard.prompt(n).lines().find_map(|line| line.strip_prefix("Do ").map(ToOwned::to_owned));
    (1..=yard.starts()).filter_map(what).collect()
}

/// Five failures with 0, 1, 2 and 4 minutes between them; the other item is done meanwhile.
#[test]
fn one_that_fails_is_tried_again_later_and_set_aside_after_five_times() {
    let yard = tracked(BAD);
    let before = yard.seconds(0);
    let session = with_a_bad_one(&yard);
    let ended = yard.drive(session).unwrap();
    assert_eq!(asked_to_do(&yard), ["bad", "bad", "good", "bad", "bad", "bad"]);
    assert!(
        matches!(ended.verdict, Some(LoopVerdict::NeedsPerson { need: PersonNeed::Escalated, .. })),
        "{:?}",
        ended.verdict
    );
    assert!(ended.why.contains("set aside: bad"), "{}", ended.why);
    assert_eq!(ended.state.status, Status::Paused);
    let bad = stand(&ended, "bad");
    assert_eq!((bad.end, bad.failures), (Some(ItemEnd::SetAside), 5));
    assert!(bad.why.contains("1 of 1 iterations of the phase"), "{}", bad.why);
    assert_eq!(stand(&ended, "good").end, Some(ItemEnd::Done));
    let waited = yard.seconds(0) - before;
    assert!((420..480).contains(&waited), "it waited {waited} s");
    assert_eq!(child(&yard, &ended, "bad").status, Status::Failed);
    assert!(yard.prompt(6).contains("It was tried 4 times before."), "{}", yard.prompt(6));
    // It stays aside, until somebody wants it tried again.
    assert_eq!(yard.drive(session).unwrap().state.status, Status::Paused);
    assert_eq!(yard.starts(), 6);
    let again = LoopCommand::EndItem {
        item: segno_core::event::WorkItemMark { id: "bad".into(), title: "build bad".into() },
        end: ItemEnd::Failed,
        failures: 0,
        retry_at: None,
        why: "somebody wants it tried again".into(),
        used: Default::default(),
    };
    yard.engine().act(session, segno_core::Command::Loop(Box::new(again))).unwrap();
    yard.always(&format!("{ITEM}rm -f bad-now; {HONEST}"));
    let ended = yard.drive(session).unwrap();
    assert_eq!((ended.verdict, yard.starts()), (Some(LoopVerdict::Complete), 7));
}

/// The agent does the work and forgets to close the item.
#[test]
fn one_that_stays_open_gets_one_follow_up() {
    let yard = tracked(
        "case \"$(cat $DIR/prompt-$n)\" in *'still open in the tracker'*) $DIR/br close a; finish closed; exit;; esac\necho $item >> made; finish done",
    );
    item(&yard, "a", "");
    let ended = yard.drive(begin(&yard, |_| {})).unwrap();
    assert_eq!((ended.verdict.clone(), yard.starts()), (Some(LoopVerdict::Complete), 2));
    let a = stand(&ended, "a");
    assert_eq!((a.end, a.failures, a.used.micros), (Some(ItemEnd::Done), 0, 20_000));
    assert_eq!((yard.kind(1), yard.kind(2)), ("new".to_owned(), "again".to_owned()));
    let follow_up = yard.engine().load(a.follow_up.unwrap()).unwrap().state;
    assert_eq!((follow_up.status, follow_up.continues), (Status::Completed, a.session));
    assert_eq!(ended.state.cost.used_micros, 20_000);
}

#[test]
fn one_that_stays_open_after_its_follow_up_has_failed() {
    let yard = tracked("echo $n >> made; finish done");
    item(&yard, "a", "");
    let ended = yard.drive(begin(&yard, |new| queue(new).max_failures = 2)).unwrap();
    // Work, follow-up, work, follow-up: it is set aside.
    assert_eq!(yard.starts(), 4);
    let a = stand(&ended, "a");
    assert_eq!(
        (a.end, a.failures, a.why.as_str()),
        (Some(ItemEnd::SetAside), 2, "its gate passed, but it is still open")
    );
}

/// Its tracker calls it in work, so it is not listed any more: that does not make it done.
#[test]
fn one_that_failed_and_is_in_work_by_its_tracker_is_not_forgotten() {
    let yard = tracked(
        "sed -i 's/\"open\"/\"in_progress\"/' $DIR/items/$item; echo $n >> made; [ $n = 3 ] && $DIR/br close $item; finish done",
    );
    item(&yard, "a", "");
    let ended = yard.drive(begin(&yard, |_| {})).unwrap();
    assert_eq!((ended.verdict.clone(), yard.starts()), (Some(LoopVerdict::Complete), 3));
    assert_eq!((stand(&ended, "a").end, stand(&ended, "a").failures), (Some(ItemEnd::Done), 0));
}

#[test]
fn new_items_are_waited_for_if_somebody_wants_that() {
    let yard = tracked(
        "[ -e $DIR/items/b ] || printf '{\"id\":\"b\",\"title\":\"B\",\"status\":\"soon\"}' > $DIR/items/b\necho $item >> made; $DIR/br close $item; finish done",
    );
    item(&yard, "a", "");
    let session = begin(&yard, |new| queue(new).watch = true);
    // It waits, and nobody waits with it.
    let parked = yard.drive_without_waiting(session);
    let looping = parked.state.looping.clone().unwrap();
    assert_eq!((parked.state.status, looping.items_done), (Status::Paused, 1));
    assert_eq!(looping.parked.unwrap().class, segno_core::looping::ParkReason::Queue);
    std::fs::write(yard.base().join("items/b"), r#"{"id":"b","title":"B","status":"open"}"#).unwrap();
    let again = yard.drive_without_waiting(session);
    assert_eq!(again.state.looping.unwrap().items_done, 2);
    assert_eq!(asked_to_do(&yard), ["a", "b"]);
}

#[test]
fn iterations_of_all_items_together_are_capped() {
    let yard = tracked(HONEST);
    for id in ["a", "b", "c"] {
        item(&yard, id, "");
    }
    let session = begin(&yard, |new| new.plan.caps.iterations = Some(2));
    let ended = yard.drive(session).unwrap();
    assert!(
        matches!(ended.verdict, Some(LoopVerdict::Cap { which: CapKind::Iterations, .. })),
        "{:?}",
        ended.verdict
    );
    assert_eq!((yard.starts(), ended.state.status), (2, Status::Paused));
    let mut plan = ended.state.looping.unwrap().plan;
    plan.caps.iterations = Some(10);
    yard.engine().loop_replan(session, plan).unwrap();
    let ended = yard.drive(session).unwrap();
    assert_eq!((ended.verdict, yard.starts()), (Some(LoopVerdict::Complete), 3));
}

#[test]
fn a_budget_holds_for_all_items_together_and_more_of_it_goes_on() {
    let yard = tracked(HONEST);
    for id in ["a", "b", "c", "d"] {
        item(&yard, id, "");
    }
    let session = begin(&yard, |new| {
        new.budget = Some(segno_core::TokenBudget { total_budget: 200, hard: true, ..Default::default() });
    });
    let ended = yard.drive(session).unwrap();
    assert!(
        matches!(ended.verdict, Some(LoopVerdict::Cap { which: CapKind::Budget, .. })),
        "{:?}",
        ended.verdict
    );
    assert_eq!(yard.starts(), 2);
    assert!(ended.state.budget.tokens_used >= 200, "{}", ended.state.budget.tokens_used);
    yard.extend(session, 100_000);
    let ended = yard.drive(session).unwrap();
    assert_eq!((ended.verdict, yard.starts()), (Some(LoopVerdict::Complete), 4), "{}", ended.why);
}

#[test]
fn a_limit_is_waited_for_by_the_whole_loop_and_is_no_failure() {
    let yard = tracked(HONEST);
    for id in ["a", "b"] {
        item(&yard, id, "");
    }
    let reset = yard.seconds(90);
    yard.step(1, &format!("limit {reset}"));
    let ended = yard.drive(begin(&yard, |_| {})).unwrap();
    assert_eq!(ended.verdict, Some(LoopVerdict::Complete), "{}", ended.why);
    assert!(yard.seconds(0) >= reset);
    assert_eq!((yard.starts(), stand(&ended, "a").failures), (3, 0));
    assert!(ended.state.looping.unwrap().parked_seconds >= 90);
}

#[test]
fn an_agent_that_cannot_be_started_is_no_items_fault() {
    let yard = tracked(HONEST);
    item(&yard, "a", "");
    yard.remove_agent();
    let session = begin(&yard, |_| {});
    let ended = yard.drive(session).unwrap();
    assert!(
        matches!(ended.verdict, Some(LoopVerdict::NeedsPerson { need: PersonNeed::Setup, .. })),
        "{:?}",
        ended.verdict
    );
    assert_eq!((stand(&ended, "a").end, stand(&ended, "a").failures), (None, 0));
}

#[test]
fn a_checklist_is_worked_off_from_top_to_bottom_and_the_agent_ticks() {
    let yard = Yard::new();
    yard.write("TODO.md", "# Boat\n- [x] keel\n- [ ] hull\n- [ ] sail\n");
    yard.always(&format!(
        "{ITEM}echo $item >> made; sed -i \"s/\\[ \\] $item/[x] $item/\" TODO.md; finish done"
    ));
    let session = yard.begin("true", |new| {
        new.plan.work = "Do {item}".into();
        new.plan.queue = Some(QueuePlan { checklist: Some("TODO.md".into()), ..QueuePlan::default() });
    });
    let ended = yard.drive(session).unwrap();
    assert_eq!(ended.verdict, Some(LoopVerdict::Complete), "{}", ended.why);
    assert_eq!((yard.read("made"), yard.starts()), ("hull\nsail\n".to_owned(), 2));
    assert_eq!(yard.read("TODO.md"), "# Boat\n- [x] keel\n- [x] hull\n- [x] sail\n");
    assert!(yard.prompt(1).contains("It stands in TODO.md, line 3, under Boat."), "{}", yard.prompt(1));
}

fn git(yard: &Yard, args: &[&str]) -> String {
    let mut command = std::process::Command::new("git");
    command.current_dir(yard.base().join("harbour")).args(["-c", "user.name=a", "-c", "user.email=a@b"]);
    let said = command.args(args).output().unwrap();
    assert!(said.status.success(), "{args:?}: {}", String::from_utf8_lossy(&said.stderr));
    String::from_utf8_lossy(&said.stdout).trim().to_owned()
}

/// Makes the project a repository, with all that is there committed.
pub(super) fn repository(yard: &Yard) {
    git(yard, &["init", "-q", "-b", "main"]);
    git(yard, &["add", "-A"]);
    git(yard, &["commit", "-qm", "first"]);
}

const COMMIT: &str = "git add -A; git -c user.name=a -c user.email=a@b commit -qm \"$item\";";

#[test]
fn each_item_has_a_branch_that_begins_where_the_loop_began() {
    let yard = tracked(&format!("echo $item > $item; $DIR/br close $item; {COMMIT} finish done"));
    repository(&yard);
    for id in ["a", "b"] {
        item(&yard, id, "");
    }
    let ended = yard.drive(begin(&yard, |new| queue(new).branch = Some("segno/{item}".into()))).unwrap();
    assert_eq!(ended.verdict, Some(LoopVerdict::Complete), "{}", ended.why);
    assert_eq!(git(&yard, &["branch", "--show-current"]), "main");
    assert_eq!(git(&yard, &["log", "--format=%s", "segno/a"]), "a\nfirst");
    assert_eq!(git(&yard, &["log", "--format=%s", "segno/b"]), "b\nfirst");
    assert_eq!(child(&yard, &ended, "a").branch.as_deref(), Some("segno/a"));
}

#[test]
fn work_that_is_not_committed_is_not_taken_along_to_the_next_branch() {
    let yard = tracked("echo $item > $item; $DIR/br close $item; finish done");
    repository(&yard);
    for id in ["a", "b"] {
        item(&yard, id, "");
    }
    let session = begin(&yard, |new| {
        queue(new).branch = Some("segno/{item}".into());
        queue(new).max_failures = 1;
    });
    let ended = yard.drive(session).unwrap();
    // The follow-up did not commit either.
    assert_eq!(stand(&ended, "a").why, "its work is not committed");
    assert!(ended.why.contains("not committed"), "{}", ended.why);
    assert_eq!((ended.state.status, yard.starts()), (Status::Paused, 2));
    git(&yard, &["add", "-A"]);
    git(&yard, &["commit", "-qm", "by hand"]);
    yard.always(&format!("{ITEM}echo $item > $item; $DIR/br close $item; {COMMIT} finish done"));
    let ended = yard.drive(session).unwrap();
    assert_eq!(ended.verdict, Some(LoopVerdict::Complete), "{}", ended.why);
    assert_eq!(git(&yard, &["log", "--format=%s", "segno/b"]), "b\nfirst");
}

#[test]
fn items_of_one_parent_share_a_conversation_if_somebody_wants_that() {
    let yard = tracked(HONEST);
    for (id, parent) in [("a", "x"), ("b", "x"), ("c", "y")] {
        item(&yard, id, &format!(r#","parent":"{parent}""#));
    }
    let ended = yard.drive(begin(&yard, |new| queue(new).share = true)).unwrap();
    assert_eq!(ended.verdict, Some(LoopVerdict::Complete), "{}", ended.why);
    assert_eq!((1..=3).map(|n| yard.kind(n)).collect::<Vec<_>>(), ["new", "again", "new"]);
}

#[test]
fn one_whose_breaker_opens_has_failed_and_the_others_are_done() {
    let yard = tracked(
        "if [ $item = bad ]; then finish nothing; else echo $item >> made; $DIR/br close $item; finish done; fi",
    );
    item(&yard, "bad", r#","priority":0"#);
    item(&yard, "good", r#","priority":1"#);
    let session = begin(&yard, |new| {
        queue(new).max_failures = 1;
        new.plan.phases[0].evidence[0].command = "test -f made".into();
    });
    let ended = yard.drive(session).unwrap();
    let bad = stand(&ended, "bad");
    assert_eq!(bad.end, Some(ItemEnd::SetAside), "{}", bad.why);
    assert_eq!(child(&yard, &ended, "bad").status, Status::Aborted);
    assert_eq!(stand(&ended, "good").end, Some(ItemEnd::Done));
    assert_eq!(ended.state.status, Status::Paused, "{}", ended.why);
}
