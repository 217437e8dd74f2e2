//! Programs that were written from the documents of other session managers, looking at the files that are kept for them.

use std::path::Path;
use std::path::PathBuf;
use std::process::Child;
use std::process::Stdio;

use crate::lab::Lab;
use crate::lab::program;

/// Where they are.
const READERS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/readers");

/// Every family that is written: the module of its reader, and where its files are for a lab.
pub(crate) fn families(lab: &Lab) -> [(&'static str, PathBuf); 4] {
    let work = lab.home.work();
    [
        ("prp", work.join(".prp-session")),
        ("agentforge", work.join(".agentforge/sessions")),
        ("go_team", work.join(".claude/agents/microai/teams/go-team/checkpoints")),
        ("ultra_create", Path::new(&lab.env["HOME"]).join(".ultra-create/sessions")),
    ]
}

/// What a reader says of a folder, looking once: where the session stands.
pub(crate) fn status(reader: &str, folder: &Path) -> String {
    let script = format!(
        "import {reader}, sys; s = {reader}.check(sys.argv[1]); print(s.get('status', s.get('state')))"
    );
    let mut python = program("python3");
    let output = python.args(["-B", "-c", &script]).arg(folder).env("PYTHONPATH", READERS).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// A reader that looks a hundred times a second, until it is told to stop.
pub(crate) struct Poll {
    family: &'static str,
    child: Child,
    stop: PathBuf,
}

/// What it saw. Every look was fine, or there would be no such value.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) family: &'static str,
    /// How often it looked, in which time, and how often it found a session, in words.
    #[expect(dead_code, reason = "it is printed with the rest")]
    pub(crate) looks: String,
    /// How often it looked and found a session.
    pub(crate) found: u64,
    /// Where the session stood, in order.
    pub(crate) statuses: Vec<String>,
}

impl Poll {
    pub(crate) fn start(lab: &Lab, family: &'static str, folder: &Path) -> Self {
        let stop = lab.home.path().join(format!("stop-{family}"));
        let mut python = program("python3");
        let child = python
            .args(["-B", &format!("{READERS}/poll.py"), family])
            .arg(folder)
            .arg(&stop)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        Self { family, child, stop }
    }

    pub(crate) fn end(self) -> Seen {
        std::fs::write(&self.stop, "").unwrap();
        let output = self.child.wait_with_output().unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
        let (first, second) = said.trim_end().split_once('\n').unwrap_or((said.trim_end(), ""));
        let found = first.rsplit(' ').next().and_then(|number| number.parse().ok()).unwrap();
        let looks = first.to_owned();
        Seen {
            family: self.family,
            looks,
            found,
            statuses: second.split(' ').map(ToOwned::to_owned).collect(),
        }
    }
}
