use std::cell::Cell;
use std::path::PathBuf;

use super::*;

struct Project {
    dir: tempfile::TempDir,
    environment: Vec<(OsString, OsString)>,
}

impl Project {
    fn new() -> Self {
        let environment = vec![
            ("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into()),
            ("SEGNO_SESSION".into(), "s".into()),
            ("SEGNO_RUN".into(), "r".into()),
            ("SEGNO_EPOCH".into(), "1".into()),
            ("SEGNO_HOOK".into(), "h".into()),
            ("SEGNO_STORE".into(), "sqlite:/somewhere".into()),
            ("SEGNO_TREE".into(), "outer".into()),
        ];
        Self { dir: tempfile::tempdir().unwrap(), environment }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn run(&self, command: &str) -> Shown {
        self.run_for(command, Duration::from_secs(60), &|| false)
    }

    fn run_for(&self, command: &str, timeout: Duration, stops: &dyn Fn() -> bool) -> Shown {
        let wanted = EvidenceCommand {
            command,
            directory: self.dir.path(),
            environment: &self.environment,
            timeout,
            resources: Resources::default(),
            adopts: false,
            guard: &[],
        };
        run_evidence(&wanted, &Redactor::new(segno_redact::Options::default()), stops).unwrap()
    }

    /// The pid that a command wrote into a file.
    fn pid(&self, name: &str) -> u32 {
        std::fs::read_to_string(self.path(name)).unwrap().trim().parse().unwrap()
    }
}

#[test]
fn it_runs_in_the_project_and_both_streams_are_heard_in_order() {
    let project = Project::new();
    std::fs::write(project.path("boat"), "wood\n").unwrap();
    let shown = project.run("cat boat; echo trouble >&2; echo after; exit 3");
    assert_eq!((shown.exit, shown.signal, shown.cut), (Some(3), None, None));
    assert_eq!(shown.output, "wood\ntrouble\nafter\n");
    assert!(!shown.passes());
    assert_eq!(shown.words(), "exit 3");
    assert!(project.run("true").passes());
    assert_eq!(project.run("kill -9 $$").words(), "ended by signal 9");
}

#[test]
fn it_is_part_of_no_run() {
    let project = Project::new();
    let shown = project.run("env | grep ^SEGNO_ | sort");
    let names: Vec<&str> = shown.output.lines().map(|line| line.split('=').next().unwrap()).collect();
    assert_eq!(names, ["SEGNO_STORE", "SEGNO_TREE"]);
    assert!(shown.output.contains("SEGNO_TREE=outer:"), "the runs around it can still find it");
}

#[test]
fn what_it_leaves_behind_is_ended() {
    let project = Project::new();
    let shown = project.run("setsid sleep 300 >/dev/null 2>&1 & echo $! > left; wait_for() { :; }; exit 0");
    assert_eq!(shown.exit, Some(0));
    assert_eq!(shown.swept, 1);
    assert_eq!(tree::start_of(project.pid("left")), None);
}

#[test]
fn one_that_holds_the_pipe_does_not_hold_us() {
    let project = Project::new();
    let shown = project.run("sleep 300 & echo done");
    assert_eq!((shown.exit, shown.output.as_str(), shown.swept), (Some(0), "done\n", 1));
}

#[test]
fn its_time_is_limited() {
    let project = Project::new();
    let shown = project.run_for(
        "trap '' TERM; echo begun; echo $$ > pid; while :; do sleep 1; done",
        Duration::from_millis(400),
        &|| false,
    );
    assert_eq!((shown.exit, shown.signal, shown.cut), (None, None, Some(Cut::TimedOut)));
    assert_eq!(shown.words(), "took too long");
    assert_eq!(tree::start_of(project.pid("pid")), None);
    assert!(!shown.passes());
}

#[test]
fn who_wants_it_to_stop_is_heard() {
    let project = Project::new();
    let (asked, begun) = (Cell::new(0), project.path("pid"));
    let stops = || {
        asked.set(asked.get() + 1);
        begun.exists()
    };
    let shown = project.run_for(
        "trap 'echo bye; exit 0' TERM; echo $$ > new && mv new pid; while :; do :; done",
        Duration::from_secs(60),
        &stops,
    );
    assert_eq!((shown.cut, shown.output.as_str()), (Some(Cut::Stopped), "bye\n"));
    assert!(!shown.passes(), "that it ended well after it was told to end says nothing");
    assert!(asked.get() >= 1);
}

#[test]
fn a_flood_is_cut_in_the_middle_by_whole_lines() {
    let project = Project::new();
    let shown = project.run("echo first; seq 1 600000; echo last");
    assert!(shown.output.starts_with("first\n1\n2\n"));
    assert!(shown.output.ends_with("599999\n600000\nlast\n"));
    assert!(shown.output.len() <= HEAD + TAIL + 100, "{}", shown.output.len());
    let whole = "first\nlast\n".len() + (1..=600_000).map(|n: u32| n.to_string().len() + 1).sum::<usize>();
    let note = format!("… {} bytes are left out here …\n", shown.left_out);
    let kept = shown.output.len() - note.len();
    assert!(shown.output.contains(&note));
    assert_eq!(kept as u64 + shown.left_out, whole as u64);
    let numbers: Vec<u32> = shown.output.lines().filter_map(|line| line.parse().ok()).collect();
    assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]), "no line is cut in two");
}

#[test]
fn secrets_are_taken_out_also_where_it_is_cut() {
    let project = Project::new();
    let secret = format!("ghp_{}", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8");
    assert!(!project.run(&format!("echo token {secret}")).output.contains(&secret));
    // It stands over the place where the beginning ends.
    let before = HEAD - 10;
    let shown = project.run(&format!(
        "head -c {before} /dev/zero | tr '\\0' x; echo ' {secret}'; head -c 2000000 /dev/zero | tr '\\0' y"
    ));
    assert!(shown.left_out > 0);
    assert!(!shown.output.contains("ghp_"), "not even the beginning of it");
}

#[test]
fn a_directory_that_is_not_there_is_an_error() {
    let project = Project::new();
    let wanted = EvidenceCommand {
        command: "true",
        directory: Path::new("/nowhere/at/all"),
        environment: &[],
        timeout: Duration::from_secs(1),
        resources: Resources::default(),
        adopts: false,
        guard: &[],
    };
    let redactor = Redactor::new(segno_redact::Options::default());
    let why = run_evidence(&wanted, &redactor, &|| false).unwrap_err();
    assert_eq!(why.code(), "not_launched");
    drop(project);
}
