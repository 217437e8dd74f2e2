//! Lines that the real agents write, and a person's beside them.

use rstest::rstest;
use segno_testkit::model::Op;
use segno_testkit::model::Turn;

use super::Real;

#[rstest]
fn lines_of_the_real_agents_and_of_a_person(
    #[values("claude", "codex", "gemini", "opencode")] agent: &'static str,
) {
    let turns = [
        Turn::ops([Op::write("made.txt", "made by the agent\n")]),
        Turn::ops([Op::Read("there.txt".to_owned())]),
        Turn::ops([Op::Edit {
            path: "there.txt".to_owned(),
            old: "to be changed".to_owned(),
            new: "changed by the agent".to_owned(),
        }]),
        Turn::text("done"),
    ];
    let Some(real) = Real::with(agent, turns) else { return };
    let there = real.lab.home.work().join("there.txt");
    std::fs::write(&there, "a person's line\nto be changed\n").unwrap();
    let said = real.run(&[]);
    assert_eq!(said.code, Some(0));
    let mut text = std::fs::read_to_string(&there).unwrap();
    text.push_str("added by a person\n");
    std::fs::write(&there, text).unwrap();

    let by = |file: &str| -> Vec<(String, bool)> {
        let found = real.lab.json(&["blame", file]);
        let lines = found["lines"].as_array().unwrap().clone();
        println!("{found:#}");
        lines
            .iter()
            .map(|line| (line["text"].as_str().unwrap().to_owned(), !line["writer"].is_null()))
            .collect()
    };
    let line = |text: &str, credited: bool| (text.to_owned(), credited);
    assert_eq!(by("made.txt"), [line("made by the agent", true)]);
    assert_eq!(
        by("there.txt"),
        [
            line("a person's line", false),
            line("changed by the agent", true),
            line("added by a person", false)
        ]
    );
    let why = real.lab.json(&["why", "there.txt:2"]);
    assert_eq!(
        (&why["credited"], &why["writer"]["agent"], &why["writer"]["prompt"]),
        (&true.into(), &agent.into(), &"go".into())
    );
}
