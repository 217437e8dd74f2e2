//! `just bench`: each hot path beside its floor or limit, in one run, taking turns.
//!
//! Usage: `bench SEGNO FLOOR [DIRECTORY]`, the release program, the C program of `floor/` and where to work.
#![expect(clippy::print_stdout, reason = "the figures are what this program is for")]

mod agent;
mod count;
mod faces;
mod history;
mod layouts;
mod looping;
mod many;
mod numbers;
mod why;

use std::path::Path;
use std::path::PathBuf;
use std::process::Command;
use std::process::Stdio;
use std::time::Instant;

use segno_benches::Times;
use segno_benches::add_session;
use segno_benches::fail;
use segno_benches::fill;
use segno_benches::fill_with_calls;
use segno_benches::open;
use segno_store::Filter;
use segno_store::Store;

/// How often each pair of processes takes turns.
const ROUNDS: usize = 300;
/// How often a session is taken up.
const RESUMES: usize = 40;

fn main() {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    if std::env::args().nth(1).as_deref() == Some(many::PLAYS) {
        return many::play(std::env::args().skip(2));
    }
    let (Some(segno), Some(floor)) = (arguments.next(), arguments.next()) else {
        return fail("usage: bench SEGNO FLOOR [DIRECTORY]");
    };
    let home = match arguments.next() {
        Some(path) => tempfile::tempdir_in(path),
        None => tempfile::tempdir(),
    };
    let home = home.unwrap_or_else(|why| fail(&why.to_string()));
    let bench = Bench { segno, floor, home: home.path().to_owned() };
    let parts: [(&str, Part); 15] = [
        ("count", Bench::count),
        ("one-shot", Bench::one_shot),
        ("growth", Bench::growth),
        ("list", Bench::list),
        ("resume", Bench::resume),
        ("hook", Bench::hooks),
        ("ingest", Bench::ingest),
        ("real", Bench::real),
        ("loop", Bench::looping),
        ("layouts", Bench::layouts),
        ("history", Bench::history),
        ("why", Bench::why),
        ("faces", Bench::faces),
        ("many", Bench::many),
        ("numbers", Bench::numbers),
    ];
    let only = std::env::var("SEGNO_BENCH_ONLY").ok();
    for (name, part) in parts {
        if only.as_deref().is_none_or(|only| only.split(',').any(|wanted| wanted == name)) {
            part(&bench);
        }
    }
}

/// One part of the measurements.
type Part = fn(&Bench);

struct Bench {
    segno: PathBuf,
    floor: PathBuf,
    home: PathBuf,
}

impl Bench {
    /// A fresh process that records one thing durably, against a C program that appends the same bytes.
    fn one_shot(&self) {
        println!("one-shot durable append, a fresh process each, {ROUNDS} rounds");
        let project = self.project("one-shot");
        self.run(&project, &["new", "bench"]);
        let event = r#"{"tokens":{"other":1},"estimated":false,"source":"hand"} 019a8f0e-aaaa-7bbb-8ccc-000000000000"#;
        let file = self.home.join("floor.log");
        let (mut ours, mut floors, mut starts) = (Times::default(), Times::default(), Times::default());
        for round in 0..ROUNDS + 20 {
            let floor = time(Command::new(&self.floor).arg(&file).arg(event));
            let append = time(&mut self.segno(&project, &["--quiet", "tokens", "1"]));
            let start = time(&mut self.segno(&project, &["--version"]));
            // The first rounds warm the caches up.
            if round >= 20 {
                floors.push(floor);
                ours.push(append);
                starts.push(start);
            }
        }
        println!("  C, write + fdatasync      {}", floors.line());
        println!("  segno tokens 1            {}", ours.line());
        println!("  segno --version           {}", starts.line());
        ratio("  tokens 1 / C floor", ours.median().as_secs_f64() / floors.median().as_secs_f64(), 2.0);
    }

    /// Appending to and loading a session of a million events against a small one.
    fn growth(&self) {
        let sizes = [10, 1_000, 1_000_000];
        println!("\none session of 10, 1,000 and 1,000,000 events");
        let mut stores = Vec::new();
        for size in sizes {
            let project = self.project(&format!("growth-{size}"));
            let path = self.home.join(format!("growth-{size}.db"));
            let started = Instant::now();
            let session =
                ok(open(&path).and_then(|store| add_session(&store, &project.display().to_string(), 0)));
            ok(fill(&path, session, size));
            let taken = started.elapsed().as_secs_f64();
            if size > 100_000 {
                println!("  made {size} events in {taken:.1} s ({:.0} events/s)", size as f64 / taken);
            }
            stores.push((size, project, path, session));
        }
        let mut appends = vec![Times::default(); sizes.len()];
        let mut loads = vec![Times::default(); sizes.len()];
        for round in 0..ROUNDS + 20 {
            for (index, (_, project, path, session)) in stores.iter().enumerate() {
                let url = format!("sqlite:{}", path.display());
                let append = time(&mut self.segno(project, &["--store", &url, "--quiet", "tokens", "1"]));
                let started = Instant::now();
                let loaded = ok(open(path).and_then(|store| store.load(*session)));
                let load = started.elapsed();
                assert!(loaded.notices.is_empty());
                if round >= 20 {
                    appends[index].push(append);
                    loads[index].push(load);
                }
            }
        }
        for (index, size) in sizes.iter().enumerate() {
            println!("  append at event {size:>9}  {}", appends[index].line());
        }
        for (index, size) in sizes.iter().enumerate() {
            println!("  load at event   {size:>9}  {}", loads[index].line());
        }
        let seconds = |times: &Times| times.median().as_secs_f64();
        ratio("  append at 1,000,000 / at 10", seconds(&appends[2]) / seconds(&appends[0]), 1.2);
        ratio("  load of 1,000,000 / of 1,000", seconds(&loads[2]) / seconds(&loads[1]), 2.0);
    }

    /// Listing ten thousand sessions against starting the program.
    fn list(&self) {
        println!("\nls --json with 10,000 sessions, {ROUNDS} rounds");
        let project = self.project("list");
        let path = self.home.join("list.db");
        {
            let store = ok(segno_store::sqlite::SqliteStore::open(
                &path,
                segno_store::OpenOptions { purpose: segno_store::Purpose::LongLived, ..Default::default() },
            ));
            for number in 0..10_000 {
                ok(add_session(&store, &project.display().to_string(), number));
            }
            assert_eq!(ok(store.list(&Filter::default())).total, 10_000);
            ok(store.maintain());
        }
        let url = format!("sqlite:{}", path.display());
        let (mut lists, mut starts) = (Times::default(), Times::default());
        for round in 0..ROUNDS + 20 {
            let list = time(&mut self.segno(&project, &["--store", &url, "ls", "--json"]));
            let start = time(&mut self.segno(&project, &["--version"]));
            if round >= 20 {
                lists.push(list);
                starts.push(start);
            }
        }
        println!("  segno ls --json           {}", lists.line());
        println!("  segno --version           {}", starts.line());
        let above = lists.median().saturating_sub(starts.median()).as_secs_f64() * 1e3;
        println!("  above --version: {above:.1} ms (aim: at most 25 ms)");
    }

    /// Taking up a session of a million events against starting the program. `SEGNO_BENCH_EVENTS` says how many.
    fn resume(&self) {
        let events = std::env::var("SEGNO_BENCH_EVENTS").ok().and_then(|text| text.parse().ok());
        let events: u64 = events.unwrap_or(1_000_000);
        println!("\nresume --no-run --json of a session of {events} events, {RESUMES} rounds");
        let project = self.project("resume");
        let path = self.home.join("resume.db");
        let session =
            ok(open(&path).and_then(|store| add_session(&store, &project.display().to_string(), 0)));
        ok(fill_with_calls(&path, session, events));
        let url = format!("sqlite:{}", path.display());
        // The view is written whole by every command that changes where a session stands, and costs what it shows.
        for (name, view) in [("without its view", "false"), ("with its view", "true")] {
            let command = |arguments: &[&str]| {
                let mut command = self.segno(&project, &["--store", &url]);
                command.args(arguments).env("SEGNO_VIEW_ENABLED", view);
                command
            };
            let (mut resumes, mut looks, mut starts) = (Times::default(), Times::default(), Times::default());
            for round in 0..RESUMES + 3 {
                time(&mut command(&["--quiet", "pause"]));
                let look = time(&mut command(&["resume", "--options", "--json"]));
                let resume = time(&mut command(&["resume", "--no-run", "--json"]));
                let start = time(&mut self.segno(&project, &["--version"]));
                if round >= 3 {
                    resumes.push(resume);
                    looks.push(look);
                    starts.push(start);
                }
            }
            println!("  {name}");
            println!("  segno resume --no-run     {}", resumes.line());
            println!("  segno resume --options    {}", looks.line());
            println!("  segno --version           {}", starts.line());
            let above = resumes.median().saturating_sub(starts.median()).as_secs_f64() * 1e3;
            println!("  above --version: {above:.1} ms (aim: at most 30 ms)");
        }
    }

    /// A number that was not given before, so that no call is taken for a repeated one.
    fn fresh(&self) -> u128 {
        std::time::UNIX_EPOCH.elapsed().map_or(0, |since| since.as_micros())
    }

    fn project(&self, name: &str) -> PathBuf {
        let path = self.home.join(name);
        std::fs::create_dir_all(path.join(".git")).unwrap_or_else(|why| fail(&why.to_string()));
        std::fs::canonicalize(path).unwrap_or_else(|why| fail(&why.to_string()))
    }

    fn segno(&self, project: &Path, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.segno);
        command
            .args(arguments)
            .current_dir(project)
            .env_clear()
            .env("HOME", &self.home)
            .env("PATH", "/usr/bin:/bin");
        command
    }

    fn run(&self, project: &Path, arguments: &[&str]) {
        time(&mut self.segno(project, arguments));
    }
}

/// How long a process takes from start to end; one that fails stops the measurement.
fn time(command: &mut Command) -> std::time::Duration {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let started = Instant::now();
    let status = command.status().unwrap_or_else(|why| fail(&why.to_string()));
    let taken = started.elapsed();
    if !status.success() {
        return fail(&format!("{command:?} ended with {status}"));
    }
    taken
}

fn ok<T, E: std::fmt::Display>(result: Result<T, E>) -> T {
    result.unwrap_or_else(|why| fail(&why.to_string()))
}

fn ratio(what: &str, ratio: f64, aim: f64) {
    println!("{what}: {ratio:.2} (aim: at most {aim})");
}
