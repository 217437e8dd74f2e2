//! What stands above everything else: help, questions, and fields to type in.

use ratatui::crossterm::event::KeyCode;
use ratatui::crossterm::event::KeyEvent;
use ratatui::crossterm::event::KeyModifiers;
use segno_engine::core::SessionId;
use segno_engine::core::text::shorten;
use segno_engine::search::Findings;
use segno_engine::waiting::Waiting;
use segno_engine::waiting::WaitingKind;

use super::acts;
use super::state::Act;
use super::state::Effect;
use super::state::Place;
use super::state::Top;
use crate::cli;
use crate::output::Text;

/// The longest text that somebody types.
const LONGEST: usize = 4_000;

/// What a field is for.
#[derive(Clone, Debug)]
pub(super) enum Field {
    /// A note in the history, or for the agent of a loop.
    Note(Place, bool),
    /// The name of a checkpoint.
    Checkpoint(Place),
    /// More tokens or dollars.
    Budget(Place),
    /// Why a breaker is closed.
    Breaker(Place),
    /// An answer in words.
    Answer(Place, Box<Waiting>),
    /// Words to look for.
    Search,
}

/// What is done when a question is answered with yes.
#[derive(Clone, Debug)]
pub(super) enum Yes {
    /// This, in the background.
    Act(Box<Act>),
    /// Leave, and run this.
    Leave(Box<cli::Command>),
}

/// A dialog.
#[derive(Clone, Debug)]
pub(super) enum Dialog {
    /// The keys.
    Help,
    /// A question with all that it is about.
    Ask { title: String, lines: Vec<Text>, question: String, yes: Yes },
    /// What an agent waits for an answer to.
    Answer { place: Place, waiting: Box<Waiting>, lines: Vec<Text> },
    /// The breaker of a loop.
    Breaker { place: Place, lines: Vec<Text> },
    /// Something to type.
    Type { field: Field, title: String, about: String, typed: String },
    /// Something to read.
    Show { title: String, lines: Vec<Text> },
    /// What was found.
    Found { found: Findings, chosen: usize },
}

/// A dialog, and how far somebody has read in it.
#[derive(Clone, Debug)]
pub(super) struct Opened {
    pub(super) dialog: Dialog,
    pub(super) scroll: usize,
}

/// What becomes of a dialog.
enum Next {
    Stays,
    Closes(Vec<Effect>),
}

/// A key that was pressed while a dialog is open.
pub(super) fn key(top: &mut Top, key: KeyEvent) -> Vec<Effect> {
    let Some(mut opened) = top.dialog.take() else { return Vec::new() };
    let next = match &mut opened.dialog {
        Dialog::Type { field, typed, .. } => type_key(top, key, field, typed),
        Dialog::Found { found, chosen } => found_key(top, key, found, chosen),
        _ if scrolls(key, &mut opened.scroll) => Next::Stays,
        dialog => plain_key(top, key, dialog),
    };
    match next {
        Next::Stays => {
            // A key may have opened another one.
            if top.dialog.is_none() {
                top.dialog = Some(opened);
            }
            Vec::new()
        }
        Next::Closes(effects) => effects,
    }
}

/// Text that was pasted into a field: one line of it.
pub(super) fn paste(top: &mut Top, text: &str) {
    if let Some(Dialog::Type { typed, .. }) = top.dialog.as_mut().map(|opened| &mut opened.dialog) {
        add(typed, text);
    }
}

pub(super) fn add(typed: &mut String, text: &str) {
    let line = text.replace(['\n', '\r', '\t'], " ");
    let room = LONGEST.saturating_sub(typed.len());
    typed.extend(line.chars().filter(|c| !c.is_control()).take(room));
}

fn scrolls(key: KeyEvent, scroll: &mut usize) -> bool {
    let by = match key.code {
        KeyCode::Up | KeyCode::Char('k') => -1,
        KeyCode::Down | KeyCode::Char('j') => 1,
        KeyCode::PageUp => -10,
        KeyCode::PageDown | KeyCode::Char(' ') => 10,
        KeyCode::Home => isize::MIN / 2,
        KeyCode::End => isize::MAX / 2,
        _ => return false,
    };
    *scroll = scroll.saturating_add_signed(by);
    true
}

/// A key in a dialog in which nothing is typed.
fn plain_key(top: &mut Top, key: KeyEvent, dialog: &mut Dialog) -> Next {
    let KeyCode::Char(pressed) = key.code else { return closes_at(key) };
    match dialog {
        Dialog::Ask { yes, .. } => match pressed {
            'y' | 'Y' => Next::Closes(match yes.clone() {
                Yes::Act(act) => top.act(*act),
                Yes::Leave(command) => vec![Effect::Leave(command)],
            }),
            'n' | 'N' | 'q' => nothing(top),
            _ => Next::Stays,
        },
        Dialog::Answer { place, waiting, .. } => {
            let said = match (waiting.kind, pressed) {
                (_, 'q') => return Next::Closes(Vec::new()),
                (WaitingKind::Resume, 'c') => "checkpoint",
                (WaitingKind::Resume, 'l') => "live",
                (WaitingKind::Resume, 'f') => "fresh",
                (WaitingKind::Resume, _) => return Next::Stays,
                (_, 'y') => "yes",
                (WaitingKind::Permission, 'n') => "no",
                (_, 't') => {
                    let field = Field::Answer(place.clone(), waiting.clone());
                    let about = match waiting.kind {
                        WaitingKind::Permission => "a text is a no, and tells the agent why",
                        _ => "a text is a yes with a note",
                    };
                    return typing(top, field, "answer in words", about);
                }
                _ => return Next::Stays,
            };
            Next::Closes(top.act(acts::answer(place, waiting, said)))
        }
        Dialog::Breaker { place, .. } => match pressed {
            'r' => typing(top, Field::Breaker(place.clone()), "close the breaker", "why, for the record"),
            's' => Next::Closes(top.act(acts::skip_phase(place))),
            'q' | 'n' => nothing(top),
            _ => Next::Stays,
        },
        Dialog::Help if matches!(pressed, '?' | 'q') => Next::Closes(Vec::new()),
        Dialog::Show { .. } if pressed == 'q' => Next::Closes(Vec::new()),
        Dialog::Help | Dialog::Show { .. } | Dialog::Type { .. } | Dialog::Found { .. } => Next::Stays,
    }
}

fn closes_at(key: KeyEvent) -> Next {
    match key.code {
        KeyCode::Esc => Next::Closes(Vec::new()),
        _ => Next::Stays,
    }
}

fn nothing(top: &mut Top) -> Next {
    top.say("nothing was done");
    Next::Closes(Vec::new())
}

fn typing(top: &mut Top, field: Field, title: &str, about: &str) -> Next {
    top.open_dialog(Dialog::Type {
        field,
        title: title.to_owned(),
        about: about.to_owned(),
        typed: String::new(),
    });
    Next::Stays
}

/// A key in a field: true for what every line to type in knows.
pub(super) fn edits(key: KeyEvent, typed: &mut String) -> bool {
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    match key.code {
        KeyCode::Char('u') if control => typed.clear(),
        KeyCode::Char('w') if control => {
            let kept = typed.trim_end();
            let word = kept.rfind(' ').map_or(0, |at| at + 1);
            typed.truncate(word);
        }
        KeyCode::Char(c) if !control => add(typed, c.encode_utf8(&mut [0; 4])),
        KeyCode::Backspace => {
            typed.pop();
        }
        _ => return false,
    }
    true
}

fn type_key(top: &mut Top, key: KeyEvent, field: &Field, typed: &mut String) -> Next {
    if edits(key, typed) {
        return Next::Stays;
    }
    match key.code {
        KeyCode::Esc => nothing(top),
        KeyCode::Enter => {
            let text = typed.trim();
            let act = match field {
                // The name is made up if there is none.
                Field::Checkpoint(place) => Ok(acts::checkpoint(place, text)),
                Field::Breaker(place) => Ok(acts::reset_breaker(place, text)),
                _ if text.is_empty() => return nothing(top),
                Field::Note(place, tells) => Ok(acts::note(place, text, *tells)),
                Field::Budget(place) => acts::budget(place, text),
                Field::Answer(place, waiting) if waiting.kind == WaitingKind::Permission => {
                    Ok(acts::answer(place, waiting, text))
                }
                Field::Answer(place, waiting) => Ok(acts::answer(place, waiting, &format!("yes, {text}"))),
                Field::Search => Ok(Act::Search(text.to_owned())),
            };
            match act {
                Ok(act) => Next::Closes(top.act(act)),
                Err(why) => {
                    top.warn(&why);
                    Next::Stays
                }
            }
        }
        _ => Next::Stays,
    }
}

fn found_key(top: &mut Top, key: KeyEvent, found: &Findings, chosen: &mut usize) -> Next {
    let last = found.hits.len().saturating_sub(1);
    match key.code {
        KeyCode::Up | KeyCode::Char('k') => *chosen = chosen.saturating_sub(1),
        KeyCode::Down | KeyCode::Char('j') => *chosen = (*chosen + 1).min(last),
        KeyCode::Enter => {
            let session = found.hits.get(*chosen).map(|hit| hit.session_id);
            return Next::Closes(session.map(|session| top.open_session(session)).unwrap_or_default());
        }
        KeyCode::Esc | KeyCode::Char('q') => return Next::Closes(Vec::new()),
        _ => {}
    }
    Next::Stays
}

/// What is shown of a question, all of it: an answer counts for exactly that.
pub(super) fn answer_lines(waiting: &Waiting) -> Vec<Text> {
    let mut lines = Vec::new();
    match &waiting.input {
        Some(input) => {
            let (asked, _) = waiting.text.split_once('?').unwrap_or((&waiting.text, ""));
            lines.push(format!("{asked}?").into());
            let shown = serde_json::from_str::<serde_json::Value>(input)
                .ok()
                .and_then(|value| serde_json::to_string_pretty(&value).ok())
                .unwrap_or_else(|| input.clone());
            lines.extend(shown.lines().map(|line| Text::from(format!("  {line}"))));
        }
        None => lines.extend(waiting.text.lines().map(Text::from)),
    }
    lines
}

/// The title of a dialog about a session.
pub(super) fn title_of(what: &str, session: SessionId, topic: Option<&str>) -> String {
    let topic = shorten(topic.unwrap_or_default(), 40);
    format!("{what}   {}   {topic}", crate::command_context::short(session))
}
