//! What other programs change in the files that we keep: what the documents let them ask for is obeyed through the same
//! commands and requests as ours; anything else is put back, and theirs is kept beside it.

use std::path::Path;

use segno_core::Command;
use segno_core::State;
use segno_core::Status;
use segno_core::event::PauseReason;
use segno_core::looping::BreakerState;
use segno_core::looping::LoopCommand;
use segno_layouts::Family;
use segno_layouts::FileSet;
use segno_layouts::ForeignEdit;
use segno_layouts::Looked;
use segno_layouts::go_team::REGISTRY;
use segno_store::Filter;
use serde_json::Value;

use super::folder;
use super::gather;
use super::present::Present;
use super::write::Planned;
use crate::Engine;

/// After so many changes by another program its files are left to it.
const MOST: u32 = 3;
/// How many open sessions of a project are looked at.
const SESSIONS: usize = 20;

/// What to do about the files that are there.
pub(super) enum Answer {
    /// Write.
    Write,
    /// What was asked for is being done.
    Wait,
    /// Do what was asked for; in words.
    Obey(Box<Command>, String),
    /// Put ours back, and keep theirs.
    PutBack { names: Vec<String>, changed: u32 },
    /// Leave them alone from now on.
    Stop(String),
}

impl Engine {
    /// What to do about what another program changed. `anew` is for somebody who asks for our files whatever happened.
    pub(super) fn answer_to(&self, family: Family, state: &State, planned: &Planned, anew: bool) -> Answer {
        let present = &planned.present.files;
        let Some((name, looked)) =
            planned.main.as_ref().filter(|(_, looked)| looked.session_id == state.session_id.to_string())
        else {
            // A main file of ours that is damaged is put right; theirs were told apart before. Nothing of what came is lost
            // when it is written for the first time.
            let damaged = planned.damaged_main.clone().into_iter();
            let is_other = planned.main.is_some();
            let main = planned.damaged_main.as_deref().unwrap_or_default();
            let others = if is_other { Vec::new() } else { planned.touched(state, main) };
            let names: Vec<String> = damaged.chain(planned.left_out.clone()).chain(others).collect();
            return if names.is_empty() { Answer::Write } else { Answer::PutBack { names, changed: 0 } };
        };
        if family == Family::Prp && is_reset(state, looked, present) {
            let words = format!("another program closed the breaker in the files of {family}");
            let command = match state.looping {
                Some(_) => Command::Loop(Box::new(LoopCommand::ResetBreaker { reason: words.clone() })),
                None => Command::Resume { reset_breaker: true, details: Some(words.clone().into()) },
            };
            return Answer::Obey(Box::new(command), format!("{words}: obeyed"));
        }
        if let ForeignEdit::Status(word) = &looked.edit {
            if is_so(family, word, state) {
                return Answer::Write;
            }
            if let Some(command) = asked(family, word, state) {
                let words = format!("another program set {word} in the files of {family}: obeyed");
                return Answer::Obey(Box::new(command), words);
            }
            if !state.requests.is_empty() {
                return Answer::Wait;
            }
        }
        // Anything else is nothing that the documents let other tools ask for.
        let edited = (looked.edit != ForeignEdit::None).then(|| name.clone());
        let names: Vec<String> = edited.into_iter().chain(planned.touched(state, name)).collect();
        match looked.changed {
            _ if names.is_empty() => Answer::Write,
            _ if anew => Answer::PutBack { names, changed: 0 },
            times if times + 1 >= MOST => Answer::Stop(format!(
                "another program changed them {MOST} times (segno layout write brings ours back)"
            )),
            times => Answer::PutBack { names, changed: times + 1 },
        }
    }

    /// Looks at the kept files of a project's open sessions for what other programs changed, and answers it. What cannot
    /// be looked at now is looked at the next time something is written.
    pub fn hear_layouts(&self, project: &Path) -> Vec<String> {
        let families = &self.options.layout.families;
        if families.is_empty() {
            return Vec::new();
        }
        let filter = Filter {
            project: Some(project.display().to_string()),
            statuses: Status::ALL.into_iter().filter(|status| status.is_open()).collect(),
            limit: Some(SESSIONS),
            ..Filter::default()
        };
        let mut notices = Vec::new();
        for summary in self.list(&filter).unwrap_or_default() {
            let Ok(loaded) = self.load(summary.session_id) else { continue };
            for family in families {
                if self.is_touched(*family, &loaded.state)
                    && let Ok(written) = self.write_layout(*family, &loaded.state)
                {
                    notices.extend(written.notices);
                }
            }
        }
        notices
    }

    /// Whether somebody else wrote to the files of a session.
    fn is_touched(&self, family: Family, state: &State) -> bool {
        let Ok((base, parts)) = self.options.layout.folder(family, state) else { return false };
        let Ok(Some(dir)) = folder::open_there(&base, &parts) else { return false };
        let snapshot = segno_layouts::Snapshot {
            state,
            lists: Default::default(),
            save_trigger: String::new(),
            record: None,
            branch: None,
            then: Default::default(),
            changed: 0,
            ultra_create: Default::default(),
        };
        let name = segno_layouts::main_file(family, &snapshot);
        let (session, _) = name.split_once('/').unwrap_or_default();
        let is_known = |file: &&String| match family {
            Family::Prp => BESIDE.contains(&file.as_str()),
            Family::GoTeam => true,
            Family::UltraCreate => file.starts_with("current-session.json"),
            _ => false,
        };
        let path = parts.iter().fold(base, |path, part| path.join(part)).join(session);
        let beside = gather::names(&path);
        let beside = beside.iter().filter(is_known);
        let beside =
            beside.map(|file| if session.is_empty() { file.clone() } else { format!("{session}/{file}") });
        let registry = (family == Family::GoTeam).then(|| REGISTRY.to_owned());
        let mut present = Present::new(family, &self.looks);
        for name in [name.clone()].into_iter().chain(registry).chain(beside) {
            // One that cannot be read says nothing; the others do.
            let _ = present.read(&dir, name);
        }
        let main = name.clone();
        let is_as_it_came = |name: &str| {
            let bytes = present.files.get(name);
            bytes.is_some_and(|bytes| segno_layouts::came(family, state, name, bytes).is_some())
        };
        let Some((_, looked)) = look_at(family, name.clone(), &present) else {
            // One that cannot be read, or has nothing of ours in it any more, may be ours all the same.
            return present.files.get(&main).is_some()
                && !is_as_it_came(&main)
                && (present.has_one_of(state) || is_named(family, state, &present, &main));
        };
        let mut others =
            present.files.names().filter(|name| *name != main && *name != REGISTRY && !is_as_it_came(name));
        let is_bare = family == Family::GoTeam
            && !is_as_it_came(REGISTRY)
            && present.files.get(REGISTRY).is_some_and(|registry| is_bare_entry(registry, session));
        looked.session_id == state.session_id.to_string()
            && (is_bare
                || looked.edit != ForeignEdit::None
                || (family == Family::Prp && is_reset(state, &looked, &present.files))
                || others.any(|name| present.facts(name).is_some_and(|it| it.edit != ForeignEdit::None)))
    }
}

/// Whether an entry of a registry has nothing of ours in it.
fn is_bare_entry(registry: &[u8], id: &str) -> bool {
    segno_layouts::look_bare_entry(registry, registry, id).is_some()
}

/// Whether a main file that another program wrote is about this session: by the name in it, or by where it is.
fn is_named(family: Family, state: &State, present: &Present, main: &str) -> bool {
    let Some(facts) = present.facts(main).filter(|facts| facts.is_readable) else { return false };
    let own = segno_layouts::own_name(family, state.session_id, state.uid);
    let name = segno_layouts::foreign_name(family, state).unwrap_or(&own);
    facts.session_id.is_none() && facts.named.as_deref() == Some(name)
}

/// Looks at the file that shows where a session stands, and at its entry in the registry if it has one: whichever of both
/// somebody else changed counts. None if it has nothing of ours in it.
pub(super) fn look_at(family: Family, name: String, present: &Present) -> Option<(String, Looked)> {
    let looked = present.facts(&name)?.looked()?;
    let entry = (family == Family::GoTeam && looked.edit == ForeignEdit::None).then(|| {
        let id = name.split_once('/').map_or(name.as_str(), |(folder, _)| folder);
        segno_layouts::look_entry(present.files.get(REGISTRY)?, id)
    });
    Some(match entry.flatten() {
        None | Some(ForeignEdit::None) => (name, looked),
        Some(edit) => (REGISTRY.to_owned(), Looked { edit, ..looked }),
    })
}

/// The files of a PRP session beside its main one.
const BESIDE: [&str; 5] = ["metrics.json", BREAKER, "rate-limit.json", "dual-gate.json", "qa-state.json"];

/// The breaker of a PRP session.
const BREAKER: &str = "circuit-breaker.json";

/// Whether somebody closed the breaker that halts a session. A file of before that says so is only an old one: what
/// stands there counts once we have written that the session is halted.
fn is_reset(state: &State, looked: &Looked, present: &FileSet) -> bool {
    let holds = state.looping.as_ref().is_none_or(|looping| looping.breaker.state == BreakerState::Open);
    let is_written = looked.status.as_deref() == Some(Status::Halted.as_str());
    if state.status != Status::Halted || !holds || !is_written {
        return false;
    }
    let file: Option<Value> = present.get(BREAKER).and_then(|bytes| serde_json::from_slice(bytes).ok());
    file.is_some_and(|file| file.get("state").and_then(Value::as_str) == Some("CLOSED"))
}

/// Whether a word says where the session stands already.
fn is_so(family: Family, word: &str, state: &State) -> bool {
    segno_layouts::word_of(family, state.status) == Some(word)
}

/// What a word for where the session stands asks for, if the documents allow that and it is not so or asked for already.
fn asked(family: Family, word: &str, state: &State) -> Option<Command> {
    let details = Some(format!("set in the files of {family}").into());
    match (segno_layouts::status_of(family, word)?, state.status) {
        (Status::Paused, Status::Active) if state.requests.is_empty() => {
            Some(Command::Pause { reason: PauseReason::Asked, details })
        }
        (Status::Active, Status::Paused) => Some(Command::Resume { reset_breaker: false, details }),
        _ => None,
    }
}
