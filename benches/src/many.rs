//! Many agents on one machine, each with its own driver, all in one store: whether each of them starts, how much becomes
//! durable and how late, how long hooks and commands take meanwhile, and that nothing is lost when drivers are killed.
//!
//! `SEGNO_BENCH_AGENTS` says how many (`5,20,60,100`), `SEGNO_BENCH_SECONDS` how long each lot is watched.

use std::collections::BTreeMap;
use std::io::BufRead as _;
use std::io::Write as _;
use std::path::Path;
use std::path::PathBuf;
use std::process::Child;
use std::process::Command;
use std::process::Stdio;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;
use std::time::Duration;
use std::time::Instant;
use std::time::SystemTime;

use segno_benches::Times;
use segno_benches::fail;
use segno_core::Event;
use segno_store::EventRow;
use segno_store::Filter;
use segno_store::Store;

use crate::Bench;
use crate::ok;

/// How this program is told to play an agent.
pub(crate) const PLAYS: &str = "--play-agent";

/// How many agents there are at once.
const AGENTS: &[usize] = &[5, 20, 60, 100];
/// For how many seconds they are watched once all of them have begun.
const SECONDS: u64 = 20;
/// How often an agent says something.
const EACH: Duration = Duration::from_millis(50);
/// After how many lines it makes a call, which two hooks tell of.
const CALL_EVERY: u64 = 100;
/// How often somebody records something by a command of its own.
const COMMAND_EVERY: Duration = Duration::from_millis(100);
/// How often it is looked at what is durable.
const LOOK: Duration = Duration::from_millis(10);
/// How long a start may take before it counts as failed.
const START: Duration = Duration::from_secs(120);
/// How many drivers are killed.
const KILLS: usize = 20;
/// How many agents work in one project, and how many files that has.
const IN_ONE: (usize, usize) = (20, 5_000);
/// The kernel counts processor time in these.
const TICK: Duration = Duration::from_millis(10);

/// The kinds of trouble that are arranged.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Trouble {
    None,
    /// Drivers are killed.
    Kills,
}

impl Bench {
    /// Starts, events, hooks and commands with many agents at once.
    pub(crate) fn many(&self) {
        let numbers = |name: &str| -> Option<Vec<usize>> {
            Some(std::env::var(name).ok()?.split(',').filter_map(|text| text.parse().ok()).collect())
        };
        let counts = numbers("SEGNO_BENCH_AGENTS").unwrap_or_else(|| AGENTS.to_vec());
        let seconds = numbers("SEGNO_BENCH_SECONDS").and_then(|all| all.first().copied());
        let window = Duration::from_secs(seconds.map_or(SECONDS, |seconds| seconds as u64));
        for count in &counts {
            self.lot(*count, window, Trouble::None);
        }
        if let Some(most) = counts.iter().max() {
            self.lot(*most, window, Trouble::Kills);
        }
        self.in_one_project();
    }

    fn lot(&self, count: usize, window: Duration, trouble: Trouble) {
        let killed = if trouble == Trouble::Kills { ", drivers are killed" } else { "" };
        println!("\n{count} agents, each says something 20 times a second{killed}");
        let name = format!("many-{count}{}", if trouble == Trouble::Kills { "-kills" } else { "" });
        let lot = Lot::new(self, &name);
        let projects: Vec<PathBuf> =
            (0..count).map(|number| self.project(&format!("{name}/project-{number}"))).collect();
        let watch = Watch::default();
        let mut drivers = Vec::new();
        let (looks, commands, window) = std::thread::scope(|scope| {
            let begun = Instant::now();
            drivers.extend(projects.iter().map(|project| lot.start(project)));
            let looks = scope.spawn(|| lot.look(&watch));
            let began = lot.wait_for_starts(&mut drivers, begun);
            println!("  started {began} of {count}, all within {:.1} s", begun.elapsed().as_secs_f64());
            let commands = scope.spawn(|| lot.commands(&watch));
            let before = Usage::of(&drivers, &self.segno);
            let from = now();
            match trouble {
                Trouble::None => std::thread::sleep(window),
                Trouble::Kills => lot.kill_some(&mut drivers, window),
            }
            let after = Usage::of(&drivers, &self.segno);
            let to = now();
            if trouble == Trouble::None {
                after.tell(&before, began, Duration::from_micros(to - from));
            }
            watch.ended.store(true, Ordering::Relaxed);
            let commands = commands.join().unwrap_or_else(|_| fail("no commands"));
            lot.stop();
            let ending = Instant::now();
            let failed = lot.wait_for_ends(&mut drivers);
            println!("  ended within {:.1} s; runs that failed: {failed}", ending.elapsed().as_secs_f64());
            // What the agents of killed drivers printed is taken in by whoever comes next.
            lot.settle(count);
            watch.gone.store(true, Ordering::Relaxed);
            let looks = looks.join().unwrap_or_else(|_| fail("nobody looked"));
            lot.tell_rate(&looks, from, to);
            (looks, commands, (from, to))
        });
        lot.check(&looks, &commands, window, trouble);
    }

    /// Everybody's checkpoints are in one place then.
    fn in_one_project(&self) {
        let (count, files) = IN_ONE;
        println!("\n{count} agents in one project of {files} files");
        let project = self.project("many-in-one/project");
        for number in 0..files {
            let directory = project.join(format!("module-{}", number / 50));
            let written = std::fs::create_dir_all(&directory).and_then(|()| {
                std::fs::write(directory.join(format!("file-{number}.rs")), format!("// {number}\n"))
            });
            written.unwrap_or_else(|why| fail(&why.to_string()));
        }
        let lot = Lot::new(self, "many-in-one");
        let begun = Instant::now();
        let mut drivers: Vec<Driver> = (0..count).map(|_| lot.start(&project)).collect();
        let began = lot.wait_for_starts(&mut drivers, begun);
        let taken = begun.elapsed().as_secs_f64();
        let mut starts = Times::default();
        drivers.iter().filter_map(|driver| driver.began).for_each(|taken| starts.push(taken));
        println!("  started {began} of {count}, all within {taken:.1} s: {}", starts.line());
        lot.stop();
        let ending = Instant::now();
        let failed = lot.wait_for_ends(&mut drivers);
        println!("  ended within {:.1} s; runs that failed: {failed}", ending.elapsed().as_secs_f64());
    }
}

/// Agents in one store.
struct Lot<'a> {
    bench: &'a Bench,
    home: PathBuf,
    /// What the agents note, and the file that ends them.
    notes: PathBuf,
    program: PathBuf,
}

/// A process that drives an agent.
struct Driver {
    child: Child,
    killed: bool,
    /// How long it took until its agent spoke.
    began: Option<Duration>,
    code: Option<Option<i32>>,
}

/// How long those who look go on.
#[derive(Default)]
struct Watch {
    /// The measurement is over.
    ended: AtomicBool,
    /// Nobody writes any more.
    gone: AtomicBool,
}

/// What was durable, and when that was seen.
#[derive(Default)]
struct Looks {
    /// The newest event of each session by its project, at each moment at which it was another one.
    heads: BTreeMap<String, Vec<(u64, u64)>>,
    /// The longest log.
    log: u64,
}

/// What was recorded by commands.
#[derive(Default)]
struct Commands {
    times: Times,
    acknowledged: Vec<u64>,
    failed: u64,
}

impl<'a> Lot<'a> {
    fn new(bench: &'a Bench, name: &str) -> Self {
        let home = bench.home.join(name).join("home");
        let notes = bench.home.join(name).join("notes");
        for directory in [&home, &notes] {
            std::fs::create_dir_all(directory).unwrap_or_else(|why| fail(&why.to_string()));
        }
        let program = bench.home.join(name).join("agent");
        let own = std::env::current_exe().unwrap_or_else(|why| fail(&why.to_string()));
        let script = format!(
            "#!/bin/sh\nexec '{}' {PLAYS} '{}' '{}' \"$@\"\n",
            own.display(),
            notes.display(),
            bench.segno.display()
        );
        std::fs::write(&program, script).unwrap_or_else(|why| fail(&why.to_string()));
        crate::agent::make_executable(&program);
        let lot = Self { bench, home, notes, program };
        let project = bench.project(&format!("{name}/bystander"));
        crate::time(&mut lot.segno(&project, &["new", "bystander"]));
        lot
    }

    fn segno(&self, project: &Path, arguments: &[&str]) -> Command {
        let mut command = self.bench.segno(project, arguments);
        command.env("HOME", &self.home);
        command
    }

    fn store(&self) -> PathBuf {
        self.home.join(".local/share/segno/segno.db")
    }

    fn start(&self, project: &Path) -> Driver {
        let mut command = self.segno(project, &["--quiet", "run", "--prompt", "x"]);
        let told = std::fs::File::options().create(true).append(true).open(self.home.join("told"));
        let told = told.unwrap_or_else(|why| fail(&why.to_string()));
        command.env("SEGNO_AGENTS", format!("[claude]\nprogram = \"{}\"", self.program.display()));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(told);
        let child = command.spawn().unwrap_or_else(|why| fail(&why.to_string()));
        Driver { child, killed: false, began: None, code: None }
    }

    /// How many agents spoke, once all of them have or ended.
    fn wait_for_starts(&self, drivers: &mut [Driver], begun: Instant) -> usize {
        loop {
            let mut open = false;
            for driver in drivers.iter_mut().filter(|driver| driver.began.is_none()) {
                // Whoever notes it is the agent's process, whose parent is the driver.
                if self.notes.join(format!("began-{}", driver.child.id())).exists() {
                    driver.began = Some(begun.elapsed());
                } else {
                    open |= !driver.has_ended();
                }
            }
            if !open || begun.elapsed() > START {
                return drivers.iter().filter(|driver| driver.began.is_some()).count();
            }
            std::thread::sleep(LOOK);
        }
    }

    fn kill_some(&self, drivers: &mut [Driver], window: Duration) {
        let mut dice: u64 = 0x9E37_79B9_7F4A_7C15;
        for _ in 0..KILLS {
            dice ^= dice << 13;
            dice ^= dice >> 7;
            dice ^= dice << 17;
            let alive: Vec<usize> = (0..drivers.len()).filter(|index| !drivers[*index].killed).collect();
            let Some(index) = alive.get(dice as usize % alive.len().max(1)) else { return };
            let driver = &mut drivers[*index];
            let _ = driver.child.kill();
            driver.killed = true;
            std::thread::sleep(window / KILLS as u32);
        }
    }

    fn stop(&self) {
        std::fs::write(self.notes.join("stop"), "").unwrap_or_else(|why| fail(&why.to_string()));
    }

    /// How many of those that were not killed ended badly.
    fn wait_for_ends(&self, drivers: &mut [Driver]) -> usize {
        let begun = Instant::now();
        while drivers.iter_mut().any(|driver| !driver.has_ended()) {
            if begun.elapsed() > START {
                drivers.iter_mut().for_each(|driver| {
                    let _ = driver.child.kill();
                });
                return fail("the runs do not end");
            }
            std::thread::sleep(LOOK);
        }
        drivers.iter().filter(|driver| !driver.killed && driver.code != Some(Some(0))).count()
    }

    /// Waits for the agents of killed drivers, and takes in what they said.
    fn settle(&self, count: usize) {
        let begun = Instant::now();
        let ended = || {
            let notes = std::fs::read_dir(&self.notes).into_iter().flatten().flatten();
            notes.filter(|note| note.file_name().to_string_lossy().starts_with("ended-")).count()
        };
        while ended() < count && begun.elapsed() < START {
            std::thread::sleep(LOOK);
        }
        let project = self.bench.project("settles");
        for arguments in [&["ls", "--json"][..], &["cleanup", "--days", "1000"]] {
            let _ = self.segno(&project, arguments).stdout(Stdio::null()).stderr(Stdio::null()).status();
        }
        let took = begun.elapsed();
        println!("  taken in what was left within {:.1} s", took.as_secs_f64());
    }

    /// Records something by a command of its own, again and again.
    fn commands(&self, watch: &Watch) -> Commands {
        let project = self.home.with_file_name("bystander");
        let mut commands = Commands::default();
        for number in 0.. {
            if watch.ended.load(Ordering::Relaxed) {
                break;
            }
            let mut command = self.segno(&project, &["--quiet", "note", &format!("note {number}")]);
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            let started = Instant::now();
            let status = command.status().unwrap_or_else(|why| fail(&why.to_string()));
            let taken = started.elapsed();
            commands.times.push(taken);
            if status.success() {
                commands.acknowledged.push(number);
            } else {
                commands.failed += 1;
            }
            std::thread::sleep(COMMAND_EVERY.saturating_sub(taken));
        }
        commands
    }

    /// Looks at what is durable until nobody writes any more.
    fn look(&self, watch: &Watch) -> Looks {
        let store = self.store();
        let log = PathBuf::from(format!("{}-wal", store.display()));
        let connection = rusqlite::Connection::open(&store).unwrap_or_else(|why| fail(&why.to_string()));
        let ask = connection.prepare("SELECT project, head_seq FROM sessions");
        let mut ask = ask.unwrap_or_else(|why| fail(&why.to_string()));
        let mut looks = Looks::default();
        while !watch.gone.load(Ordering::Relaxed) {
            let rows = ask.query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, u64>(1)?)));
            let rows: rusqlite::Result<Vec<_>> = rows.and_then(Iterator::collect);
            let at = now();
            for (project, head) in rows.unwrap_or_default() {
                let seen = looks.heads.entry(project).or_default();
                if seen.last().is_none_or(|(_, before)| *before != head) {
                    seen.push((at, head));
                }
            }
            looks.log = looks.log.max(std::fs::metadata(&log).map_or(0, |meta| meta.len()));
            std::thread::sleep(LOOK);
        }
        looks
    }

    fn tell_rate(&self, looks: &Looks, from: u64, to: u64) {
        let at = |seen: &[(u64, u64)], moment: u64| {
            seen.iter().take_while(|(at, _)| *at <= moment).last().map_or(0, |(_, head)| *head)
        };
        let events: u64 = looks.heads.values().map(|seen| at(seen, to) - at(seen, from)).sum();
        let commits: usize = looks
            .heads
            .values()
            .map(|seen| seen.iter().filter(|(at, _)| (from..=to).contains(at)).count())
            .sum();
        let seconds = (to - from) as f64 / 1e6;
        println!(
            "  durable: {:.0} events/s, seen in {:.0} steps/s; log at most {:.1} MB",
            events as f64 / seconds,
            commits as f64 / seconds,
            looks.log as f64 / 1e6
        );
    }

    /// Holds the journal against what was said and acknowledged.
    fn check(&self, looks: &Looks, commands: &Commands, window: (u64, u64), trouble: Trouble) {
        let store = ok(segno_benches::open(&self.store()));
        let (mut wrong, mut late, mut said_in_all) = (Vec::new(), Times::default(), 0);
        let mut kept = std::collections::BTreeSet::new();
        let mut calls = std::collections::BTreeSet::new();
        for session in ok(store.list(&Filter::default())).sessions {
            let mut said = 0;
            let mut after = 0;
            let seen = looks.heads.get(&session.project).map_or(&[][..], Vec::as_slice);
            loop {
                let rows = ok(store.events(session.session_id, after, 2_000));
                if rows.is_empty() {
                    break;
                }
                for row in rows {
                    after += 1;
                    let EventRow::Whole(stored) = row else {
                        wrong.push(format!("{}: event {after} is damaged", session.session_id));
                        continue;
                    };
                    match stored.event() {
                        Ok(Event::Said(line)) => {
                            let text = line.text.excerpt();
                            let mut numbers = text.split(' ').filter_map(|word| word.parse::<u64>().ok());
                            let (Some(number), Some(at)) = (numbers.next(), numbers.next()) else { continue };
                            if number != said + 1 {
                                wrong.push(format!("{}: line {number} after {said}", session.session_id));
                            }
                            said = number;
                            if let Some((durable, _)) = seen.iter().find(|(_, head)| *head >= stored.seq) {
                                late.push(Duration::from_micros(durable.saturating_sub(at)));
                            }
                        }
                        Ok(Event::ToolStarted(started)) => {
                            calls.insert(started.call);
                        }
                        Ok(Event::HistoryNoted(noted)) => {
                            kept.extend(noted.details.map(|text| text.excerpt().to_owned()));
                        }
                        _ => {}
                    }
                }
            }
            if let Some((_, head)) = seen.last()
                && after < *head
            {
                wrong.push(format!("{}: had event {head}, has {after}", session.session_id));
            }
            let printed = self.printed(&session.session_id.to_string());
            if said < printed {
                wrong.push(format!("{}: printed {printed} lines, {said} recorded", session.session_id));
            }
            said_in_all += said;
        }
        for number in &commands.acknowledged {
            if !kept.contains(&format!("note {number}")) {
                wrong.push(format!("note {number} was acknowledged and is gone"));
            }
        }
        let (hooks, hooked, refused) = self.hooks(window);
        for call in &hooked {
            if !calls.contains(call) {
                wrong.push(format!("call {call} was acknowledged and is gone"));
            }
        }
        if trouble == Trouble::None {
            println!("  from printed to durable   {}", late.line());
        }
        println!("  segno hook ({refused} failed)     {}", hooks[0].line());
        println!("  while they start and end  {}", hooks[1].line());
        println!("  segno note ({} failed)     {}", commands.failed, commands.times.line());
        let doctor = self.segno(&self.home, &["doctor", "--deep"]).output();
        let well = doctor.is_ok_and(|output| output.status.success());
        let told = std::fs::read(self.home.join("told")).unwrap_or_default();
        let told: Vec<String> = told.lines().map_while(Result::ok).collect();
        println!(
            "  {said_in_all} lines recorded, {} acknowledged by commands and hooks; lost or out of order: {}; doctor --deep: {}; \
             lines of drivers on standard error: {}",
            commands.acknowledged.len() + hooked.len(),
            wrong.len(),
            if well { "well" } else { "NOT WELL" },
            told.len(),
        );
        wrong.iter().take(10).for_each(|what| println!("    {what}"));
        let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
        for line in told {
            let words: Vec<&str> =
                line.split(' ').filter(|word| !word.contains(|c: char| c.is_ascii_digit())).collect();
            *kinds.entry(words.join(" ")).or_default() += 1;
        }
        kinds.iter().take(8).for_each(|(what, times)| println!("    {times} times: {what}"));
    }

    /// How many lines the agents of a session printed.
    fn printed(&self, session: &str) -> u64 {
        let noted = std::fs::read_to_string(self.notes.join(format!("ended-{session}")));
        noted.ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0)
    }

    /// How long hooks took that began between two moments, how long the others, which agents called while others started
    /// or ended; the calls that they were told are recorded, and how many of them failed.
    fn hooks(&self, (from, to): (u64, u64)) -> ([Times; 2], Vec<String>, usize) {
        let (mut times, mut calls, mut failed) = (<[Times; 2]>::default(), Vec::new(), 0);
        for note in std::fs::read_dir(&self.notes).into_iter().flatten().flatten() {
            if !note.file_name().to_string_lossy().starts_with("hooks-") {
                continue;
            }
            for line in std::fs::read_to_string(note.path()).unwrap_or_default().lines() {
                let mut words = line.split(' ');
                let mut word = || words.next();
                let (Some(micros), Some(call), Some(code), Some(at)) = (word(), word(), word(), word())
                else {
                    continue;
                };
                let is_inside = at.parse().is_ok_and(|at: u64| (from..to).contains(&at));
                times[usize::from(!is_inside)].push(Duration::from_micros(micros.parse().unwrap_or(0)));
                if code == "0" {
                    calls.push(call.to_owned());
                } else {
                    failed += 1;
                }
            }
        }
        (times, calls, failed)
    }
}

impl Driver {
    fn has_ended(&mut self) -> bool {
        if self.code.is_none() {
            self.code = self.child.try_wait().ok().flatten().map(|status| status.code());
        }
        self.code.is_some()
    }
}

/// What processes use.
struct Usage {
    /// Processor time of the drivers, and of the processes that keep what agents print.
    drivers: Duration,
    beside: Duration,
    /// What is a driver's own in memory, and what it has mapped, in kilobytes, each the median.
    own: u64,
    mapped: u64,
    /// Processor time of the whole machine.
    machine: Duration,
}

impl Usage {
    fn of(drivers: &[Driver], program: &Path) -> Self {
        let program = std::fs::canonicalize(program).unwrap_or_else(|why| fail(&why.to_string()));
        let pids: Vec<u32> = drivers.iter().map(|driver| driver.child.id()).collect();
        let mut usage = Self {
            drivers: Duration::ZERO,
            beside: Duration::ZERO,
            own: 0,
            mapped: 0,
            machine: machine_time(),
        };
        let (mut own, mut mapped) = (Vec::new(), Vec::new());
        for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
            let Ok(pid) = entry.file_name().to_string_lossy().parse::<u32>() else { continue };
            if pids.contains(&pid) {
                usage.drivers += processor_time(&entry.path());
                own.extend(kilobytes(pid, "RssAnon:"));
                mapped.extend(kilobytes(pid, "VmRSS:"));
            } else if std::fs::read_link(entry.path().join("exe")).is_ok_and(|exe| exe == program) {
                let parent = kilobytes(pid, "PPid:").and_then(|parent| u32::try_from(parent).ok());
                if parent.is_some_and(|parent| pids.contains(&parent)) {
                    usage.beside += processor_time(&entry.path());
                }
            }
        }
        let median = |mut all: Vec<u64>| {
            all.sort_unstable();
            all.get(all.len() / 2).copied().unwrap_or(0)
        };
        (usage.own, usage.mapped) = (median(own), median(mapped));
        usage
    }

    fn tell(&self, before: &Self, count: usize, window: Duration) {
        let share = |after: Duration, before: Duration| {
            after.saturating_sub(before).as_secs_f64() / window.as_secs_f64() * 100.0
        };
        let cores = std::thread::available_parallelism().map_or(1, usize::from) as f64;
        println!(
            "  processor: drivers {:.2} % each, their captures {:.2} % each; all {cores} cores {:.0} % busy",
            share(self.drivers, before.drivers) / count.max(1) as f64,
            share(self.beside, before.beside) / count.max(1) as f64,
            share(self.machine, before.machine) / cores,
        );
        println!(
            "  memory of a driver: {:.1} MB its own, {:.1} MB with the program",
            self.own as f64 / 1024.0,
            self.mapped as f64 / 1024.0
        );
    }
}

/// Processor time that a process has used.
fn processor_time(process: &Path) -> Duration {
    let stat = std::fs::read_to_string(process.join("stat")).unwrap_or_default();
    let fields: Vec<&str> =
        stat.rsplit_once(')').map_or(Vec::new(), |(_, rest)| rest.split_whitespace().collect());
    let ticks = |index: usize| fields.get(index).and_then(|text| text.parse::<u32>().ok()).unwrap_or(0);
    TICK * (ticks(11) + ticks(12))
}

/// Processor time that everything on this machine has used.
fn machine_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    let fields = stat.lines().next().unwrap_or_default().split_whitespace().skip(1);
    // User, nice, system; idle and waiting left out; interrupts.
    let ticks: u32 = fields
        .take(7)
        .enumerate()
        .filter(|(index, _)| !matches!(index, 3 | 4))
        .filter_map(|(_, text)| text.parse::<u32>().ok())
        .sum();
    TICK * ticks
}

/// A line of a process's status.
fn kilobytes(pid: u32, name: &str) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

fn now() -> u64 {
    let since = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(0)
}

/// Plays Claude Code: says which line this is and when it said so, again and again, and makes a call now and then that its
/// hooks tell of, until the file `stop` is there. Its arguments: where it notes things, the program whose hook it calls,
/// and what an agent is called with.
pub(crate) fn play(mut arguments: impl Iterator<Item = String>) {
    let (Some(notes), Some(segno)) = (arguments.next(), arguments.next()) else { return };
    let (notes, arguments) = (PathBuf::from(notes), arguments.collect::<Vec<_>>());
    if arguments.iter().any(|argument| argument == "--version") {
        return println!("2.1.325 (Claude Code)");
    }
    let named = |pair: &&[String]| matches!(pair[0].as_str(), "--session-id" | "--resume");
    let id = arguments.windows(2).find(named).map_or("none", |pair| pair[1].as_str());
    let session = std::env::var("SEGNO_SESSION").unwrap_or_default();
    let note = |name: &str, text: &str| {
        let file = std::fs::File::options().create(true).append(true).open(notes.join(name));
        file.and_then(|mut file| file.write_all(text.as_bytes()))
            .unwrap_or_else(|why| fail(&why.to_string()));
    };
    let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
    let mut out = std::io::stdout();
    let mut print = |line: serde_json::Value| {
        let written = out.write_all(format!("{line}\n").as_bytes()).and_then(|()| out.flush());
        written.unwrap_or_else(|why| fail(&why.to_string()));
    };
    print(
        serde_json::json!({ "type": "system", "subtype": "init", "session_id": id, "model": "bench", "tools": ["Bash"] }),
    );
    note(&format!("began-{}", std::os::unix::process::parent_id()), "");
    let begun = Instant::now();
    let message = |number: u64, content: serde_json::Value| {
        serde_json::json!({
            "type": "assistant", "session_id": id, "uuid": format!("a-{number}"), "parent_tool_use_id": null,
            "message": { "id": format!("msg_{number}"), "model": "bench", "content": [content] },
        })
    };
    let stop = notes.join("stop");
    // Not all make their calls at the same moment.
    let phase = u64::from(std::process::id()) % CALL_EVERY;
    let mut lines = 0;
    for number in 1_u64.. {
        if stop.exists() {
            break;
        }
        let text = format!("line {number} was said at {}", now());
        print(message(number, serde_json::json!({ "type": "text", "text": text })));
        lines = number;
        if number % CALL_EVERY == phase {
            let call = format!("toolu_{session}_{number}");
            let command = serde_json::json!({ "command": "true" });
            for event in ["PreToolUse", "PostToolUse"] {
                let payload = serde_json::json!({
                    "session_id": id, "hook_event_name": event, "tool_name": "Bash", "tool_use_id": call,
                    "tool_input": command, "tool_response": { "stdout": "" },
                });
                let at = now();
                let (taken, code) = hook(&segno, &payload.to_string());
                note(&format!("hooks-{session}"), &format!("{} {call} {code} {at}\n", taken.as_micros()));
                if event == "PreToolUse" {
                    let used = serde_json::json!({ "type": "tool_use", "id": call, "name": "Bash", "input": command });
                    print(message(number, used));
                }
            }
            let result = serde_json::json!({ "type": "tool_result", "tool_use_id": call, "content": "", "is_error": false });
            print(serde_json::json!({
                "type": "user", "session_id": id, "uuid": format!("u-{number}"), "parent_tool_use_id": null,
                "message": { "role": "user", "content": [result] },
            }));
        }
        // It keeps its pace, whatever its hooks took.
        let next = EACH * u32::try_from(number).unwrap_or(u32::MAX);
        std::thread::sleep(next.saturating_sub(begun.elapsed()));
    }
    print(serde_json::json!({
        "type": "result", "subtype": "success", "is_error": false, "session_id": id, "num_turns": 1,
        "duration_ms": 1, "duration_api_ms": 1, "total_cost_usd": 0.01,
        "usage": { "input_tokens": 100, "output_tokens": 10 }, "result": "done",
    }));
    note(&format!("ended-{session}"), &format!("{lines}\n"));
}

/// One hook, as an agent calls it and waits for it.
fn hook(segno: &str, payload: &str) -> (Duration, i32) {
    let started = Instant::now();
    let mut command = Command::new(segno);
    command.args(["hook", "claude"]).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap_or_else(|why| fail(&why.to_string()));
    if let Some(mut stdin) = child.stdin.take() {
        let _ = stdin.write_all(payload.as_bytes());
    }
    let code = child.wait().ok().and_then(|status| status.code()).unwrap_or(-1);
    (started.elapsed(), code)
}
