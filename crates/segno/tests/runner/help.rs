use crate::common::TestEnv;

/// The whole reference. This snapshot is the documentation of the command line.
#[test]
fn reference() {
    insta::assert_snapshot!("cli", segno::cli::markdown());
}

#[test]
fn help_and_version_are_data() {
    let env = TestEnv::new();
    for args in [&["--help"][..], &["-h"], &["ls", "--help"], &["--version"]] {
        let said = env.run(args);
        assert_eq!((said.code, said.stderr.as_str()), (0, ""), "{args:?}");
        assert!(!said.stdout.is_empty());
        assert!(!said.stdout.contains('\u{1b}'));
    }
    assert!(env.run(&["--color", "always", "--help"]).stdout.contains('\u{1b}'));
    assert!(!env.run(&["--color=never", "--help"]).stdout.contains('\u{1b}'));
}

/// The first page has what people need; the rest is one step away, in two ways; the manual has all of it.
#[test]
fn all_commands_are_one_step_away() {
    let env = TestEnv::new();
    let first = env.ok(&["--help"]).stdout;
    assert!(first.contains("segno help --all") && !first.contains("workflow-state"), "{first}");
    assert_eq!(env.ok(&["help"]).stdout, env.ok(&["-h"]).stdout);
    let all = env.ok(&["help", "--all"]).stdout;
    assert!(all.contains("workflow-state") && all.contains("segno help COMMAND"), "{all}");
    assert_eq!(env.ok(&["--help", "--all"]).stdout, all);
    assert_eq!(env.ok(&["--all", "-h"]).stdout, all);
    assert_eq!(
        env.ok(&["help", "checkpoint", "restore"]).stdout,
        env.ok(&["checkpoint", "restore", "--help"]).stdout
    );
    let said = env.run(&["help", "nonsense"]);
    assert_eq!(said.code, 2, "{}", said.stderr);
    assert!(env.ok(&["man"]).stdout.contains("workflow"), "the manual has every command");
}

#[test]
fn wrong_command_lines() {
    let env = TestEnv::new();
    insta::assert_snapshot!(
        "usage_errors",
        env.show_all(&[
            &["lss"],
            &["ls", "--since", "soon"],
            &["show", "../../etc/passwd"],
            &["--json", "progress", "200"],
        ])
    );
    assert_eq!(env.run(&[]).code, 2);
}

#[test]
fn completions_for_every_shell() {
    let env = TestEnv::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let said = env.run(&["completions", shell]);
        assert_eq!((said.code, said.stderr.as_str()), (0, ""), "{shell}");
        assert!(said.stdout.contains("checkpoint"), "{shell}");
    }
}

#[test]
fn manual_pages() {
    let env = TestEnv::new();
    let page = env.run(&["man"]);
    assert!(page.stdout.contains(".TH segno 1"), "{}", page.stdout);
    let said = env.run(&["man", "pages/man1"]);
    assert_eq!(said.code, 0, "{}", said.stderr);
    for name in ["segno.1", "segno-ls.1", "segno-config-set.1", "segno-memory-cache-get.1"] {
        assert!(env.path("project/pages/man1").join(name).exists(), "{name}");
    }
}
