//! Loops that wait: what wakes them, who may stop them, and that their time is kept.

use serde_json::Value;
use serde_json::json;

use crate::lab::Lab;
use crate::lab::Live;
use crate::lab::until;

/// A stand-in for Claude Code that is refused once, and then does what it is asked for. Asked about its plan, it says
/// what `usage` holds, if there is such a file.
fn agent() -> Lab {
    let lab = Lab::new();
    let script = r#"#!/bin/sh
case "$*" in *--version*) echo "2.1.325 (Claude Code)"; exit 0;; esac
id=; while [ $# -gt 0 ]; do case "$1" in --session-id|--resume) id=$2;; esac; shift; done
if [ -z "$id" ]; then read -r line; echo "$line" >> ../questions; cat ../usage 2>/dev/null; exit 0; fi
cat > /dev/null; echo x >> ../starts
printf '{"type":"system","subtype":"init","session_id":"%s","model":"gpt-5","tools":[]}\n' "$id"
if [ ! -e ../refused ]; then
touch ../refused
printf '{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":%s,"rateLimitType":"five_hour"},"session_id":"%s"}\n' $(( $(date +%s) + 7200 )) "$id"
[ ! -e ../dies ] || exit 1
printf '{"type":"result","subtype":"success","is_error":true,"session_id":"%s","num_turns":1,"duration_ms":1,"duration_api_ms":1,"api_error_status":429,"result":"You have hit your limit"}\n' "$id"
exit 1
fi
echo sail > sail
printf '{"type":"result","subtype":"success","is_error":false,"session_id":"%s","num_turns":1,"duration_ms":1,"duration_api_ms":1,"total_cost_usd":0.01,"usage":{"input_tokens":100,"output_tokens":10},"result":"done"}\n' "$id"
"#;
    let path = lab.home.path().join("claude");
    lab.write(&path, script);
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    lab.config(&format!("[agents.claude]\nprogram = {:?}\n", path.display().to_string()));
    lab
}

const LOOP: &[&str] =
    &["loop", "--no-hooks", "--json", "--no-signal", "--prompt", "go", "--until", "test -e sail"];

fn beside(lab: &Lab, name: &str) -> String {
    std::fs::read_to_string(lab.home.work().parent().unwrap().join(name)).unwrap_or_default()
}

fn starts(lab: &Lab) -> usize {
    beside(lab, "starts").lines().count()
}

fn waiting(lab: &Lab) -> Live {
    let live = lab.start(LOOP, None);
    until("it is parked", || {
        let said = lab.run(&["show", "last", "--json"]);
        let shown: Value = serde_json::from_slice(&said.stdout).ok()?;
        shown["state"]["looping"]["parked"]["until"].is_string().then_some(())
    });
    live
}

#[test]
fn who_does_not_wait_keeps_the_time() {
    let lab = agent();
    let said = lab.run(&[LOOP, &["--no-wait"]].concat());
    let result = said.result();
    assert_eq!((said.code, &result["outcome"]), (Some(24), &json!("parked")), "{result}");
    let until = result["waiting_until"].clone();
    assert!(until.is_string(), "{result}");
    let shown = lab.run(&["loop", "status", "last"]).text();
    assert!(
        shown.contains("no timer") && shown.contains("loop resume --due"),
        "what wakes it is said: {shown}"
    );
    let status = lab.json(&["loop", "status", "last"]);
    assert_eq!((&status["waiting_until"], &status["timer_armed"]), (&until, &json!(false)), "{status}");
    assert_eq!(lab.json(&["ls"])["sessions"][0]["waiting_account"], "claude");
    // Nobody goes on before the time; a person may, and the agent was asked about its plan first.
    assert_eq!(lab.run(&["loop", "resume", "last"]).code, Some(5));
    assert_eq!(lab.json(&["loop", "resume", "--due"])["resumed"], json!([]));
    assert_eq!(lab.run(&["loop", "resume", "last", "--now"]).code, Some(0));
    assert!(beside(&lab, "questions").contains("get_usage"));
    assert_eq!((starts(&lab), lab.state()["status"].as_str()), (2, Some("completed")));
}

/// It was refused, and breaks off without another word: it is no start that failed, and is not tried again at once.
#[test]
fn who_dies_of_a_refusal_is_waited_for() {
    let lab = agent();
    lab.write(lab.home.work().parent().unwrap().join("dies"), "");
    let said = lab.run(&[LOOP, &["--no-wait"]].concat());
    let result = said.result();
    assert_eq!((said.code, &result["outcome"], starts(&lab)), (Some(24), &json!("parked"), 1), "{result}");
    assert!(result["waiting_until"].is_string(), "{result}");
}

/// The agent says that its plan is still used up: that costs nothing, and it waits on.
#[test]
fn asking_the_agent_costs_no_iteration() {
    let lab = agent();
    assert_eq!(lab.run(&[LOOP, &["--no-wait"]].concat()).code, Some(24));
    let usage = json!({ "type": "control_response", "response": { "subtype": "success", "request_id": "segno-usage",
        "response": { "rate_limits": { "five_hour": { "utilization": 100, "resets_at": "2031-01-03T02:00:00Z" } } } } });
    lab.write(lab.home.work().parent().unwrap().join("usage"), &format!("{usage}\n"));
    let said = lab.run(&["loop", "resume", "last", "--now", "--no-wait", "--json"]);
    assert_eq!((said.code, starts(&lab)), (Some(24), 1), "{}", said.stderr);
    let parked = lab.journal(Some("loop_parked"));
    assert_eq!((parked.len(), &parked[1]["body"]["windows_waited"]), (2, &json!(2)), "{parked:#?}");
}

/// The process that waits is started as a shell starts a background job: it does not hear Ctrl-C, and hears these.
#[test]
fn a_waiting_loop_hears_whoever_stops_pauses_or_aborts_it() {
    for (command, status) in
        [("stop", "paused"), ("pause", "paused"), ("abort", "aborted"), ("kill", "paused")]
    {
        let lab = agent();
        let live = waiting(&lab);
        let said = lab.run(&[command, "last"]);
        assert_eq!(said.code, Some(0), "{command}: {}", said.stderr);
        let ended = live.finish();
        assert_eq!((ended.code, starts(&lab)), (Some(23), 1), "{command}: {}", ended.stderr);
        let state = lab.state();
        assert_eq!(state["status"], status, "{command}");
        assert!(status == "aborted" || state["looping"]["parked"]["until"].is_null(), "{command}: {state}");
        // It stays where it is, and a person may go on with it.
        if status == "paused" {
            assert_eq!(lab.json(&["loop", "resume", "--due"])["resumed"], json!([]), "{command}");
            assert_eq!(lab.run(&["resume", "last"]).code, Some(0), "{command}");
        }
    }
}

/// A waiting process that is killed, or told to end, loses nothing: the loop keeps its time.
#[test]
fn a_waiting_loop_survives_its_process() {
    for (signal, code) in [(rustix::process::Signal::KILL, None), (rustix::process::Signal::TERM, Some(24))] {
        let lab = agent();
        let live = waiting(&lab);
        let before = lab.state()["looping"]["parked"].clone();
        live.signal(signal);
        assert_eq!(live.finish().code, code);
        let state = lab.state();
        assert_eq!((&state["status"], &state["looping"]["parked"]), (&json!("paused"), &before));
        assert_eq!(state["looping"]["open"], false);
    }
}

/// Loops of which the hours begin with the next minute, and nobody waits for them.
fn parked_for_a_minute(lab: &Lab) -> Value {
    lab.write(lab.home.work().parent().unwrap().join("refused"), "");
    let now = jiff::Timestamp::now();
    let begin = now + jiff::SignedDuration::from_secs(75);
    let zoned = begin.to_zoned(jiff::tz::TimeZone::UTC);
    let end = (begin + jiff::SignedDuration::from_hours(20)).to_zoned(jiff::tz::TimeZone::UTC);
    let hours = format!("{}-{}", zoned.strftime("%H:%M"), end.strftime("%H:%M"));
    let said = lab.run(&[LOOP, &["--no-wait", "--hours", &hours]].concat());
    let result = said.result();
    assert_eq!((said.code, &result["outcome"]), (Some(24), &json!("parked")), "{result}");
    result["waiting_until"].clone()
}

/// The units are what systemd takes, and their command goes on with what is due, once.
#[test]
fn a_timer_goes_on_with_what_is_due() {
    let mut lab = agent();
    lab.env.insert("TZ".to_owned(), "UTC".to_owned());
    let config = lab.home.path().join("settings-of-ann");
    lab.env.insert("XDG_CONFIG_HOME".to_owned(), config.display().to_string());
    let program = lab.home.path().join("claude");
    lab.write(
        config.join("segno/config.toml"),
        &format!("[agents.claude]\nprogram = {:?}\n", program.display().to_string()),
    );
    let time: jiff::Timestamp = parked_for_a_minute(&lab).as_str().unwrap().parse().unwrap();
    let dry = lab.json(&["schedule", "--dry-run"]);
    assert_eq!((&dry["written"], dry["files"].as_array().unwrap().len()), (&json!(false), 2), "{dry}");
    // Where no manager of the user can be reached, it is written and not armed, and says so.
    let said = lab.run(&["schedule", "--every", "5m"]);
    let listed = lab.json(&["schedule", "list"]);
    assert_eq!(listed["written"], true, "{}", said.stderr);
    assert_eq!(said.code == Some(0), listed["armed"] == true, "{}", said.stderr);
    let timer = &listed["files"][1];
    assert!(timer["text"].as_str().unwrap().contains("OnUnitInactiveSec="), "{timer}");
    if let Some(analyze) = find("systemd-analyze") {
        let paths = [0, 1].map(|n| listed["files"][n]["path"].as_str().unwrap().to_owned());
        let mut verify = crate::lab::program(analyze);
        verify.args(["--user", "verify"]).args(paths).env("XDG_RUNTIME_DIR", lab.home.tmp());
        let verified = verify.output().unwrap();
        let words = String::from_utf8_lossy(&verified.stderr).into_owned();
        assert!(verified.status.success() && words.trim().is_empty(), "{words}");
    } else {
        crate::lab::skip("systemd-analyze is not there: the units are not verified");
    }
    // Before the time its command does nothing; after it, it goes on. Twice is once.
    let runs: Vec<String> = serde_json::from_value(listed["runs"].clone()).unwrap();
    let run = || {
        let mut command = crate::lab::program(&runs[0]);
        command.args(&runs[1..]).arg("--json").env_clear().envs(&lab.env).current_dir("/");
        let out = command.output().unwrap();
        serde_json::from_slice::<Value>(&out.stdout).unwrap()["resumed"].take()
    };
    assert_eq!(run(), json!([]));
    while jiff::Timestamp::now() < time {
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    assert_eq!(run()[0]["exit_code"], 0);
    assert_eq!((starts(&lab), lab.state()["status"].as_str()), (1, Some("completed")));
    assert_eq!(lab.journal(Some("loop_woken"))[0]["body"]["how"], "timer");
    assert_eq!(run(), json!([]));
    assert_eq!(lab.run(&["schedule", "remove"]).code, Some(0));
    assert_eq!(lab.json(&["schedule", "list"])["written"], false);
}

fn find(program: &str) -> Option<std::path::PathBuf> {
    let places =
        ["/usr/bin", "/bin", "/usr/local/bin"].map(|place| std::path::Path::new(place).join(program));
    places.into_iter().find(|path| path.exists())
}

/// What a workflow says of limits holds, unless somebody says otherwise.
#[test]
fn a_workflow_says_what_is_done_at_limits() {
    let lab = agent();
    let text = "[limits]\nagents = [\"claude\", \"codex\"]\nback = true\nhours = \"22:00–07:00\"\nleave = 30\nstop_at = 95\n\
        calls_per_hour = 7\ntokens_per_hour = 9000\n\n[[phase]]\nname = \"WORK\"\nprompt = \"go\"\ngate = \"until\"\n";
    let path = lab.home.work().join(".segno/workflows/night.toml");
    lab.write(&path, text);
    assert_eq!(lab.run(&["workflow", "check", "night"]).code, Some(0));
    lab.write(&path, &text.replace("22:00–07:00", "late"));
    let wrong = lab.run(&["workflow", "check", "night"]);
    assert!(
        wrong.code != Some(0) && format!("{}{}", wrong.text(), wrong.stderr).contains("hours"),
        "{}",
        wrong.stderr
    );
}
