//! What went wrong in the engine, as an exit code and a hint at what to do next.

use crate::command_context::day_hint;
use crate::command_context::extend_hint;
use crate::command_context::price_hint;
use crate::error::CommandError;
use crate::exit::ExitCode;

impl From<segno_engine::Error> for CommandError {
    fn from(error: segno_engine::Error) -> Self {
        use segno_engine::Error as E;
        use segno_engine::StoreError as S;
        use segno_engine::core::Refusal;
        use segno_engine::workspace::Error as W;
        let code = error.code();
        let message = error.to_string();
        let (exit, hint): (ExitCode, Option<String>) = match &error {
            E::SessionAlreadyActive { session } => (
                ExitCode::AlreadyActive,
                Some(format!(
                    "segno complete {session}   (or: segno abort {session}, or: segno new --parallel)"
                )),
            ),
            E::NoActiveSession => (ExitCode::SessionNotFound, Some("segno new".to_owned())),
            E::InvalidStateTransition { .. } | E::InvalidStateForPhaseAdvance { .. } => {
                (ExitCode::Refused, None)
            }
            E::SessionNotFound { .. } => (
                ExitCode::SessionNotFound,
                Some("segno ls --all --everywhere   lists every session".to_owned()),
            ),
            E::SessionCorrupted { .. } => (ExitCode::StoreDamaged, Some("segno doctor".to_owned())),
            E::BudgetExceeded => (ExitCode::BudgetExhausted, Some("segno budget extend N".to_owned())),
            E::CapReached { session, unit, .. } => {
                (ExitCode::BudgetExhausted, Some(extend_hint(*unit, Some(session.to_string()))))
            }
            E::DayCapReached { unit, used, total, .. } => {
                (ExitCode::BudgetExhausted, Some(day_hint(*unit, *used, *total)))
            }
            E::CostUnknown { session, .. } => {
                (ExitCode::BudgetExhausted, Some(price_hint(session.map(|session| session.to_string()))))
            }
            E::BadPrices { .. } => {
                (ExitCode::Config, Some("repair it or move it away".to_owned()))
            }
            E::WriteError { .. } => {
                (ExitCode::Environment, Some("free some space or repair the disk, then try again".to_owned()))
            }
            E::Refused(Refusal::BadValue { .. } | Refusal::TooMany { .. }) => (ExitCode::Usage, None),
            E::Refused(Refusal::Unknown { what, .. }) => {
                let list = match *what {
                    "open task" => Some("segno task list"),
                    "decision" => Some("segno show --decisions"),
                    "checkpoint" => Some("segno checkpoint list"),
                    "cache entry" => Some("segno show --memory"),
                    _ => None,
                };
                (ExitCode::Refused, list.map(ToOwned::to_owned))
            }
            E::Refused(Refusal::AtBreakpoint { .. }) => {
                (ExitCode::Refused, Some("segno breakpoint continue".to_owned()))
            }
            E::Refused(Refusal::AskedBefore { .. }) => {
                (ExitCode::Refused, Some("ask again when its run has ended   (segno kill   ends it now)".to_owned()))
            }
            E::Refused(_) => (ExitCode::Refused, None),
            E::Store(S::Held(_) | S::StaleEpoch { .. }) => (ExitCode::HeldElsewhere, None),
            E::Store(S::Busy { .. } | S::DriversAlive { .. }) => {
                (ExitCode::StoreBusy, Some("try again in a moment".to_owned()))
            }
            E::Store(S::Damaged { .. } | S::SessionDamaged { .. } | S::NoBlob(_)) => (
                ExitCode::StoreDamaged,
                Some(
                    "segno doctor --repair   moves the damaged file aside and saves what can be read"
                        .to_owned(),
                ),
            ),
            E::Store(S::Newer { .. }) => (ExitCode::StoreNewer, Some("update segno".to_owned())),
            E::Store(S::NoStore(_)) => {
                (ExitCode::SessionNotFound, Some("segno new \"what it is about\"".to_owned()))
            }
            E::Store(S::Copy { .. }) => (
                ExitCode::Refused,
                Some("segno doctor --adopt   makes the copy a store of its own".to_owned()),
            ),
            E::Store(S::ReadOnly { .. }) => (
                ExitCode::Environment,
                Some("its file and its directory must be writable, for looking too".to_owned()),
            ),
            E::Store(S::UnusableLocation { .. } | S::Full { .. }) => {
                (ExitCode::Environment, Some("--store sqlite:PATH   names another place".to_owned()))
            }
            E::Store(_) => (ExitCode::Failure, None),
            E::File { .. } => (ExitCode::Environment, None),
            E::NoStorePath | E::UnsupportedStore { .. } => {
                (ExitCode::Config, Some("--store sqlite:PATH   (a setting: segno config unset store.url)".to_owned()))
            }
            E::BadRule(_) => (ExitCode::Config, Some("segno config show --origin".to_owned())),
            E::NotPrivate { path, .. } => (
                ExitCode::Environment,
                Some(format!("chmod go-w {}   once you know what is in it", path.display())),
            ),
            E::Ambiguous(_) => (ExitCode::Ambiguous, Some("give more of the id".to_owned())),
            E::NotArchived { .. } => (
                ExitCode::StoreDamaged,
                Some("segno doctor   says what is wrong with it   (segno rm ID   removes it without an archive)".to_owned()),
            ),
            E::Query(_) => (ExitCode::Usage, Some("segno help search".to_owned())),
            E::NotForgotten(_) | E::NotImportable(_) | E::NotCarried(_) => (ExitCode::Refused, None),
            E::UnknownAgent { known, .. } => (
                ExitCode::Usage,
                Some(format!("--agent {}   (or: segno run -- COMMAND)", known.join(" | "))),
            ),
            E::NoAgentInstalled { .. } => {
                (ExitCode::AgentMissing, Some("segno run -- COMMAND   runs any command".to_owned()))
            }
            E::NotInstalled { how, .. } => (ExitCode::AgentMissing, Some(how.clone())),
            E::CannotMeasure { .. } => (
                ExitCode::Environment,
                Some("install what it needs and try again, or begin with another --until".to_owned()),
            ),
            E::ConversationBusy { session, .. } => {
                (ExitCode::Refused, Some(format!("segno stop {session}   (or: --fork)")))
            }
            E::NoConversation { session, .. } => {
                (ExitCode::Refused, Some(format!("segno show {session} --runs")))
            }
            E::BreakerOpen { session } => {
                (ExitCode::Refused, Some(format!("segno resume {session} --reset-breaker")))
            }
            E::Ended { session, .. } => {
                (ExitCode::Refused, Some(format!("segno run --continue-from {session} …")))
            }
            E::ProgramNotText => (ExitCode::Failure, Some("--no-hooks".to_owned())),
            E::NotLaunched { .. } => (ExitCode::AgentMissing, None),
            E::AgentAlive { .. } => (
                ExitCode::HeldElsewhere,
                Some("segno attach   follows it   (or: segno kill   ends it)".to_owned()),
            ),
            E::OtherBranch { session, .. } => (
                ExitCode::Refused,
                Some(format!("segno resume {session} --checkout-branch   (or: --any-branch)")),
            ),
            E::NotStarted(_) => (ExitCode::RunStopped, Some("segno resume   goes on".to_owned())),
            E::Replaced(_) => (ExitCode::HeldElsewhere, None),
            E::NoRun(_) | E::NoTree(_) | E::NotResumable { .. } => (ExitCode::Refused, None),
            E::TreeBusy { .. } => (
                ExitCode::HeldElsewhere,
                Some("wait until it is done, or: segno stop ID   (segno ls shows it)".to_owned()),
            ),
            E::TreeMoved => (
                ExitCode::Refused,
                Some("segno diff   shows what is there now   (segno undo --dry-run   what it would do)".to_owned()),
            ),
            E::Declined => (ExitCode::Cancelled, None),
            E::NobodyToAsk => {
                (ExitCode::Cancelled, Some("add --yes to do it without being asked".to_owned()))
            }
            E::RestorePending(_) | E::Workspace(W::Pending | W::Halfway(_)) => {
                let hint = "segno checkpoint pending --leave   keeps the files as they are   (or: --finish, --take-back)";
                (ExitCode::Refused, Some(hint.to_owned()))
            }
            E::Workspace(_) => (ExitCode::Environment, None),
        };
        let message = match &error {
            E::Store(S::NoStore(_)) => "there are no sessions yet".to_owned(),
            _ => message,
        };
        Self::new(exit, code, message).maybe_hint(hint)
    }
}
