//! What a browser or a program is told when something cannot be done.

use axum::Json;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use axum::response::Response;
use serde_json::json;

use crate::error::CommandError;
use crate::exit::ExitCode;

/// Something that cannot be done.
#[derive(Clone, Debug)]
pub(super) struct Problem {
    pub(super) status: StatusCode,
    pub(super) code: &'static str,
    pub(super) message: String,
    pub(super) hints: Vec<String>,
}

impl Problem {
    pub(super) fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self { status, code, message: message.into(), hints: Vec::new() }
    }

    pub(super) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    pub(super) fn not_found() -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", "there is nothing here")
    }

    pub(super) fn bad(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "bad_request", message)
    }
}

impl From<CommandError> for Problem {
    fn from(error: CommandError) -> Self {
        let status = match error.exit() {
            ExitCode::Usage => StatusCode::BAD_REQUEST,
            ExitCode::SessionNotFound => StatusCode::NOT_FOUND,
            ExitCode::StoreBusy => StatusCode::SERVICE_UNAVAILABLE,
            ExitCode::Refused
            | ExitCode::Ambiguous
            | ExitCode::AlreadyActive
            | ExitCode::HeldElsewhere
            | ExitCode::BudgetExhausted
            | ExitCode::AgentMissing
            | ExitCode::Cancelled => StatusCode::CONFLICT,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        let status = if error.code() == "refused_below_run" { StatusCode::FORBIDDEN } else { status };
        Self { status, code: error.code(), message: error.to_string(), hints: error.hints().to_vec() }
    }
}

impl From<segno_engine::Error> for Problem {
    fn from(error: segno_engine::Error) -> Self {
        CommandError::from(error).into()
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let body = json!({ "error": { "code": self.code, "message": self.message, "hints": self.hints } });
        let mut response = (self.status, Json(body)).into_response();
        // A page is made of it for somebody who looks with a browser.
        response.extensions_mut().insert(self);
        response
    }
}
