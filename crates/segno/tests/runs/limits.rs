//! Agents that a limit of their provider stops: what is recorded, and that nobody tries again in vain.

use segno_testkit::lines::claude;
use segno_testkit::scripted::Step;
use serde_json::Value;
use serde_json::json;

use crate::lab::Lab;
use crate::lab::Said;

const SESSION: &str = "${session}";

/// How Claude Code tells that it was refused.
fn refused(text: &str) -> Value {
    json!({
        "type": "assistant", "session_id": SESSION, "error": "rate_limit", "is_api_error_message": true,
        "api_error_status": 429, "api_error_type": "rate_limit_error",
        "message": { "id": "e", "model": "<synthetic>", "content": [{ "type": "text", "text": text }] },
    })
}

fn failed(text: &str) -> Value {
    json!({
        "type": "result", "subtype": "success", "is_error": true, "terminal_reason": "api_error", "session_id": SESSION,
        "api_error_status": 429, "api_error_type": "rate_limit_error", "result": text,
    })
}

fn lab(lines: impl IntoIterator<Item = Value>) -> Lab {
    let mut steps = vec![Step::Stdin(0), Step::Json(claude::init(SESSION))];
    steps.extend(lines.into_iter().map(Step::Json));
    steps.push(Step::Exit(1));
    let mut lab = Lab::new();
    lab.stand_in("claude", &steps);
    lab.config("[resume]\ndelay_seconds = 0");
    lab
}

fn run(lab: &Lab, more: &[&str]) -> Said {
    lab.run(
        &["run", "--no-hooks", "--prompt", "go", "--json"].iter().chain(more).copied().collect::<Vec<_>>(),
    )
}

/// A clock's time is one of the zone that the agent was started in.
#[test]
fn a_time_without_a_zone_is_that_of_the_agents_machine() {
    let text = "You've hit your weekly limit · resets Jan 3, 2030, 5am";
    let mut lab = lab([refused(text), failed(text)]);
    lab.env.insert("TZ".to_owned(), "XYZ-3".to_owned());
    let result = run(&lab, &[]).result();
    assert_eq!(result["outcome"], "limit", "{result}");
    assert_eq!(
        result["limit"]["resets_clock"],
        json!({ "date": { "year": 2030, "month": 1, "day": 3 }, "hour": 5, "minute": 0 })
    );
    let ended = lab.journal(Some("run_ended")).pop().unwrap()["body"]["limit"].take();
    assert_eq!(
        ended,
        json!({ "agent": "claude", "class": "plan", "status": "rejected", "window": "weekly", "resets_at": 1_893_636_000 })
    );
    let mark = &lab.state()["limits"]["claude:weekly"];
    assert_eq!(mark["resets_at"], "2030-01-03T02:00:00.000000Z", "{mark}");
}

/// How full the windows are is known while the agent works.
#[test]
fn windows_are_recorded_as_they_are_told() {
    let info = json!({
        "status": "allowed_warning", "resetsAt": 1_893_636_000, "rateLimitType": "five_hour", "utilization": 0.93,
        "unifiedWindows": { "five_hour": { "utilization": 0.93, "resetsAt": 1_893_636_000 },
            "seven_day": { "utilization": 0.4 } },
    });
    let event = json!({ "type": "rate_limit_event", "rate_limit_info": info, "session_id": SESSION });
    let lab = lab([event, claude::text(SESSION, "done"), claude::result(SESSION, "done")]);
    run(&lab, &[]);
    let limits = lab.state()["limits"].take();
    assert_eq!(
        (&limits["claude:five_hour"]["utilization"], &limits["claude:five_hour"]["status"]),
        (&json!(0.93), &json!("warning")),
        "{limits}"
    );
    assert_eq!(limits["claude:seven_day"]["utilization"], 0.4, "{limits}");
    let log = lab.run(&["log", "last"]).text();
    assert!(log.contains("warning   93 % used"), "{log}");
}

/// An agent that breaks off after such a refusal looks as if it had died: it would be refused again.
#[test]
fn a_limit_is_not_tried_again_at_once() {
    for (text, why) in [
        ("You've hit your weekly limit · resets Jan 3, 2030, 5am (UTC)", "a window of its plan is used up"),
        ("You've hit your org's monthly spend limit · ask your admin", "nothing left to pay"),
    ] {
        let lab = lab([refused(text)]);
        let said = run(&lab, &["--auto-resume"]);
        assert_eq!(said.result()["outcome"], "interrupted", "{}", said.stderr);
        assert!(said.stderr.contains(why), "{}", said.stderr);
        assert_eq!(
            (lab.journal(Some("run_started")).len(), lab.journal(Some("resume_attempted")).len()),
            (1, 0)
        );
    }
    // What passes by itself is.
    let lab = lab([refused("API Error: Request rejected (429)")]);
    run(&lab, &["--auto-resume=1"]);
    assert_eq!((lab.journal(Some("run_started")).len(), lab.journal(Some("resume_attempted")).len()), (2, 1));
}
