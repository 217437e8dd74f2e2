//! Many processes at once. `SEGNO_FULL=1` runs the large numbers.

use std::collections::BTreeSet;
use std::time::Instant;

use segno::config::env::Environment;

use crate::common::SEGNO;
use crate::common::TestEnv;

fn full() -> bool {
    Environment::capture().get("SEGNO_FULL") == Some("1")
}

/// Runs `count` commands in each of `writers` threads, one process after the other in each, and gives what they wrote
/// to standard output. Nobody may fail or even complain.
fn at_once(env: &TestEnv, writers: usize, count: usize, args: &[&str]) -> Vec<String> {
    let commands: Vec<_> =
        (0..writers).map(|_| (0..count).map(|_| env.command(SEGNO)).collect::<Vec<_>>()).collect();
    std::thread::scope(|scope| {
        let threads: Vec<_> = commands
            .into_iter()
            .map(|commands| {
                scope.spawn(move || {
                    let mut said = Vec::new();
                    for mut command in commands {
                        let output = command.args(args).output().unwrap();
                        let words = String::from_utf8_lossy(&output.stderr).into_owned();
                        assert!(output.status.success(), "{words}");
                        assert!(words.is_empty(), "{words}");
                        said.push(String::from_utf8(output.stdout).unwrap());
                    }
                    said
                })
            })
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    })
}

#[test]
fn every_token_is_counted() {
    let env = TestEnv::on_disk();
    env.start(&["busy"]);
    let count = if full() { 200 } else { 25 };
    let start = Instant::now();
    at_once(&env, 8, count, &["-q", "tokens", "1"]);
    println!("8 × {count} tokens in {:.1} s", start.elapsed().as_secs_f64());
    assert_eq!(env.json(&["budget"])["tokens"]["tokens_used"], 8 * count as u64);
    let journal = String::from_utf8(env.raw(&["log", "--json"]).stdout).unwrap();
    let seqs: Vec<u64> = journal
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["seq"].as_u64().unwrap())
        .collect();
    assert_eq!(seqs, (1..=1 + 8 * count as u64).collect::<Vec<_>>());
    assert_eq!(env.run(&["doctor"]).code, 0);
}

#[test]
fn every_session_has_its_own_name() {
    let env = TestEnv::on_disk();
    let count = if full() { 2_000 } else { 100 };
    let start = Instant::now();
    let ids = at_once(&env, 2, count, &["-q", "new", "--parallel"]);
    println!("2 × {count} sessions in {:.1} s", start.elapsed().as_secs_f64());
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), 2 * count);
    assert_eq!(env.json(&["ls"])["total"], 2 * count as u64);
}
