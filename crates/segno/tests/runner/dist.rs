//! Releases: what is packed, the installer, the packages for npm, and `segno self`.

use std::collections::BTreeSet;
use std::fs;
use std::io::Read as _;
use std::io::Write as _;
use std::net::TcpListener;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;
use std::process::Output;

use crate::common::SEGNO;
use crate::common::TestEnv;

const TARGET: &str = "x86_64-unknown-linux-gnu";
const TIME: &str = "1700000000";

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn program(name: &str) -> Command {
    #[expect(clippy::disallowed_methods, reason = "what releases are made with are programs")]
    Command::new(name)
}

/// Where programs are.
fn path() -> std::ffi::OsString {
    #[expect(clippy::disallowed_methods, reason = "tools of this machine are used")]
    std::env::var_os("PATH").unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A release of a program, in a directory of this world.
fn release(env: &TestEnv, name: &str, packed: &Path) -> PathBuf {
    let out = env.path(name);
    let made = program("python3")
        .arg(repository().join("scripts/dist.py"))
        .args(["--level", "1", "--out"])
        .arg(&out)
        .arg("--speaker")
        .arg(packed)
        .arg(format!("{TARGET}={}", packed.display()))
        .env("SOURCE_DATE_EPOCH", TIME)
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", text(&made.stderr));
    out
}

/// A program of some version that says what releases need, and nothing else.
fn stand_in(env: &TestEnv, version: &str) -> PathBuf {
    let path = env.path(&format!("program-{version}"));
    let script = format!(
        "#!/bin/sh\ncase $1 in --version) echo 'segno {version}' ;; completions) echo \"# $2\" ;;\n\
         --quiet) echo page >\"$3/segno.1\"; echo page >\"$3/segno-of-{version}.1\" ;; esac\n"
    );
    fs::write(&path, script).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

/// The installer of a release, with a home of its own.
fn installer(env: &TestEnv, release: &Path, words: &[&str]) -> Output {
    env.command("/bin/sh").arg(release.join("install.sh")).args(words).env("PATH", path()).output().unwrap()
}

fn from(release: &Path) -> [&str; 2] {
    ["--from", release.to_str().unwrap()]
}

/// Every file of a directory of this world, without what a program of ours keeps.
fn below(env: &TestEnv, name: &str) -> BTreeSet<String> {
    let root = env.path(name);
    env.files()
        .into_keys()
        .filter_map(|path| Some(path.strip_prefix(&root).ok()?.to_string_lossy().into_owned()))
        .collect()
}

/// The program under test without what only debuggers read: it is packed several times.
fn stripped(env: &TestEnv) -> PathBuf {
    let path = env.path("stripped/segno");
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let made = program("strip").arg("-o").arg(&path).arg(SEGNO).output().unwrap();
    assert!(made.status.success(), "{}", text(&made.stderr));
    path
}

#[test]
fn a_release_is_installed_updated_and_removed() {
    let env = TestEnv::new();
    let old = release(&env, "old", &stand_in(&env, "0.9.9"));
    let new = release(&env, "new", &stand_in(&env, "0.10.0"));
    let done = installer(&env, &old, &from(&old));
    assert!(done.status.success(), "{}", text(&done.stderr));
    let expected = |version: &str| -> BTreeSet<String> {
        let fixed = [
            "bin/segno",
            "share/bash-completion/completions/segno",
            "share/doc/segno/CHANGELOG.md",
            "share/doc/segno/LICENSE-APACHE",
            "share/doc/segno/LICENSE-MIT",
            "share/doc/segno/LICENSES-OF-OTHERS.txt",
            "share/doc/segno/README.md",
            "share/doc/segno/segno.cdx.json",
            "share/fish/vendor_completions.d/segno.fish",
            "share/man/man1/segno.1",
            "share/segno-install/receipt",
            "share/zsh/site-functions/_segno",
        ];
        let page = format!("share/man/man1/segno-of-{version}.1");
        fixed.into_iter().map(ToOwned::to_owned).chain([page]).collect()
    };
    assert_eq!(below(&env, "home/.local"), expected("0.9.9"));
    // Somebody else's file in a directory of ours.
    env.write("home/.local/share/doc/segno/notes.txt", "mine");

    let checked = installer(&env, &new, &["--check", "--from", new.to_str().unwrap()]);
    assert_eq!((text(&checked.stdout).as_str(), checked.status.code()), ("0.10.0\n", Some(0)));
    assert!(text(&checked.stderr).contains("there is segno 0.10.0; segno 0.9.9 is installed"));
    let before = fs::metadata(env.path("home/.local/bin/segno")).unwrap().ino();
    let done = installer(&env, &new, &from(&new));
    assert!(text(&done.stderr).contains("from 0.9.9"), "{}", text(&done.stderr));
    let after = fs::metadata(env.path("home/.local/bin/segno")).unwrap().ino();
    assert_ne!(before, after, "a program that runs keeps the file it was started from");
    let mut left = expected("0.10.0");
    left.insert("share/doc/segno/notes.txt".to_owned());
    assert_eq!(below(&env, "home/.local"), left, "the page that only the old one had is gone");

    // 0.9.9 is older than 0.10.0, though not as text.
    let refused = installer(&env, &old, &from(&old));
    assert_eq!(refused.status.code(), Some(3), "{}", text(&refused.stderr));
    assert!(text(&refused.stderr).contains("segno 0.9.9 is older than segno 0.10.0"));
    assert_eq!(below(&env, "home/.local"), left);
    let done = installer(&env, &old, &["--older", "--from", old.to_str().unwrap()]);
    assert!(done.status.success(), "{}", text(&done.stderr));

    let done = installer(&env, &old, &["--remove"]);
    assert!(done.status.success(), "{}", text(&done.stderr));
    assert_eq!(below(&env, "home/.local"), ["share/doc/segno/notes.txt".to_owned()].into());
    assert!(!env.path("home/.local/bin").exists(), "empty directories are gone too");
    let again = installer(&env, &old, &["--remove"]);
    assert_eq!(again.status.code(), Some(3), "{}", text(&again.stderr));
}

#[test]
fn what_cannot_be_trusted_is_not_installed() {
    let env = TestEnv::new();
    let good = release(&env, "good", &stand_in(&env, "0.2.0"));
    let archive = format!("segno-0.2.0-{TARGET}.tar.gz");
    let variant = |name: &str, change: &dyn Fn(&Path)| {
        let copy = env.path(name);
        fs::create_dir_all(&copy).unwrap();
        for file in ["install.sh", "SHA256SUMS", &archive] {
            fs::copy(good.join(file), copy.join(file)).unwrap();
        }
        change(&copy);
        let ended = installer(&env, &copy, &from(&copy));
        (ended.status.code(), text(&ended.stderr))
    };
    let flip = |path: PathBuf| {
        let mut bytes = fs::read(&path).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        fs::write(path, bytes).unwrap();
    };
    let sums = fs::read_to_string(good.join("SHA256SUMS")).unwrap();
    for (name, change, words) in [
        (
            "flipped",
            &(|copy: &Path| flip(copy.join(&archive))) as &dyn Fn(&Path),
            "is not what SHA256SUMS says",
        ),
        ("absent", &|copy: &Path| fs::remove_file(copy.join(&archive)).unwrap(), "cannot read"),
        ("no list", &|copy: &Path| fs::remove_file(copy.join("SHA256SUMS")).unwrap(), "cannot read"),
        (
            "other system",
            &|copy: &Path| fs::write(copy.join("SHA256SUMS"), sums.replace("x86_64", "m68k")).unwrap(),
            "has nothing for",
        ),
        (
            "two of them",
            &|copy: &Path| {
                let twice = format!("{sums}{}", sums.replace("0.2.0", "0.3.0"));
                fs::write(copy.join("SHA256SUMS"), twice).unwrap();
            },
            "more than one archive",
        ),
        (
            "other version",
            &|copy: &Path| {
                // A genuine archive under a newer name.
                let newer = archive.replace("0.2.0", "0.3.0");
                fs::rename(copy.join(&archive), copy.join(&newer)).unwrap();
                fs::write(copy.join("SHA256SUMS"), sums.replace("0.2.0", "0.3.0")).unwrap();
            },
            "nothing was changed",
        ),
    ] {
        let (code, said) = variant(name, change);
        assert_eq!(code, Some(1), "{name}: {said}");
        assert!(said.contains(words), "{name}: {said}");
        assert!(!env.path("home/.local").exists(), "{name}");
    }
    let ended = installer(&env, &good, &["--from", "http://example.invalid/segno"]);
    assert!(text(&ended.stderr).contains("is not encrypted"), "{}", text(&ended.stderr));
    // A program that somebody else put there stays.
    env.write("home/.local/bin/segno", "mine");
    let ended = installer(&env, &good, &from(&good));
    assert_eq!(ended.status.code(), Some(3), "{}", text(&ended.stderr));
    assert_eq!(below(&env, "home/.local"), ["bin/segno".to_owned()].into());
    assert_eq!(env.read("home/.local/bin/segno"), "mine");
}

#[test]
fn a_receipt_removes_nothing_that_is_not_ours() {
    let env = TestEnv::new();
    let made = release(&env, "made", &stand_in(&env, "0.2.0"));
    assert!(installer(&env, &made, &from(&made)).status.success());
    env.write("home/precious", "mine");
    env.write("home/.local/share/other/file", "mine");
    let receipt = env.read("home/.local/share/segno-install/receipt");
    let evil = format!(
        "{receipt}file ../precious\nfile bin/../../precious\nfile share/other/file\nfile /etc/hostname\n"
    );
    env.write("home/.local/share/segno-install/receipt", &evil);
    assert!(installer(&env, &made, &["--remove"]).status.success());
    assert_eq!(env.read("home/precious"), "mine");
    assert_eq!(below(&env, "home/.local"), ["share/other/file".to_owned()].into());
}

/// Serves a directory until the test ends.
fn serve(directory: PathBuf) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut asked = Vec::new();
            let mut byte = [0];
            while !asked.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap_or(0) == 1 {
                asked.push(byte[0]);
            }
            let asked = text(&asked);
            let name = asked.split_whitespace().nth(1).unwrap_or_default().trim_start_matches('/').to_owned();
            let (status, body) = match fs::read(directory.join(name)) {
                Ok(body) => ("200 OK", body),
                Err(_) => ("404 Not Found", Vec::new()),
            };
            let head =
                format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
            let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&body));
        }
    });
    address
}

#[test]
fn a_release_at_an_address() {
    if !["curl", "wget"].iter().any(|name| program("which").arg(name).output().unwrap().status.success()) {
        segno_testkit::agents::skip("neither curl nor wget is here");
        return;
    }
    let env = TestEnv::new();
    let made = release(&env, "made", &stand_in(&env, "0.2.0"));
    let address = serve(made.clone());
    let done = installer(&env, &made, &["--from", &address]);
    assert!(done.status.success(), "{}", text(&done.stderr));
    assert!(env.read("home/.local/share/segno-install/receipt").contains(&format!("from {address}\n")));
    let empty = serve(env.path("home"));
    let ended = installer(&env, &made, &["--from", &empty]);
    assert_eq!(ended.status.code(), Some(1), "{}", text(&ended.stderr));
}

#[test]
fn the_same_program_gives_the_same_bytes_and_all_of_it_is_listed() {
    let env = TestEnv::new();
    let packed = stand_in(&env, "0.2.0");
    let (first, second) = (release(&env, "first", &packed), release(&env, "second", &packed));
    let all = |name: &str| {
        let root = env.path(name);
        env.files()
            .into_iter()
            .filter_map(|(path, bytes)| Some((path.strip_prefix(&root).ok()?.to_owned(), bytes)))
            .collect::<Vec<_>>()
    };
    assert_eq!(all("first"), all("second"));
    let checked = program("sha256sum")
        .args(["--check", "--strict", "SHA256SUMS"])
        .current_dir(&second)
        .output()
        .unwrap();
    assert!(checked.status.success(), "{}{}", text(&checked.stdout), text(&checked.stderr));
    let names: BTreeSet<String> = fs::read_to_string(first.join("SHA256SUMS"))
        .unwrap()
        .lines()
        .map(|line| line[66..].to_owned())
        .collect();
    let expected = [
        "install.sh".to_owned(),
        "npm/segno-0.2.0.tgz".to_owned(),
        "npm/segno-linux-x64-0.2.0.tgz".to_owned(),
        format!("segno-0.2.0-{TARGET}.cdx.json"),
        format!("segno-0.2.0-{TARGET}.tar.gz"),
    ];
    assert_eq!(names, expected.into());

    // What is inside is what Cargo builds: each crate with its licence and its checksum.
    let bill: serde_json::Value =
        serde_json::from_slice(&fs::read(first.join(format!("segno-0.2.0-{TARGET}.cdx.json"))).unwrap())
            .unwrap();
    assert_eq!((&bill["bomFormat"], &bill["specVersion"]), (&"CycloneDX".into(), &"1.6".into()));
    let tree = program("cargo")
        .args([
            "tree",
            "-p",
            "segno",
            "-e",
            "normal",
            "--target",
            TARGET,
            "--prefix",
            "none",
            "--format",
            "{p}",
            "--locked",
            "--offline",
        ])
        .current_dir(repository())
        .output()
        .unwrap();
    assert!(tree.status.success(), "{}", text(&tree.stderr));
    let crates: BTreeSet<String> = text(&tree.stdout)
        .lines()
        .filter(|line| !line.is_empty())
        .map(|line| {
            let mut words = line.split_whitespace();
            format!("{} {}", words.next().unwrap(), words.next().unwrap().trim_start_matches('v'))
        })
        .filter(|name| !name.starts_with("segno "))
        .collect();
    let listed: BTreeSet<String> = bill["components"]
        .as_array()
        .unwrap()
        .iter()
        .map(|each| format!("{} {}", each["name"].as_str().unwrap(), each["version"].as_str().unwrap()))
        .collect();
    assert_eq!(listed, crates);
    for each in bill["components"].as_array().unwrap() {
        let ours = each["name"].as_str().unwrap().starts_with("segno-");
        assert_eq!(each.get("hashes").is_some(), !ours, "{each}");
        assert!(each.get("licenses").is_some(), "{each}");
    }
    let licences = program("tar")
        .args([
            "-xzOf",
            &format!("segno-0.2.0-{TARGET}.tar.gz"),
            &format!("segno-0.2.0-{TARGET}/LICENSES-OF-OTHERS.txt"),
        ])
        .current_dir(&first)
        .output()
        .unwrap();
    let licences = text(&licences.stdout);
    for name in crates.iter().filter(|name| !name.starts_with("segno-")) {
        assert!(licences.contains(&format!("{name}: ")), "{name}");
    }
    assert!(licences.contains("Permission is hereby granted"), "the texts themselves are there");
}

/// The program itself, in a home where nothing else is: it knows where it came from, is replaced while an agent works,
/// and leaves what was recorded.
#[test]
fn the_program_installs_updates_and_removes_itself() {
    let env = TestEnv::new();
    let made = release(&env, "made", &stripped(&env));
    assert!(installer(&env, &made, &from(&made)).status.success());
    let installed = env.path("home/.local/bin/segno");
    let segno = |words: &[&str]| {
        let done = env.command(installed.to_str().unwrap()).args(words).env("PATH", path()).output().unwrap();
        (done.status.code(), text(&done.stdout), text(&done.stderr))
    };
    let (_, told, _) = segno(&["self", "--json"]);
    let told: serde_json::Value = serde_json::from_str(&told).unwrap();
    assert_eq!(told["installed_by"], "installer");
    assert_eq!(told["program"], installed.to_str().unwrap());
    assert_eq!(told["from"], made.to_str().unwrap());

    // An agent works, and its driver and the hooks it calls are of the program that is replaced.
    env.write("project/work.sh", "touch begun; while [ ! -e go ]; do sleep 0.02; done; \"$HOME/.local/bin/segno\" note 'from inside'; echo done");
    let before = fs::metadata(&installed).unwrap().ino();
    let mut driver = env
        .command(installed.to_str().unwrap())
        .args(["run", "--", "sh", "work.sh"])
        .env("PATH", path())
        .spawn()
        .unwrap();
    while !env.path("project/begun").exists() {
        assert!(driver.try_wait().unwrap().is_none(), "the agent did not begin");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let (code, _, said) = segno(&["self", "update"]);
    assert_eq!(code, Some(0), "{said}");
    assert_ne!(fs::metadata(&installed).unwrap().ino(), before);
    env.write("project/go", "");
    assert!(driver.wait().unwrap().success());
    let (_, history, _) = segno(&["history", "--json"]);
    assert!(history.contains("from inside"), "{history}");

    // An agent does not replace what holds it.
    let (code, _, said) = segno(&["run", "--", installed.to_str().unwrap(), "self", "update"]);
    assert_eq!(code, Some(20), "{said}");
    let (code, _, said) = segno(&["self", "remove"]);
    assert_eq!(code, Some(14), "nobody can be asked: {said}");
    assert!(installed.exists());

    env.write("home/.claude/settings.json", "{}\n");
    let (code, _, said) = segno(&["init", "claude", "--yes"]);
    assert_eq!(code, Some(0), "{said}");
    assert_ne!(env.read("home/.claude/settings.json"), "{}\n");
    let (code, _, said) = segno(&["self", "remove", "--yes"]);
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(below(&env, "home/.local"), BTreeSet::new());
    assert_eq!(env.read("home/.claude/settings.json"), "{}\n");
    assert!(env.path("data/segno/segno.db").exists(), "what was recorded stays");

    // What the installer did not put there is not replaced.
    let built = env.path("clone/target/release/segno");
    fs::create_dir_all(built.parent().unwrap()).unwrap();
    fs::copy(env.path("stripped/segno"), &built).unwrap();
    let ended = env.command(built.to_str().unwrap()).args(["self", "update"]).output().unwrap();
    assert_eq!(ended.status.code(), Some(5), "{}", text(&ended.stderr));
    assert!(text(&ended.stderr).contains("git pull && cargo build --release"), "{}", text(&ended.stderr));
    assert!(built.exists());
}

#[test]
fn npm_installs_the_fitting_package() {
    if program("npm").arg("--version").output().is_err() {
        segno_testkit::agents::skip("npm is not here");
        return;
    }
    let env = TestEnv::new();
    let made = release(&env, "made", &stripped(&env));
    let version = env!("CARGO_PKG_VERSION");
    let run = |name: &str, words: &[&str]| {
        let done = env.command(name).args(words).env("PATH", path()).output().unwrap();
        (done.status.code(), text(&done.stdout), text(&done.stderr))
    };
    env.write("project/package.json", "{}");
    let packages = ["segno-linux-x64", "segno"].map(|name| made.join(format!("npm/{name}-{version}.tgz")));
    let mut words = vec!["install", "--offline", "--no-audit", "--no-fund", "--ignore-scripts"];
    words.extend(packages.iter().map(|path| path.to_str().unwrap()));
    let (code, _, said) = run("npm", &words);
    assert_eq!(code, Some(0), "{said}");
    let launcher = env.path("project/node_modules/.bin/segno");
    let (code, told, said) = run(launcher.to_str().unwrap(), &["self", "--json"]);
    assert_eq!(code, Some(0), "{said}");
    let told: serde_json::Value = serde_json::from_str(&told).unwrap();
    assert_eq!((&told["installed_by"], &told["update"]), (&"npm".into(), &"npm update -g segno".into()));
    let (code, _, said) = run(launcher.to_str().unwrap(), &["show", "nosuch"]);
    assert_eq!(code, Some(3), "the exit code is the program's: {said}");
    let (code, _, said) = run(launcher.to_str().unwrap(), &["demo", "--fast"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("is completed"), "{said}");
    fs::remove_dir_all(env.path("project/node_modules/segno-linux-x64")).unwrap();
    let (code, _, said) = run(launcher.to_str().unwrap(), &["--version"]);
    assert_eq!(code, Some(12), "{said}");
    assert!(said.contains("npm install segno-linux-x64"), "{said}");
}

/// A machine with nothing on it but a shell and its tools: no git, no user, no `/etc`.
#[test]
fn an_empty_machine() {
    let busybox = ["/bin/busybox", "/usr/bin/busybox"].into_iter().find(|path| Path::new(path).exists());
    let (Some(busybox), true) = (busybox, rustix::process::getuid().is_root()) else {
        segno_testkit::agents::skip("it needs root and a static busybox");
        return;
    };
    let env = TestEnv::on_disk();
    let packed = stripped(&env);
    let made = release(&env, "root/release", &packed);
    let root = env.path("root");
    for directory in ["bin", "tmp", "proc", "dev", "home/me"] {
        fs::create_dir_all(root.join(directory)).unwrap();
    }
    fs::copy(busybox, root.join("bin/busybox")).unwrap();
    for name in "awk cat chmod cp cut dirname env find grep gzip id mkdir mktemp mv printf rm rmdir sed sh sha256sum sleep sort sync tar tr uname wc".split(' ') {
        std::os::unix::fs::symlink("busybox", root.join("bin").join(name)).unwrap();
    }
    // What is shipped is static; the program under test is not, and brings its libraries.
    let libraries = program("ldd").arg(&packed).output().unwrap();
    for path in text(&libraries.stdout).split_whitespace().filter(|word| word.starts_with('/')) {
        fs::create_dir_all(root.join(&path[1..]).parent().unwrap()).unwrap();
        fs::copy(path, root.join(&path[1..])).unwrap();
    }
    assert!(made.starts_with(&root));
    let inside = "set -e; sh /release/install.sh --from /release; cd; segno demo --fast; segno ls --all --everywhere; segno self remove --yes; find /home -type f";
    let script = format!(
        "set -e; mount --bind '{0}' '{0}'; cd '{0}'; mount -t proc proc proc; mount --bind /dev dev; \
         exec chroot . /bin/env -i HOME=/home/me PATH=/bin:/home/me/.local/bin sh -c \"$1\"",
        root.display()
    );
    let done = program("unshare")
        .args(["--mount", "--pid", "--fork", "sh", "-c", &script, "sh", inside])
        .output()
        .unwrap();
    let (said, told) = (text(&done.stderr), text(&done.stdout));
    if said.contains("unshare failed") || said.contains("permission denied") {
        segno_testkit::agents::skip(&format!("no namespaces here: {said}"));
        return;
    }
    assert!(done.status.success(), "{told}{said}");
    assert!(said.contains("1 call in doubt") && said.contains("is completed"), "{said}");
    assert!(told.contains("completed"), "{told}");
    assert!(told.contains("/home/me/.local/share/segno/segno.db\n"), "{told}");
    assert!(!told.contains("bin/segno") && !told.contains("segno-install"), "{told}");
}
