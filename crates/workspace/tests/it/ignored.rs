//! Ignore rules: the repository's, the user's, nested ones, and what is captured all the same.

use segno_workspace::Side;
use segno_workspace::Workspace;

use crate::support::*;

/// Everything that a fresh snapshot holds.
fn captured(home: &Home, set: impl FnOnce(&mut segno_workspace::Options)) -> Vec<String> {
    let empty = Home::new();
    let mut options = home.options();
    options.shadow = empty.base().join("shadow");
    set(&mut options);
    let workspace = Workspace::open(&options).unwrap();
    let mut at_first = options.clone();
    at_first.root = empty.path("");
    let nothing = Workspace::open(&at_first).unwrap().snapshot("nothing").unwrap().snapshot;
    let all = workspace.snapshot("all").unwrap().snapshot;
    let changes = workspace.diff(&nothing, Side::Snapshot(&all), false).unwrap();
    let files = changes.iter().filter(|change| !change.directory);
    files.map(|change| change.path.to_str().unwrap().to_owned()).collect()
}

#[test]
fn rules_are_those_of_git() {
    let home = Home::new();
    home.git(&["init", "-q"]);
    home.write(
        ".gitignore",
        "*.log\n/only-top\nout/\nnode_modules\n!important.log\ndoc/*.txt\n**/cache/\n# comment\n\\#odd\n",
    );
    home.write("deep/.gitignore", "local\n!kept.log\n");
    std::fs::create_dir_all(home.path(".git/info")).unwrap();
    std::fs::write(home.path(".git/info/exclude"), "excluded\n").unwrap();
    std::fs::write(home.base().join("global"), "*.swp\n").unwrap();
    for path in [
        "a.log",
        "important.log",
        "only-top",
        "deep/only-top",
        "out/x",
        "deep/out/y",
        "src/out",
        "node_modules/m/i.js",
        "doc/a.txt",
        "doc/sub/a.txt",
        "x/cache/c",
        "#odd",
        "deep/local",
        "local",
        "deep/kept.log",
        "excluded",
        "deep/excluded",
        "f.swp",
        "normal",
        ".segno/config.toml",
        "deep/.segno/x",
        "out/.gitignore",
    ] {
        home.write(path, path);
    }
    let ours = captured(&home, |options| options.global_excludes = Some(home.base().join("global")));
    let excludes = format!("core.excludesFile={}", home.base().join("global").display());
    let theirs = home.git(&["-c", &excludes, "ls-files", "-co", "--exclude-standard"]);
    let theirs: Vec<&str> = theirs.lines().filter(|path| !path.contains(".segno")).collect();
    assert_eq!(ours, theirs);
    assert!(ours.contains(&"deep/only-top".to_owned()) && !ours.contains(&"a.log".to_owned()));
}

#[test]
fn tracked_files_are_captured_though_a_rule_matches() {
    for version in ["2", "3", "4"] {
        for split in ["false", "true"] {
            let home = Home::new();
            home.git(&["init", "-q"]);
            home.git(&["config", "core.splitIndex", split]);
            home.git(&["config", "index.version", version]);
            home.write(".gitignore", "*.log\nvendor/\n");
            for path in ["a.log", "b.log", "vendor/lib/kept.c", "vendor/lib/other.c", "vendor/more/x", "z"] {
                home.write(path, path);
            }
            home.git(&["add", "-f", ".gitignore", "a.log", "vendor/lib/kept.c", "z"]);
            home.git(&["update-index", "--skip-worktree", "z"]);
            let ours = captured(&home, |_| {});
            assert_eq!(
                ours,
                [".gitignore", "a.log", "vendor/lib/kept.c", "z"],
                "version {version}, split {split}"
            );
        }
    }
}

#[test]
fn nested_repositories_have_rules_and_tracked_files_of_their_own() {
    let home = Home::new();
    home.git(&["init", "-q"]);
    home.git(&["init", "-q", "nested"]);
    home.write(".gitignore", "*.tmp\n");
    home.write("nested/.gitignore", "ignored\nforced\n");
    std::fs::write(home.path("nested/.git/info/exclude"), "excluded\n").unwrap();
    for path in
        ["nested/file", "nested/ignored", "nested/excluded", "nested/forced", "nested/x.tmp", "ignored"]
    {
        home.write(path, path);
    }
    git_in(&home.path("nested"), &["add", "-f", "forced"]);
    assert_eq!(
        captured(&home, |_| {}),
        [".gitignore", "ignored", "nested/.gitignore", "nested/file", "nested/forced"]
    );
}

#[test]
fn a_project_below_the_top_of_its_repository_obeys_the_rules_above() {
    let home = Home::new();
    home.git(&["init", "-q"]);
    home.write(".gitignore", "*.log\n/sub/secret\n");
    for path in ["sub/a.log", "sub/forced.log", "sub/secret", "sub/file", "file"] {
        home.write(path, path);
    }
    home.git(&["add", "-f", "sub/forced.log"]);
    let ours = captured(&home, |options| options.root = home.path("sub"));
    assert_eq!(ours, ["file", "forced.log"]);
}

#[test]
fn a_repository_of_the_home_directory_is_not_around_the_projects_in_it() {
    let home = Home::new();
    git_in(home.base(), &["init", "-q"]);
    std::fs::write(home.base().join(".gitignore"), "*\n").unwrap();
    home.write("file", "1");
    assert_eq!(captured(&home, |_| {}), Vec::<String>::new(), "without knowing which directory is the home");
    assert_eq!(captured(&home, |options| options.home = Some(home.base().to_owned())), ["file"]);
}

#[test]
fn ignored_files_are_captured_when_they_are_listed() {
    let home = Home::new();
    home.write(".gitignore", ".env\nbuild/\nnode_modules/\n");
    for path in
        [".env", "sub/.env", "build/out/report.html", "build/out/x.o", "build/y", "node_modules/m/.env"]
    {
        home.write(path, path);
    }
    let with = |patterns: &[&str]| {
        captured(&home, |options| {
            options.include_ignored = patterns.iter().map(|&pattern| pattern.to_owned()).collect()
        })
    };
    assert_eq!(with(&[]), [".gitignore"]);
    assert_eq!(with(&[".env"]), [".env", ".gitignore", "sub/.env"]);
    assert_eq!(with(&["build/out/*.html"]), [".gitignore", "build/out/report.html"]);
    assert_eq!(with(&["build/"]), [".gitignore", "build/out/report.html", "build/out/x.o", "build/y"]);
}

#[test]
fn a_rule_file_that_is_a_pipe_or_a_link_does_no_harm() {
    let home = Home::new();
    home.git(&["init", "-q"]);
    std::fs::create_dir(home.path("a")).unwrap();
    std::process::Command::new("mkfifo").arg(home.path("a/.gitignore")).status().unwrap();
    std::fs::remove_file(home.path(".git/info/exclude")).unwrap();
    std::process::Command::new("mkfifo").arg(home.path(".git/info/exclude")).status().unwrap();
    std::process::Command::new("mkfifo").arg(home.path(".git/index")).status().unwrap();
    std::fs::write(home.base().join("rules"), "f\n").unwrap();
    std::os::unix::fs::symlink(home.base().join("rules"), home.path(".gitignore")).unwrap();
    home.write("f", "1");
    home.write("a/f", "1");
    assert_eq!(captured(&home, |_| {}), [".gitignore", "a/f", "f"]);
}

#[test]
fn a_repository_above_that_belongs_to_somebody_else_has_no_say() {
    let home = Home::new();
    home.write("sub/a", "1");
    std::fs::write(home.path(".gitignore"), "*\n").unwrap();
    git_in(&home.path(""), &["init", "-q"]);
    let open = |home: &Home| {
        let mut options = home.options();
        options.root = home.path("sub");
        segno_workspace::Workspace::open(&options).unwrap()
    };
    assert_eq!(open(&home).snapshot("ours").unwrap().snapshot.files, 0, "our own has");
    if std::os::unix::fs::lchown(home.path(".git"), Some(4242), None).is_err() {
        return;
    }
    assert_eq!(open(&home).snapshot("theirs").unwrap().snapshot.files, 1);
}
