//! Where work items come from, and how each of them is worked on.

use serde::Deserialize;
use serde::Serialize;

use crate::fingerprint::digits_of;
use crate::refusal::Refusal;

/// Where work items come from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct QueuePlan {
    /// The command that lists what is ready, or nothing if a checklist is read.
    pub command: Option<String>,
    /// The Markdown file with a checklist.
    pub checklist: Option<String>,
    /// Whether the loop waits for new items when there are none.
    pub watch: bool,
    /// The branch that each item works on, with `{item}` in it.
    pub branch: Option<String>,
    /// Failures of one item after which it is set aside.
    pub max_failures: u32,
    /// Turns of the one follow-up for an item that ended but is still open in its tracker.
    pub follow_up_turns: u32,
    /// Whether items of one parent share a conversation.
    pub share: bool,
    /// What loops on the same queue have in common; empty for one that shares with nobody.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub id: String,
    /// The command that shows one item, with `{item}` in it. Without one, an item is closed when it is listed no more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub show: Option<String>,
    /// The branch that every item's own begins at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
}

impl Default for QueuePlan {
    fn default() -> Self {
        Self {
            command: None,
            checklist: None,
            watch: false,
            branch: None,
            max_failures: 5,
            follow_up_turns: 5,
            share: false,
            id: String::new(),
            show: None,
            base: None,
        }
    }
}

impl QueuePlan {
    pub(super) fn check(&self) -> Result<(), Refusal> {
        let given = |text: &Option<String>| text.as_ref().is_some_and(|text| !text.trim().is_empty());
        if given(&self.command) == given(&self.checklist) {
            return Err(Refusal::bad("queue", "it needs a command or a checklist, and not both"));
        }
        if self.branch.as_ref().is_some_and(|branch| !branch.contains("{item}")) {
            return Err(Refusal::bad("branch", "without {item} in it, all items would have the same one"));
        }
        Ok(())
    }

    /// The branch of an item, if each has its own. What cannot stand in a branch's name becomes a dash, and digits of the
    /// whole id follow then: two items never share a branch.
    pub fn branch_of(&self, item: &str) -> Option<String> {
        let fits = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '/' | '.');
        let safe: String = item.chars().map(|c| if fits(c) { c } else { '-' }).collect();
        let safe = safe.replace("..", "-").replace("//", "-");
        let safe = safe.trim_matches(['.', '/', '-']).trim_end_matches(".lock");
        let safe = if safe.is_empty() { "item" } else { safe };
        let digits = digits_of(item);
        let safe = match safe == item {
            true => safe.to_owned(),
            false => format!("{safe}-{}", digits.get(..8).unwrap_or(&digits)),
        };
        self.branch.as_ref().map(|branch| branch.replace("{item}", &safe))
    }

    /// The command that shows one item, if there is one.
    pub fn show_command(&self, item: &str) -> Option<String> {
        Some(self.show.as_ref()?.replace("{item}", &quoted(item)))
    }

    /// Where the items come from, in words.
    pub fn source(&self) -> &str {
        self.command.as_deref().or(self.checklist.as_deref()).unwrap_or_default()
    }
}

/// The command that shows one item where the tracker is known by its list: `br ready …` and `bd ready …`.
pub fn show_for(list: &str) -> Option<String> {
    let plain = !list.contains(['|', '&', ';', '<', '>', '$', '`', '(', ')', '\n', '"', '\'', '\\']);
    let words: Vec<&str> = list.split_whitespace().filter(|_| plain).collect();
    let tracker = words.first()?.rsplit('/').next()?;
    let at = words.iter().position(|word| *word == "ready")?;
    let before = words.get(..at)?.join(" ");
    ["br", "bd"].contains(&tracker).then(|| format!("{before} show {{item}} --json"))
}

/// A text as a shell takes it for one word.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}
