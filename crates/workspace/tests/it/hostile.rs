//! A tree full of traps: everything comes back, nothing of it runs, the user's repository stays as it is.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;

use segno_workspace::Reason;
use segno_workspace::Selection;
use segno_workspace::Side;
use std::time::Duration;

use crate::support::*;

const INSIDE: &str = "SEGNO_TEST_HOSTILE_HOME";

/// Runs the rest again in a process whose environment is as hostile as the tree.
#[test]
fn a_hostile_tree_comes_back_and_nothing_of_it_runs() {
    let home = Home::new();
    let trap = home.base().join("trap");
    std::fs::create_dir(home.base().join("sprung")).unwrap();
    let script = format!(
        "#!/bin/sh\n: > '{}/'\"sprung-$$-$(basename \"$0\")\"\ncat 2>/dev/null\n",
        home.base().join("sprung").display()
    );
    std::fs::write(&trap, script).unwrap();
    std::fs::set_permissions(&trap, std::fs::Permissions::from_mode(0o755)).unwrap();
    std::fs::create_dir(home.base().join("home")).unwrap();
    std::fs::write(home.base().join("home/.gitconfig"), traps(&trap)).unwrap();
    make_tree(&home, &trap);
    let before = user_state(&home);
    let trap = trap.to_str().unwrap();
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "hostile::inside", "--nocapture", "--ignored"])
        .env(INSIDE, home.base())
        .env("HOME", home.base().join("home"))
        .env("XDG_CONFIG_HOME", home.base().join("home"))
        .env("GIT_DIR", home.path(".git"))
        .env("GIT_WORK_TREE", home.path(""))
        .env("GIT_INDEX_FILE", home.path(".git/index"))
        .env("GIT_EXTERNAL_DIFF", trap)
        .env("GIT_SSH_COMMAND", trap)
        .env("GIT_PAGER", trap)
        .env("GIT_EDITOR", trap)
        .env("GIT_ASKPASS", trap)
        .env("GIT_CONFIG_COUNT", "1")
        .env("GIT_CONFIG_KEY_0", "core.fsmonitor")
        .env("GIT_CONFIG_VALUE_0", trap)
        .env("GIT_TRACE", home.base().join("sprung/trace"))
        .env("GIT_TEMPLATE_DIR", home.base())
        .env("GIT_EXEC_PATH", home.base())
        .output()
        .unwrap();
    let said =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
    assert_eq!(sprung(&home), Vec::<String>::new(), "nothing planted may run");
    assert_same(&before, &user_state(&home), "the user's repository");

    // The traps are real: plain git springs them.
    for arguments in [&["status"][..], &["diff"], &["add", "filtered.evil"]] {
        let _ = Command::new("git").args(arguments).current_dir(home.path("")).output();
    }
    assert!(!sprung(&home).is_empty(), "the traps do not work");
}

#[test]
#[ignore = "started by the test above"]
fn inside() {
    let Some(base) = std::env::var_os(INSIDE) else { return };
    let home = Home::at(Path::new(&base));
    let before = home.look();
    let exceptions: Vec<PathBuf> = ["pipe", "dir/socket", "huge.bin"].iter().map(PathBuf::from).collect();
    let entries = before.keys().filter(|path| !exceptions.contains(path)).count();
    assert!(entries >= 60, "{entries}");

    let mut options = home.options();
    options.largest_file = 1 << 20;
    let workspace = segno_workspace::Workspace::open(&options).unwrap();
    let taken = workspace.snapshot("one").unwrap();
    let mut left: Vec<_> =
        taken.exceptions.iter().map(|left| (left.path.to_str().unwrap(), left.reason)).collect();
    // Root can read what nobody may read.
    let unreadable = std::fs::read(home.path("forbidden")).is_err();
    left.retain(|(path, _)| *path != "forbidden");
    assert_eq!(
        left,
        [("dir/socket", Reason::Socket), ("huge.bin", Reason::TooLarge), ("pipe", Reason::Fifo)]
    );
    assert_eq!(taken.exceptions.len() - left.len(), usize::from(unreadable));
    workspace.verify(&taken.snapshot).unwrap();

    change_everything(&home, &exceptions);
    assert!(home.look().iter().filter(|(path, print)| before.get(*path) == Some(print)).count() < 6);
    workspace.diff(&taken.snapshot, Side::Present, true).unwrap();
    workspace.diff_text(&taken.snapshot, Side::Present, &Selection::All).unwrap();
    let safety = workspace.safety_snapshot("safety").unwrap().snapshot;
    let plan = workspace.plan(&taken.snapshot, &Selection::All, &safety).unwrap();
    assert_eq!(plan.kept, []);
    let applied = workspace.apply(&plan).unwrap();
    let kept: Vec<_> = applied.kept.iter().map(|kept| kept.path.to_str().unwrap()).collect();
    assert_eq!(kept, Vec::<&str>::new());
    assert_same(&before, &home.look(), "restored");
    let again = workspace.snapshot("again").unwrap().snapshot;
    assert_eq!(again.tree, taken.snapshot.tree);

    let head = workspace.head().unwrap().unwrap();
    workspace.is_dirty(&head).unwrap();
    workspace.export(&taken.snapshot, &home.base().join("bundle")).unwrap();
    workspace.drop_snapshot("one").unwrap();
    workspace.collect_garbage(Duration::ZERO).unwrap();
    workspace.import(&home.base().join("bundle"), "imported").unwrap();
    assert_eq!(workspace.list().unwrap().len(), 3);
}

/// Configuration that names the trap wherever git would run something.
fn traps(trap: &Path) -> String {
    let trap = trap.display();
    format!(
        "[core]\n\tfsmonitor = {trap}\n\tsshCommand = {trap}\n\tpager = {trap}\n\teditor = {trap}\n\taskPass = {trap}\n\
         \tgitProxy = {trap}\n\talternateRefsCommand = {trap}\n\tautocrlf = true\n\thooksPath = hooks\n\
         [filter \"evil\"]\n\tclean = {trap}\n\tsmudge = {trap}\n\trequired = true\n\
         [filter \"evil2\"]\n\tprocess = {trap}\n[filter \"lfs\"]\n\tclean = {trap}\n\tsmudge = {trap}\n\
         [diff]\n\texternal = {trap}\n[diff \"evil\"]\n\ttextconv = {trap}\n\tcommand = {trap}\n\
         [merge \"evil\"]\n\tdriver = {trap}\n[gpg]\n\tprogram = {trap}\n[commit]\n\tgpgSign = true\n\
         [credential]\n\thelper = {trap}\n[uploadpack]\n\tpackObjectsHook = {trap}\n[gc]\n\tauto = 1\n\
         [pager]\n\tdiff = {trap}\n\tlog = {trap}\n[alias]\n\tcat-file = !{trap}\n"
    )
}

fn sprung(home: &Home) -> Vec<String> {
    let found = std::fs::read_dir(home.base().join("sprung")).unwrap();
    found.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect()
}

/// Every byte of the user's repository: HEAD, index, stash, branches, logs, objects.
fn user_state(home: &Home) -> BTreeMap<PathBuf, Print> {
    let mut all = BTreeMap::new();
    let mut directories = vec![home.path(".git")];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                directories.push(path);
            } else {
                let content = std::fs::read(&path).unwrap();
                all.insert(path, Print { kind: "file", mode: 0, content });
            }
        }
    }
    all
}

fn make_tree(home: &Home, trap: &Path) {
    home.git(&["init", "-q", "-b", "main"]);
    let attributes = "*.evil filter=evil diff=evil merge=evil\n*.proc filter=evil2\n*.lfs filter=lfs\n* text=auto\n\
                      *.crlf text eol=crlf\n*.ident ident\n*.utf16 text working-tree-encoding=UTF-16\n";
    // Committed before the traps are set.
    home.write("tracked.txt", "tracked\n");
    home.write(".gitignore", "*.log\nbuild/\n!keep.log\n");
    home.write("forced.log", "tracked though ignored\n");
    home.git(&["add", "-f", "."]);
    home.git(&["commit", "-q", "-m", "one"]);
    home.write("tracked.txt", "stashed\n");
    home.git(&["stash", "-q"]);
    home.git(&["branch", "other"]);
    std::fs::create_dir(home.base().join("sub")).unwrap();
    git_in(&home.base().join("sub"), &["init", "-q"]);
    git_in(&home.base().join("sub"), &["commit", "-q", "--allow-empty", "-m", "sub"]);
    home.git(&["submodule", "add", "-q", "../sub", "module"]);
    home.write("module/inside.txt", "in a submodule\n");
    home.git(&["init", "-q", "nested-fresh"]);
    home.write("nested-fresh/file", "in a repository without commits\n");
    home.git(&["init", "-q", "nested-old"]);
    home.write("nested-old/.gitignore", "ignored-here\n");
    home.write("nested-old/file", "committed\n");
    git_in(&home.path("nested-old"), &["add", "."]);
    git_in(&home.path("nested-old"), &["commit", "-q", "-m", "nested"]);
    home.write("nested-old/file", "and changed\n");
    home.git(&["init", "-q", "nested-hollow"]);

    home.write(".gitattributes", attributes);
    home.write("filtered.evil", "bytes that a filter would eat\n");
    home.write("streamed.proc", "more of them\n");
    home.write("pointer.lfs", "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n");
    home.write("crlf.txt", "one\r\ntwo\r\n");
    home.write("mixed.crlf", "one\ntwo\r\nthree");
    home.write("version.ident", "$Id$ and $Id: 1234 $\n");
    home.write("wide.utf16", b"\xff\xfeh\0i\0\n\0");
    home.write("not-wide.utf16", "plain\n");
    home.write("zeros", [0; 300]);
    home.write("empty", "");
    home.write("no-newline", "end");
    home.write(".segno/config.toml", "ours");
    std::fs::remove_dir_all(home.path(".segno")).unwrap();

    let odd: &[&[u8]] = &[
        b"new\nline",
        b"tab\there",
        b" leading",
        b"trailing ",
        b"quote\"'",
        b"back\\slash",
        b"\xff\xfe not utf-8",
        b"star*?[a]",
        b"-dash",
        b"--help",
        b"~",
        b":(top)magic",
        b"caf\xc3\xa9",
        b"cafe\xcc\x81",
        b"#hash",
        b"!bang",
        b"HEAD",
        b"git~1",
        b".gitmodules.bak",
        b"con",
        b"a:b",
        b"\x01\x1b[31mred",
        b"$(touch x)",
        b"%s%n",
        b"...",
    ];
    for (number, name) in odd.iter().enumerate() {
        home.write(OsStr::from_bytes(name), format!("odd {number}\n"));
    }
    home.write("n".repeat(255), "a long name\n");
    home.write(format!("{}/{}/deep", "d".repeat(255), "e".repeat(255)), "deep\n");
    home.write("dir.d/x", "sorts oddly\n");
    home.write("dir/x", "beside it\n");
    home.write("dir-d", "and it\n");

    home.write("run.sh", "#!/bin/sh\n");
    for (name, mode) in
        [("run.sh", 0o755), ("crlf.txt", 0o600), ("zeros", 0o444), ("dir-d", 0o4755), ("empty", 0o666)]
    {
        home.chmod(name, mode);
    }
    std::fs::create_dir_all(home.path("hollow/inner/most")).unwrap();
    std::fs::create_dir(home.path("private")).unwrap();
    home.write("private/key", "key\n");
    home.chmod("private/key", 0o400);
    home.chmod("private", 0o700);
    home.chmod("hollow/inner", 0o2755);

    symlink("loop-b", home.path("loop-a")).unwrap();
    symlink("loop-a", home.path("loop-b")).unwrap();
    symlink("self", home.path("self")).unwrap();
    symlink("/etc/passwd", home.path("outside")).unwrap();
    symlink("../../..", home.path("dir/up")).unwrap();
    symlink("dir", home.path("to-dir")).unwrap();
    symlink(OsStr::from_bytes(b"broken \xff\n"), home.path("broken")).unwrap();
    std::fs::hard_link(home.path("crlf.txt"), home.path("hard")).unwrap();

    let pipe = Command::new("mkfifo").arg(home.path("pipe")).status().unwrap();
    assert!(pipe.success());
    drop(std::os::unix::net::UnixListener::bind(home.path("dir/socket")).unwrap());
    home.write("forbidden", "nobody may read this\n");
    home.chmod("forbidden", 0);
    home.write("huge.bin", vec![7; 2 << 20]);
    home.write("keep.log", "not ignored after all\n");

    let config = std::fs::read_to_string(home.path(".git/config")).unwrap();
    std::fs::write(home.path(".git/config"), config + &traps(trap)).unwrap();
    std::fs::write(home.path(".git/info/attributes"), "* filter=evil diff=evil\n").unwrap();
    std::fs::create_dir_all(home.path("hooks")).unwrap();
    for directory in [".git/hooks", "hooks"] {
        for hook in [
            "pre-commit",
            "post-checkout",
            "reference-transaction",
            "post-index-change",
            "fsmonitor-watchman",
            "pre-auto-gc",
        ] {
            std::fs::create_dir_all(home.path(directory)).unwrap();
            let path = home.path(format!("{directory}/{hook}"));
            let _ = std::fs::remove_file(&path);
            std::fs::copy(trap, path).unwrap();
        }
    }
}

/// Nothing stays as it was but what no snapshot holds.
fn change_everything(home: &Home, exceptions: &[PathBuf]) {
    let paths: Vec<(PathBuf, Print)> = home.look().into_iter().collect();
    for (number, (path, print)) in paths.iter().enumerate().rev() {
        if exceptions.contains(path) || path == Path::new("forbidden") {
            continue;
        }
        let whole = home.path(path);
        match (print.kind, number % 3) {
            ("directory", _) => {
                // Those with a repository or an exception in them stay.
                let _ = std::fs::remove_dir(&whole);
                if whole.exists() {
                    home.chmod(path, 0o770);
                }
            }
            (_, 0) => home.remove(path),
            ("link", 1) => {
                home.remove(path);
                home.write(path, "a file now\n");
            }
            (_, 1) => {
                home.remove(path);
                symlink("/etc/hostname", &whole).unwrap();
            }
            ("link", _) => {
                home.remove(path);
                std::fs::create_dir(&whole).unwrap();
                std::fs::write(whole.join("child"), "in a directory now").unwrap();
            }
            _ => {
                let mut content = print.content.clone();
                content.extend_from_slice(b"changed\r\n$Id$\n");
                home.chmod(path, 0o644);
                std::fs::write(&whole, content).unwrap();
                home.chmod(path, 0o711);
            }
        }
    }
    home.write("completely/new/file", "new\n");
    home.write("completely/new/.gitattributes", "* filter=evil\n");
}
