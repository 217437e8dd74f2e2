//! How to run a real agent in a test's own home against a scripted model.
//!
//! A recipe is data (a program, its environment, files to write), so that whoever is tested starts the agent in its
//! own way. It allows all tools without asking and switches off whatever reaches out to the network.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use crate::home::Home;
use crate::home::text;
use crate::model::Model;

/// A real agent, ready to run.
#[derive(Debug, Clone)]
pub struct Recipe {
    /// The program.
    pub program: PathBuf,
    /// Its whole environment.
    pub env: BTreeMap<String, String>,
    /// Files it needs, by path.
    pub files: BTreeMap<PathBuf, String>,
    /// The directory to work in.
    pub cwd: PathBuf,
}

/// How soon an agent gives up. Left alone, agents are patient for many minutes.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// How often a failed request is tried again. opencode cannot be told: it tries five times more.
    pub retries: u32,
    /// How long a request may take to be answered (Claude Code, opencode).
    pub request: Duration,
    /// How long a stream may be silent. Claude Code takes less than 10 seconds for 10.
    pub silence: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self { retries: 2, request: Duration::from_secs(60), silence: Duration::from_secs(60) }
    }
}

impl Patience {
    /// Hardly any: for tests of stalls and outages.
    pub fn short() -> Self {
        Self { retries: 1, request: Duration::from_secs(3), silence: Duration::from_secs(2) }
    }
}

/// Claude Code in `home`, talking to `model`.
pub fn claude(program: &Path, home: &Home, model: &Model, patience: Patience) -> Recipe {
    let mut env = home.env();
    let tmp = text(&home.tmp());
    let pairs = [
        ("ANTHROPIC_API_KEY", "dummy".to_owned()),
        ("ANTHROPIC_BASE_URL", model.url()),
        ("API_TIMEOUT_MS", patience.request.as_millis().to_string()),
        // Its other variable for this, without `BYTE`, means 300 seconds at least.
        ("CLAUDE_BYTE_STREAM_IDLE_TIMEOUT_MS", patience.silence.as_millis().to_string()),
        ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1".to_owned()),
        ("CLAUDE_CODE_MAX_RETRIES", patience.retries.to_string()),
        // Otherwise its sockets lie in a directory that all sessions of the machine share.
        ("CLAUDE_CODE_TMPDIR", tmp),
        ("DISABLE_AUTOUPDATER", "1".to_owned()),
        ("DISABLE_ERROR_REPORTING", "1".to_owned()),
        ("DISABLE_TELEMETRY", "1".to_owned()),
    ];
    env.extend(pairs.map(|(name, value)| (name.to_owned(), value)));
    let settings = serde_json::json!({
        "permissions": { "allow": ["Agent", "Bash", "Edit", "Read", "Task", "Write"] }
    });
    let files = [(home.path().join(".claude/settings.json"), settings.to_string())].into();
    Recipe { program: program.to_owned(), env, files, cwd: home.work() }
}

impl Recipe {
    /// Makes Claude Code or Codex fit for a terminal: what they ask a person before they show themselves for the first
    /// time is answered.
    #[must_use]
    pub fn at_terminal(mut self) -> Self {
        let work = text(&self.cwd.canonicalize().unwrap_or_else(|_| self.cwd.clone()));
        self.env.insert("TERM".to_owned(), "xterm-256color".to_owned());
        self.env.insert("SHELL".to_owned(), "/bin/bash".to_owned());
        let home = PathBuf::from(&self.env["HOME"]);
        let welcomed = serde_json::json!({
            "hasCompletedOnboarding": true,
            "lastOnboardingVersion": "99.0.0",
            "theme": "dark",
            "hasSeenAutoDefaultNotice": true,
            "hasSeenAutoModeEntryWarning": true,
            "customApiKeyResponses": { "approved": ["dummy"], "rejected": [] },
            "projects": { &work: { "hasTrustDialogAccepted": true, "hasCompletedProjectOnboarding": true } },
        });
        self.files.insert(home.join(".claude.json"), welcomed.to_string());
        let trusted = format!(
            "\n[projects.\"{work}\"]\ntrust_level = \"trusted\"\n\n[notice.model_migrations]\n\"gpt-5.5\" = \"gpt-6-sol\"\n"
        );
        if let Some(config) = self.files.get_mut(&home.join(".codex/config.toml")) {
            config.push_str(&trusted);
        }
        self
    }
}

/// Codex in `home`, talking to `model`. Outside of a git repository it also wants `--skip-git-repo-check`.
pub fn codex(program: &Path, home: &Home, model: &Model, patience: Patience) -> Recipe {
    let mut env = home.env();
    let directory = home.path().join(".codex");
    env.insert("CODEX_HOME".to_owned(), text(&directory));
    env.insert("SCRIPTED_API_KEY".to_owned(), "dummy".to_owned());
    let Patience { retries, silence, .. } = patience;
    // The model must be one it knows: others have fewer tools. Features that look for plugins cost seconds offline.
    let config = format!(
        r#"model = "gpt-5.5"
model_provider = "scripted"
approval_policy = "never"
sandbox_mode = "danger-full-access"
check_for_update_on_startup = false

[model_providers.scripted]
name = "scripted"
base_url = "{url}/v1"
wire_api = "responses"
env_key = "SCRIPTED_API_KEY"
request_max_retries = {retries}
stream_max_retries = {retries}
stream_idle_timeout_ms = {silence}

[features]
plugins = false
apps = false
remote_plugin = false
plugin_discovery_prefetch = false

[analytics]
enabled = false

[feedback]
enabled = false

[otel]
exporter = "none"
"#,
        url = model.url(),
        silence = silence.as_millis(),
    );
    let files = [(directory.join("config.toml"), config)].into();
    Recipe { program: program.to_owned(), env, files, cwd: home.work() }
}

/// Gemini CLI in `home`, talking to `model`. It starts itself again as a child unless told not to.
pub fn gemini(program: &Path, home: &Home, model: &Model, patience: Patience) -> Recipe {
    let mut env = home.env();
    let pairs = [
        ("GEMINI_API_KEY", "dummy".to_owned()),
        ("GOOGLE_GEMINI_BASE_URL", model.url()),
        // Otherwise it asks whether the directory may be trusted, and runs no hooks there.
        ("GEMINI_CLI_TRUST_WORKSPACE", "true".to_owned()),
    ];
    env.extend(pairs.map(|(name, value)| (name.to_owned(), value)));
    let settings = serde_json::json!({
        "general": {
            "enableAutoUpdate": false,
            "enableAutoUpdateNotification": false,
            "maxAttempts": patience.retries + 1,
        },
        // A model it has no routing for: each request is one request.
        "model": { "name": "gemini-2.5-pro" },
        "privacy": { "usageStatisticsEnabled": false },
        "security": { "auth": { "selectedType": "gemini-api-key" } },
        "telemetry": { "enabled": false },
    });
    let policy = r#"[[rule]]
toolName = "*"
decision = "allow"
allowRedirection = true
priority = 100
"#;
    let directory = home.path().join(".gemini");
    let files = [
        (directory.join("settings.json"), settings.to_string()),
        (directory.join("policies/all.toml"), policy.to_owned()),
    ]
    .into();
    Recipe { program: program.to_owned(), env, files, cwd: home.work() }
}

/// opencode in `home`, talking to `model`.
pub fn opencode(program: &Path, home: &Home, model: &Model, patience: Patience) -> Recipe {
    let mut env = home.env();
    for name in
        ["OPENCODE_DISABLE_AUTOUPDATE", "OPENCODE_DISABLE_LSP_DOWNLOAD", "OPENCODE_DISABLE_MODELS_FETCH"]
    {
        env.insert(name.to_owned(), "1".to_owned());
    }
    let Patience { request, silence, .. } = patience;
    let config = serde_json::json!({
        "model": "scripted/scripted",
        "small_model": "scripted/scripted",
        "enabled_providers": ["scripted"],
        "autoupdate": false,
        "share": "disabled",
        "provider": { "scripted": {
            "npm": "@ai-sdk/openai-compatible",
            "name": "scripted",
            "options": {
                "baseURL": format!("{}/v1", model.url()),
                "apiKey": "dummy",
                "timeout": request.as_millis() as u64,
                "chunkTimeout": silence.as_millis() as u64,
            },
            "models": { "scripted": {
                "name": "scripted",
                "limit": { "context": 200_000, "output": 8000 },
                "cost": { "input": 1.0, "output": 2.0, "cache_read": 0.1 },
            } },
        } },
    });
    // It installs a package of its own beside its configuration, unless that is there already by these files.
    let package = r#"{"dependencies":{"@opencode-ai/plugin":"0.0.0"}}"#;
    let directory = home.path().join(".config/opencode");
    let files = [
        (directory.join("opencode.json"), config.to_string()),
        (directory.join("package.json"), package.to_owned()),
        (directory.join("package-lock.json"), format!(r#"{{"packages":{{"":{package}}}}}"#)),
        (directory.join("node_modules/.package-lock.json"), "{}".to_owned()),
    ]
    .into();
    Recipe { program: program.to_owned(), env, files, cwd: home.work() }
}

impl Recipe {
    /// Writes the files.
    ///
    /// # Errors
    /// One of them cannot be written.
    pub fn install(&self) -> io::Result<()> {
        for (path, content) in &self.files {
            if let Some(parent) = path.parent() {
                std::fs::create_dir_all(parent)?;
            }
            std::fs::write(path, content)?;
        }
        Ok(())
    }

    /// The agent with these arguments. Nothing of our own environment reaches it.
    pub fn command<S: AsRef<str>>(&self, args: impl IntoIterator<Item = S>) -> Command {
        let mut command = Command::new(&self.program);
        command.env_clear().envs(&self.env).current_dir(&self.cwd);
        command.args(args.into_iter().map(|arg| arg.as_ref().to_owned()));
        command
    }
}
