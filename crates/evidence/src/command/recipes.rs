//! The commands behind the targets of a Makefile or a justfile, and the parts of a settings file that concern tests.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

/// How many variables are put in, one after the other.
const MOST_VARIABLES: usize = 200;
/// How long a recipe may become by that.
const LONGEST: usize = 256 * 1024;

/// A rule of a Makefile.
#[derive(Default)]
struct Rule {
    needs: Vec<String>,
    recipe: String,
}

/// The commands that `make` runs for these targets (the first one of the file if none is named), as shell text, and the
/// files that the Makefile includes. Patterns and conditions are not followed.
pub fn make_recipes(text: &str, targets: &[String]) -> (String, Vec<String>) {
    let text = text.replace("\\\n", " ");
    let mut variables: Vec<(String, String)> = Vec::new();
    let mut rules: BTreeMap<String, Rule> = BTreeMap::new();
    let (mut first, mut includes, mut open) = (None, Vec::new(), Vec::<String>::new());
    for line in text.lines() {
        if let Some(recipe) = line.strip_prefix('\t') {
            for target in &open {
                let rule = rules.entry(target.clone()).or_default();
                rule.recipe.push_str(recipe.trim_start_matches(['@', '-', '+', ' ']));
                rule.recipe.push('\n');
            }
            continue;
        }
        let line = line.split(" #").next().unwrap_or(line).trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(files) =
            ["include ", "-include ", "sinclude "].iter().find_map(|word| line.strip_prefix(word))
        {
            includes.extend(files.split_whitespace().map(ToOwned::to_owned));
        } else if let Some((name, value)) = assignment(line) {
            if variables.len() < MOST_VARIABLES {
                variables.push((name, value));
            }
        } else if let Some((names, rest)) = line.split_once(':') {
            open = names.split_whitespace().map(ToOwned::to_owned).collect();
            let (needs, recipe) = rest.split_once(';').unwrap_or((rest, ""));
            for target in &open {
                let rule = rules.entry(target.clone()).or_default();
                rule.needs
                    .extend(needs.split_whitespace().filter(|word| *word != "|").map(ToOwned::to_owned));
                if !recipe.trim().is_empty() {
                    rule.recipe.push_str(&format!("{recipe}\n"));
                }
            }
            if first.is_none() {
                first = open.iter().find(|target| !target.starts_with('.')).cloned();
            }
        }
    }
    let mut wanted: Vec<String> =
        if targets.is_empty() { first.into_iter().collect() } else { targets.to_vec() };
    let (mut done, mut commands) = (BTreeSet::new(), String::new());
    while let Some(target) = wanted.pop() {
        if !done.insert(target.clone()) {
            continue;
        }
        if let Some(rule) = rules.get(&target) {
            wanted.extend(rule.needs.iter().map(|need| filled(need, &variables)));
            commands.push_str(&rule.recipe);
        }
    }
    (filled(&commands, &variables), includes)
}

/// `NAME = value` in any of make's ways.
fn assignment(line: &str) -> Option<(String, String)> {
    let line = line.strip_prefix("export ").unwrap_or(line);
    let at = line.find('=')?;
    let (name, value) = (line.get(..at)?, line.get(at + 1..)?);
    let name = name.trim_end_matches(['?', '+', ':', '!']).trim();
    let is_name =
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'));
    is_name.then(|| (name.to_owned(), value.trim().to_owned()))
}

/// A text with the values of variables put in, a few levels deep.
fn filled(text: &str, variables: &[(String, String)]) -> String {
    let mut text = text.to_owned();
    for _ in 0..3 {
        for (name, value) in variables.iter().rev() {
            if text.len() < LONGEST {
                text = text.replace(&format!("$({name})"), value).replace(&format!("${{{name}}}"), value);
            }
        }
    }
    text.replace("$$", "$")
}

/// The commands of every recipe of a justfile, as shell text.
pub fn recipes(text: &str) -> String {
    let indented = |line: &&str| line.starts_with([' ', '\t']);
    let bare = |line: &str| line.trim_start().trim_start_matches(['@', '-']).to_owned() + "\n";
    text.lines().filter(indented).map(bare).collect()
}

/// The sections of a settings file whose names begin with one of these, such as `[tool.pytest`.
pub fn sections(text: &str, names: &[&str]) -> String {
    let mut inside = false;
    let mut kept = String::new();
    for line in text.lines() {
        if line.starts_with('[') {
            inside = names.iter().any(|name| line.starts_with(name));
        }
        if inside {
            kept.push_str(line.trim_end());
            kept.push('\n');
        }
    }
    kept
}
