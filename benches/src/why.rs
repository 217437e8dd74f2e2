//! `segno why` on a file that was edited 200 times, with a checkpoint after every edit, beside the start of the program.

use std::path::Path;

use segno_benches::Times;
use segno_core::Command;
use segno_core::Fact;
use segno_core::event::CallEnd;
use segno_core::event::Project;
use segno_core::event::Source;
use segno_engine::Engine;
use segno_engine::EngineOptions;
use segno_engine::NewSession;
use segno_engine::tree::TreeOptions;
use serde_json::json;

use super::Bench;
use super::time;

const EDITS: usize = 200;
const ROUNDS: usize = 40;

impl Bench {
    /// `just bench why`.
    pub(super) fn why(&self) {
        println!("\nwhy on a file with {EDITS} edits and as many checkpoints, {ROUNDS} rounds");
        let project = self.project("why");
        let data = self.home.join(".local/share/segno");
        self.edited(&project, &data).unwrap_or_else(|why| segno_benches::fail(&why.to_string()));
        let (mut whys, mut starts) = (Times::default(), Times::default());
        for round in 0..ROUNDS + 3 {
            let why = time(&mut self.segno(&project, &["--json", "why", "boat.rs:77"]));
            let start = time(&mut self.segno(&project, &["--version"]));
            if round >= 3 {
                whys.push(why);
                starts.push(start);
            }
        }
        let (why, start) = (whys.at(0.5), starts.at(0.5));
        println!("  segno why      {why:?}, p95 {:?}", whys.at(0.95));
        println!("  segno --version {start:?}");
        println!("  above the start {:?}   aim: 50 ms", why.saturating_sub(start));
    }

    fn edited(&self, project: &Path, data: &Path) -> Result<(), Box<dyn std::error::Error>> {
        std::fs::create_dir_all(data)?;
        let tree = TreeOptions {
            most: 1000,
            ..TreeOptions::new(data.join("snapshots"), segno_workspace::git::find("/usr/bin:/bin".as_ref()))
        };
        let store = segno_benches::open(&data.join("segno.db"))?;
        let engine =
            Engine::new(Box::new(store), EngineOptions { tree: Some(tree), ..EngineOptions::default() });
        let path = project.display().to_string();
        let project_of = Project { path, name: "why".to_owned(), kind: None };
        let session =
            engine.create(NewSession { project: project_of, ..NewSession::default() })?.state.session_id;
        let file = project.join("boat.rs");
        let mut lines: Vec<String> =
            (0..500).map(|at| format!("    let rope_{at} = lay_out({at});")).collect();
        std::fs::write(&file, lines.join("\n") + "\n")?;
        for edit in 0..EDITS {
            let create = Command::CreateCheckpoint { name: None, reason: Default::default() };
            engine.act(session, create)?;
            let at = edit * 7 % lines.len();
            let old = lines.get(at).cloned().unwrap_or_default();
            let new = format!("    let knot_{edit} = tie({edit});\n    {}", old.trim());
            let call = format!("call-{edit}");
            let input =
                json!({ "file_path": file.display().to_string(), "old_string": old, "new_string": new });
            let source = Source::Stream;
            engine.act(
                session,
                Fact::ToolStarted {
                    call: call.clone(),
                    tool: "Edit".to_owned(),
                    input,
                    write_ahead: true,
                    source,
                },
            )?;
            lines.splice(at..=at, new.split('\n').map(str::to_owned));
            std::fs::write(&file, lines.join("\n") + "\n")?;
            let output = Some("ok".into());
            engine.act(
                session,
                Fact::ToolEnded { call, tool: None, end: CallEnd::Completed, output, source },
            )?;
        }
        Ok(())
    }
}
