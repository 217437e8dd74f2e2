//! What agents can do, said by each of them: nobody else has to know them by name.

/// What an agent can do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// It calls hooks, or something like them, that segno can give it for a run.
    pub hooks: bool,
    /// It can ask us about calls that its own rules do not settle.
    pub asks_permission: bool,
    /// It tells of each of its tool calls: then what it changed can be told from what a person changed meanwhile.
    pub tells_calls: bool,
    /// The next process counts its tool calls with the same ids again, as Codex does (`item_0`, `item_1`). Only for an
    /// agent whose hooks, if it has any, do not tell of calls by these ids.
    pub call_ids_recur: bool,
    /// Its own log of a conversation is written as it works and tells more of calls and tokens than its output.
    pub log_beside_output: bool,
    /// The id of a new conversation can be chosen in a run without a person.
    pub chooses_id: bool,
    /// The same with a person at its terminal.
    pub chooses_id_at_terminal: bool,
    /// It can go on with a copy of a conversation that ends at a message.
    pub goes_back_to_message: bool,
    /// It says what it used only when it ends: until then no cap can be held against it.
    pub tells_use_late: bool,
    /// It can tell how full the windows of its plan are without a call of the model.
    pub tells_usage: bool,
    /// It says itself what it costs in a run without a person, at its end at the latest.
    pub tells_cost: bool,
    /// The tokens that it tells are those of the whole conversation so far, over all its runs.
    pub counts_conversation: bool,
    /// It keeps a cap on turns itself, in a run without a person.
    pub caps_turns: bool,
    /// Whose models it uses, as lists of models name the provider; none if it uses several, and says which.
    pub provider: Option<&'static str>,
    /// Models that everybody who has it can choose by these names, so that one may judge what another wrote.
    pub models: &'static [&'static str],
}
