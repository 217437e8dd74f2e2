//! Runs a real agent as segno will: command line and reader from `segno-agents`, model and home from here.

use std::process::Command;
use std::time::Duration;

use segno_agents::Agent;
use segno_agents::AgentEvent;
use segno_agents::Conversation;
use segno_agents::Decision;
use segno_agents::Envelope;
use segno_agents::ExitInfo;
use segno_agents::LaunchRequest;
use segno_agents::LaunchSpec;
use segno_agents::Outcome;
use segno_agents::OutcomeKind;
use segno_agents::ReaderOptions;
use segno_agents::by_name;
use segno_testkit::agents::find_or_skip;
use segno_testkit::home::Home;
use segno_testkit::model::Model;
use segno_testkit::model::Script;
use segno_testkit::programs::scripted_agent;
use segno_testkit::recipe::Patience;
use segno_testkit::recipe::Recipe;
use segno_testkit::recipe::{self};
use segno_testkit::run::Finished;
use segno_testkit::run::run;
use segno_testkit::scripted::Step;
use serde_json::Value;

/// No scenario may take longer.
const DEADLINE: Duration = Duration::from_secs(60);

pub(crate) struct Lab {
    pub(crate) home: Home,
    pub(crate) model: Model,
    pub(crate) recipe: Recipe,
    pub(crate) agent: Box<dyn Agent>,
}

/// What came of one run.
pub(crate) struct Ran {
    /// Events with where they came from.
    pub(crate) envelopes: Vec<Envelope>,
    pub(crate) outcome: Outcome,
    pub(crate) finished: Finished,
}

impl Lab {
    /// A conversation under an id of ours that goes on in a second run: the request that began it, and both runs. The
    /// model says "the word is plum" and then "plum, as I said".
    pub(crate) fn goes_on(&self, session: String) -> (LaunchRequest, Ran, Ran) {
        let begin = LaunchRequest {
            conversation: Conversation::NewWithId(session.clone()),
            ..self.request("what is the word?")
        };
        let first = self.run(&begin);
        assert_eq!(first.outcome.native_id.as_deref(), Some(session.as_str()));
        let conversation = Conversation::Resume(session.clone());
        let second = self.run(&LaunchRequest { conversation, ..self.request("again?") });
        assert_eq!(second.outcome.native_id.as_deref(), Some(session.as_str()), "the id stays");
        assert_eq!(second.outcome.expected_native_id, None);
        assert_eq!(second.outcome.text.as_deref(), Some("plum, as I said"));
        let heard = &self.model.requests()[1].conversation;
        assert!(heard.contains("what is the word?") && heard.contains("the word is plum"));
        (begin, first, second)
    }

    /// Does the work of a script of five calls that write and edit `a.txt`, and checks what came of it.
    pub(crate) fn five_calls(&self) -> Ran {
        let ran = self.prompt("work");
        assert_eq!(ran.outcome.outcome, OutcomeKind::Completed);
        let (started, open) = ran.calls();
        assert_eq!((started.len(), open.len()), (5, 0));
        assert_eq!(std::fs::read_to_string(self.home.work().join("a.txt")).unwrap(), "edited\n");
        let changed = ran.events().filter(|event| matches!(event, AgentEvent::FileChanged { .. })).count();
        assert_eq!(changed, 2);
        let last = self.model.requests().pop().unwrap();
        assert!(last.conversation.contains("heard shell"), "results of tools reach the model");
        assert!(self.home.processes().is_empty());
        ran
    }

    /// None when the agent is not installed.
    pub(crate) fn new(agent: &str, script: Script, patience: Patience) -> Option<Self> {
        let program = find_or_skip(agent)?;
        let home = Home::new().unwrap();
        let model = Model::start(script).unwrap();
        let recipe = match agent {
            "claude" => recipe::claude(&program, &home, &model, patience),
            "codex" => recipe::codex(&program, &home, &model, patience),
            "gemini" => recipe::gemini(&program, &home, &model, patience),
            "opencode" => recipe::opencode(&program, &home, &model, patience),
            other => panic!("no recipe for {other}"),
        };
        recipe.install().unwrap();
        Some(Self { home, model, recipe, agent: by_name(agent).unwrap() })
    }

    pub(crate) fn request(&self, prompt: &str) -> LaunchRequest {
        LaunchRequest {
            prompt: prompt.to_owned(),
            program: Some(self.recipe.program.to_str().unwrap().to_owned()),
            private_tmp: Some(self.home.tmp().to_str().unwrap().to_owned()),
            outside_git: true,
            ..LaunchRequest::default()
        }
    }

    pub(crate) fn prompt(&self, prompt: &str) -> Ran {
        self.run(&self.request(prompt))
    }

    pub(crate) fn run(&self, request: &LaunchRequest) -> Ran {
        let spec = self.agent.launch(request).unwrap();
        write_files(request, &spec);
        self.spec(&spec)
    }

    /// Carries a launch out to the letter.
    pub(crate) fn spec(&self, spec: &LaunchSpec) -> Ran {
        let finished = run(&mut self.command(spec), &spec.stdin, DEADLINE).unwrap();
        self.read(spec, finished)
    }

    fn command(&self, spec: &LaunchSpec) -> Command {
        let mut command = self.recipe.command(&spec.args);
        for name in &spec.env_remove {
            command.env_remove(name);
        }
        command.envs(&spec.env_set);
        command
    }

    /// Runs a request and sends a signal once the file `started` is there.
    pub(crate) fn run_signalled(&self, request: &LaunchRequest, signal: &str) -> Ran {
        let spec = self.agent.launch(request).unwrap();
        write_files(request, &spec);
        let started = self.home.work().join("started");
        let name = signal.to_owned();
        // The shell that sends the signal becomes the agent: they have the same process id.
        let wait = format!(
            "(while [ ! -e {} ]; do sleep 0.05; done; kill -{name} $$) </dev/null >/dev/null 2>&1 & exec \"$@\"",
            started.display()
        );
        let agent = self.command(&spec);
        let mut command = Command::new("sh");
        command.args(["-c", &wait, "sh"]).arg(agent.get_program()).args(agent.get_args());
        command.env_clear().current_dir(&self.recipe.cwd);
        command.envs(agent.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let finished = run(&mut command, &spec.stdin, DEADLINE).unwrap();
        self.read(&spec, finished)
    }

    fn read(&self, spec: &LaunchSpec, finished: Finished) -> Ran {
        let options =
            ReaderOptions { expected_native_id: spec.native_id.clone(), ..ReaderOptions::default() };
        let mut reader = self.agent.reader(&options);
        let mut envelopes: Vec<Envelope> = Vec::new();
        reader.feed(&finished.stdout, &mut |envelope| envelopes.push(envelope));
        let exit = ExitInfo { code: finished.code, signal: finished.signal, ..ExitInfo::default() };
        let exit = exit.with_stderr(finished.stderr.clone());
        let outcome = reader.finish(&exit, &mut |envelope| envelopes.push(envelope));
        let ran = Ran { envelopes, outcome, finished };
        ran.describe(self);
        self.record(&ran.finished);
        assert!(!ran.finished.timed_out, "more than {:?}", DEADLINE);
        ran
    }
}

/// Names a directory to which every real agent's output is written, as `AGENT/TEST-N.jsonl`: what the tests of
/// `segno-agents` read was made this way.
const RECORD: &str = "SEGNO_RECORD";

impl Lab {
    fn record(&self, finished: &Finished) {
        let Some(directory) = std::env::var_os(RECORD) else { return };
        let directory = std::path::Path::new(&directory).join(self.agent.name());
        std::fs::create_dir_all(&directory).unwrap();
        let thread = std::thread::current();
        let test = thread.name().unwrap().rsplit("::").next().unwrap().to_owned();
        let path =
            (1..).map(|number| directory.join(format!("{test}-{number}.jsonl"))).find(|path| !path.exists());
        // The place of this home is different every time.
        let root = self.home.beside("").to_str().unwrap().trim_end_matches('/').to_owned();
        let text = String::from_utf8_lossy(&finished.stdout).replace(&root, "/place");
        std::fs::write(path.unwrap(), text).unwrap();
    }
}

/// Files of one run go where the request says.
fn write_files(request: &LaunchRequest, spec: &LaunchSpec) {
    for file in &spec.files {
        let directory = std::path::Path::new(request.private_tmp.as_deref().unwrap());
        std::fs::write(directory.join(file.name), &file.content).unwrap();
    }
}

impl Ran {
    pub(crate) fn events(&self) -> impl Iterator<Item = &AgentEvent> {
        self.envelopes.iter().map(|envelope| &envelope.event)
    }

    /// The calls, each of which must have been told once with its start and its end; the ones that did not end.
    pub(crate) fn calls(&self) -> (Vec<&str>, Vec<&str>) {
        let (mut started, mut open) = (Vec::new(), Vec::new());
        for event in self.events() {
            match event {
                AgentEvent::ToolStarted { call_id, .. } => {
                    assert!(!started.contains(&call_id.as_str()), "{call_id} starts twice");
                    started.push(call_id.as_str());
                    open.push(call_id.as_str());
                }
                AgentEvent::ToolFinished { call_id, .. }
                | AgentEvent::ToolFailed { call_id, .. }
                | AgentEvent::ToolDenied { call_id, .. } => {
                    let at = open.iter().position(|open| open == call_id);
                    open.remove(
                        at.unwrap_or_else(|| panic!("{call_id} ends without having started, or twice")),
                    );
                }
                _ => {}
            }
        }
        (started, open)
    }

    /// Printed by a failing test.
    fn describe(&self, lab: &Lab) {
        println!(
            "took {:.1} s, exit {:?} {:?}",
            self.finished.took.as_secs_f64(),
            self.finished.code,
            self.finished.signal
        );
        println!("outcome {}", serde_json::to_string(&self.outcome).unwrap());
        for request in lab.model.requests() {
            println!("request {}", serde_json::to_string(&request).unwrap());
        }
        println!("small {:?}", lab.model.small_requests());
        for event in self.events() {
            println!("event {}", clip(&serde_json::to_string(event).unwrap()));
        }
        println!("stderr {}", self.finished.stderr);
    }
}

fn clip(text: &str) -> String {
    text.chars().take(400).collect()
}

/// Hooks: the scripted agent plays them and writes down each call.
impl Lab {
    /// A command for hooks that records its calls, then plays `steps`.
    pub(crate) fn recorder(&self, steps: &[Step]) -> Vec<String> {
        let records = self.home.beside("records").to_str().unwrap().to_owned();
        let mut all = vec![Step::Stdin(0), Step::Record(records)];
        all.extend_from_slice(steps);
        let script = self.home.beside("hook.json");
        std::fs::write(&script, serde_json::to_string(&all).unwrap()).unwrap();
        let program = scripted_agent().unwrap();
        [program.to_str().unwrap(), "--script", script.to_str().unwrap()].map(str::to_owned).into()
    }

    /// The calls so far, in order: what came on stdin, or as last argument if nothing did.
    pub(crate) fn payloads(&self) -> Vec<Value> {
        self.records()
            .iter()
            .map(|record| {
                let stdin = record["stdin"].as_str().filter(|text| !text.is_empty());
                let argument = record["args"].as_array().and_then(|args| args.last()?.as_str());
                serde_json::from_str(stdin.or(argument).unwrap()).unwrap()
            })
            .collect()
    }

    /// The calls so far: `{args, stdin, env}`.
    pub(crate) fn records(&self) -> Vec<Value> {
        let entries = std::fs::read_dir(self.home.beside("records")).into_iter().flatten().flatten();
        let mut paths: Vec<_> = entries.map(|entry| entry.path()).collect();
        paths.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
        paths.sort();
        paths.iter().map(|path| serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()).collect()
    }

    /// Steps of a hook that answers `decision` to calls of `event` whose payload matches.
    pub(crate) fn answer(&self, event: &str, matches: &str, decision: &Decision) -> Step {
        let sample = serde_json::json!({ "hook_event_name": event, "tool_name": "Bash", "tool_use_id": "t", "call_id": "t" });
        let report = self.agent.hook(sample.to_string().as_bytes()).unwrap();
        let answer = report.respond(decision).expect("this hook can carry this decision");
        Step::IfStdin { matches: format!("\"{event}\".*{matches}"), steps: vec![Step::Print(answer)] }
    }
}

/// The names of the hook events, in order.
pub(crate) fn names(payloads: &[Value]) -> Vec<&str> {
    payloads.iter().map(|payload| payload["hook_event_name"].as_str().unwrap_or("?")).collect()
}
