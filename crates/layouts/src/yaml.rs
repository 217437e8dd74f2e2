//! YAML from outside: one document, with bounds on what it may unfold to.

use serde::de::DeserializeOwned;

/// More than this of what is wrong is not said.
const WORDS: usize = 300;

/// Reads one document of at most so many nodes.
///
/// # Errors
/// In words, with the line.
pub fn read<T: DeserializeOwned>(text: &str, most_nodes: usize) -> Result<T, String> {
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_depth: 64,
            max_aliases: 64,
            max_anchors: 64,
            max_documents: 1,
            max_nodes: most_nodes,
            max_events: most_nodes.saturating_mul(2),
        },
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: 10_000 },
        with_snippet: false,
    };
    serde_saphyr::from_str_with_options(text, options).map_err(|why| {
        let line = why.location().map(|at| format!("line {}: ", at.line())).unwrap_or_default();
        let words: String = why.to_string().lines().next().unwrap_or("").trim().chars().take(WORDS).collect();
        format!("{line}{words}")
    })
}
