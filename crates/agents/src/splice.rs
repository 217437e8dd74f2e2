//! Takes apart a line that is not one JSON object.
//!
//! Agents write to one pipe from several places. Two events can share a line, a log text can precede one, and an event
//! can be written, line feed and all, into the middle of another: then the outer one continues on the next line.

use serde_json::value::RawValue;

/// What a line consists of, in order.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// A complete JSON object.
    Object(String),
    /// Text that is no JSON.
    Noise(String),
    /// The beginning of an object that may continue on a following line.
    Open(String),
}

/// How many places of a broken line are tried as the beginning of an inner event. Bounds the work, and the depth of
/// the search, on garbage.
const MAX_TRIES: usize = 16;

/// Whether `text` is one complete JSON object.
pub(crate) fn is_object(text: &str) -> bool {
    text.trim_start().starts_with('{') && serde_json::from_str::<&RawValue>(text).is_ok()
}

/// A damaged line of a log, cut wherever another line begins in it. What is whole is one piece, whatever begins inside.
pub(crate) fn pieces_of_log<'a>(line: &'a str, starts: &[&str]) -> Vec<&'a str> {
    let mut pieces = Vec::new();
    let mut rest = line;
    for _ in 0..MAX_TRIES {
        let text = rest.trim_start();
        let whole = Some(text).filter(|text| text.starts_with('{')).and_then(object_length);
        let end = match whole {
            Some(length) => Some(rest.len() - text.len() + length),
            None => starts
                .iter()
                .filter_map(|start| rest.match_indices(start).map(|(at, _)| at).find(|at| *at > 0))
                .min(),
        };
        let Some((piece, behind)) = end.and_then(|end| rest.split_at_checked(end)) else { break };
        pieces.push(piece);
        rest = behind;
    }
    pieces.push(rest);
    pieces.retain(|piece| !piece.trim().is_empty());
    pieces
}

/// Splits a line; `known` tells whether a `type` is one that the agent gives to its top-level events. Without that
/// test a nested object of a truncated event could be taken for an event.
pub(crate) fn take_apart(line: &str, known: &dyn Fn(&str) -> bool) -> Vec<Part> {
    let trimmed = line.trim();
    if trimmed.starts_with('[')
        && let Ok(items) = serde_json::from_str::<Vec<&RawValue>>(trimmed)
        && !items.is_empty()
        && items.iter().all(|item| item.get().starts_with('{'))
    {
        return items.into_iter().map(|item| Part::Object(item.get().to_owned())).collect();
    }
    let mut parts = Vec::new();
    pieces(line, known, &mut MAX_TRIES.clone(), &mut parts);
    parts
}

fn pieces(text: &str, known: &dyn Fn(&str) -> bool, tries: &mut usize, parts: &mut Vec<Part>) {
    let before = parts.len();
    let rest = leading_objects(text.trim(), parts);
    match (rest.is_empty(), parts.len() == before) {
        (true, _) => {}
        // Spaces matter when the text is half of a string.
        (false, true) => broken(text, known, tries, parts),
        (false, false) => broken(rest, known, tries, parts),
    }
}

/// Moves the complete objects at the front of `text` to `parts` and returns what is left.
fn leading_objects<'a>(text: &'a str, parts: &mut Vec<Part>) -> &'a str {
    let mut rest = text;
    while rest.starts_with('{') {
        let Some(length) = object_length(rest) else { break };
        parts.push(Part::Object(rest[..length].to_owned()));
        rest = rest[length..].trim_start();
    }
    rest
}

/// The length of the complete object that `text` begins with.
fn object_length(text: &str) -> Option<usize> {
    let mut stream = serde_json::Deserializer::from_str(text).into_iter::<&RawValue>();
    match stream.next() {
        Some(Ok(_)) => Some(stream.byte_offset()),
        _ => None,
    }
}

fn broken(text: &str, known: &dyn Fn(&str) -> bool, tries: &mut usize, parts: &mut Vec<Part>) {
    for (at, start) in text.match_indices("{\"type\":").filter(|(at, _)| *at > 0) {
        // Messages are full of nested objects with a type; only those of an event are worth a parse.
        if !quoted(&text[at + start.len()..]).is_some_and(known) {
            continue;
        }
        if *tries == 0 {
            break;
        }
        *tries -= 1;
        let Some(length) = object_length(&text[at..]) else { continue };
        let inner = &text[at..at + length];
        let (before, after) = (&text[..at], &text[at + length..]);
        let inner = Part::Object(inner.to_owned());
        let outer = format!("{before}{after}");
        if is_object(&outer) {
            parts.extend([inner, Part::Object(outer)]);
        } else if after.trim().is_empty() {
            match opening(before) {
                open @ Part::Open(_) => parts.extend([inner, open]),
                other => parts.extend([other, inner]),
            }
        } else {
            parts.extend([Part::Noise(before.to_owned()), inner]);
            pieces(after, known, tries, parts);
        }
        return;
    }
    parts.push(Part::Noise(text.to_owned()));
}

fn opening(before: &str) -> Part {
    if before.trim_start().starts_with('{') {
        Part::Open(before.to_owned())
    } else {
        Part::Noise(before.to_owned())
    }
}

/// The string that `text` begins with; types have no escapes.
fn quoted(text: &str) -> Option<&str> {
    text.trim_start().strip_prefix('"')?.split_once('"').map(|(inside, _)| inside)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(line: &str) -> Vec<Part> {
        take_apart(line, &|kind| matches!(kind, "a" | "limit"))
    }

    fn object(text: &str) -> Part {
        Part::Object(text.to_owned())
    }

    #[test]
    fn a_whole_line_of_a_log_is_not_cut() {
        let starts = ["{\"id\":"];
        let (first, second) = (r#"{"id":1,"calls":[{"id":2}]}"#, r#"{"id":3}"#);
        assert_eq!(pieces_of_log(&format!("{first}{second}"), &starts), [first, second]);
        assert_eq!(pieces_of_log(&format!("{{\"id\":9,\"x{first}"), &starts), ["{\"id\":9,\"x", first]);
        assert_eq!(pieces_of_log("  ", &starts), Vec::<&str>::new());
    }

    #[test]
    fn two_events_on_one_line() {
        assert_eq!(
            parts(r#"{"type":"a"} {"type":"b"}"#),
            [object(r#"{"type":"a"}"#), object(r#"{"type":"b"}"#)]
        );
    }

    #[test]
    fn an_array_of_events() {
        assert_eq!(parts(r#"[{"type":"a"},{"x":1}]"#), [object(r#"{"type":"a"}"#), object(r#"{"x":1}"#)]);
    }

    #[test]
    fn text_before_and_after_an_event() {
        assert_eq!(
            parts(r#"warn: {"type":"a"} tail"#),
            [Part::Noise("warn: ".into()), object(r#"{"type":"a"}"#), Part::Noise(" tail".into())]
        );
    }

    #[test]
    fn garbage_of_any_length_is_bounded_work() {
        let line = r#"x{"type":"a"}"#.repeat(100_000);
        let parts = parts(&line);
        assert_eq!(parts.len(), 2 * MAX_TRIES + 1);
        assert!(matches!(parts.last(), Some(Part::Noise(_))));
    }

    #[test]
    fn a_line_glued_to_a_torn_one() {
        let pieces = pieces_of_log(r#"{"id":"1","tex{"id":"2"}{"id":"3"}"#, &[r#"{"id":"#]);
        assert_eq!(pieces, [r#"{"id":"1","tex"#, r#"{"id":"2"}"#, r#"{"id":"3"}"#]);
        assert_eq!(pieces_of_log("x", &["{"]), ["x"]);
        assert!(pieces_of_log("", &["{"]).is_empty());
    }

    #[test]
    fn an_event_inside_another() {
        assert_eq!(
            parts(r#"{"type":"a","text":"one{"type":"limit","n":1} two"}"#),
            [object(r#"{"type":"limit","n":1}"#), object(r#"{"type":"a","text":"one two"}"#)]
        );
    }

    #[test]
    fn an_event_inside_another_with_its_line_feed() {
        assert_eq!(
            parts(r#"{"type":"a","text":"one{"type":"limit","n":1}"#),
            [object(r#"{"type":"limit","n":1}"#), Part::Open(r#"{"type":"a","text":"one"#.into())]
        );
    }

    #[test]
    fn a_truncated_event_is_noise_and_its_inside_is_no_event() {
        let line = r#"{"type":"a","content":[{"type":"text","text":"x"}"#;
        assert_eq!(parts(line), [Part::Noise(line.into())]);
    }
}
