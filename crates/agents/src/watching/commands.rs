//! Commands that a person types in an agent: each runs one of ours and puts before the model what that printed. All agents'
//! files are made from one list.

use std::fmt::Write as _;

/// Where an agent looks for commands of the person's own, and in which form.
#[derive(Debug, Clone, Copy)]
pub struct Commands {
    /// Below the folder of the person's settings.
    pub folder: &'static str,
    /// Below the root of a project.
    pub project_folder: &'static str,
    /// Names that the agent has commands of its own for: ours are called `segno-…` there.
    pub taken: &'static [&'static str],
    /// The form.
    pub form: Invocation,
}

/// How a command is written down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Invocation {
    /// Markdown whose `!` lines are run when it is typed.
    Markdown {
        /// Whether it says which commands may be run, and that the model must not use it by itself.
        grants: bool,
    },
    /// TOML whose `!{…}` are run when it is typed.
    Toml,
    /// One skill for all of them: the model runs what was asked for.
    Skill,
}

/// A file that holds a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandFile {
    /// Below the folder of commands.
    pub path: String,
    /// What is in it.
    pub text: String,
}

struct Source {
    name: &'static str,
    about: &'static str,
    hint: &'static str,
    /// After the program's name; what is typed behind the command follows it.
    words: &'static str,
    /// Whether all that is typed is one word for the program.
    one_word: bool,
    then: &'static str,
}

const SHOW: &str = "This is what segno printed. Show it to the person as it is, and do nothing else.";
const GO_ON: &str = "This is what segno knows of the work that was interrupted. Look at what is in doubt first, then go on with it.";
const UNDO: &str = "This is what an undo would take back; nothing was changed. Show it to the person, and tell them to type \
                    `segno undo` in a terminal if they want it. Do not run it yourself.";

const AUTONOMOUS: &str = "This is what segno found for that file; nothing was begun. Show it to the person as it is. A loop through the \
                          phases is theirs to begin: tell them to type `segno loop FILE --workflow prp` in a terminal, or \
                          what segno printed to go on with a session. Do not run it yourself.";

const ALL: &[Source] = &[
    Source {
        name: "sessions",
        about: "List the sessions that segno keeps",
        hint: "[--status STATUS]",
        words: "sessions",
        one_word: false,
        then: SHOW,
    },
    Source {
        name: "session",
        about: "Show a session that segno keeps, or a part of it",
        hint: "[ID] [--tools]",
        words: "session",
        one_word: false,
        then: SHOW,
    },
    Source {
        name: "resume",
        about: "Go on with interrupted work: what was done, and what is in doubt",
        hint: "[ID]",
        words: "resume --show-brief",
        one_word: false,
        then: GO_ON,
    },
    Source {
        name: "wake",
        about: "Go on with interrupted work: what was done, and what is in doubt",
        hint: "[ID]",
        words: "wake --show-brief",
        one_word: false,
        then: GO_ON,
    },
    Source {
        name: "checkpoint",
        about: "Make a checkpoint, list them, or see how to go back to one",
        hint: "[--list] [--restore ID]",
        words: "checkpoint --make",
        one_word: false,
        then: SHOW,
    },
    Source {
        name: "session-state",
        about: "Show the state of the session",
        hint: "[ID]",
        words: "session-state",
        one_word: false,
        then: SHOW,
    },
    Source {
        name: "session-history",
        about: "Show what was done in the session",
        hint: "[ID]",
        words: "session-history",
        one_word: false,
        then: SHOW,
    },
    Source {
        name: "session-export",
        about: "Export the session as a report",
        hint: "[ID]",
        words: "session-export --format md",
        one_word: false,
        then: SHOW,
    },
    Source {
        name: "undo",
        about: "Show what an undo of the last turn would take back",
        hint: "[--turns N]",
        words: "undo --dry-run",
        one_word: false,
        then: UNDO,
    },
    Source {
        name: "budget",
        about: "Show the budget of the session",
        hint: "[show]",
        words: "budget",
        one_word: false,
        then: SHOW,
    },
    Source {
        name: "bp/autonomous",
        about: "Go through the phases of a PRP by itself: what there is to go on with",
        hint: "FILE",
        words: "detect --panel --file",
        one_word: false,
        then: AUTONOMOUS,
    },
    Source {
        name: "observe",
        about: "Give a command of a go-team observer, such as *sessions or *resume:1",
        hint: "*COMMAND",
        words: "observe",
        one_word: true,
        then: SHOW,
    },
];

impl Commands {
    /// The files of all commands. The program is a word for a shell.
    pub fn files(&self, program: &str) -> Vec<CommandFile> {
        if self.form == Invocation::Skill {
            return vec![CommandFile { path: "segno/SKILL.md".to_owned(), text: skill(program) }];
        }
        ALL.iter().map(|source| self.file(source, program)).collect()
    }

    fn file(&self, source: &Source, program: &str) -> CommandFile {
        let name = match self.taken.contains(&source.name) {
            true => format!("segno-{}", source.name),
            false => source.name.to_owned(),
        };
        let Source { about, hint, words, one_word, then, .. } = source;
        match self.form {
            Invocation::Toml => {
                // What is typed comes as one word; unquoted it is what was meant, and no more than words.
                let typed = if *one_word { "\"$1\"" } else { "$1" };
                let line = format!(
                    "sh -c '{} {words} {typed} 2>&1 || true' sh {{{{args}}}}",
                    program.replace('\'', "'\\''")
                );
                let text =
                    format!("description = \"{about} ({hint})\"\nprompt = '''\n!{{{line}}}\n\n{then}\n'''\n");
                CommandFile { path: format!("{name}.toml"), text }
            }
            Invocation::Markdown { grants } => {
                let grant = match grants {
                    true => format!(
                        "argument-hint: \"{hint}\"\nallowed-tools: Bash({program} {words}:*)\ndisable-model-invocation: true\n"
                    ),
                    false => String::new(),
                };
                // A star is no pattern of files there.
                let typed = if *one_word { "\"$ARGUMENTS\"" } else { "$ARGUMENTS" };
                let line = format!("{program} {words} {typed} 2>&1 || true");
                let text = format!("---\ndescription: {about}\n{grant}---\n!`{line}`\n\n{then}\n");
                CommandFile { path: format!("{name}.md"), text }
            }
            Invocation::Skill => CommandFile { path: name, text: String::new() },
        }
    }
}

fn skill(program: &str) -> String {
    let mut text = String::from(
        "---\nname: segno\ndescription: Sessions, checkpoints and budgets that segno keeps. Use it only when the person writes \
         $segno or names segno.\n---\n\nThe person writes `$segno COMMAND` with one of the commands below. Run its line in the \
         shell, with whatever else they wrote behind it, once; then do what stands beside it.\n\n",
    );
    for Source { name, about, hint, words, then, .. } in ALL {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "- `{name} {hint}`: {about}. Run `{program} {words}`. {then}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::by_name;
    use crate::agent::watched;

    #[test]
    fn every_agent_gets_every_command_from_one_list() {
        for agent in &watched() {
            let commands = by_name(agent).unwrap().watching().unwrap().commands;
            let files = commands.files("segno");
            let whole: String = files.iter().map(|file| file.text.as_str()).collect();
            for source in ALL {
                assert!(whole.contains(&format!("segno {}", source.words)), "{agent} {}", source.name);
            }
            assert_eq!(
                files.len(),
                if commands.form == Invocation::Skill { 1 } else { ALL.len() },
                "{agent}"
            );
            for taken in commands.taken {
                let name = |file: &CommandFile| file.path.split('.').next().unwrap_or_default().to_owned();
                assert!(!files.iter().any(|file| name(file) == *taken), "{agent} {taken}");
            }
        }
    }

    #[test]
    fn a_program_elsewhere_is_called_by_its_path() {
        let gemini = by_name("gemini").unwrap().watching().unwrap().commands;
        let file = &gemini.files("'/my tools/segno'")[0];
        assert_eq!(file.path, "sessions.toml");
        assert!(
            file.text.contains("!{sh -c ''\\''/my tools/segno'\\'' sessions $1 2>&1 || true' sh {{args}}}"),
            "{}",
            file.text
        );
    }
}
