//! The real agents in `segno loop`, against a scripted model that plays the agent's mind, on small real projects with
//! their real test command.
//!
//! Every scenario is also a row of the table in `docs/loop.md`, which is compared with what happens.

mod healthy;
mod kills;
mod mind;
mod phases;
mod polled;
mod project;
mod queue;
mod stuck;
mod table;
mod waits;

use serde_json::Value;

use self::mind::Mind;
use self::project::Project;
use self::table::Scenario;
use crate::lab::Live;
use crate::lab::Said;
use crate::lab::program;
use crate::matrix::Real;
use segno_testkit::recipe::Patience;
use segno_testkit::recipe::Recipe;

/// What the loops are about.
const WORK: &str = "words need a slug: lower case, with a dash for each space";

/// A real agent in a loop.
struct Loop {
    real: Real,
    /// The command that measures the work.
    until: String,
}

impl Loop {
    /// None when the agent or the language is not installed.
    fn new(agent: &'static str, project: Project, mind: Mind) -> Option<Self> {
        Self::prepared(agent, project, mind, |recipe| recipe)
    }

    fn prepared(
        agent: &'static str,
        project: Project,
        mind: Mind,
        prepare: impl FnOnce(Recipe) -> Recipe,
    ) -> Option<Self> {
        let mut real = Real::prepared(agent, mind.script(), Patience::default(), prepare)?;
        let until = project.install(&mut real.lab)?;
        Some(Self { real, until })
    }

    fn args<'a>(&'a self, more: &[&'a str]) -> Vec<&'a str> {
        let begin = ["loop", "--json", "--prompt", WORK, "--until", &self.until];
        let agent = if more.contains(&"--agent") { None } else { Some(["--agent", self.real.agent]) };
        begin.into_iter().chain(agent.into_iter().flatten()).chain(more.iter().copied()).collect()
    }

    fn start(&self, more: &[&str]) -> Live {
        self.real.lab.start(&self.args(more), None)
    }

    fn run(&self, more: &[&str]) -> Said {
        let said = self.real.lab.run(&self.args(more));
        self.describe(&said);
        said
    }

    /// Trusts the project as a person does, at a terminal.
    fn trust(&self) {
        let lab = &self.real.lab;
        let mut script = program("script");
        script.args(["-qec", &format!("{} trust", lab.segno.display()), "/dev/null"]);
        script.env_clear().envs(&lab.env).env("TERM", "xterm-256color").current_dir(lab.home.work());
        let said = lab.start_command(&mut script, Some(b"")).finish();
        assert_eq!(said.code, Some(0), "{}", said.text());
    }

    /// Printed by a failing test.
    fn describe(&self, said: &Said) {
        println!("took {:?}, exit {:?}, stderr {}", said.took, said.code, said.stderr);
        println!("{}", self.real.lab.run(&["log", "last"]).text());
        for event in self.real.lab.journal(Some("iteration_ended")) {
            println!("{event}");
        }
        for request in self.real.model.requests() {
            println!("request {} {} {:?}", request.number, request.track, request.end);
        }
    }

    /// How it ended is the same wherever one looks, the page says so, and nothing is left running. Answers with the
    /// result.
    fn ended(&self, scenario: Scenario, said: &Said, outcome: &str, status: &str) -> Value {
        let result = said.result();
        let code = exit_code(outcome);
        assert_eq!((said.code, &result["outcome"]), (Some(code), &outcome.into()), "{result}");
        assert_eq!(result["exit_code"], code, "{result}");
        assert_eq!(result["session_status"], status, "{result}");
        let state = self.real.lab.state();
        assert_eq!((&state["status"], &state["made_by"]), (&status.into(), &"loop".into()), "{state}");
        self.real.lab.assert_nothing_left();
        table::says(self.real.agent, scenario, outcome, status);
        result
    }

    /// The verdicts of all iterations.
    fn verdicts(&self) -> Vec<String> {
        let ended = self.real.lab.journal(Some("iteration_ended"));
        ended.iter().map(|event| event["body"]["verdict"]["verdict"].as_str().unwrap().to_owned()).collect()
    }

    /// The phases with their iterations and how they were left.
    fn phases(&self) -> Vec<(String, u64, String)> {
        let state = self.real.lab.state();
        let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let stands = state["looping"]["phases"].as_array().unwrap().iter();
        stands
            .map(|one| (word(&one["name"]), one["iterations"].as_u64().unwrap_or(0), word(&one["end"])))
            .collect()
    }
}

/// Documented in docs/loop.md.
fn exit_code(outcome: &str) -> i32 {
    match outcome {
        "completed" => 0,
        "budget" => 8,
        "parked" => 24,
        "max_iterations" => 26,
        "halted" => 28,
        "needs_person" => 29,
        other => panic!("{other}"),
    }
}
