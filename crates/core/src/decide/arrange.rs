//! Order among many sessions.

use super::one;
use crate::event::Event;
use crate::event::SessionArranged;
use crate::limits;
use crate::refusal::Refusal;
use crate::state::State;

/// Only what changes something is recorded.
pub(super) fn arrange(state: &State, wish: SessionArranged) -> Result<Vec<Event>, Refusal> {
    for tag in wish.tags_added.iter().chain(&wish.tags_removed) {
        check_tag(tag)?;
    }
    limits::optional_line("topic", wish.topic.as_deref())?;
    let topic = wish.topic.filter(|topic| state.topic.as_ref() != Some(topic));
    let mut made = SessionArranged { topic, ..SessionArranged::default() };
    for tag in wish.tags_added {
        if !state.tags.contains(&tag) && !made.tags_added.contains(&tag) {
            made.tags_added.push(tag);
        }
    }
    for tag in wish.tags_removed {
        if made.tags_added.contains(&tag) {
            return Err(Refusal::bad("tag", format!("{tag} is both added and removed")));
        }
        if !state.tags.contains(&tag) {
            return Err(Refusal::Unknown { what: "tag", id: tag });
        }
        if !made.tags_removed.contains(&tag) {
            made.tags_removed.push(tag);
        }
    }
    if (state.tags.len() + made.tags_added.len()).saturating_sub(made.tags_removed.len()) > limits::TAGS {
        return Err(Refusal::bad("tag", format!("a session has at most {} tags", limits::TAGS)));
    }
    made.pinned = wish.pinned.filter(|pinned| *pinned != state.pinned);
    made.archived = wish.archived.filter(|archived| *archived != state.archived);
    // What goes on must not go on unseen.
    if made.archived == Some(true) && state.driver.is_some() {
        return Err(Refusal::bad("archive", "somebody drives the session"));
    }
    if made == SessionArranged::default() {
        return Err(Refusal::Already("the session is in that place already".to_owned()));
    }
    one(made)
}

/// A tag is one word, so that it can be typed in a list of them.
fn check_tag(tag: &str) -> Result<(), Refusal> {
    limits::bounded("tag", tag, limits::TAG)?;
    let odd = |c: char| c.is_whitespace() || c == ',' || c == '#';
    if tag.starts_with('-') || tag.chars().any(odd) {
        return Err(Refusal::bad("tag", "a tag is one word without blanks, commas, # and a leading -"));
    }
    Ok(())
}
