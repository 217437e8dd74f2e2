//! Who is told when a loop stands still, by the settings.

use segno_engine::looping::Recipients;
use segno_engine::looping::Webhook;

use crate::config::env;
use crate::context::Context;
use crate::error::Outcome;
use crate::output::Bell;

/// What the terminal is sent when somebody should look.
pub(super) fn bell(context: &Context) -> Outcome<Bell> {
    Ok(Bell::of(&context.config()?.notify.terminal, &context.environment))
}

/// The recipients that the settings name.
pub(in crate::commands) fn recipients(context: &Context) -> Outcome<Recipients> {
    let notify = &context.config()?.notify;
    let given = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    let secret = context.environment.non_empty(env::NOTIFY_SECRET).map(ToOwned::to_owned);
    let webhook = given(&notify.webhook).map(|url| Webhook { url, secret });
    Ok(Recipients { desktop: notify.desktop, webhook, command: given(&notify.command) })
}
