//! A person at the question of an undo, who thinks while things happen.

use super::Step;
use super::World;
use crate::lab::until;
use crate::terminal::ENTER;
use crate::terminal::Terminal;

/// What may happen before somebody answers.
const MEANWHILE: &[(&str, Step)] = &[
    ("a person edits", World::person_writes),
    ("a person edits", World::person_writes),
    ("a command starts", World::command_starts),
    ("a command runs", World::command_runs),
    ("collect", World::collect),
    ("collect", World::collect),
    ("restore", World::restore),
    ("undo", World::undo),
    ("a person commits", World::person_commits),
    ("note", World::note),
    ("copy is opened", World::copy_is_opened),
    ("another store", World::another_store),
    ("clock jumps", World::clock_jumps),
    ("driver is killed", World::driver_is_killed),
];

/// Where a command on the terminal is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum At {
    Question,
    End,
}

impl World {
    pub(super) fn person_is_asked(&mut self) {
        let terminal = Terminal::open(&self.lab);
        let mut place = terminal.place();
        let here = |place: usize| {
            until("a question or the end", || {
                let shown = terminal.since(place);
                let asked = shown.contains("[y/N]").then_some(At::Question);
                asked.or_else(|| shown.contains("shell> ").then_some(At::End))
            })
        };
        let session = self.one_that_worked();
        terminal.type_keys(&format!("\"$SEGNO\" undo --session {session}{ENTER}"));
        // The shell may show its prompt anew before it reads on: what counts comes after the line that was typed.
        let typed = format!("{session}\r\n");
        terminal.wait_for(place, &typed);
        place += terminal.since(place).find(&typed).unwrap() + typed.len();
        let mut at = here(place);
        if at == At::Question {
            for _ in 0..1 + self.dice.below(2) {
                let (name, step) = self.dice.one_of(MEANWHILE);
                self.tell(&format!("meanwhile: {name}"));
                step(self);
            }
        }
        let (agents, before) = (self.agents().len(), self.tree());
        let answer = self.dice.one_of(&["y", "y", "y", "n"]);
        // What changed meanwhile is shown, and asked about again.
        for _ in 0..5 {
            if at == At::Question {
                self.tell(&format!("answer: {answer}"));
                place = terminal.place();
                terminal.type_keys(&format!("{answer}{ENTER}"));
                at = here(place);
            }
        }
        assert!(at == At::End, "it asks again and again: {}", terminal.since(place));
        self.tell(&format!("ended with {}", terminal.exit_code()));
        if agents > 0 || answer == "n" {
            assert_eq!(self.tree(), before, "an agent works in the tree, or the answer was no");
        }
    }
}
