//! Which session a command is about.

use segno_engine::Choice;
use segno_engine::Engine;
use segno_engine::SHORTEST_ENDING;
use segno_engine::core::SessionId;
use segno_engine::core::Summary;
use segno_engine::frontend::Frontend as _;
use segno_engine::frontend::Question;

use super::CommandContext;
use super::short;
use crate::ask::Terminal;
use crate::commands::args::SessionRef;
use crate::error::CommandError;
use crate::error::Outcome;
use crate::exit::ExitCode;
use crate::output::Text;
use crate::output::style::Meaning;
use crate::recent;

impl CommandContext<'_> {
    /// The session that a command is about which changes something: a named one, or the one that is open; of several,
    /// the one in which something happened last.
    pub fn session(&self, argument: Option<&SessionRef>) -> Outcome<SessionId> {
        match self.context.session(argument)? {
            Some(named) => self.named(&named),
            None => self.chosen(self.engine.session_to_change(&self.context.project.root)?),
        }
    }

    /// The session that a command is about which ends something for good: of several open ones none is taken unasked.
    pub fn session_to_end(&self, argument: Option<&SessionRef>, what: &str) -> Outcome<SessionId> {
        if let Some(named) = self.context.session(argument)? {
            return self.named(&named);
        }
        let project = &self.context.project.root;
        let Choice::Several(sessions) = self.engine.open_session(project)? else {
            return self.session(argument);
        };
        let Choice::Latest { session, .. } = self.engine.session_to_change(project)? else {
            return self.session(argument);
        };
        let about = sessions.iter().map(|other| {
            let topic = other.topic.as_deref().unwrap_or_default();
            format!("  {}  {}  {topic}", short(other.session_id), other.status)
        });
        let question = Question {
            about: about.collect(),
            text: format!("{what} {}?", short(session.session_id)),
            answers: [("n", "change nothing"), ("y", "do it")].map(|(a, b)| (a.into(), b.into())).into(),
        };
        match Terminal::new(self.context).ask(&question) {
            Some(1) => Ok(session.session_id),
            Some(_) => Err(segno_engine::Error::Declined.into()),
            None => Err(self.choose(&sessions)),
        }
    }

    /// The session that a command is about which shows or takes back what was done to the files: that of the last run.
    pub fn session_of_last_run(&self) -> Outcome<SessionId> {
        match self.context.session(None)? {
            Some(named) => self.named(&named),
            None => self.chosen(self.engine.session_of_last_run(&self.context.project.root)?),
        }
    }

    /// The session that a command is about which only looks: the one in which something happened last.
    pub fn session_to_read(&self, argument: Option<&SessionRef>) -> Outcome<SessionId> {
        match self.context.session(argument)? {
            Some(named) => self.named(&named),
            None => self.chosen(self.engine.session_to_read(&self.context.project.root)?),
        }
    }

    /// The loop that a command is about which only looks: the one in which something happened last.
    pub fn loop_to_read(&self, argument: Option<&SessionRef>) -> Outcome<SessionId> {
        match self.context.session(argument)? {
            Some(named) => self.named(&named),
            None => match self.engine.loop_to_read(&self.context.project.root)? {
                Choice::None => Err(CommandError::new(
                    ExitCode::SessionNotFound,
                    "no_active_session",
                    "this project has no loop",
                )
                .hint("segno loop --prompt \"…\" --until '…'   begins one   (or: segno ls --all)")),
                found => self.chosen(found),
            },
        }
    }

    fn chosen(&self, choice: Choice) -> Outcome<SessionId> {
        match choice {
            Choice::One(id) => Ok(id),
            Choice::None => Err(CommandError::new(
                ExitCode::SessionNotFound,
                "no_active_session",
                "No active session. Create or load a session first.",
            )
            .hint("segno new \"what it is about\"   (or: segno ls --all, then segno --session ID …)")),
            Choice::Latest { session, others } => {
                let topic = session.topic.as_deref().unwrap_or_default();
                let text = format!(
                    "session {}  {topic}   ({}{}; --session ID means another)",
                    short(session.session_id),
                    match others {
                        1 => "another is open".to_owned(),
                        others => format!("{others} others are open"),
                    },
                    if session.status.is_open() { " too" } else { "" },
                );
                self.context.printer.talk(Text::new().painted(Meaning::Dim, text));
                Ok(session.session_id)
            }
            Choice::Several(sessions) => Err(self.choose(&sessions)),
        }
    }

    /// The session a text names: a number of the last list, an id, the end of one, or `last`.
    pub fn named(&self, named: &SessionRef) -> Outcome<SessionId> {
        let text = named.as_str();
        if let Some(id) = recent::numbered(&self.context.paths.state, text) {
            return Ok(id);
        }
        // A number that is not in the list must not fall through to whatever session happens to end in that digit.
        if text.len() < SHORTEST_ENDING && text.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(CommandError::new(
                ExitCode::SessionNotFound,
                "session_not_found",
                format!("there is no number {text} in the last list on this terminal"),
            )
            .hint(format!(
                "segno ls   gives numbers   (or: at least {} digits of the end of the id)",
                SHORTEST_ENDING
            )));
        }
        let project = &self.context.project.root;
        let found = self.engine.find_known(text, Some(project)).or_else(|error| match error {
            // Tools that read the files of other session managers know it by the name there.
            segno_engine::Error::SessionNotFound { .. } if text != "last" => {
                self.engine.find_foreign(text, project)
            }
            other => Err(other),
        });
        found.map_err(|error| match error {
            segno_engine::Error::SessionNotFound { .. } => {
                match Engine::view_named(&self.context.project.root, text) {
                    Some(view) => CommandError::from(error)
                        .hint(format!("this project has a view of it: segno import {}", view.display())),
                    None if text == "last" => CommandError::new(
                        ExitCode::SessionNotFound,
                        "session_not_found",
                        "this project has no sessions yet",
                    )
                    .hint("segno new \"what it is about\"   (or: segno ls --all --everywhere)"),
                    None => error.into(),
                }
            }
            other => other.into(),
        })
    }

    fn choose(&self, sessions: &[Summary]) -> CommandError {
        let mut error = CommandError::new(
            ExitCode::Ambiguous,
            "ambiguous",
            format!("{} sessions are open in this project; say which one", sessions.len()),
        );
        for summary in sessions.iter().take(8) {
            let topic = summary.topic.as_deref().unwrap_or("");
            error = error.hint(format!(
                "--session {}   {} {topic}",
                self.engine.ending(summary.session_id),
                summary.status
            ));
        }
        error
    }
}
