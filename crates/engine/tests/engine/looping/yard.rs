//! A project, an agent whose every answer is written down beforehand, and a clock that moves only when somebody waits.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;

use segno_core::Command;
use segno_core::SessionId;
use segno_core::day::DayCaps;
use segno_core::event::WokenHow;
use segno_core::looping::EvidencePlan;
use segno_core::looping::LoopPlan;
use segno_engine::Engine;
use segno_engine::EngineOptions;
use segno_engine::clock::FixedClock;
use segno_engine::frontend::Silent;
use segno_engine::launch::AgentSettings;
use segno_engine::launch::Common;
use segno_engine::launch::LaunchSettings;
use segno_engine::looping::FakeSleeper;
use segno_engine::looping::LoopEnded;
use segno_engine::looping::LoopHost;
use segno_engine::looping::LoopListener;
use segno_engine::looping::LoopNews;
use segno_engine::looping::NamedWorkflow;
use segno_engine::looping::NewLoop;
use segno_engine::looping::Recipients;
use segno_engine::looping::Sleeper;
use segno_engine::run::Feed;
use segno_engine::run::Stop;
use segno_engine::tree::TreeOptions;
use segno_engine::view;
use segno_store::Store;
use segno_store::sqlite::SqliteStore;

use crate::common::PATH;
use crate::common::Room;
use crate::common::launch_settings;
use crate::common::moment;
use crate::common::store_at;

/// Tests as small scripts in `tests/`, told in TAP.
const CHECK: &str = "n=0; bad=0\n\
    for t in tests/*.sh; do [ -f \"$t\" ] || continue\n\
    n=$((n+1)); if sh \"$t\" >/dev/null 2>&1; then echo \"ok $n - $t\"; else echo \"not ok $n - $t\"; bad=1; fi; done\n\
    echo \"1..$n\"; exit $bad\n";

/// What the scripted agent has at hand: `say` and `finish` take text in which `\\n` is a new line.
const AGENT: &str = r#"#!/bin/sh
DIR=@DIR@
all="$*"; m=$(cat $DIR/model 2>/dev/null || echo scripted)
while [ $# -gt 0 ]; do
case "$1" in --session-id) id=$2; kind=new;; --resume) id=$2; kind=again;; esac; shift; done
if [ -z "$id" ]; then read -r line; echo "$line" >> $DIR/questions; cat $DIR/usage 2>/dev/null; exit 0; fi
n=$(cat $DIR/count 2>/dev/null || echo 0); n=$((n+1)); echo $n > $DIR/count
cat > $DIR/prompt-$n
echo $kind > $DIR/kind-$n; echo "$all" > $DIR/args-$n
u() { printf '00000000-0000-4000-8000-%06d%06d' $n $1; }
init() { printf '{"type":"system","subtype":"init","session_id":"%s","uuid":"%s","model":"%s","cwd":"/","tools":["Bash"],"permissionMode":"default","claude_code_version":"0.0.0"}\n' $id $(u 1) $m; }
say() { printf '{"type":"assistant","session_id":"%s","uuid":"%s","parent_tool_use_id":null,"message":{"id":"msg_%s","type":"message","role":"assistant","model":"%s","content":[{"type":"text","text":"%s"}],"stop_reason":null,"usage":{"input_tokens":100,"output_tokens":1}}}\n' $id $(u 2) $n $m "$1"; }
ended() { printf '{"type":"result","subtype":"%s","session_id":"%s","uuid":"%s","is_error":%s,"result":"%s","num_turns":1,"duration_ms":1,"duration_api_ms":1,"total_cost_usd":0.01,"permission_denials":[],"usage":{"input_tokens":100,"output_tokens":20},"modelUsage":{"%s":{"inputTokens":100,"outputTokens":20,"costUSD":0.01}}%s}\n' $1 $id $(u 3) $2 "$3" $m "$4"; }
finish() { say "$1"; ended success false "$1" ',"stop_reason":"end_turn","terminal_reason":"completed"'; }
fails() { ended error_during_execution true "$1" ''; exit 1; }
signal() { finish "---RALPH_STATUS---\\nSTATUS: COMPLETE\\nEXIT_SIGNAL: true\\n---END_RALPH_STATUS---"; }
limit() { printf '{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":%s,"rateLimitType":"five_hour"},"session_id":"%s","uuid":"%s"}\n' $1 $id $(u 4); ended success true 'You have hit your limit' ',"api_error_status":429'; exit 1; }
init
if [ -f $DIR/step-$n ]; then . $DIR/step-$n; else . $DIR/step; fi
"#;

/// Keeps the problems that are heard.
#[derive(Default)]
struct Problems(Mutex<Vec<String>>);

impl LoopListener for Problems {
    fn hear(&self, news: &LoopNews) {
        if let LoopNews::Problem(text) = news {
            self.0.lock().unwrap().push(text.clone());
        }
    }
}

pub(crate) struct Yard {
    base: PathBuf,
    clock: Arc<FixedClock>,
    pub(crate) settings: LaunchSettings,
    /// Whether it stays beside a halted loop.
    pub(crate) stays: bool,
    /// What may be used in a day.
    pub(crate) day: DayCaps,
    feed: Feed,
    /// Kept for as long as the yard; another process has only the path.
    _room: Option<Room>,
}

impl Yard {
    pub(crate) fn new() -> Self {
        let room = Room::new();
        let base = room.path().canonicalize().unwrap();
        let yard = Self::at(&base, room.clock.clone(), Some(room));
        yard.restore_agent();
        yard.write("check.sh", CHECK);
        std::fs::create_dir(yard.project().join("tests")).unwrap();
        yard
    }

    /// The yard of another process.
    pub(crate) fn again(base: &Path) -> Self {
        Self::at(base, Arc::new(FixedClock::new(moment("2026-01-16T10:00:00Z"))), None)
    }

    fn at(base: &Path, clock: Arc<FixedClock>, room: Option<Room>) -> Self {
        let (project, state) = (base.join("harbour"), base.join("state"));
        let settings = launch_settings(&base.join("claude"), base, project, state);
        Self {
            base: base.to_owned(),
            clock,
            settings,
            stays: false,
            day: DayCaps::default(),
            feed: Feed::default(),
            _room: room,
        }
    }

    pub(crate) fn project(&self) -> PathBuf {
        self.base.join("harbour")
    }

    pub(crate) fn engine(&self) -> Engine {
        self.engine_on(Box::new(self.store()))
    }

    pub(crate) fn store(&self) -> SqliteStore {
        store_at(&self.base.join("data").join("segno.db"), Duration::from_secs(20))
    }

    /// An engine on a store that stands before that of the yard.
    pub(crate) fn engine_on(&self, store: Box<dyn Store>) -> Engine {
        let git = segno_workspace::git::find(std::ffi::OsStr::new(PATH));
        let state = self.base.join("state");
        let options = EngineOptions {
            clock: self.clock(),
            view: view::Options { enabled: false, ..view::Options::default() },
            tree: Some(TreeOptions::new(self.base.join("snapshots"), git)),
            captures: Some(state.join("runs")),
            spool: Some(self.base.join("state").join("spool")),
            day: self.day,
            ..EngineOptions::default()
        };
        Engine::new(store, options)
    }

    pub(crate) fn clock(&self) -> Arc<FixedClock> {
        self.clock.clone()
    }

    /// What the agent does whenever nothing is said for that time.
    pub(crate) fn always(&self, script: &str) {
        std::fs::write(self.base.join("step"), script).unwrap();
    }

    /// What the agent does the n-th time it is started, from 1.
    pub(crate) fn step(&self, n: u32, script: &str) {
        std::fs::write(self.base.join(format!("step-{n}")), script).unwrap();
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.project().join(name), text).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.project().join(name)).unwrap_or_default()
    }

    pub(crate) fn base(&self) -> &Path {
        &self.base
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.project().join(name).exists()
    }

    /// How often the agent was started.
    pub(crate) fn starts(&self) -> u32 {
        self.beside("count").trim().parse().unwrap_or(0)
    }

    /// What it was asked the n-th time.
    pub(crate) fn prompt(&self, n: u32) -> String {
        self.beside(&format!("prompt-{n}"))
    }

    /// `new` or `again`: in which conversation the n-th start was.
    pub(crate) fn kind(&self, n: u32) -> String {
        self.beside(&format!("kind-{n}")).trim().to_owned()
    }

    /// With which arguments it was started the n-th time.
    pub(crate) fn args(&self, n: u32) -> String {
        self.beside(&format!("args-{n}"))
    }

    /// Which model it says that it is.
    pub(crate) fn model(&self, name: &str) {
        std::fs::write(self.base.join("model"), name).unwrap();
    }

    /// What the other agent was asked last.
    pub(crate) fn codex_prompt(&self) -> String {
        self.beside("codex-prompt")
    }

    fn beside(&self, name: &str) -> String {
        std::fs::read_to_string(self.base.join(name)).unwrap_or_default()
    }
}

impl Yard {
    /// A test that succeeds when a shell command does.
    pub(crate) fn test(&self, name: &str, command: &str) {
        self.write(&format!("tests/{name}.sh"), command);
    }

    /// With another agent beside, which speaks like Codex and does this.
    pub(crate) fn with_codex(mut self, script: &str) -> Self {
        use segno_testkit::lines::codex;
        let lines = [
            codex::thread_started("thread-1"),
            codex::turn_started(),
            codex::message("item-1", "done"),
            codex::turn_completed(),
        ];
        let lines: String = lines.iter().map(|line| format!("{line}\n")).collect();
        let (program, said) = (self.base.join("codex"), self.base.join("codex-lines"));
        std::fs::write(&said, lines).unwrap();
        let asked = self.base.join("codex-prompt");
        let script = format!("#!/bin/sh\ncat > {}\n{script}\ncat {}\n", asked.display(), said.display());
        std::fs::write(&program, script).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        let common = Common { program: program.display().to_string(), ..Common::default() };
        self.settings.agents.insert("codex".to_owned(), AgentSettings { common, plain: None });
        self
    }

    /// Puts another program in the place of the agent.
    pub(crate) fn program(&self, script: &str) {
        std::fs::write(self.base.join("claude"), format!("#!/bin/sh\n{script}\n")).unwrap();
    }

    /// Puts the agent back.
    pub(crate) fn restore_agent(&self) {
        let agent = self.base.join("claude");
        std::fs::write(&agent, AGENT.replace("@DIR@", &self.base.display().to_string())).unwrap();
        std::fs::set_permissions(&agent, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    pub(crate) fn remove_agent(&self) {
        std::fs::remove_file(self.base.join("claude")).unwrap();
    }

    /// So many seconds from now, by the clock that stands still, since 1970.
    pub(crate) fn seconds(&self, more: i64) -> i64 {
        use segno_engine::Clock as _;
        self.clock().now().as_micros() / 1_000_000 + more
    }

    pub(crate) fn extend(&self, session: SessionId, added: u64) {
        let unit = segno_core::event::Unit::Tokens;
        self.engine().act(session, Command::ExtendBudget { unit, added }).unwrap();
    }

    /// Begins a loop of one phase and drives it.
    pub(crate) fn until(&self, command: &str) -> LoopEnded {
        self.until_with(command, |_| {})
    }

    /// The same with something else about it.
    pub(crate) fn until_with(&self, command: &str, change: impl FnOnce(&mut NewLoop)) -> LoopEnded {
        let session = self.begin(command, change);
        self.drive(session).unwrap()
    }

    /// Goes through the phases of a workflow.
    pub(crate) fn workflow(&self, name: &str, command: &str) -> LoopEnded {
        self.workflow_of(name, command, 20)
    }

    /// The same with so many iterations at most.
    pub(crate) fn workflow_of(&self, name: &str, command: &str, most: u64) -> LoopEnded {
        let given =
            EvidencePlan { name: "tests".to_owned(), command: command.to_owned(), ..EvidencePlan::default() };
        let phases = NamedWorkflow::find(name, &self.project()).unwrap().phases(&[given], false);
        let session = self.begin(command, |new| {
            new.plan.workflow = name.to_owned();
            new.plan.phases = phases;
            new.plan.caps.iterations = Some(most);
        });
        self.drive(session).unwrap()
    }

    /// Begins a loop of one phase.
    pub(crate) fn begin(&self, command: &str, change: impl FnOnce(&mut NewLoop)) -> SessionId {
        let given =
            EvidencePlan { name: "until".to_owned(), command: command.to_owned(), ..EvidencePlan::default() };
        let workflow = NamedWorkflow::find("simple", &self.project()).unwrap();
        let plan = LoopPlan {
            workflow: workflow.name.clone(),
            phases: workflow.phases(&[given], false),
            work: "build a boat".into(),
            ..LoopPlan::default()
        };
        let mut new = NewLoop { plan, ..NewLoop::default() };
        change(&mut new);
        self.engine().loop_begin(new, &self.settings).unwrap().session_id
    }

    /// Drives a loop as the foreground process does.
    pub(crate) fn drive(&self, session: SessionId) -> Result<LoopEnded, segno_engine::Error> {
        self.drive_until(session, &Stop::default())
    }

    /// The same for one that nobody waits with.
    pub(crate) fn drive_without_waiting(&self, session: SessionId) -> LoopEnded {
        self.drive_how(session, WokenHow::Person, false).unwrap()
    }

    /// The same, with a way to stop it.
    pub(crate) fn drive_until(
        &self,
        session: SessionId,
        stop: &Stop,
    ) -> Result<LoopEnded, segno_engine::Error> {
        self.drive_with(session, WokenHow::Person, true, stop, &FakeSleeper(self.clock()))
    }

    /// Drives a loop that something else woke, and waits in this process or not.
    pub(crate) fn drive_how(
        &self,
        session: SessionId,
        woken: WokenHow,
        waits: bool,
    ) -> Result<LoopEnded, segno_engine::Error> {
        self.drive_with(session, woken, waits, &Stop::default(), &FakeSleeper(self.clock()))
    }

    /// The same; answers with the problems that whoever watches hears of, too.
    pub(crate) fn drive_heard(&self, session: SessionId) -> (LoopEnded, Vec<String>) {
        let heard = Problems::default();
        let (stop, sleeper) = (Stop::default(), FakeSleeper(self.clock()));
        let host = self.host(&heard, WokenHow::Person, true, &stop, &sleeper);
        let ended = self.engine().loop_drive(session, &host).unwrap();
        (ended, heard.0.into_inner().unwrap())
    }

    /// The same, with all that is around it.
    pub(crate) fn drive_with(
        &self,
        session: SessionId,
        woken: WokenHow,
        waits: bool,
        stop: &Stop,
        sleeper: &dyn Sleeper,
    ) -> Result<LoopEnded, segno_engine::Error> {
        self.engine().loop_drive(session, &self.host(&(), woken, waits, stop, sleeper))
    }

    pub(crate) fn host<'a>(
        &'a self,
        listener: &'a dyn LoopListener,
        woken: WokenHow,
        waits: bool,
        stop: &'a Stop,
        sleeper: &'a dyn Sleeper,
    ) -> LoopHost<'a> {
        LoopHost {
            settings: &self.settings,
            frontend: &Silent,
            listener,
            feed: &self.feed,
            stop,
            sleeper,
            waits,
            stays: self.stays,
            woken,
            further: Default::default(),
            recipients: Recipients::default(),
        }
    }
}
