//! Whatever an agent leaves behind is gone when its run has ended, however it ended, and nobody else is touched.
//!
//! `SEGNO_ORPHAN_RUNS` says how many runs there are, 14 if it does not: each way to end twice.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Child;
use std::process::Stdio;

use rustix::process::Signal;
use segno_testkit::programs::scripted_agent;
use segno_testkit::scripted::How;
use segno_testkit::scripted::SignalName;
use segno_testkit::scripted::Step;
use serde_json::json;

use crate::lab::Lab;
use crate::lab::SEGNO;
use crate::lab::program;
use crate::lab::signal;
use crate::lab::skip;
use crate::lab::until;
use crate::lab::variable;

/// The user `nobody`.
const NOBODY: u32 = 65534;

/// How a run ends.
#[derive(Clone, Copy, Debug)]
enum Way {
    OwnExit,
    Interrupt,
    Terminate,
    Timeout,
    Budget,
    AgentKilled,
    SegnoKill,
}

const WAYS: [Way; 7] = [
    Way::OwnExit,
    Way::Interrupt,
    Way::Terminate,
    Way::Timeout,
    Way::Budget,
    Way::AgentKilled,
    Way::SegnoKill,
];

/// An agent that is called `leaver` and leaves children of every kind behind. Answers with how many there are.
fn leaver(lab: &Lab, number: usize, way: Way) -> usize {
    let stubborn = vec![SignalName::Hup, SignalName::Int, SignalName::Term];
    let pid_file = |name: &str| Some(lab.path(&format!("run-{number}/{name}")));
    let mut steps = Vec::new();
    let mut count = 0;
    for how in [How::Plain, How::Nohup, How::Setsid, How::DoubleFork] {
        for (bare, ignores) in [(false, false), (true, false), (true, true)] {
            count += 1;
            let mut own = vec![Step::SleepMs(100_000)];
            if ignores {
                own.insert(0, Step::Ignore(stubborn.clone()));
            }
            let pid_file = pid_file(&format!("child-{count}"));
            steps.push(Step::Spawn { how, steps: own, pid_file, keep_output: false, bare });
        }
    }
    // One that has a child itself, further away than any other.
    count += 2;
    let grandchild = Step::Spawn {
        how: How::Setsid,
        steps: vec![Step::Ignore(stubborn.clone()), Step::SleepMs(100_000)],
        pid_file: pid_file("grandchild"),
        keep_output: false,
        bare: true,
    };
    steps.push(Step::Spawn {
        how: How::DoubleFork,
        steps: vec![grandchild, Step::SleepMs(100_000)],
        pid_file: pid_file("far-child"),
        keep_output: true,
        bare: true,
    });
    let grandchild = lab.path(&format!("run-{number}/grandchild"));
    steps.push(Step::WaitFor { path: grandchild, seconds: 60 });
    // Every other agent has to be killed itself.
    if number % 2 == 1 {
        steps.push(Step::Ignore(stubborn));
    }
    steps.push(Step::Write { path: lab.path(&format!("run-{number}/ready")), content: String::new() });
    steps.push(Step::WaitFor { path: lab.path(&format!("run-{number}/go")), seconds: 60 });
    match way {
        Way::OwnExit => {}
        Way::Budget => steps.extend([Step::Json(json!({ "used": 1_000_000 })), Step::SleepMs(60_000)]),
        _ => steps.push(Step::SleepMs(60_000)),
    }
    std::fs::create_dir_all(lab.path(&format!("run-{number}"))).unwrap();
    std::fs::write(lab.path("leaver.json"), serde_json::to_string(&steps).unwrap()).unwrap();
    count
}

/// Processes that have nothing to do with it.
struct Bystanders(Vec<(String, Child)>);

impl Bystanders {
    /// One of our own session or of its own, maybe with a mark that is nearly that of a run.
    fn add(&mut self, lab: &Lab, own_session: bool, mark: Option<&str>) {
        let mut line: Vec<String> = lab.before.clone();
        line.extend(own_session.then(|| "setsid".to_owned()));
        line.extend(["sleep", "100"].map(str::to_owned));
        let mut command = program(&line[0]);
        command.args(&line[1..]).env_clear().env("PATH", &lab.env["PATH"]).stdin(Stdio::null());
        command.envs(mark.map(|mark| ("SEGNO_TREE", mark)));
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        self.0.push((format!("{line:?} {mark:?}"), child));
    }

    fn assert_alive(&mut self) {
        for (what, child) in &mut self.0 {
            assert!(child.try_wait().unwrap().is_none(), "a bystander was ended: {what}");
        }
    }
}

impl Drop for Bystanders {
    fn drop(&mut self) {
        for (_, child) in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// One run. Answers with how many processes were left, were swept, and stood by.
fn one(lab: &Lab, number: usize, way: Way) -> (usize, u64, usize) {
    let children = leaver(lab, number, way);
    let mut bystanders = Bystanders(Vec::new());
    bystanders.add(lab, false, None);
    bystanders.add(lab, true, Some("0123456789abcdef"));
    let mut args = vec!["run", "--json", "--agent", "leaver", "--grace", "300"];
    match way {
        Way::Timeout => args.extend(["--timeout", "4s"]),
        Way::Budget => args.extend(["--budget", "1000"]),
        _ => {}
    }
    let live = lab.start(&args, None);
    let ready = |name: &str| Path::new(&lab.path(&format!("run-{number}/{name}"))).exists();
    // With a time limit it may end before it has got so far.
    let mut live = Some(live);
    until("the agent is ready", || (ready("ready") || !live.as_mut().unwrap().is_running()).then_some(()));
    let mut live = live.take().unwrap();
    if live.is_running() && !matches!(way, Way::Timeout) {
        let run = lab.running();
        let id = run["id"].as_str().unwrap();
        for near in [format!("{id}x"), format!("x{id}"), id[..id.len() - 1].to_owned(), format!("{id}x:y")] {
            bystanders.add(lab, near.starts_with('x'), Some(&near));
        }
        match way {
            Way::OwnExit | Way::Budget => std::fs::write(lab.path(&format!("run-{number}/go")), "").unwrap(),
            Way::Interrupt => live.signal(Signal::INT),
            Way::Terminate => live.signal(Signal::TERM),
            Way::AgentKilled => signal(u32::try_from(run["pid"].as_u64().unwrap()).unwrap(), Signal::KILL),
            Way::SegnoKill => {
                let kill = lab.run(&["kill", "last"]);
                assert_eq!(kill.code, Some(0), "{}", kill.stderr);
            }
            Way::Timeout => {}
        }
    }
    let said = live.finish();
    let result = said.result();
    let expected = match way {
        Way::OwnExit => "completed",
        Way::Interrupt | Way::Terminate | Way::SegnoKill => "stopped",
        Way::Timeout => "timed_out",
        Way::Budget => "budget",
        Way::AgentKilled => "interrupted",
    };
    assert_eq!(result["outcome"], expected, "{way:?} {result}");
    // The brief allows five seconds; more often than not nothing is left at once.
    let begin = std::time::Instant::now();
    let mut left = lab.processes();
    while !left.is_empty() && begin.elapsed().as_secs() < 5 {
        std::thread::sleep(std::time::Duration::from_millis(20));
        left = lab.processes();
    }
    println!("{number} {way:?}: {} left, {} swept of {children}", left.len(), result["swept"]);
    println!("{left:#?}");
    bystanders.assert_alive();
    if !matches!(way, Way::Timeout) {
        let begun = (1..children - 1).filter(|n| ready(&format!("child-{n}"))).count();
        assert_eq!(begun, children - 2, "they were all there");
        assert!(ready("grandchild") && ready("far-child"));
    }
    (left.len(), result["swept"].as_u64().unwrap(), bystanders.0.len())
}

fn all(lab: &Lab, who: &str) {
    let script = lab.path("leaver.json");
    let agent = lab.path("bin/scripted-agent");
    lab.config(&format!(
        "[agents.leaver]\ncommand = [{agent:?}, \"--script\", {script:?}]\nprompt = \"none\"\nformat = \"json\"\n\
         [[agents.leaver.rules]]\nkind = \"tokens\"\nfields = {{ input = \"$.used\" }}"
    ));
    std::fs::create_dir_all(lab.path("bin")).unwrap();
    std::fs::copy(scripted_agent().unwrap(), &agent).unwrap();
    let runs = variable("SEGNO_ORPHAN_RUNS").and_then(|runs| runs.parse().ok()).unwrap_or(14);
    let (mut survivors, mut swept, mut stood_by) = (0, 0, 0);
    for number in 0..runs {
        if !lab.before.is_empty() {
            std::fs::create_dir_all(lab.path(&format!("run-{number}"))).unwrap();
            give_away(&lab.home.path().join(".."));
        }
        // Both kinds of agent end in each way.
        let (left, ended, others) = one(lab, number, WAYS[number % WAYS.len()]);
        survivors += left;
        swept += ended;
        stood_by += others;
    }
    println!("{runs} runs as {who}: {survivors} survivors, {swept} swept, {stood_by} bystanders untouched");
    assert_eq!(survivors, 0);
}

/// Makes everything here belong to nobody.
fn give_away(path: &Path) {
    std::os::unix::fs::lchown(path, Some(NOBODY), Some(NOBODY)).unwrap();
    if path.is_dir() && !path.is_symlink() {
        for entry in std::fs::read_dir(path).unwrap().flatten() {
            give_away(&entry.path());
        }
    }
}

#[test]
fn nothing_is_left_behind() {
    let who = if rustix::process::geteuid().is_root() { "root" } else { "this user" };
    all(&Lab::new(), who);
}

#[test]
fn nothing_is_left_behind_without_privileges() {
    if !rustix::process::geteuid().is_root() {
        return skip("this user is no root already: the other test says it all");
    }
    let user = NOBODY.to_string();
    let before = ["setpriv", "--reuid", &user, "--regid", &user, "--clear-groups"];
    let works = program(before[0]).args(&before[1..]).arg("true").status();
    if !works.is_ok_and(|status| status.success()) {
        return skip("setpriv is missing, or may not change the user");
    }
    let mut lab = Lab::new();
    lab.before = before.map(str::to_owned).into();
    // The programs may be where only root can go.
    lab.segno = lab.path("bin/segno").into();
    std::fs::create_dir_all(lab.path("bin")).unwrap();
    std::fs::copy(SEGNO, &lab.segno).unwrap();
    std::fs::set_permissions(&lab.segno, std::fs::Permissions::from_mode(0o755)).unwrap();
    give_away(&lab.home.path().join(".."));
    all(&lab, "nobody");
}
