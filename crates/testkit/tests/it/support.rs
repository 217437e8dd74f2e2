//! Runs a real agent as segno will: command line and reader from `segno-agents`, model and home from here.

use std::time::Duration;

use segno_agents::{
    Agent, AgentEvent, Decision, Envelope, ExitInfo, LaunchRequest, LaunchSpec, Outcome, ReaderOptions,
    by_name,
};
use segno_testkit::agents::find_or_skip;
use segno_testkit::home::Home;
use segno_testkit::model::{Model, Script};
use segno_testkit::programs::scripted_agent;
use segno_testkit::recipe::{self, Patience, Recipe};
use segno_testkit::run::{Finished, run};
use segno_testkit::scripted::Step;
use serde_json::Value;

/// No scenario may take longer.
const DEADLINE: Duration = Duration::from_secs(20);

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
    /// None when the agent is not installed.
    pub(crate) fn new(agent: &str, script: Script, patience: Patience) -> Option<Self> {
        let program = find_or_skip(agent)?;
        let home = Home::new().unwrap();
        let model = Model::start(script).unwrap();
        let recipe = match agent {
            "claude" => recipe::claude(&program, &home, &model, patience),
            "codex" => recipe::codex(&program, &home, &model, patience),
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
        self.spec(&self.agent.launch(request).unwrap())
    }

    /// Carries a launch out to the letter.
    pub(crate) fn spec(&self, spec: &LaunchSpec) -> Ran {
        let mut command = self.recipe.command(&spec.args);
        for name in &spec.env_remove {
            command.env_remove(name);
        }
        command.envs(&spec.env_set);
        let finished = run(&mut command, &spec.stdin, DEADLINE).unwrap();
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
        assert!(!ran.finished.timed_out, "more than {DEADLINE:?}");
        ran
    }
}

impl Ran {
    pub(crate) fn events(&self) -> impl Iterator<Item = &AgentEvent> {
        self.envelopes.iter().map(|envelope| &envelope.event)
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
        let sample = serde_json::json!({ "hook_event_name": event, "tool_name": "Bash", "tool_use_id": "t" });
        let report = self.agent.hook(sample.to_string().as_bytes()).unwrap();
        let answer = report.respond(decision).expect("this hook can carry this decision");
        Step::IfStdin { matches: format!("\"{event}\".*{matches}"), steps: vec![Step::Print(answer)] }
    }
}

/// The names of the hook events, in order.
pub(crate) fn names(payloads: &[Value]) -> Vec<&str> {
    payloads.iter().map(|payload| payload["hook_event_name"].as_str().unwrap_or("?")).collect()
}
