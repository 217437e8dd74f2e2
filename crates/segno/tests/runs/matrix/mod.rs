//! The real agents under `segno run`, against a scripted model: how each scenario ends, and what is recorded of it.
//!
//! Every cell is also a cell of the table in `docs/agents.md`, which is compared with what happens.

mod caps;
mod crashes;
mod drivers;
mod evidence;
mod history;
mod installed;
mod interactive;
mod limits;
mod mcp;
mod more;
mod permissions;
mod record;
mod rescue;
mod resume;
mod signals;
mod takes_over;
mod talks;
mod travels;
mod turns;
mod waits;
mod watched;
mod watched_terminal;
mod why;
mod work;

use std::path::PathBuf;
use std::time::Duration;

use segno_testkit::agents::find_or_skip;
use segno_testkit::model::Model;
use segno_testkit::model::Op;
use segno_testkit::model::Script;
use segno_testkit::model::Turn;
use segno_testkit::recipe::Patience;
use segno_testkit::recipe::Recipe;
use segno_testkit::recipe::{self};
use serde_json::Value;

use crate::lab::Lab;
use crate::lab::Live;
use crate::lab::Said;
use crate::lab::until;
use crate::table;

/// A real agent in a lab, with a model that plays a script.
pub(crate) struct Real {
    pub(crate) agent: &'static str,
    pub(crate) lab: Lab,
    pub(crate) model: Model,
}

impl Real {
    /// None when the agent is not installed.
    fn new(agent: &'static str, script: Script, patience: Patience) -> Option<Self> {
        Self::prepared(agent, script, patience, |recipe| recipe)
    }

    pub(crate) fn prepared(
        agent: &'static str,
        script: Script,
        patience: Patience,
        prepare: impl FnOnce(Recipe) -> Recipe,
    ) -> Option<Self> {
        find_or_skip(agent)?;
        let (lab, model) = (Lab::new(), Model::start(script).unwrap());
        let mut real = Self { agent, lab, model };
        real.also(agent, patience, prepare)?;
        Some(real)
    }

    /// One more agent in the same lab, with the same model; the environment is then that of all of them.
    pub(crate) fn also(
        &mut self,
        agent: &str,
        patience: Patience,
        prepare: impl FnOnce(Recipe) -> Recipe,
    ) -> Option<()> {
        let program = find_or_skip(agent)?;
        let (home, model) = (&self.lab.home, &self.model);
        let recipe = match agent {
            "claude" => recipe::claude(&program, home, model, patience),
            "codex" => recipe::codex(&program, home, model, patience),
            "gemini" => recipe::gemini(&program, home, model, patience),
            "opencode" => recipe::opencode(&program, home, model, patience),
            other => panic!("no recipe for {other}"),
        };
        let mut recipe = prepare(recipe);
        recipe.install().unwrap();
        recipe.env.remove("PATH");
        self.lab.env.extend(recipe.env);
        self.lab.put_on_path(program.parent().unwrap());
        Some(())
    }

    /// The usual patience.
    fn with(agent: &'static str, turns: impl IntoIterator<Item = Turn>) -> Option<Self> {
        Self::new(agent, Script::new(turns), Patience::default())
    }

    fn args<'a>(&'a self, more: &[&'a str]) -> Vec<&'a str> {
        ["run", "--json", "--agent", self.agent, "--prompt", "go"].iter().chain(more).copied().collect()
    }

    fn run(&self, more: &[&str]) -> Said {
        let said = self.lab.run(&self.args(more));
        self.describe(&said);
        said
    }

    fn start(&self, more: &[&str]) -> Live {
        self.lab.start(&self.args(more), None)
    }

    /// Printed by a failing test.
    pub(crate) fn describe(&self, said: &Said) {
        println!("took {:?}, exit {:?} {:?}", said.took, said.code, said.signal);
        for line in said.text().lines() {
            println!("  {}", line.chars().take(600).collect::<String>());
        }
        println!("stderr {}", said.stderr);
        for request in self.model.requests() {
            println!("request {}", serde_json::to_string(&request).unwrap());
        }
    }

    /// What the model was asked in the conversation itself; opencode also lets it find a title.
    fn asked(&self) -> Vec<segno_testkit::model::Request> {
        self.model.requests().into_iter().filter(|request| request.track == "main").collect()
    }

    /// Changes a file of the agent's own settings.
    fn reconfigure(&self, path: &str, from: &str, to: &str) {
        let path = self.lab.home.path().join(path);
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains(from), "{text}");
        std::fs::write(path, text.replace(from, to)).unwrap();
    }

    /// A file in the project.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.lab.home.work().join(name)
    }

    /// Waits until the project has a file.
    fn wait_file(&self, name: &str) {
        until(name, || self.file(name).exists().then_some(()));
    }

    /// Waits for the end of a run, and looks at it.
    fn settled(&self, scenario: &str, live: Live, outcome: &str, status: &str) -> Value {
        let said = live.finish();
        self.describe(&said);
        self.ended(scenario, &said, outcome, status)
    }

    /// How it ended is the same wherever one looks, and nothing is left running. Answers with the result.
    fn ended(&self, scenario: &str, said: &Said, outcome: &str, status: &str) -> Value {
        let result = said.result();
        assert_eq!(result["outcome"], outcome, "{result}");
        assert_eq!(result["session_status"], status, "{result}");
        let code = exit_code(outcome);
        assert_eq!((said.code, &result["exit_code"]), (Some(code), &Value::from(code)), "{}", said.stderr);
        self.recorded(scenario, outcome, status);
        result
    }

    /// The same, for a run whose result nobody printed.
    fn recorded(&self, scenario: &str, outcome: &str, status: &str) {
        self.lab.assert_nothing_left();
        let state = self.lab.state();
        assert_eq!(
            (&state["status"], &state["run"]["outcome"]),
            (&status.into(), &outcome.into()),
            "{state}"
        );
        let mut runs = self.lab.json(&["show", "last", "--runs"]);
        let last = runs["items"].as_array_mut().unwrap().pop().unwrap();
        assert_eq!((&last["outcome"], &last["agent"]), (&outcome.into(), &self.agent.into()));
        assert!(last["started_at"].is_string() && last["ended_at"].is_string(), "{last}");
        let shown = self.lab.run(&["show", "last"]).text();
        assert!(shown.contains(&outcome.replace('_', " ")), "show says how it ended: {shown}");
        table::says(self.agent, scenario, outcome, status);
    }

    /// The ledger has exactly these calls, in this order, by how they ended.
    fn ledger(&self, expected: &[&str]) {
        let tools = self.lab.tools();
        let states: Vec<&str> = tools.iter().map(|call| call["state"].as_str().unwrap()).collect();
        assert_eq!(states, expected, "{tools:#?}");
        for call in &tools {
            assert!(call["started_at"].is_string() && call["tool"].is_string(), "{call}");
            assert_eq!(call["ended_at"].is_string(), call["state"] != "open", "{call}");
            assert_eq!(call["write_ahead"], tells_before(self.agent), "{call}");
        }
        let counts = self.lab.state()["calls"].take();
        assert_eq!(counts["total"], expected.len(), "{counts}");
    }
}

/// Whether an agent tells each call before it runs, and waits until it is on record.
fn tells_before(agent: &str) -> bool {
    matches!(agent, "claude" | "opencode")
}

/// Documented in docs/exit-codes.md.
fn exit_code(outcome: &str) -> i32 {
    match outcome {
        "completed" => 0,
        "budget" => 8,
        "failed" => 20,
        "interrupted" => 21,
        "timed_out" => 22,
        "stopped" => 23,
        "limit" => 24,
        "denied" => 25,
        "max_turns" => 26,
        other => panic!("{other}"),
    }
}

/// A command that says when it runs, and goes on until it is let go.
const WAITS: &str =
    "echo begun; touch begun; while [ ! -e go ]; do sleep 0.1; done; echo released > released.txt";

/// A turn that runs [`WAITS`].
fn waits() -> Turn {
    Turn::ops([Op::Sh(segno_testkit::model::Sh {
        command: WAITS.to_owned(),
        // Codex would go on without it after ten seconds.
        timeout_ms: Some(Duration::from_secs(25).as_millis() as u64),
        background: false,
    })])
}
