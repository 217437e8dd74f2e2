//! Chromium, driven through chromedriver. Where they are missing, tests that need them say so and are skipped.
#![expect(clippy::disallowed_methods, reason = "where tools are is told by the environment of the tests")]

use std::io::BufRead as _;
use std::io::BufReader;
use std::io::Read as _;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::Child;
use std::process::Stdio;
use std::time::Duration;
use std::time::Instant;

use fantoccini::Client;
use fantoccini::ClientBuilder;
use fantoccini::Locator;
use serde_json::Value;
use serde_json::json;

use crate::server::Server;

/// How long a busy machine may take for what is waited for.
const PATIENCE: Duration = Duration::from_secs(120);

fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).map(|directory| directory.join(name)).find(|path| path.is_file())
}

/// A browser, and the program that drives it.
pub(crate) struct Chrome {
    driver: Child,
    port: u16,
    pub(crate) client: Client,
    session: String,
    _profile: tempfile::TempDir,
}

impl Chrome {
    async fn start() -> Option<Self> {
        let (Some(driver), Some(chromium)) = (program("chromedriver"), program("chromium")) else {
            segno_testkit::agents::skip(
                "chromium and chromedriver are not installed: scripts/test installs them",
            );
            return None;
        };
        let profile = tempfile::tempdir().unwrap();
        let mut driver = std::process::Command::new(driver)
            .arg("--port=0")
            .env("HOME", profile.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(driver.stdout.take().unwrap()).lines();
        let port = loop {
            let line = lines.next().unwrap().unwrap();
            let port = line.trim_end_matches('.').rsplit_once("successfully on port ");
            if let Some(port) = port.and_then(|(_, port)| port.parse().ok()) {
                break port;
            }
        };
        std::thread::spawn(move || lines.for_each(drop));
        let data = format!("--user-data-dir={}", profile.path().join("data").display());
        let capabilities = json!({
            "acceptInsecureCerts": true,
            "goog:loggingPrefs": { "browser": "ALL" },
            "goog:chromeOptions": {
                "binary": chromium,
                "args": [
                    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--no-proxy-server",
                    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-extensions",
                    "--disable-dev-shm-usage", "--window-size=1280,900", data,
                ],
            },
        });
        let Value::Object(capabilities) = capabilities else { panic!("an object") };
        let mut builder = ClientBuilder::new(hyper_util::client::legacy::connect::HttpConnector::new());
        let client =
            builder.capabilities(capabilities).connect(&format!("http://127.0.0.1:{port}")).await.unwrap();
        let session = client.session_id().await.unwrap().unwrap();
        Some(Self { driver, port, client, session, _profile: profile })
    }

    /// Says something to the driver; nothing if it is gone.
    fn speak(&self, method: &str, what: &str, body: &str) -> Option<Value> {
        let mut stream = std::net::TcpStream::connect(("127.0.0.1", self.port)).ok()?;
        stream.set_read_timeout(Some(PATIENCE)).ok()?;
        let text = format!(
            "{method} /session/{}{what} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            self.session,
            self.port,
            body.len()
        );
        stream.write_all(text.as_bytes()).ok()?;
        // It leaves the connection open, whatever it is asked for: its head says how long the answer is.
        let mut answer = BufReader::new(stream);
        let mut length = 0;
        loop {
            let mut line = String::new();
            answer.read_line(&mut line).ok()?;
            match line.trim_end().split_once(':') {
                Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                    length = value.trim().parse().ok()?;
                }
                None if line.trim_end().is_empty() => break,
                _ => {}
            }
        }
        let mut body = vec![0; length];
        answer.read_exact(&mut body).ok()?;
        serde_json::from_slice(&body).ok()
    }

    /// Tells the driver something that not every browser knows.
    fn raw(&self, what: &str, body: &Value) -> Value {
        self.speak("POST", &format!("/{what}"), &body.to_string()).unwrap()
    }

    /// Tells the browser something that only Chromium knows.
    pub(crate) fn chromium(&self, command: &str, params: &Value) -> Value {
        self.raw("goog/cdp/execute", &json!({ "cmd": command, "params": params }))["value"].clone()
    }

    /// From now on it looks like this.
    pub(crate) fn look(&self, width: u32, dark: bool) {
        let size = json!({ "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600 });
        self.chromium("Emulation.setDeviceMetricsOverride", &size);
        let scheme = if dark { "dark" } else { "light" };
        let calm = json!({ "name": "prefers-reduced-motion", "value": "reduce" });
        let features = json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }, calm] });
        self.chromium("Emulation.setEmulatedMedia", &features);
    }

    /// What the console says that is more than a word.
    pub(crate) fn complaints(&self) -> Vec<String> {
        let log = self.raw("se/log", &json!({ "type": "browser" }));
        let all = log["value"].as_array().unwrap();
        let bad = all.iter().filter(|entry| matches!(entry["level"].as_str(), Some("SEVERE" | "WARNING")));
        bad.map(|entry| entry["message"].as_str().unwrap_or_default().to_owned()).collect()
    }

    pub(crate) async fn run(&self, script: &str) -> Value {
        self.client.execute(script, Vec::new()).await.unwrap()
    }

    pub(crate) async fn text(&self) -> String {
        let said = self.run("return document.body.innerText").await;
        said.as_str().unwrap_or_default().to_owned()
    }

    pub(crate) async fn until(&self, what: &str) {
        let script = format!("return !!({what})");
        let begun = Instant::now();
        while self.client.execute(&script, Vec::new()).await.ok() != Some(json!(true)) {
            assert!(begun.elapsed() < PATIENCE, "{what}\n{}", self.text().await);
            tokio::time::sleep(Duration::from_millis(30)).await;
        }
    }

    pub(crate) async fn until_text(&self, what: &str) {
        self.until(&format!("document.body.innerText.includes({})", json!(what))).await;
    }

    /// Waits until this stands in the timeline, maybe where nobody looks just now.
    pub(crate) async fn until_told(&self, what: &str) {
        self.until(&format!("document.querySelector('#moments').textContent.includes({})", json!(what)))
            .await;
    }

    /// Goes to a page of the server, and waits until it is there.
    pub(crate) async fn open(&self, server: &Server, path: &str) {
        self.client.goto(&format!("{}://{}{path}", server.scheme, server.host)).await.unwrap();
        self.until("document.readyState === 'complete'").await;
    }

    /// Signs in by the one-time link.
    pub(crate) async fn sign_in(&self, server: &Server) {
        self.look(1280, false);
        self.client.goto(&server.link).await.unwrap();
        self.until("document.querySelector('#rows')").await;
    }

    pub(crate) async fn click(&self, what: &str) {
        // A page that is live may put another element in the place of the one that was found: then that one is clicked.
        for tries in 1.. {
            self.until(&format!("document.querySelector({})", json!(what))).await;
            // The driver would bring it to the edge, where the bar of the page lies.
            let shown =
                format!("document.querySelector({})?.scrollIntoView({{ block: 'center' }})", json!(what));
            self.run(&shown).await;
            let Ok(found) = self.client.find(Locator::Css(what)).await else { continue };
            match found.click().await {
                Ok(()) => return,
                Err(why) => assert!(why.is_stale_element_reference() && tries < 100, "{what}: {why}"),
            }
        }
    }

    pub(crate) async fn keys(&self, keys: &str) {
        let press = |key: char| {
            let key = key.to_string();
            [json!({ "type": "keyDown", "value": key }), json!({ "type": "keyUp", "value": key })]
        };
        let actions: Vec<Value> = keys.chars().flat_map(press).collect();
        let body = json!({ "actions": [{ "type": "key", "id": "keys", "actions": actions }] });
        let done = self.raw("actions", &body);
        assert_eq!(done["value"], Value::Null, "{done}");
    }

    /// Keeps a picture if somebody wants pictures.
    pub(crate) async fn picture(&self, name: &str) {
        let Some(directory) = std::env::var_os("SEGNO_PICTURES").map(PathBuf::from) else { return };
        std::fs::create_dir_all(&directory).unwrap();
        let bytes = self.client.screenshot().await.unwrap();
        std::fs::write(directory.join(format!("{name}.png")), bytes).unwrap();
    }

    /// What is wrong with the page for people who cannot see or use it as others do.
    pub(crate) async fn serious(&self) -> Vec<String> {
        let cache = std::env::var_os("SEGNO_CACHE").map(PathBuf::from);
        let home = std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache/segno"));
        let axe = cache.or(home).map(|cache| cache.join("axe/node_modules/axe-core/axe.min.js"));
        let Some(source) = axe.and_then(|path| std::fs::read_to_string(path).ok()) else {
            segno_testkit::agents::skip("axe-core is not installed: scripts/test installs it");
            return Vec::new();
        };
        if self.run("return !window.axe").await == json!(true) {
            self.run(&source).await;
        }
        let script = "const done = arguments[arguments.length - 1];
            axe.run(document, { resultTypes: ['violations'] }).then((it) => done(it.violations
                .filter((one) => ['serious', 'critical'].includes(one.impact))
                .map((one) => one.id + ': ' + one.nodes.slice(0, 3).map((node) => node.html + ' ' + node.failureSummary).join(' | '))));";
        let found = self.client.execute_async(script, Vec::new()).await.unwrap();
        found.as_array().unwrap().iter().map(|it| it.as_str().unwrap().to_owned()).collect()
    }
}

impl Drop for Chrome {
    fn drop(&mut self) {
        // The driver takes its browser along.
        let _ = self.speak("DELETE", "", "");
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}

/// A test in a browser.
pub(crate) fn in_browser(test: impl AsyncFnOnce(Chrome)) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        if let Some(chrome) = Chrome::start().await {
            test(chrome).await;
        }
    });
}
