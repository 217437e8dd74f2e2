//! How many instructions the short processes take, by valgrind: a number that a busy machine does not change.

use std::io::Write;
use std::process::Command;
use std::process::Stdio;

use segno_benches::fail;

use crate::Bench;
use crate::agent::hook_file;
use crate::agent::payload;

impl Bench {
    /// Counts the instructions of one command and of hooks, each in a fresh process.
    pub(crate) fn count(&self) {
        println!("instructions of a process, by valgrind");
        if Command::new("valgrind").arg("--version").stdout(Stdio::null()).status().is_err() {
            println!("  valgrind is not installed");
            return;
        }
        let project = self.project("count");
        let store = self.home.join("count.db");
        let url = format!("sqlite:{}", store.display());
        self.run(&project, &["--store", &url, "new", "bench"]);
        let listed = self.segno(&project, &["--store", &url, "ls", "--json"]).output();
        let listed = listed.unwrap_or_else(|why| fail(&why.to_string()));
        let text = String::from_utf8_lossy(&listed.stdout).into_owned();
        let start = text.find("session_2").unwrap_or_else(|| fail("there is no session"));
        let session = text.get(start..start + 30).unwrap_or_else(|| fail("there is no session"));
        let version = self.counted(self.segno(&project, &["--version"]), "");
        println!("  segno --version    {version:>12}");
        let tokens = self.counted(self.segno(&project, &["--store", &url, "--quiet", "tokens", "1"]), "");
        println!("  segno tokens 1     {tokens:>12}");
        let file = hook_file(&self.home, &store, &self.home.join("count-spool"));
        for (name, size) in [("2 KB", 2_000), ("200 KB", 200_000)] {
            let mut command = self.segno(&project, &["hook", "claude"]);
            command.env("SEGNO_SESSION", session).env("SEGNO_RUN", "bench").env("SEGNO_HOOK", &file);
            let count = self.counted(command, &payload(&self.fresh().to_string(), size));
            println!("  segno hook, {name:>6} {count:>12}");
        }
    }

    fn counted(&self, command: Command, input: &str) -> String {
        let mut counted = Command::new("valgrind");
        counted.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]);
        counted.arg(command.get_program()).args(command.get_args()).env_clear();
        counted.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        if let Some(directory) = command.get_current_dir() {
            counted.current_dir(directory);
        }
        counted.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = counted.spawn().unwrap_or_else(|why| fail(&why.to_string()));
        if let Some(mut stdin) = child.stdin.take() {
            let _ = stdin.write_all(input.as_bytes());
        }
        let output = child.wait_with_output().unwrap_or_else(|why| fail(&why.to_string()));
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let refs = said.lines().find_map(|line| line.split_once("refs:"));
        refs.map_or_else(|| fail(&said), |(_, count)| count.trim().to_owned())
    }
}
