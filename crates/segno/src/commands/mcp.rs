//! `segno mcp`: sessions for an agent, over the Model Context Protocol.

use clap::Args as ClapArgs;

use crate::context::Context;
use crate::error::Outcome;

/// Let an agent keep its own session, over MCP
///
/// Speaks the Model Context Protocol on standard input and output; an agent starts it. A session that the agent makes
/// here is held by this process: when it is killed, the session is interrupted, and when the agent just leaves, it is
/// paused. Nothing here lifts a cap, and files are put back only if the person at the agent confirms it.
#[derive(ClapArgs, Clone, Debug)]
#[command(after_help = "Example:\n  claude mcp add segno -- segno mcp")]
pub struct Args {}

/// Runs `segno mcp`.
///
/// # Errors
/// If there is no way to serve.
pub fn run(context: &Context, _args: &Args) -> Outcome {
    crate::mcp::serve(context)
}
