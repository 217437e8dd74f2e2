//! What a script can refer to.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;

use regex::Regex;
use serde_json::Value;

use super::step::Step;

/// Arguments, conversation and stdin of this process.
#[derive(Debug, Clone)]
pub(super) struct Scene {
    pub(super) args: Vec<String>,
    pub(super) session: String,
    stdin: Arc<Mutex<String>>,
}

impl Scene {
    pub(super) fn new(args: Vec<String>) -> Self {
        let after = |names: &[&str]| {
            let at = args.iter().position(|arg| names.contains(&arg.as_str()))?;
            args.get(at + 1).cloned()
        };
        let session = after(&["--session-id"])
            .or_else(|| after(&["--resume", "resume"]))
            .unwrap_or_else(|| uuid::Uuid::now_v7().to_string());
        Self { args, session, stdin: Arc::default() }
    }

    /// What was read from stdin so far.
    pub(super) fn stdin(&self) -> String {
        self.stdin.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn heard(&self, text: &str) {
        self.stdin.lock().unwrap_or_else(PoisonError::into_inner).push_str(text);
    }

    /// The same step with every reference filled in. Steps inside of it are filled in when their time comes.
    pub(super) fn fill(&self, step: &Step) -> Result<Step, String> {
        match step {
            Step::Repeat { .. } | Step::Spawn { .. } | Step::OnSignal { .. } | Step::IfStdin { .. } => {
                Ok(step.clone())
            }
            Step::Hook { event, payload, command, allowed, denied } => {
                let mut payload = Value::Object(payload.clone());
                self.fill_value(&mut payload)?;
                let payload = payload.as_object().cloned().unwrap_or_default();
                let command = command.as_deref().map(|command| self.fill_text(command)).transpose()?;
                let (allowed, denied) = (allowed.clone(), denied.clone());
                Ok(Step::Hook { event: event.clone(), payload, command, allowed, denied })
            }
            step => {
                let mut value = serde_json::to_value(step).map_err(|error| error.to_string())?;
                self.fill_value(&mut value)?;
                serde_json::from_value(value).map_err(|error| error.to_string())
            }
        }
    }

    fn fill_value(&self, value: &mut Value) -> Result<(), String> {
        match value {
            Value::String(text) => *text = self.fill_text(text)?,
            Value::Array(list) => list.iter_mut().try_for_each(|item| self.fill_value(item))?,
            Value::Object(fields) => fields.values_mut().try_for_each(|item| self.fill_value(item))?,
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
        Ok(())
    }

    pub(super) fn fill_text(&self, text: &str) -> Result<String, String> {
        if !text.contains("${") {
            return Ok(text.to_owned());
        }
        let reference = Regex::new(r"\$\{(session|pid|cwd|stdin|env:([A-Za-z_0-9]+))\}")
            .map_err(|error| error.to_string())?;
        let replace = |found: &regex::Captures<'_>| match &found[1] {
            "session" => self.session.clone(),
            "pid" => std::process::id().to_string(),
            "cwd" => std::env::current_dir().unwrap_or_default().to_string_lossy().into_owned(),
            "stdin" => self.stdin(),
            // An unset variable is empty, as in a shell.
            _ => std::env::var(&found[2]).unwrap_or_default(),
        };
        Ok(reference.replace_all(text, replace).into_owned())
    }
}
