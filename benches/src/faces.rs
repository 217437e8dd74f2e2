//! The page of `segno serve`: how long its server takes with ten thousand sessions, and how soon what is recorded is told.

use std::io::BufRead as _;
use std::io::BufReader;
use std::io::Read as _;
use std::io::Write as _;
use std::net::TcpStream;
use std::process::Child;
use std::process::Stdio;
use std::time::Duration;
use std::time::Instant;

use segno_benches::Times;
use segno_benches::add_session;
use segno_benches::fail;
use segno_benches::fill;
use segno_benches::say_note;
use segno_store::Filter;
use segno_store::Store;
use segno_store::sqlite::SqliteStore;

use crate::Bench;
use crate::ok;

/// How often each address is asked for.
const ASKED: usize = 300;
/// How often something is recorded.
const TOLD: usize = 200;
/// How many pages are open meanwhile.
const TABS: usize = 100;

/// A server, ended when it is dropped.
struct Served {
    child: Child,
    host: String,
    token: String,
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Served {
    fn ask(&self, path: &str) -> TcpStream {
        let mut stream = ok(TcpStream::connect(&self.host));
        ok(stream.set_nodelay(true));
        ok(stream.set_read_timeout(Some(Duration::from_secs(30))));
        let (host, token) = (&self.host, &self.token);
        let head = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\n");
        let close = if path.ends_with("events") { "" } else { "Connection: close\r\n" };
        ok(stream.write_all(format!("{head}{close}\r\n").as_bytes()));
        stream
    }

    fn time(&self, path: &str) -> Duration {
        let begun = Instant::now();
        let mut answer = Vec::new();
        ok(self.ask(path).read_to_end(&mut answer));
        assert!(answer.starts_with(b"HTTP/1.1 200"), "{path}");
        begun.elapsed()
    }

    /// Megabytes of the server that are in memory.
    fn resident(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
        line.split_whitespace().next().and_then(|kb| kb.parse::<u64>().ok()).unwrap_or(0) / 1024
    }
}

/// Reads events until one of this name comes.
fn until(stream: &mut BufReader<TcpStream>, name: &str) {
    let wanted = format!("event: {name}");
    loop {
        let mut line = String::new();
        if ok(stream.read_line(&mut line)) == 0 {
            return fail("the server ended the events");
        }
        if line.trim_end() == wanted {
            return;
        }
    }
}

impl Bench {
    /// The page and its interface before ten thousand sessions, and the way from a commit to an open page.
    pub(crate) fn faces(&self) {
        println!("\nsegno serve with 10,000 sessions, one of them with 100,000 events");
        let project = self.project("faces");
        let path = self.home.join("faces.db");
        let options =
            segno_store::OpenOptions { purpose: segno_store::Purpose::LongLived, ..Default::default() };
        let store = ok(SqliteStore::open(&path, options));
        let sessions: Vec<_> = (0..10_000)
            .map(|number| ok(add_session(&store, &project.display().to_string(), number)))
            .collect();
        assert_eq!(ok(store.list(&Filter::default())).total, 10_000);
        let (long, short) = (sessions[17], sessions[4_000]);
        ok(fill(&path, long, 100_000));
        let url = format!("sqlite:{}", path.display());
        let served = self.serve(&project, &url);
        for (what, path, aim) in [
            ("the list, as a page", "/".to_owned(), 50),
            ("the list, as JSON, 100 sessions", "/api/v1/sessions?limit=100".to_owned(), 50),
            ("found by text", "/api/v1/sessions?text=measure&order=cost".to_owned(), 50),
            ("the end of a session of 100,000 events, as a page", format!("/s/{long}"), 50),
            ("its middle", format!("/s/{long}/moments?after=50000&limit=150"), 50),
            ("numbers for Prometheus", "/metrics".to_owned(), 50),
        ] {
            let mut times = Times::default();
            served.time(&path);
            for _ in 0..ASKED {
                times.push(served.time(&path));
            }
            println!("  {what:<50} {}  (aim: p99 at most {aim} ms)", times.line());
        }
        println!("  the server has {} MB in memory", served.resident());
        for tabs in [1, TABS] {
            let address = format!("/api/v1/sessions/{short}/events");
            let mut pages: Vec<_> = (0..tabs).map(|_| BufReader::new(served.ask(&address))).collect();
            let mut first = Times::default();
            let mut last = Times::default();
            for round in 0..TOLD + 5 {
                ok(say_note(&store, short));
                let committed = Instant::now();
                for (number, page) in pages.iter_mut().enumerate() {
                    until(page, "news");
                    if round >= 5 && number == 0 {
                        first.push(committed.elapsed());
                    }
                }
                if round >= 5 {
                    last.push(committed.elapsed());
                }
            }
            println!(
                "  from commit to page, {tabs:>3} open: the first  {}  (aim: p99 at most 200 ms)",
                first.line()
            );
            println!("                                  the last   {}", last.line());
        }
        println!("  the server has {} MB in memory", served.resident());
    }

    fn serve(&self, project: &std::path::Path, url: &str) -> Served {
        let output =
            ok(self.segno(project, &["--store", url, "serve", "--token"]).stdout(Stdio::piped()).output());
        let token = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        let mut child = ok(self
            .segno(project, &["--store", url, "--json", "serve", "--port", "0", "--metrics"])
            .stdout(Stdio::piped())
            .spawn());
        let mut line = String::new();
        if let Some(stdout) = child.stdout.take() {
            ok(BufReader::new(stdout).read_line(&mut line));
        }
        let said: serde_json::Value = ok(serde_json::from_str(&line));
        let host = said["listens"].as_str().unwrap_or_default().to_owned();
        Served { child, host, token }
    }
}
