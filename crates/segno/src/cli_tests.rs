use std::collections::BTreeSet;

use super::*;

fn parse(args: &[&str]) -> Result<Cli, clap::Error> {
    Cli::try_parse_from(std::iter::once(&"segno").chain(args))
}

#[test]
fn the_tree_is_sound() {
    command().debug_assert();
}

/// What is said without the tree is what the tree says.
#[test]
fn the_version_is_the_trees() {
    assert_eq!(version().to_string(), command().render_version());
    let asks = |words: &[&str]| asks_for_version(&words.iter().map(OsString::from).collect::<Vec<_>>());
    assert!(asks(&["segno", "--version"]) && asks(&["segno", "-V"]));
    // What else was typed may be wrong, and the tree says so.
    assert!(!asks(&["segno"]) && !asks(&["segno", "--version", "--nonsense"]));
}

#[test]
fn every_command_has_one_heading() {
    let tree = command();
    let known: BTreeSet<&str> = tree.get_subcommands().map(clap::Command::get_name).collect();
    let listed: Vec<&str> = HEADINGS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
    assert_eq!(listed.len(), known.len());
    assert_eq!(listed.into_iter().collect::<BTreeSet<_>>(), known);
}

/// The first page of the help is short enough to be read, and says where the rest is.
#[test]
fn the_first_page_shows_seventeen_commands() {
    let listed: Vec<&str> = COMMON.iter().flat_map(|(_, names)| names.iter().copied()).collect();
    assert_eq!(listed.len(), 17);
    assert!(listed.iter().all(|name| command().find_subcommand(name).is_some()));
    let page = command().render_help().to_string();
    assert!(page.contains("segno help --all"), "{page}");
    for (_, names) in HEADINGS {
        for name in *names {
            let shown = page.lines().any(|line| line.trim_start().split(' ').next() == Some(name));
            assert_eq!(shown, listed.contains(name), "{name}: {page}");
        }
    }
}

#[test]
fn every_command_is_explained_and_has_an_example() {
    for command in command().get_subcommands() {
        let name = command.get_name();
        assert!(command.get_about().is_some(), "{name} has no help");
        let example = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        assert!(example.contains(&format!("segno {name}")), "{name} has no example: {example}");
    }
}

/// Examples in the help are promises.
#[test]
fn every_example_parses() {
    for command in command().get_subcommands() {
        let example = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        for line in example.lines().filter(|line| line.trim_start().starts_with("segno ")) {
            // What the shell does with it is not the program's.
            let line = [" | ", " > ", " < "]
                .iter()
                .fold(line, |line, part| line.split(part).next().unwrap_or_default());
            let mut words: Vec<String> = Vec::new();
            let mut rest = line.trim();
            while !rest.is_empty() {
                let quote = rest.chars().next().filter(|c| matches!(c, '"' | '\''));
                let (word, after) = match quote {
                    Some(quote) => rest[1..].split_once(quote).unwrap(),
                    None => rest.split_once(' ').unwrap_or((rest, "")),
                };
                words.push(word.to_owned());
                rest = after.trim_start();
            }
            assert!(Cli::try_parse_from(&words).is_ok(), "{line}: {:?}", Cli::try_parse_from(&words).err());
        }
    }
}

#[test]
fn global_flags_work_after_the_command() {
    let cli = parse(&["ls", "--json", "-q", "-vv", "--store", "sqlite:x", "--session", "…804211"]).unwrap();
    assert!(cli.global.json && cli.global.quiet);
    assert_eq!(cli.global.verbose, 2);
    assert_eq!(cli.global.session.unwrap().as_str(), "804211");
}

#[test]
fn nonsense_is_refused() {
    for args in [
        &["show", "../etc"][..],
        &["show", "--tools", "--files"],
        &["progress", "101"],
        &["ls", "--since", "yesterday"],
        &["tokens", "5", "--input", "5"],
        &["budget", "set", "5", "--hard", "--advisory"],
        &["rm"],
        &["artifact", "add", "x", "deleted"],
    ] {
        let error = parse(args).unwrap_err();
        assert_eq!(error.exit_code(), 2, "{args:?}");
    }
}

#[test]
fn text_may_begin_with_a_dash_where_a_dash_means_standard_input() {
    for args in [
        &["output", "set", "x", "-"][..],
        &["tokens", "--estimate", "-"],
        &["workflow-state", "set", "-"],
        &["memory", "cache", "set", "k", "-5"],
        &["metric", "set", "delta", "-5"],
    ] {
        assert!(parse(args).is_ok(), "{args:?}: {:?}", parse(args).err());
    }
}

/// What scripts call often is parsed without the whole tree, and must mean the same.
#[test]
fn lean_parsing_means_what_the_whole_tree_means() {
    let lines: &[&[&str]] = &[
        &["tokens", "1"],
        &["--quiet", "tokens", "--input", "12k", "--output", "800", "--cost", "0.05"],
        &["--store", "sqlite:x.db", "tokens", "1", "--json", "--key", "k"],
        &["note", "--session", "804211", "words here"],
        &["error", "connection refused", "--kind", "network"],
        &["file", "add", "a.rs", "modified"],
        &["artifact", "add", "a.rs", "created", "--phase", "RED"],
        &["artifact"],
        &["metric", "set", "coverage", "-1.5"],
        &["task", "done", "3"],
        &["phase", "GREEN", "--step", "2", "--of", "4", "--verify", "pass"],
        &["progress", "60"],
        &["iteration"],
        &["state", "last", "--json"],
        &["statusline"],
        &["statusline", "--format", "{session}", "--input", "--color", "always"],
        &["ls", "--json", "--everywhere", "--status", "paused"],
        &["-v", "-q", "--color", "never", "--project", ".", "ls"],
    ];
    for line in lines {
        let arguments: Vec<OsString> =
            std::iter::once("segno").chain(line.iter().copied()).map(Into::into).collect();
        let lean = parse_lean(&arguments).unwrap_or_else(|| panic!("{line:?}"));
        let whole = Cli::try_parse_from(&arguments).unwrap();
        assert_eq!(format!("{lean:?}"), format!("{whole:?}"), "{line:?}");
    }
}

/// Whatever the lean way does not understand is left to the whole tree, with its help and its errors.
#[test]
fn lean_parsing_leaves_the_rest_alone() {
    for line in [
        &["tokens", "--help"][..],
        &["tokens", "many"],
        &["--help"],
        &["--version"],
        &["show"],
        &["--unknown", "tokens", "1"],
        &["--store"],
        &[],
    ] {
        let arguments: Vec<OsString> =
            std::iter::once("segno").chain(line.iter().copied()).map(Into::into).collect();
        assert!(parse_lean(&arguments).is_none(), "{line:?}");
    }
}
