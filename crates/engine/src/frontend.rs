//! How the engine talks to whoever uses it: a person at a terminal, a program, a test.

use segno_core::SessionId;

/// Something to decide.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// What it is about, line by line, to be read before answering.
    pub about: Vec<String>,
    /// What is asked.
    pub text: String,
    /// The answers, each with a word that means it. The first is the one that changes nothing.
    pub answers: Vec<(String, String)>,
}

/// Whoever is asked, told and kept up to date.
pub trait Frontend {
    /// Asks, and answers with the number of an answer; none if nobody can be asked, or nobody wants to answer.
    fn ask(&self, question: &Question) -> Option<usize>;

    /// Says something that matters.
    fn notice(&self, text: &str);

    /// Says something that may be wrong.
    fn warn(&self, text: &str) {
        self.notice(text);
    }

    /// Says what is wrong with the record of a session. What could be saved is used.
    fn damaged(&self, session: SessionId, what: &str) {
        self.notice(&format!("session {session}: {what}"));
    }

    /// Says how far something has come that takes a while.
    fn progress(&self, text: &str);
}

/// Nobody: every question stays open, and nothing is said.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Frontend for Silent {
    fn ask(&self, _question: &Question) -> Option<usize> {
        None
    }

    fn notice(&self, _text: &str) {}

    fn progress(&self, _text: &str) {}
}
