//! What a session is given: a command or a fact.

use crate::command::Command;
use crate::command::Need;
use crate::fact::Fact;

/// What goes into [`crate::decide()`].
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// Something is asked for, and may be refused.
    Command(Command),
    /// Something happened.
    Fact(Fact),
}

impl Input {
    /// What it needs of the session's status. A fact needs nothing.
    pub fn need(&self) -> Need {
        match self {
            Self::Command(command) => command.need(),
            Self::Fact(_) => Need::Nothing,
        }
    }

    /// What it does, as a verb for messages.
    pub fn verb(&self) -> &'static str {
        match self {
            Self::Command(command) => command.verb(),
            Self::Fact(fact) => fact.verb(),
        }
    }

    /// The command, if it is one.
    pub fn command(&self) -> Option<&Command> {
        match self {
            Self::Command(command) => Some(command),
            Self::Fact(_) => None,
        }
    }

    /// The fact, if it is one.
    pub fn fact(&self) -> Option<&Fact> {
        match self {
            Self::Fact(fact) => Some(fact),
            Self::Command(_) => None,
        }
    }
}

impl From<Command> for Input {
    fn from(command: Command) -> Self {
        Self::Command(command)
    }
}

impl From<Fact> for Input {
    fn from(fact: Fact) -> Self {
        Self::Fact(fact)
    }
}
