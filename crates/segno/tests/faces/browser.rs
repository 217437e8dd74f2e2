//! The page in a real browser: Chromium, driven through chromedriver. Without them these tests say so and are skipped.
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

use crate::common::TestEnv;
use crate::server::Server;

/// How long a busy machine may take for what is waited for.
const PATIENCE: Duration = Duration::from_secs(60);

fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).map(|directory| directory.join(name)).find(|path| path.is_file())
}

/// A browser, and the program that drives it.
struct Chrome {
    driver: Child,
    port: u16,
    client: Client,
    session: String,
    _profile: tempfile::TempDir,
}

impl Chrome {
    async fn start() -> Option<Self> {
        let (Some(driver), Some(chromium)) = (program("chromedriver"), program("chromium")) else {
            segno_testkit::agents::skip("chromium and chromedriver are not installed");
            return None;
        };
        let profile = tempfile::tempdir().unwrap();
        #[expect(clippy::disallowed_methods, reason = "the browser is a program")]
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
            if let Some(port) = line
                .trim_end_matches('.')
                .rsplit_once("successfully on port ")
                .and_then(|(_, port)| port.parse().ok())
            {
                break port;
            }
        };
        std::thread::spawn(move || lines.for_each(drop));
        let data = format!("--user-data-dir={}", profile.path().join("data").display());
        let capabilities = json!({
            "goog:loggingPrefs": { "browser": "ALL" },
            "goog:chromeOptions": {
                "binary": chromium,
                "args": [
                    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
                    "--disable-background-networking", "--disable-component-update", "--disable-sync",
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

    /// Tells the driver something that only Chromium knows.
    fn raw(&self, what: &str, body: &Value) -> Value {
        let mut stream = std::net::TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        let body = body.to_string();
        let text = format!(
            "POST /session/{}/{what} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
            self.session,
            self.port,
            body.len()
        );
        stream.write_all(text.as_bytes()).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let answer = String::from_utf8_lossy(&answer).into_owned();
        serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap_or(Value::Null)
    }

    fn look(&self, width: u32, dark: bool) {
        let size = json!({ "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600 });
        self.raw("goog/cdp/execute", &json!({ "cmd": "Emulation.setDeviceMetricsOverride", "params": size }));
        let scheme = if dark { "dark" } else { "light" };
        let features = json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] });
        self.raw("goog/cdp/execute", &json!({ "cmd": "Emulation.setEmulatedMedia", "params": features }));
    }

    /// What the console says that is more than a word.
    fn complaints(&self) -> Vec<String> {
        let log = self.raw("se/log", &json!({ "type": "browser" }));
        let all = log["value"].as_array().cloned().unwrap_or_default();
        let bad = all.iter().filter(|entry| matches!(entry["level"].as_str(), Some("SEVERE" | "WARNING")));
        bad.map(|entry| entry["message"].as_str().unwrap_or_default().to_owned()).collect()
    }

    async fn text(&self) -> String {
        let said = self.client.execute("return document.body.innerText", Vec::new()).await.unwrap();
        said.as_str().unwrap_or_default().to_owned()
    }

    async fn until(&self, what: &str) {
        let script = format!("return !!({what})");
        let begun = Instant::now();
        while self.client.execute(&script, Vec::new()).await.ok() != Some(json!(true)) {
            assert!(begun.elapsed() < PATIENCE, "{what}\n{}", self.text().await);
            tokio::time::sleep(Duration::from_millis(30)).await;
        }
    }

    async fn until_text(&self, what: &str) {
        self.until(&format!("document.body.innerText.includes({})", json!(what))).await;
    }

    async fn click(&self, what: &str) {
        self.client
            .wait()
            .at_most(PATIENCE)
            .for_element(Locator::Css(what))
            .await
            .unwrap()
            .click()
            .await
            .unwrap();
    }

    async fn keys(&self, keys: &str) {
        let body = json!({ "actions": [{ "type": "key", "id": "keys", "actions": keys.chars().flat_map(|key| {
            [json!({ "type": "keyDown", "value": key.to_string() }), json!({ "type": "keyUp", "value": key.to_string() })]
        }).collect::<Vec<_>>() }] });
        let done = self.raw("actions", &body);
        assert_eq!(done["value"], Value::Null, "{done}");
    }

    /// Keeps a picture if somebody wants pictures.
    async fn picture(&self, name: &str) {
        let Some(directory) = std::env::var_os("SEGNO_PICTURES").map(PathBuf::from) else { return };
        std::fs::create_dir_all(&directory).unwrap();
        let bytes = self.client.screenshot().await.unwrap();
        std::fs::write(directory.join(format!("{name}.png")), bytes).unwrap();
    }

    /// What is wrong with the page for people who cannot see or use it as others do.
    async fn serious(&self) -> Vec<String> {
        let cache = std::env::var_os("SEGNO_CACHE").map(PathBuf::from);
        let home = std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache/segno"));
        let axe = cache.or(home).map(|cache| cache.join("axe/node_modules/axe-core/axe.min.js"));
        let Some(source) = axe.and_then(|path| std::fs::read_to_string(path).ok()) else {
            segno_testkit::agents::skip("axe-core is not installed: scripts/test installs it");
            return Vec::new();
        };
        self.client.execute(&source, Vec::new()).await.unwrap();
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
        self.raw("window", &Value::Null);
        let mut stream = std::net::TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        let end = format!(
            "DELETE /session/{} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nConnection: close\r\n\r\n",
            self.session, self.port
        );
        let _ = stream.write_all(end.as_bytes()).and_then(|()| stream.read_to_end(&mut Vec::new()));
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}

fn run(test: impl AsyncFnOnce(Chrome)) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        if let Some(chrome) = Chrome::start().await {
            test(chrome).await;
        }
    });
}

/// A store with a bit of everything; the session that has most of it.
fn furnished() -> (TestEnv, String) {
    let mut env = TestEnv::on_disk();
    env.set("SEGNO_CHECKPOINT_FILES", "true");
    env.set("PATH", "/usr/local/bin:/usr/bin:/bin");
    env.write("project/src/auth.rs", "pub fn login() -> bool {\n    false\n}\n");
    let done = env.start(&["set up the harness", "--parallel"]);
    env.ok(&["complete", &done, "--summary", "works"]);
    let look = env.start(&["payment gateway: retries", "--parallel"]);
    env.ok(&["--session", &look, "breakpoint", "wait", "review the plan"]);
    let paused = env.start(&["flaky end to end tests", "--parallel"]);
    env.ok(&["pause", &paused, "--reason", "waits for the review"]);
    let id = env.start(&[
        "login form with rate limits",
        "--parallel",
        "--phases",
        "RED,GREEN,REFACTOR",
        "--budget",
        "200000",
    ]);
    let on = |args: &[&str]| {
        let mut all = vec!["--session", id.as_str()];
        all.extend_from_slice(args);
        env.ok(&all)
    };
    on(&["intent", "a person can log in, and nobody can guess passwords"]);
    on(&["checkpoint", "create", "before-green"]);
    env.write("project/src/auth.rs", "pub fn login(name: &str) -> bool {\n    !name.is_empty()\n}\n");
    on(&["phase", "GREEN"]);
    on(&[
        "decide",
        "How are attempts counted?",
        "--choice",
        "per account and address",
        "--because",
        "one alone is guessed around",
        "--alternative",
        "per address",
    ]);
    on(&["decide", "Where are they kept?", "in the session store"]);
    on(&["tokens", "--input", "42000", "--output", "3100", "--cost", "0.42"]);
    on(&["note", "the flaky test is not ours"]);
    on(&["task", "add", "lock an account after ten attempts"]);
    on(&["error", "connection refused", "--kind", "network"]);
    on(&["checkpoint", "create", "green"]);
    (env, id)
}

async fn open(chrome: &Chrome, server: &Server) {
    chrome.look(1280, false);
    chrome.client.goto(&server.link).await.unwrap();
    chrome.until("document.querySelector('#rows')").await;
}

#[test]
#[ignore = "written, and not yet seen to pass: the page was looked at by hand so far"]
fn every_view_is_whole_readable_and_silent() {
    run(async |chrome| {
        let (env, id) = furnished();
        let server = Server::start(&env, &[]);
        open(&chrome, &server).await;
        let views = [
            ("sessions", "/".to_owned()),
            ("timeline", format!("/s/{id}")),
            ("calls", format!("/s/{id}/calls")),
            ("phases", format!("/s/{id}/phases")),
            ("checkpoints", format!("/s/{id}/checkpoints")),
            ("checkpoint", format!("/s/{id}/checkpoints/cp-01-before-green")),
            ("decisions", format!("/s/{id}/decisions")),
            ("session-cost", format!("/s/{id}/cost")),
            ("brief", format!("/s/{id}/brief")),
            ("event", format!("/s/{id}/e/1")),
            ("search", "/search?q=login".to_owned()),
            ("cost", "/cost".to_owned()),
        ];
        for (name, path) in views {
            for (look, width, dark) in [("wide", 1280, false), ("narrow", 360, false), ("dark", 1280, true)] {
                chrome.look(width, dark);
                chrome.client.goto(&format!("http://{}{path}", server.host)).await.unwrap();
                chrome.until("document.readyState === 'complete'").await;
                let over = chrome
                    .client
                    .execute("return document.documentElement.scrollWidth - innerWidth", Vec::new())
                    .await;
                assert!(over.unwrap().as_i64().unwrap() <= 0, "{name} {look} is wider than the window");
                assert_eq!(chrome.serious().await, Vec::<String>::new(), "{name} {look}");
                chrome.picture(&format!("{name}-{look}")).await;
            }
        }
        assert_eq!(chrome.complaints(), Vec::<String>::new());
    });
}

#[test]
#[ignore = "written, and not yet seen to pass: the page was looked at by hand so far"]
fn it_is_live_and_acts_in_two_tabs_and_after_a_restart() {
    run(async |chrome| {
        let (env, id) = furnished();
        let mut server = Server::start(&env, &[]);
        let port = server.port();
        open(&chrome, &server).await;
        let here = format!("http://{}/s/{id}", server.host);
        let first = chrome.client.window().await.unwrap();
        chrome.client.goto(&here).await.unwrap();
        chrome.until("document.querySelector('#line').textContent === 'live'").await;
        let second = chrome.client.new_window(true).await.unwrap().handle;
        chrome.client.switch_to_window(second.clone()).await.unwrap();
        chrome.client.goto(&here).await.unwrap();
        chrome.until("document.querySelector('#line').textContent === 'live'").await;
        env.ok(&["--session", &id, "note", "told from a terminal"]);
        chrome.until_text("told from a terminal").await;
        // A note from one tab is in the other.
        chrome
            .client
            .execute(
                "document.querySelector('form[data-act=note]').closest('details').open = true",
                Vec::new(),
            )
            .await
            .unwrap();
        let words = chrome.client.find(Locator::Css("textarea[name=text]")).await.unwrap();
        words.send_keys("told from <b>a page</b>").await.unwrap();
        chrome.click("form[data-act=note] button").await;
        chrome.until_text("told from <b>a page</b>").await;
        chrome.client.switch_to_window(first).await.unwrap();
        chrome.until_text("told from <b>a page</b>").await;
        // Paused here, it is paused there, and goes on again.
        chrome.click("form[data-act=pause] button").await;
        chrome.until("document.querySelector('#stand .state').textContent.includes('paused')").await;
        chrome.client.switch_to_window(second).await.unwrap();
        chrome.until("document.querySelector('form[data-act=resume]')").await;
        chrome.click("form[data-act=resume] button").await;
        chrome.until("document.querySelector('#stand .state').textContent.includes('active')").await;
        assert_eq!(chrome.complaints(), Vec::<String>::new());
        // The server goes away: the page says so, and takes up where it was.
        drop(server);
        chrome.until("document.querySelector('#line').textContent.includes('lost')").await;
        env.ok(&["--session", &id, "note", "told while it was away"]);
        server = Server::on(&env, &port, &[]);
        chrome.until_text("told while it was away").await;
        chrome.until("document.querySelector('#line').textContent === 'live'").await;
        let twice = "document.body.innerText.split('told while it was away').length === 2";
        chrome.until(twice).await;
        drop(server);
    });
}

#[test]
#[ignore = "written, and not yet seen to pass: the page was looked at by hand so far"]
fn the_keyboard_is_enough() {
    run(async |chrome| {
        let (env, id) = furnished();
        let server = Server::start(&env, &[]);
        open(&chrome, &server).await;
        chrome.keys("?").await;
        chrome.until("document.querySelector('#keys').open").await;
        chrome.keys("\u{e00c}").await;
        chrome.until("!document.querySelector('#keys').open").await;
        chrome.keys("jj").await;
        chrome.until("document.querySelectorAll('.row')[1].classList.contains('at')").await;
        chrome.keys("\u{e007}").await;
        chrome.until("location.pathname.startsWith('/s/')").await;
        chrome.until("document.readyState === 'complete'").await;
        chrome.keys("u").await;
        chrome.until("location.pathname === '/'").await;
        chrome.until("document.readyState === 'complete'").await;
        chrome.keys("/").await;
        chrome.until("document.activeElement.id === 'find'").await;
        chrome.keys("login\u{e007}").await;
        chrome.until("location.pathname === '/search'").await;
        chrome.until_text("login form with rate limits").await;
        assert!(!id.is_empty());
    });
}

/// What is undone is shown first, and done only after a yes.
#[test]
#[ignore = "written, and not yet seen to pass: the page was looked at by hand so far"]
fn files_are_put_back_after_a_question() {
    run(async |chrome| {
        let (env, id) = furnished();
        let server = Server::start(&env, &[]);
        open(&chrome, &server).await;
        let page = format!("http://{}/s/{id}/checkpoints/cp-01-before-green?to=now", server.host);
        chrome.client.goto(&page).await.unwrap();
        chrome.click("form[data-act=restore] button").await;
        chrome.until("document.querySelector('#ask').open").await;
        assert!(chrome.text().await.contains("write src/auth.rs"));
        chrome.picture("restore-wide").await;
        chrome.click("#ask button[value=no]").await;
        chrome.until_text("nothing was changed").await;
        assert!(env.read("project/src/auth.rs").contains("name"));
        chrome.click("form[data-act=restore] button").await;
        chrome.until("document.querySelector('#ask').open").await;
        chrome.click("#ask button[value=yes]").await;
        chrome.until_text("files are put back").await;
        assert!(!env.read("project/src/auth.rs").contains("name"));
        assert_eq!(chrome.complaints(), Vec::<String>::new());
    });
}

/// A long session is read in pieces, and what is far away is let go.
#[test]
#[ignore = "written, and not yet seen to pass: the page was looked at by hand so far"]
fn a_long_session_is_scrolled_and_stays_small() {
    run(async |chrome| {
        let env = TestEnv::new();
        let id = env.start(&["long"]);
        for n in 0..400 {
            env.ok(&["note", &format!("note number {n}")]);
        }
        let server = Server::start(&env, &[]);
        open(&chrome, &server).await;
        chrome.client.goto(&format!("http://{}/s/{id}", server.host)).await.unwrap();
        chrome.until_text("note number 399").await;
        chrome.client.execute("scrollTo(0, 0)", Vec::new()).await.unwrap();
        chrome.until_text("note number 200").await;
        for _ in 0..20 {
            chrome.client.execute("scrollTo(0, 0)", Vec::new()).await.unwrap();
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        chrome.until_text("the beginning").await;
        chrome.until("document.querySelectorAll('#moments > li').length <= 600").await;
        assert_eq!(chrome.complaints(), Vec::<String>::new());
    });
}
