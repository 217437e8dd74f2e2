//! Several runs in one process: none ends the processes of another, or those of its host.

use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::time::Duration;
use std::time::Instant;

use segno_agents::Baseline;
use segno_agents::LaunchRequest;
use segno_agents::OutcomeKind;
use segno_agents::plain::Plain;
use segno_agents::plain::PlainConfig;
use segno_agents::plain::PromptVia;
use segno_core::SessionId;
use segno_engine::Engine;
use segno_engine::EngineOptions;
use segno_engine::run::Feed;
use segno_engine::run::Limits;
use segno_engine::run::Request;
use segno_engine::run::Stop;

use crate::common::Room;

fn request(room: &Room, session: SessionId, script: &str) -> Request {
    let command = ["/bin/sh", "-c", script].map(str::to_owned).into();
    let plain = PlainConfig { command, prompt: PromptVia::None, ..PlainConfig::default() };
    Request {
        session,
        completes: true,
        agent: Box::new(Plain::new(plain.clone())),
        plain: Some(plain),
        program: PathBuf::from("/bin/sh"),
        version: None,
        launch: LaunchRequest::default(),
        given_args: Vec::new(),
        file: None,
        work_item: None,
        below: None,
        briefed: false,
        baseline: Baseline::Fresh,
        directory: room.project(),
        environment: vec![("PATH".into(), "/usr/bin:/bin".into())],
        recorded_environment: Vec::new(),
        capture_command: Vec::new(),
        sole_process: false,
        hook_file: None,
        scratch: None,
        limits: Limits::default(),
        resources: Default::default(),
        stop: Stop::default(),
        permissions: None,
        feed: Feed::default(),
        terminal: None,
        raw: None,
    }
}

fn until(what: &str, look: impl Fn() -> bool) {
    let begun = Instant::now();
    while !look() {
        assert!(begun.elapsed() < Duration::from_secs(60), "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn two_runs_in_one_process_leave_each_other_and_their_host_alone() {
    let room = Room::new();
    let captures = Some(room.path().join("state/runs"));
    let engine = Engine::new(Box::new(room.store()), EngineOptions { captures, ..room.options() });
    let new = || engine.create(room.new_session()).unwrap().state.session_id;
    let (first, second) = (new(), new());
    // A child of the host's own, in a group of its own.
    let mut own = std::process::Command::new("sleep").arg("100").process_group(0).spawn().unwrap();
    let path = |name: &str| room.path().join(name);
    let wait = |name: &str| format!("while [ ! -e {} ]; do sleep 0.01; done", path(name).display());
    let ready = |name: &str| format!("touch {}", path(name).display());
    let scripts = [
        format!("{}; {}; echo one", ready("one"), wait("go-one")),
        format!("{}; {}; echo two", ready("two"), wait("go-two")),
    ];
    std::thread::scope(|scope| {
        let engine = &engine;
        let runs = [first, second].into_iter().zip(&scripts).map(|(session, script)| {
            let request = request(&room, session, script);
            scope.spawn(move || engine.run(request).unwrap())
        });
        let [one, two] = <[_; 2]>::try_from(runs.collect::<Vec<_>>()).ok().unwrap();
        until("both have begun", || path("one").exists() && path("two").exists());
        std::fs::write(path("go-one"), "").unwrap();
        let one = one.join().unwrap();
        assert_eq!(one.outcome.outcome, OutcomeKind::Completed, "{}", one.outcome.reason);
        assert_eq!(one.swept, 0, "nothing of anybody else's");
        assert!(!two.is_finished(), "the other agent goes on");
        assert!(own.try_wait().unwrap().is_none(), "and so does the host's child");
        std::fs::write(path("go-two"), "").unwrap();
        let two = two.join().unwrap();
        assert_eq!(two.outcome.outcome, OutcomeKind::Completed, "{}", two.outcome.reason);
    });
    assert!(own.try_wait().unwrap().is_none());
    own.kill().unwrap();
    own.wait().unwrap();
}
