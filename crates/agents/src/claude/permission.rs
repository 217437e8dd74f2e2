//! How Claude Code is answered when it asks whether a call may run.

use serde_json::json;

use crate::permission::Permission;
use crate::raw::Raw;

/// A prompt, for a standard input that stays open for answers.
pub(super) fn prompt(text: &str) -> Vec<u8> {
    line(&json!({ "type": "user", "message": { "role": "user", "content": text } }))
}

/// The answer to one question.
pub(super) fn answer(request_id: &str, input: &Raw, permission: &Permission) -> Vec<u8> {
    let response = match permission {
        Permission::Allow => json!({ "behavior": "allow", "updatedInput": input }),
        Permission::Deny(reason) => json!({ "behavior": "deny", "message": reason }),
    };
    line(&json!({
        "type": "control_response",
        "response": { "subtype": "success", "request_id": request_id, "response": response },
    }))
}

fn line(value: &serde_json::Value) -> Vec<u8> {
    let mut line = value.to_string().into_bytes();
    line.push(b'\n');
    line
}
