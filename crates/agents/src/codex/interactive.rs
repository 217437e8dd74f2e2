//! Codex with a person at its terminal.

use crate::launch::LaunchError;
use crate::launch::LaunchRequest;
use crate::launch::LaunchSpec;
use crate::launch::Unsupported;
use crate::launch::extra_args;

pub(super) fn launch(request: &LaunchRequest) -> Result<LaunchSpec, LaunchError> {
    let mut spec = request.spec("codex");
    // The person's options come before ours: one that takes many values would otherwise swallow the subcommand.
    let mut args = extra_args(&request.extra_args)?;
    super::launch::conversation(request, &mut spec, &mut args)?;
    if let Some(prompt) = request.first_prompt()? {
        args.extend(["--".to_owned(), prompt]);
    }
    spec.unsupported.extend(request.max_turns.map(|_| Unsupported::MaxTurns));
    spec.unsupported.extend(request.max_cost_usd.map(|_| Unsupported::MaxCost));
    spec.args = args;
    Ok(spec)
}
