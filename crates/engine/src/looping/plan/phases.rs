//! From what a workflow's file says to what a loop is told.

use segno_core::Refusal;
use segno_core::looping::Context;
use segno_core::looping::EvidencePlan;
use segno_core::looping::GateRule;
use segno_core::looping::LoopPlan;
use segno_core::looping::MetricRule;
use segno_core::looping::OnReject;
use segno_core::looping::PhasePlan;
use segno_core::looping::Thresholds;

use super::workflow::ContextFile;
use super::workflow::EvidenceFile;
use super::workflow::GateFile;
use super::workflow::NamedWorkflow;
use super::workflow::PhaseFile;
use super::workflow::ThresholdsFile;

impl NamedWorkflow {
    /// The phases of a loop. Commands that somebody gave for this loop measure every phase in which something is
    /// measured at all, beside the phase's own; phases that are optional are there only if somebody wants them.
    pub fn phases(&self, given: &[EvidencePlan], optional: bool) -> Vec<PhasePlan> {
        let wanted = self.workflow.phases.iter().filter(|phase| optional || !phase.optional);
        wanted.map(|phase| planned(phase, given)).collect()
    }

    /// Whether a loop could be told it, with a command that measures.
    pub(super) fn check_as_plan(&self) -> Result<(), Refusal> {
        let given =
            EvidencePlan { name: "until".to_owned(), command: "true".to_owned(), ..EvidencePlan::default() };
        let phases = self.phases(&[given], true);
        LoopPlan { workflow: self.name.clone(), phases, ..LoopPlan::default() }.check()
    }

    /// The phases that need a command of `--until`, because they name none of their own.
    pub fn measured_by_others(&self) -> Vec<&str> {
        let bare = self.workflow.phases.iter().filter(|phase| phase.evidence.is_empty());
        let needs = |gate: &GateFile| match gate {
            GateFile::Red { .. } | GateFile::Green { .. } | GateFile::Refactor { .. } | GateFile::Until => {
                true
            }
            GateFile::Document { .. } | GateFile::Qa | GateFile::Signal | GateFile::Metrics(_) => false,
        };
        bare.filter(|phase| needs(&phase.gate)).map(|phase| phase.name.as_str()).collect()
    }

    /// The phases that send rejected work back, and in which nobody is made to say whether it is rejected.
    pub fn not_reviewed(&self) -> Vec<&str> {
        let sends_back = |phase: &&PhaseFile| phase.on_reject.is_some() && phase.gate != GateFile::Qa;
        self.workflow.phases.iter().filter(sends_back).map(|phase| phase.name.as_str()).collect()
    }

    /// Every agent that it names, each once.
    pub fn agents(&self) -> Vec<&str> {
        let of_phases = self.workflow.phases.iter().filter_map(|phase| phase.agent.as_deref());
        let mut names: Vec<&str> =
            of_phases.chain(self.workflow.limits.agents.iter().map(String::as_str)).collect();
        names.sort_unstable();
        names.dedup();
        names
    }
}

fn planned(phase: &PhaseFile, given: &[EvidencePlan]) -> PhasePlan {
    let mut evidence: Vec<EvidencePlan> = phase.evidence.iter().map(measures).collect();
    if phase.gate != GateFile::Signal {
        let own: Vec<String> = evidence.iter().map(|own| own.name.clone()).collect();
        evidence.extend(given.iter().filter(|given| !own.contains(&given.name)).cloned());
    }
    PhasePlan {
        name: phase.name.clone(),
        prompt: phase.prompt.trim().into(),
        agent: phase.agent.clone(),
        model: phase.model.clone(),
        context: match phase.context {
            ContextFile::Same => Context::Same,
            ContextFile::Fresh => Context::Fresh,
            ContextFile::Auto(percent) => Context::Auto { percent },
        },
        gate: rule(&phase.gate),
        evidence,
        protect: phase.protect.clone(),
        thresholds: thresholds(&phase.name, &phase.thresholds),
        max_iterations: phase.max_iterations,
        max_seconds: phase.max_seconds,
        on_start: phase.on_start.clone(),
        on_complete: phase.on_complete.clone(),
        on_error: phase.on_error.clone(),
        breakpoint: phase.breakpoint,
        on_reject: phase.on_reject.as_ref().map(|reject| OnReject {
            to: reject.to.clone(),
            most: reject.most,
            other_model: reject.other_model,
        }),
        optional: phase.optional,
    }
}

fn measures(file: &EvidenceFile) -> EvidencePlan {
    let usual = EvidencePlan::default();
    EvidencePlan {
        name: file.name.clone(),
        command: file.command.clone(),
        seconds: file.seconds.unwrap_or(usual.seconds),
        reads: file.reads,
        report: file.report.clone(),
    }
}

fn rule(gate: &GateFile) -> GateRule {
    match gate {
        GateFile::Red { criteria } => GateRule::Red { criteria: *criteria },
        GateFile::Green { runs } => GateRule::Green { runs: *runs },
        GateFile::Refactor { iterations } => GateRule::Refactor { iterations: *iterations },
        GateFile::Document { docs, adr } => GateRule::Document { docs: *docs, adr: *adr },
        GateFile::Qa => GateRule::Qa,
        GateFile::Until => GateRule::Until,
        GateFile::Signal => GateRule::Signal,
        GateFile::Metrics(metrics) => {
            let at_least = |(name, least): (&String, &f64)| MetricRule {
                name: name.clone(),
                at_least: Some(*least),
                ..MetricRule::default()
            };
            GateRule::Metrics(metrics.iter().map(at_least).collect())
        }
    }
}

/// What the file says, and what is usual for a phase of that name otherwise.
fn thresholds(name: &str, file: &ThresholdsFile) -> Thresholds {
    let usual = Thresholds::for_phase(name);
    Thresholds {
        no_progress: file.no_progress.unwrap_or(usual.no_progress),
        same_error: file.same_error.unwrap_or(usual.same_error),
        denials: file.denials.unwrap_or(usual.denials),
        start_failures: file.start_failures.unwrap_or(usual.start_failures),
        questions: file.questions.unwrap_or(usual.questions),
        identical_calls: file.identical_calls.unwrap_or(usual.identical_calls),
        cycles: file.cycles.unwrap_or(usual.cycles),
        ..usual
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn tests() -> EvidencePlan {
        EvidencePlan { name: "until".to_owned(), command: "make test".to_owned(), ..EvidencePlan::default() }
    }

    #[test]
    fn every_workflow_that_is_built_in_can_be_followed() {
        for (name, found) in NamedWorkflow::list(Path::new("/nowhere")) {
            for optional in [false, true] {
                let phases = found.as_ref().unwrap().phases(&[tests()], optional);
                let plan = LoopPlan { workflow: name.clone(), phases, ..LoopPlan::default() };
                assert_eq!(plan.check(), Ok(()), "{name}");
            }
        }
    }

    #[test]
    fn optional_phases_are_there_when_asked_for() {
        let prp = NamedWorkflow::find("prp", Path::new("/nowhere")).unwrap();
        let names = |optional| -> Vec<String> {
            prp.phases(&[tests()], optional).into_iter().map(|phase| phase.name).collect()
        };
        assert_eq!(names(false), ["RED", "GREEN", "REFACTOR", "DOCUMENT"]);
        assert_eq!(names(true), ["RED", "GREEN", "REFACTOR", "DOCUMENT", "QA"]);
    }

    #[test]
    fn what_is_measured_by_nothing_is_not_measured() {
        let team = NamedWorkflow::find("go-team", Path::new("/nowhere")).unwrap();
        let measured: Vec<String> = team
            .phases(&[tests()], false)
            .into_iter()
            .filter(|phase| !phase.evidence.is_empty())
            .map(|phase| phase.name)
            .collect();
        assert_eq!(measured, ["implementation", "testing", "review", "optimization", "release"]);
        let simple = NamedWorkflow::find("simple", Path::new("/nowhere")).unwrap();
        let plan = LoopPlan {
            workflow: "simple".to_owned(),
            phases: simple.phases(&[], false),
            ..LoopPlan::default()
        };
        assert!(plan.check().is_err(), "a loop that nothing measures would never end");
    }
}
