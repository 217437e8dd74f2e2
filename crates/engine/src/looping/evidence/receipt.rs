//! Gates by hand: what the conditions of the present phase are worth now, and whether a receipt still holds.

use segno_core::Command;
use std::path::Path;
use std::path::PathBuf;

use segno_core::SessionId;
use segno_core::event::Event;
use segno_core::looping::EvidenceMark;
use segno_core::looping::EvidencePlan;
use segno_core::looping::GateResult;
use segno_core::looping::GateRule;
use segno_core::looping::LoopCommand;
use segno_core::looping::Observation;
use segno_core::looping::Receipt;
use segno_core::looping::TestCounts;
use segno_core::looping::evaluate;

use crate::Engine;
use crate::Error;
use crate::launch::LaunchSettings;
use crate::looping::driver::drive::the_loop;
use crate::looping::driver::news::LoopListener;
use crate::run::Stop;

/// What came of measuring again what a receipt says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified {
    /// The tree now.
    pub tree: Option<String>,
    /// Whether it is the one that was measured then.
    pub same_tree: bool,
    /// Whether the commands and the scripts they are made of are what they were.
    pub same_commands: bool,
    /// How each command ended now.
    pub evidence: Vec<EvidenceMark>,
    /// How the tests came out now.
    pub counts: TestCounts,
    /// Whether every command and every count came out as the receipt says.
    pub holds: bool,
}

/// Where a receipt is measured again.
#[derive(Clone, Copy, Debug)]
pub enum ReceiptPlace<'a> {
    /// In the project of a session, by what its loop says of the commands.
    Session(SessionId),
    /// In a directory: nobody here has the session that the receipt is of.
    Directory(&'a Path),
}

impl Engine {
    /// Measures the gate of the present phase of a loop, and records that somebody looked. Nothing follows from it.
    ///
    /// # Errors
    /// If the session is no loop, or the commands cannot be run.
    pub fn loop_gate(
        &self,
        session: SessionId,
        settings: &LaunchSettings,
        stop: &Stop,
        listener: &dyn LoopListener,
    ) -> Result<GateResult, Error> {
        let state = self.load(session)?.state;
        let looping = the_loop(&state)?;
        let Some(phase) = looping.phase_plan() else {
            return Err(Error::NotResumable { why: "its plan has no such phase", status: state.status });
        };
        let stops = || stop.asked().0 > 0;
        let wanted = (phase.evidence.as_slice(), phase.protect.as_slice());
        let measured = self.gather(&state, wanted, settings, &stops, listener)?;
        if measured.stopped {
            return Err(Error::NotStarted("the measurement was stopped".to_owned()));
        }
        let mut seen = Observation::default();
        self.add_measured(&state, looping, &mut seen, &measured, 1, false)?;
        if measured.tree.is_none() {
            seen.tree_after = self.present_tree(&state)?;
        }
        if matches!(phase.gate, GateRule::Document { .. }) {
            seen.metrics.extend(self.documents(&state)?);
        }
        // What the agent claimed belongs to its own iteration; nobody says so now.
        let result = evaluate(looping, &seen, state.iteration);
        let command =
            LoopCommand::MeasureGate { phase: phase.name.clone(), result: result.clone(), by_hand: true };
        // Nothing is added to the record of a session that has ended.
        if state.status.is_open() {
            self.act(session, Command::Loop(Box::new(command)))?;
        }
        Ok(result)
    }

    /// The receipts of a loop, by phase.
    ///
    /// # Errors
    /// If the session is no loop, or its record cannot be read.
    pub fn loop_receipts(&self, session: SessionId) -> Result<Vec<(String, Receipt)>, Error> {
        let state = self.load(session)?.state;
        let mut receipts = Vec::new();
        for (phase, seq) in the_loop(&state)?.phases.iter().filter_map(|it| Some((&it.name, it.receipt?))) {
            let rows = self.store().events(session, seq.saturating_sub(1), 1)?;
            if let Some(segno_store::EventRow::Whole(stored)) = rows.first()
                && let Ok(Event::GatePassed(passed)) = stored.event()
            {
                receipts.push((phase.clone(), passed.receipt));
            }
        }
        Ok(receipts)
    }

    /// Runs the commands of a receipt again, in the project of a session or, for a receipt from elsewhere, in that directory.
    ///
    /// # Errors
    /// If they cannot be run.
    pub fn verify_receipt(
        &self,
        place: ReceiptPlace<'_>,
        receipt: &Receipt,
        settings: &LaunchSettings,
        stop: &Stop,
        listener: &dyn LoopListener,
    ) -> Result<Verified, Error> {
        let (state, directory) = match place {
            ReceiptPlace::Session(session) => {
                let state = self.load(session)?.state;
                let directory = PathBuf::from(&state.project.path);
                (Some(state), directory)
            }
            ReceiptPlace::Directory(directory) => (None, directory.to_path_buf()),
        };
        let place = (directory.as_path(), state.as_ref().map(|state| state.session_id));
        let before = self.tree_at(place.0, place.1)?;
        let name = |index: usize| {
            let known = receipt.evidence.get(index).map(|mark| mark.name.clone());
            known.unwrap_or_else(|| format!("command {}", index + 1))
        };
        let plans: Vec<EvidencePlan> = receipt
            .commands
            .iter()
            .enumerate()
            .map(|(index, command)| {
                let name = name(index);
                let looping = state.iter().filter_map(|state| state.looping.as_ref());
                let phases = looping.flat_map(|looping| &looping.plan.phases);
                let mut known = phases.flat_map(|phase| &phase.evidence);
                // What is read from it, and how long it may take, is as it was then where that is known.
                known.find(|plan| plan.name == name && plan.command == *command).cloned().unwrap_or_else(
                    || EvidencePlan { name, command: command.clone(), ..EvidencePlan::default() },
                )
            })
            .collect();
        let stops = || stop.asked().0 > 0;
        let measured = self.gather_at(place, (&plans, &[]), settings, &stops, listener)?;
        if measured.stopped {
            return Err(Error::NotStarted("the measurement was stopped".to_owned()));
        }
        let counts = measured.tests.clone().unwrap_or_default();
        let as_then = receipt.evidence.len() == measured.evidence.len()
            && receipt.evidence.iter().zip(&measured.evidence).all(|(then, now)| then.passes == now.passes);
        let same_commands = receipt.evidence.len() == measured.evidence.len()
            && receipt.evidence.iter().zip(&measured.evidence).all(|(then, now)| {
                (&then.command_hash, &then.settings_hash) == (&now.command_hash, &now.settings_hash)
            });
        Ok(Verified {
            same_commands,
            same_tree: before.is_some() && before == receipt.tree,
            tree: before,
            holds: as_then && counts == receipt.counts,
            evidence: measured.evidence,
            counts,
        })
    }
}
