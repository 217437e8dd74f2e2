//! Tool calls and agent processes.

use serde::Deserialize;
use serde::Deserializer;
use serde::Serialize;
use serde_json::Map;
use serde_json::Value;

use super::Patch;
use super::Row;
use super::RowVersion;
use super::row;
use crate::budget::TokenUse;
use crate::event::ContextFill;
use crate::event::WorkItemMark;
use crate::id::SessionId;
use crate::project::List;
use crate::text::Text;
use crate::time::Timestamp;

row! {
    /// One tool call.
    Tools: ToolRow, ToolPatch {
        /// Its id.
        call: String,
        /// The tool.
        tool: String,
        /// What it was given; none if only its end was heard.
        #[serde(deserialize_with = "written")]
        input: Option<Value>,
        /// Where it stands: open, completed, failed, denied or in doubt.
        state: String,
        /// When it began.
        started_at: Option<Timestamp>,
        /// When it ended.
        ended_at: Option<Timestamp>,
        /// Whether it was recorded before it ran.
        write_ahead: bool,
        /// The run it belongs to.
        run: Option<String>,
        /// The phase then.
        phase: Option<String>,
        /// The beginning of what it put out.
        output: Option<Text>,
        /// How much that was.
        output_bytes: Option<u64>,
        /// How its end was found out, if it was found out later.
        evidence: Option<String>,
    }
}

row! {
    /// One agent process.
    Runs: RunRow, RunPatch {
        /// Its id.
        run: String,
        /// The agent.
        agent: String,
        /// The agent's version.
        version: Option<String>,
        /// The model.
        model: Option<String>,
        /// The agent's own id of the conversation.
        native_id: Option<String>,
        /// The conversation it goes on from or is a copy of.
        resumed: Option<String>,
        /// The process.
        pid: Option<u32>,
        /// When that process started, in clock ticks since boot.
        process_start: Option<u64>,
        /// How far the record of its tool calls can be trusted.
        ledger: Option<String>,
        /// What it was asked.
        prompt: Option<Text>,
        /// The command line, without the prompt.
        command: Vec<String>,
        /// The variables that the agent had.
        environment: Value,
        /// Where it works.
        directory: Option<String>,
        /// A person had its terminal.
        interactive: bool,
        /// The arguments that were given to the agent.
        args: Vec<String>,
        /// The file that says what is to be done.
        file: Option<String>,
        /// The item of a tracker that it works on.
        work_item: Option<WorkItemMark>,
        /// The session whose agent started it.
        below: Option<SessionId>,
        /// The prompt tells where work stands; what is to be done was said before.
        briefed: bool,
        /// Running or ended.
        state: String,
        /// When it began.
        started_at: Option<Timestamp>,
        /// When it ended.
        ended_at: Option<Timestamp>,
        /// How it ended.
        outcome: Option<String>,
        /// Why, for a person.
        reason: Option<Text>,
        /// The exit code, if it exited by itself.
        exit_code: Option<i32>,
        /// The signal that killed it.
        signal: Option<i32>,
        /// Turns, in the agent's own counting.
        turns: u64,
        /// How long it took.
        duration_ms: Option<u64>,
        /// What it used.
        tokens: Option<TokenUse>,
        /// Whether a part of that is an estimate, or was never told.
        estimated: bool,
        /// What it cost by the agent's reckoning.
        cost_micros: Option<u64>,
        /// What it cost by a price list, as far as the agent did not say; 0 if that was not reckoned.
        list_micros: u64,
        /// How full the context of its conversation was at the end.
        context: Option<ContextFill>,
        /// How many calls were refused.
        denials: u64,
        /// How many lines of its output were not understood.
        unparsed: u64,
        /// How many of its processes were still there and were ended.
        swept: u64,
        /// The agent's last words.
        text: Option<Text>,
        /// What went wrong, in the agent's words.
        error: Option<Text>,
        /// The last of what it wrote to standard error.
        stderr: Option<Text>,
        /// When it was last known to live, for one whose end was found out later.
        at: Option<Timestamp>,
        /// The phase that the session was in when it began.
        phase: Option<String>,
        /// The turn of the loop in that phase; 0 outside of one.
        iteration: u64,
    }
}

/// Nothing is something that was written.
fn written<'de, D: Deserializer<'de>>(value: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(value).map(Some)
}

impl RunRow {
    /// What the agent says that the run cost. Who says that tokens cost nothing does not know their price.
    pub fn told_micros(&self) -> Option<u64> {
        let used = self.tokens.is_some_and(|tokens| tokens.total() > 0);
        self.cost_micros.filter(|micros| *micros > 0 || !used)
    }

    /// What the run cost: what the agent says, else what was reckoned by a price list; none if nobody knows.
    pub fn money(&self) -> Option<u64> {
        self.told_micros().or_else(|| Some(self.list_micros).filter(|micros| *micros > 0))
    }
}
