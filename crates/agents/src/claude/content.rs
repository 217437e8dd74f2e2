//! The content of messages: text, thinking, calls and their results.

use super::wire::Block;
use super::wire::FileInput;
use super::wire::Message;
use super::wire::PermissionDecision;
use super::wire::ResultMeta;
use super::wire::ToolUseResult;
use super::wire::User;
use crate::event::AgentEvent;
use crate::event::By;
use crate::event::ChangeKind;
use crate::event::InputSource;
use crate::open_calls::OpenCalls;
use crate::raw::Raw;

/// How it begins what the model is told in place of a result that was lost with the process before: that is no end.
const UNKNOWN_END: &str = "[Tool call interrupted: the session ended";

/// The calls of one conversation.
#[derive(Debug, Default)]
pub(super) struct Calls {
    open: OpenCalls,
}

impl Calls {
    pub(super) fn assistant(
        &mut self,
        message: &Message,
        parent: Option<&str>,
        out: &mut Vec<AgentEvent>,
    ) -> Option<()> {
        let message_id = message.id.clone();
        let parent = parent.map(str::to_owned);
        for (raw, block) in blocks(message.content.as_ref())? {
            let (message_id, parent) = (message_id.clone(), parent.clone());
            out.push(match block.r#type.as_deref() {
                Some("text") => AgentEvent::Text { message_id, text: block.text.unwrap_or_default(), parent },
                Some("thinking") => {
                    AgentEvent::Thinking { message_id, text: block.thinking.unwrap_or_default(), parent }
                }
                Some("redacted_thinking") => AgentEvent::Thinking { message_id, text: String::new(), parent },
                Some("tool_use" | "server_tool_use" | "mcp_tool_use") => {
                    let call_id = block.id?;
                    let tool = block.name.unwrap_or_default();
                    let input = block.input.unwrap_or_else(Raw::null);
                    self.remember(&call_id, &tool, &input);
                    AgentEvent::ToolStarted { call_id, tool, input, message_id, parent }
                }
                // Tools that run at the provider answer inside the same message.
                Some(kind) if kind.ends_with("_tool_result") => {
                    finished(block.tool_use_id?, None, block.content.unwrap_or_else(Raw::null), None, parent)
                }
                _ => AgentEvent::Unknown { raw },
            });
        }
        Some(())
    }

    pub(super) fn user(&mut self, line: &User, out: &mut Vec<AgentEvent>) -> Option<()> {
        let parent = line.parent_tool_use_id.clone();
        for (raw, block) in blocks(line.message.content.as_ref())? {
            match block.r#type.as_deref() {
                Some("tool_result") => self.result(block, line, out)?,
                Some("text") => out.push(AgentEvent::Input {
                    source: source(line),
                    text: block.text.unwrap_or_default(),
                    parent: parent.clone(),
                }),
                _ => out.push(AgentEvent::Unknown { raw }),
            }
        }
        Some(())
    }

    fn remember(&mut self, call_id: &str, tool: &str, input: &Raw) {
        let path = writes_file(tool)
            .then(|| input.read::<FileInput>())
            .flatten()
            .and_then(|input| input.file_path.or(input.notebook_path));
        self.open.remember(call_id, tool, path);
    }

    fn result(&mut self, block: Block, line: &User, out: &mut Vec<AgentEvent>) -> Option<()> {
        let call_id = block.tool_use_id?;
        let call = self.open.take(&call_id);
        let tool = call.as_ref().map(|call| call.tool.clone());
        let parent = line.parent_tool_use_id.clone();
        let meta = line.tool_result_meta.iter().flatten().find(|meta| meta.id.as_deref() == Some(&call_id));
        let structured: ToolUseResult = line.tool_use_result.as_ref().and_then(Raw::read).unwrap_or_default();
        if block.is_error != Some(true) {
            let output = block.content.unwrap_or_else(Raw::null);
            out.push(finished(call_id.clone(), tool, output, structured.background(), parent));
            if let Some(path) = call.and_then(|call| call.path) {
                let change = match structured.r#type.as_deref() {
                    Some("create") => ChangeKind::Created,
                    _ => ChangeKind::Modified,
                };
                let path = structured.file_path.unwrap_or(path);
                out.push(AgentEvent::FileChanged { path, change, call_id: Some(call_id), moved_to: None });
            }
            return Some(());
        }
        let error = text_of(block.content.as_ref());
        if error.starts_with(UNKNOWN_END) {
            return Some(());
        }
        out.push(match verdict(meta) {
            NotRun::Denied(by) => AgentEvent::ToolDenied { call_id, tool, reason: error, by, parent },
            ended => AgentEvent::ToolFailed {
                call_id,
                tool,
                exit_code: exit_code(&error),
                error,
                duration_ms: None,
                interrupted: matches!(ended, NotRun::CutOff) || structured.interrupted == Some(true),
                parent,
            },
        });
        Some(())
    }
}

enum NotRun {
    /// It never ran.
    Denied(By),
    /// It ran and was cut off; the text of such a result says "rejected", which is wrong.
    CutOff,
    /// It ran and failed.
    Ran,
}

fn verdict(meta: Option<&ResultMeta>) -> NotRun {
    let Some(meta) = meta else { return NotRun::Ran };
    let rejected = |decision: &PermissionDecision| decision.decision.as_deref() == Some("reject");
    match (&meta.permission_decision, meta.non_execution_kind.as_deref()) {
        (Some(decision), _) if rejected(decision) => NotRun::Denied(match decision.source.as_deref() {
            Some("hook") => By::Hook,
            Some("config") => By::Rules,
            Some(source) if source.starts_with("user") => By::User,
            _ => By::Unknown,
        }),
        (None, Some("user-rejected")) => NotRun::CutOff,
        (None, Some("permission-rule")) => NotRun::Denied(By::Rules),
        _ => NotRun::Ran,
    }
}

fn finished(
    call_id: String,
    tool: Option<String>,
    output: Raw,
    background: Option<String>,
    parent: Option<String>,
) -> AgentEvent {
    AgentEvent::ToolFinished { call_id, tool, output, exit_code: None, duration_ms: None, background, parent }
}

fn source(line: &User) -> InputSource {
    if line.is_replay == Some(true) {
        InputSource::Replay
    } else if line.parent_tool_use_id.is_some() {
        InputSource::SubAgent
    } else {
        // In this mode the program never writes a person's words except as a replay.
        InputSource::Harness
    }
}

/// Whether a tool's call is a change of one file.
pub(super) fn writes_file(tool: &str) -> bool {
    matches!(tool, "Write" | "Edit" | "MultiEdit" | "NotebookEdit")
}

/// A failed command says `Exit code 3` on its first line.
pub(super) fn exit_code(error: &str) -> Option<i64> {
    let rest = error.trim_start_matches("Error: ").strip_prefix("Exit code ")?;
    rest.lines().next()?.trim().parse().ok()
}

/// The blocks of a message, each with its text as it came. Plain text counts as one block.
fn blocks(content: Option<&Raw>) -> Option<Vec<(Raw, Block)>> {
    let Some(content) = content else { return Some(Vec::new()) };
    if let Some(text) = content.read::<String>() {
        let block = Block { r#type: Some("text".to_owned()), text: Some(text), ..Block::default() };
        return Some(vec![(content.clone(), block)]);
    }
    let raws: Vec<Raw> = content.read()?;
    raws.into_iter().map(|raw| raw.read().map(|block| (raw.clone(), block))).collect()
}

/// All the text in a string or list of blocks.
pub(super) fn text_of(content: Option<&Raw>) -> String {
    let Some(content) = content else { return String::new() };
    match blocks(Some(content)) {
        Some(blocks) => {
            let texts: Vec<String> = blocks.into_iter().filter_map(|(_, block)| block.text).collect();
            texts.join("\n")
        }
        None => content.get().to_owned(),
    }
}
