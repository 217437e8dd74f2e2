//! Turns `rules.toml` and `words.toml` into tables of the program, so that a process that records one event and ends has nothing to
//! parse, build or compile before its first text.
#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a build script reads and writes files and talks to Cargo by printing"
)]

mod keywords;
mod shapes;
#[path = "../src/spec.rs"]
#[expect(unreachable_pub, reason = "the crate makes it public")]
mod spec;
#[path = "../src/table.rs"]
mod table;

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;
use std::process::ExitCode;

use spec::RuleSpec;

/// A rule with less to go by would be looked for nearly everywhere.
const KEYWORD_LEAST: usize = 2;

fn main() -> ExitCode {
    println!("cargo::rerun-if-changed=rules.toml");
    println!("cargo::rerun-if-changed=words.toml");
    println!("cargo::rerun-if-changed=build");
    println!("cargo::rerun-if-changed=src/spec.rs");
    println!("cargo::rerun-if-changed=src/table.rs");
    match make() {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            // Cargo shows one line of each such message.
            for line in problem.lines() {
                println!("cargo::error={line}");
            }
            ExitCode::FAILURE
        }
    }
}

fn make() -> Result<(), String> {
    let text = std::fs::read_to_string("rules.toml").map_err(|error| format!("rules.toml: {error}"))?;
    let rules = rules(&text).map_err(|problem| format!("rules.toml: {problem}"))?;
    let mut out = String::new();
    let shapes = shapes::Shapes::of(&rules);
    write_rules(&mut out, &rules, &shapes);
    shapes.write_sets(&mut out);
    keywords::write(&mut out, &rules)?;
    write_words(&mut out).map_err(|problem| format!("words.toml: {problem}"))?;
    let dir = std::env::var_os("OUT_DIR").ok_or("OUT_DIR is not set")?;
    std::fs::write(Path::new(&dir).join("tables.rs"), out).map_err(|error| format!("tables.rs: {error}"))
}

/// Every list of the file as a table of its name.
fn write_words(out: &mut String) -> Result<(), String> {
    let text = std::fs::read_to_string("words.toml").map_err(|error| error.to_string())?;
    let lists: BTreeMap<String, Vec<String>> = toml::from_str(&text).map_err(|error| error.to_string())?;
    for (name, words) in lists {
        if let Some(word) = words.iter().find(|word| **word != word.to_lowercase()) {
            return Err(format!("`{name}`: {word:?} is not lower-case"));
        }
        let words: Vec<String> = words.iter().map(|word| format!("{word:?}")).collect();
        put_list(out, &name.to_uppercase(), "&str", &words);
    }
    Ok(())
}

/// The rules of the file, all of them usable.
fn rules(text: &str) -> Result<Vec<RuleSpec>, String> {
    let mut file: toml::Table = toml::from_str(text).map_err(|error| error.to_string())?;
    let Some(toml::Value::Array(list)) = file.remove("rule") else {
        return Err("there is no list of tables called `rule`".to_owned());
    };
    if let Some(name) = file.keys().next() {
        return Err(format!("`{name}` has no meaning here"));
    }
    let mut ids = BTreeSet::new();
    let mut rules = Vec::new();
    for (index, value) in list.into_iter().enumerate() {
        let id = value.get("id").and_then(toml::Value::as_str);
        let name = id.map_or_else(|| format!("rule number {}", index + 1), |id| format!("rule `{id}`"));
        let rule: RuleSpec = value.try_into().map_err(|error| format!("{name}: {error}"))?;
        rule.check().map_err(|reason| format!("{name}: {reason}"))?;
        // What follows is asked of the built-in rules only, because the tables rely on it.
        if rule.words().is_empty() {
            return Err(format!("{name}: a built-in rule needs a keyword"));
        }
        for word in rule.words() {
            if *word != word.to_lowercase() {
                return Err(format!("{name}: the keyword {word:?} is not lower-case"));
            }
            if !(KEYWORD_LEAST..=usize::from(u8::MAX)).contains(&word.len()) {
                return Err(format!("{name}: the keyword {word:?} must have {KEYWORD_LEAST} to 255 bytes"));
            }
        }
        if !ids.insert(rule.id.clone()) {
            return Err(format!("{name}: the id is there twice"));
        }
        rules.push(rule);
    }
    Ok(rules)
}

fn write_rules(out: &mut String, rules: &[RuleSpec], shapes: &shapes::Shapes) {
    let text = |text: &str| format!("Cow::Borrowed({text:?})");
    put(out, format_args!("pub(crate) static RULES: [Rule; {}] = [\n", rules.len()));
    for (rule, shapes) in rules.iter().zip(&shapes.rules) {
        let RuleSpec {
            id,
            keywords: _,
            near,
            regex,
            group,
            each,
            entropy,
            allow,
            before,
            after,
            guess,
            inside,
            column,
        } = rule;
        let allow: Vec<String> = allow.iter().map(|pattern| text(pattern)).collect();
        put(
            out,
            format_args!(
                "Rule::new(Terms {{ id: {}, named: {}, regex: {}, group: {group}, each: {}, entropy: {entropy:?}, \
                 allow: Cow::Borrowed(&[{}]), before: {before}, after: {}, guess: {}, inside: {inside}, \
                 column: {column}, shapes: &[{}] }}),\n",
                text(id),
                !near.is_empty(),
                text(regex),
                each.as_ref().map_or("None".to_owned(), |each| format!("Some({})", text(each))),
                allow.join(", "),
                if *after == 0 { "AFTER".to_owned() } else { after.to_string() },
                guess.map_or("None".to_owned(), |guess| format!("Some(Guess::{guess:?})")),
                shapes::source(shapes),
            ),
        );
    }
    out.push_str("];\n");
}

/// An item of the tables, with as many elements as there are.
fn put_list<T: std::fmt::Display>(out: &mut String, name: &str, kind: &str, items: &[T]) {
    put(out, format_args!("pub(crate) static {name}: [{kind}; {}] = [", items.len()));
    for item in items {
        put(out, format_args!("{item},"));
    }
    out.push_str("];\n");
}

fn put(out: &mut String, what: std::fmt::Arguments<'_>) {
    // Writing to a string does not fail.
    let _ = out.write_fmt(what);
}
