//! Keeping the files of ultra-create current for a session of 10,000 tool calls, beside what its document aims at and beside a
//! program that rewrites its whole state after a call, as a script in Node.js does.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use segno_benches::Times;
use segno_benches::add_session;
use segno_benches::fail;
use segno_benches::fill_with_calls;
use segno_benches::open;

use super::Bench;
use super::ok;
use super::time;

const CALLS: u64 = 10_000;
const ROUNDS: usize = 40;

/// Reads the state, adds a call, and writes all of it, plain and compressed. Prints how long that took in the process.
const REWRITES: &str = r#"
const fs = require('fs'), zlib = require('zlib');
const begun = process.hrtime.bigint();
const file = process.argv[2];
const state = JSON.parse(fs.readFileSync(file, 'utf8'));
const now = new Date().toISOString();
state.tools.history.push({ tool: 'Bash', input: { command: 'true' }, output: 'ok', timestamp: now });
state.updated_at = now;
const text = JSON.stringify(state, null, 2);
fs.writeFileSync(file, text);
fs.writeFileSync(file + '.gz', zlib.gzipSync(text));
console.log(String((process.hrtime.bigint() - begun) / 1000n));
"#;

impl Bench {
    /// `just bench layouts`.
    pub(super) fn layouts(&self) {
        println!("\nfiles of ultra-create for a session of {CALLS} tool calls, {ROUNDS} rounds");
        let project = self.project("layouts");
        let path = self.home.join("layouts.db");
        let session =
            ok(open(&path).and_then(|store| add_session(&store, &project.display().to_string(), 0)));
        // Each call is two events, and each thousand of them a checkpoint.
        ok(fill_with_calls(&path, session, CALLS * 2 + 1 + CALLS / 1_000));
        let url = format!("sqlite:{}", path.display());
        let note = |families: &str, items: &str| {
            let mut command = self.segno(&project, &["--store", &url, "--quiet", "note", "one more"]);
            command.env("SEGNO_VIEW_ENABLED", "false").env("SEGNO_LAYOUT_FAMILIES", families);
            command.env("SEGNO_LAYOUT_MAX_ITEMS", items);
            command
        };
        let written = self.home.join(".ultra-create/sessions/current-session.json");
        let every = CALLS.to_string();
        time(&mut note(r#"["ultra-create"]"#, &every));
        let theirs = self.home.join("theirs.json");
        self.without_ours(&written, &theirs);
        let script = self.home.join("rewrites.cjs");
        std::fs::write(&script, REWRITES).unwrap_or_else(|why| fail(&why.to_string()));
        let (mut bare, mut newest, mut whole) = (Times::default(), Times::default(), Times::default());
        let (mut node, mut inside) = (Times::default(), Times::default());
        for round in 0..ROUNDS + 3 {
            let nothing = time(&mut note("[]", "1000"));
            let some = time(&mut note(r#"["ultra-create"]"#, "1000"));
            let some_size = sizes(&written);
            let all = time(&mut note(r#"["ultra-create"]"#, &every));
            let all_size = sizes(&written);
            let (fresh, rewriting) = rewrite(&script, &theirs);
            if round >= 3 {
                bare.push(nothing);
                newest.push(some);
                whole.push(all);
                node.push(fresh);
                inside.push(rewriting);
            }
            if round == 0 {
                println!("  the newest 1,000 calls    {some_size}");
                println!("  all calls                 {all_size} (aim: at most 100 KB compressed)");
                println!("  rewritten in Node.js      {}", sizes(&theirs));
            }
        }
        println!("  segno note, no files      {}", bare.line());
        println!("  with the newest 1,000     {}", newest.line());
        println!("  with all calls            {}", whole.line());
        println!("  Node.js, a fresh process  {}", node.line());
        println!("  of that, rewriting        {}", inside.line());
        let above = |times: &Times| times.median().saturating_sub(bare.median()).as_secs_f64() * 1e3;
        println!(
            "  keeping the files: {:.1} ms for the newest 1,000, {:.1} ms for all (aim: at most 100 ms)",
            above(&newest),
            above(&whole)
        );
    }

    /// The same state without what is ours alone, and with a compressed copy.
    fn without_ours(&self, from: &Path, to: &Path) {
        let bytes = std::fs::read(from).unwrap_or_else(|why| fail(&why.to_string()));
        let mut state: serde_json::Value =
            serde_json::from_slice(&bytes).unwrap_or_else(|why| fail(&why.to_string()));
        let calls = state["tools"]["history"].as_array().map_or(0, Vec::len) as u64;
        assert_eq!(calls, CALLS, "every call is in the file");
        if let Some(members) = state.as_object_mut() {
            members.remove("segno");
        }
        std::fs::write(to, state.to_string()).unwrap_or_else(|why| fail(&why.to_string()));
    }
}

/// A fresh process that rewrites the state, and how long that took in it.
fn rewrite(script: &Path, state: &Path) -> (Duration, Duration) {
    let begun = std::time::Instant::now();
    let output = Command::new("node").arg(script).arg(state).output();
    let taken = begun.elapsed();
    let output = output.unwrap_or_else(|why| fail(&format!("node: {why}")));
    let micros = String::from_utf8_lossy(&output.stdout).trim().parse();
    (taken, Duration::from_micros(micros.unwrap_or_else(|_| fail("the script in Node.js failed"))))
}

/// How large a file and its compressed copy are.
fn sizes(path: &Path) -> String {
    let size = |path: &Path| std::fs::metadata(path).map_or(0, |meta| meta.len()) / 1024;
    format!("{} KB, compressed {} KB", size(path), size(&path.with_extension("json.gz")))
}
