use crate::event::samples::at;
use crate::event::samples::full_state;
use crate::event::samples::samples;
use crate::project::project;
use crate::state::Applied;
use crate::state::Mark;
use crate::story::Story;

/// What every event does to rows, to the letter: stores are full of rows of this form, and they are compared with what
/// follows from the journal.
#[test]
fn stored_form() {
    let mut lines = Vec::new();
    let mut story = Story::of(full_state());
    for event in samples() {
        let applied = story.record(&event);
        for applied in [applied, Applied::Counted, Applied::Repeated] {
            let mark = Mark { seq: 7, at: at(7), run: Some("run-1".to_owned()) };
            for change in project(&story.state, &mark, &event, applied) {
                let fields = serde_json::Value::Object(change.fields);
                let line = format!("{} {} {} {fields}", event.kind(), change.list.as_str(), change.key);
                if !lines.contains(&line) {
                    lines.push(line);
                }
            }
        }
    }
    insta::assert_snapshot!(lines.join("\n"));
}
