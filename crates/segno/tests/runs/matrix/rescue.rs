//! Conversations of real agents that were deleted or torn are put back, and the agent goes on with the same history.
//!
//! `SEGNO_RESCUES` says how many there are of both agents together, 4 if it does not.

use std::path::Path;
use std::path::PathBuf;

use rstest::rstest;
use segno_testkit::model::Op;
use segno_testkit::model::Script;
use segno_testkit::model::Turn;
use segno_testkit::recipe::Patience;

use super::Real;
use crate::lab::variable;

/// Conversations that the agent leads itself; the others are copies with ids of their own.
const LED: usize = 2;

/// A copy of a transcript, as if the agent had led the same conversation once more.
fn copy(path: &Path, id: &str, number: usize) -> (PathBuf, String) {
    let other = format!("{}{number:012}", &id[..id.len() - 12]);
    let name = path.file_name().unwrap().to_str().unwrap().replace(id, &other);
    let to = path.with_file_name(name);
    std::fs::write(&to, std::fs::read_to_string(path).unwrap().replace(id, &other)).unwrap();
    (to, other)
}

/// Deletes or tears a file, each one in its own way.
fn ruin(path: &Path, number: usize) {
    let mut bytes = std::fs::read(path).unwrap();
    let middle = bytes.len() / 2;
    match number % 5 {
        0 => return std::fs::remove_file(path).unwrap(),
        1 => bytes.truncate(bytes.len() - 7),
        2 => bytes[middle - 200..middle + 200].fill(0),
        3 => bytes.truncate(middle),
        _ => bytes.clear(),
    }
    std::fs::write(path, bytes).unwrap();
}

impl Real {
    /// What the model was told last: all of the conversation, without the names that follow from its id.
    fn history(&self, id: &str) -> String {
        let told = self.asked().pop().unwrap().conversation.replace(id, "ID");
        let is_name = |line: &&str| line.starts_with("msg_") && line.len() == "msg_".len() + 36;
        told.lines().filter(|line| !is_name(line)).collect::<Vec<_>>().join("\n")
    }
}

#[rstest]
fn put_back_and_resumed(#[values("claude", "codex")] agent: &'static str) {
    let all: usize = variable("SEGNO_RESCUES").and_then(|count| count.parse().ok()).unwrap_or(4);
    let each = all.div_ceil(2);
    let led = (0..LED).flat_map(|number| {
        [
            Turn::ops([Op::write(&format!("made-{number}.txt"), "written\n")]),
            Turn::sh(&format!("echo marzipan-{number}")),
            Turn::text(&format!("answer {number}: we drop redis")),
        ]
    });
    let further = (0..LED + each).map(|_| Turn::text("it goes on"));
    let Some(real) = Real::new(agent, Script::new(led.chain(further)), Patience::default()) else { return };
    let said = real.lab.run(&["config", "set", "archive.native", "true"]);
    assert_eq!(said.code, Some(0), "{}", said.stderr);

    let mut originals: Vec<(PathBuf, String)> = Vec::new();
    for number in 0..LED {
        real.hand(&format!("make number {number}"), None);
        let path =
            real.transcripts().into_iter().find(|path| originals.iter().all(|(known, _)| known != path));
        let path = path.unwrap();
        let stem = path.file_stem().unwrap().to_str().unwrap();
        originals.push((path.clone(), stem[stem.len() - 36..].to_owned()));
    }
    let conversations: Vec<(usize, PathBuf, String)> = (0..each)
        .map(|number| {
            let (path, id) = &originals[number % LED];
            let (path, id) = copy(path, id, number + 1);
            (number % LED, path, id)
        })
        .collect();
    // What the agent tells the model when nothing happened to the conversation.
    let expected: Vec<String> = originals
        .iter()
        .map(|(path, id)| {
            let (_, control) = copy(path, id, 999_999);
            real.hand("go on", Some(&control));
            real.history(&control)
        })
        .collect();
    let import = real.lab.json(&["import", agent]);
    let kept = import["agents"][0]["kept"].as_u64().unwrap();
    assert_eq!(kept, (each + 2 * LED) as u64, "{import:#}");

    let before: Vec<Vec<u8>> =
        conversations.iter().map(|(_, path, _)| std::fs::read(path).unwrap()).collect();
    for (number, (_, path, _)) in conversations.iter().enumerate() {
        ruin(path, number);
    }
    let rescued = real.lab.json(&["rescue", "--all"]);
    let done = rescued["transcripts"].as_array().unwrap().iter().filter(|one| one["done"] == true).count();
    assert_eq!(done, each, "{rescued:#}");
    for ((led, path, id), before) in conversations.iter().zip(before) {
        assert!(std::fs::read(path).unwrap() == before, "{}", path.display());
        let asked = real.asked().len();
        real.hand("go on", Some(id));
        assert_eq!(real.asked().len(), asked + 1, "{id}");
        let told = real.history(id);
        assert!(told.contains(&format!("marzipan-{led}")) && told.contains("we drop redis"), "{id}");
        // It holds the words of the agent's maker: a failure says only where.
        let same =
            told.bytes().zip(expected[*led].bytes()).take_while(|(ours, theirs)| ours == theirs).count();
        assert!(told == expected[*led], "{id}: another history from byte {same} on");
    }
}
