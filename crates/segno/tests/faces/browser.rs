//! The page in a real browser: every view, every action, and what happens around it.

use serde_json::json;

use crate::chrome::Chrome;
use crate::chrome::in_browser;
use crate::common::TestEnv;
use crate::server::Server;
use crate::server::certificate;

/// An agent that prints what it does as lines of JSON, as its description in the settings says.
const AGENT: &str = r#"
[scout]
command = ["sh", "ROOT/agent.sh"]
prompt = "stdin"
format = "json"
[[scout.rules]]
kind = "session_started"
when = { "$.type" = "hello" }
fields = { native_id = "$.id", model = "$.model" }
[[scout.rules]]
kind = "text"
when = { "$.type" = "says" }
fields = { text = "$.text" }
[[scout.rules]]
kind = "tool_started"
when = { "$.type" = "call" }
fields = { call_id = "$.id", tool = "$.tool", input = "$.input" }
[[scout.rules]]
kind = "tool_finished"
when = { "$.type" = "done" }
fields = { call_id = "$.id", output = "$.output" }
[[scout.rules]]
kind = "result"
when = { "$.type" = "end" }
fields = { text = "$.text" }
"#;

/// What it does in a first run: it looks, changes a file, and runs the tests.
const WORKS: &str = r#"
cat > /dev/null
say() { printf '%s\n' "$1"; }
say '{"type":"hello","id":"talk-1","model":"scout-2"}'
say '{"type":"says","text":"I look at how people log in now, and then count failed attempts.\n\nThe counter belongs next to the session store: it forgets by itself."}'
say '{"type":"call","id":"c1","tool":"Read","input":{"file_path":"src/auth.rs"}}'
say '{"type":"done","id":"c1","output":"pub fn login() -> bool {\n    false\n}"}'
say '{"type":"call","id":"c2","tool":"Edit","input":{"file_path":"src/auth.rs","old_string":"pub fn login() -> bool {\n    false\n}","new_string":"pub fn login(name: &str) -> bool {\n    !name.is_empty()\n}"}}'
printf 'pub fn login(name: &str) -> bool {\n    !name.is_empty()\n}\n' > src/auth.rs
say '{"type":"done","id":"c2","output":"changed"}'
say '{"type":"call","id":"c3","tool":"Bash","input":{"command":"cargo test auth"}}'
say '{"type":"done","id":"c3","output":"running 4 tests\ntest auth::empty_names ... ok\ntest auth::ten_attempts ... FAILED\n\ntest result: FAILED. 3 passed; 1 failed"}'
say '{"type":"says","text":"One test is left: ten attempts do not lock the account yet."}'
say '{"type":"end","text":"The form checks names. The lock comes next."}'
"#;

/// What it does in a second: it says one thing, and waits until it may say another.
const WAITS: &str = r#"
cat > /dev/null
printf '%s\n' '{"type":"hello","id":"talk-2","model":"scout-2"}'
printf '%s\n' '{"type":"says","text":"first words of a long run"}'
printf '%s\n' '{"type":"call","id":"c9","tool":"Bash","input":{"command":"./slow-build"}}'
while [ ! -e go-on ]; do sleep 0.05; done
printf '%s\n' '{"type":"done","id":"c9","output":"built at last"}'
printf '%s\n' '{"type":"says","text":"second words of a long run"}'
printf '%s\n' '{"type":"end","text":"done"}'
"#;

/// A store with a bit of everything; the session that has most of it.
pub(crate) fn furnished() -> (TestEnv, String) {
    let mut env = TestEnv::on_disk();
    env.set("SEGNO_CHECKPOINT_FILES", "true");
    env.set("PATH", "/usr/local/bin:/usr/bin:/bin");
    let root = env.path("").display().to_string();
    env.set("SEGNO_AGENTS", &AGENT.replace("ROOT", root.trim_end_matches('/')));
    env.write("agent.sh", WORKS);
    env.write("project/src/auth.rs", "pub fn login() -> bool {\n    false\n}\n");
    let done = env.start(&["set up the harness", "--parallel"]);
    env.ok(&["complete", &done, "--summary", "works"]);
    let look = env.start(&["payment gateway: retries", "--parallel"]);
    env.ok(&["--session", &look, "breakpoint", "wait", "review the plan"]);
    let paused = env.start(&["flaky end to end tests", "--parallel"]);
    env.ok(&["pause", &paused, "--reason", "waits for the review"]);
    let phases = ["--phases", "RED,GREEN,REFACTOR", "--budget", "200000"];
    let id = env.start(&[&["login form with rate limits", "--parallel"], &phases[..]].concat());
    let on = |args: &[&str]| {
        env.ok(&[&["--session", id.as_str()], args].concat());
    };
    on(&["intent", "a person can log in, and nobody can guess passwords"]);
    on(&["checkpoint", "create", "before-green"]);
    let asked = "Let people log in with a name, and lock an account after ten failed attempts.";
    on(&["run", "--agent", "scout", "--prompt", asked]);
    on(&["phase", "GREEN"]);
    let because = ["--because", "one alone is guessed around", "--alternative", "per address"];
    on(&[&["decide", "How are attempts counted?", "--choice", "per account and address"], &because[..]]
        .concat());
    on(&["decide", "Where are they kept?", "--choice", "in the session store"]);
    on(&["tokens", "--input", "42000", "--output", "3100", "--cost", "0.42"]);
    on(&["tokens", "--input", "9000", "--output", "800", "--cost", "0.11"]);
    on(&["note", "the flaky test is not ours"]);
    on(&["task", "add", "lock an account after ten attempts"]);
    on(&["error", "connection refused", "--kind", "network"]);
    on(&["error", "connection refused", "--kind", "network"]);
    on(&["checkpoint", "create", "green"]);
    (env, id)
}

#[test]
fn every_view_is_whole_readable_and_silent() {
    in_browser(async |chrome| {
        let (env, id) = furnished();
        let server = Server::start(&env, &[]);
        chrome.sign_in(&server).await;
        let views = [
            ("sessions", "/".to_owned()),
            ("timeline", format!("/s/{id}")),
            ("calls", format!("/s/{id}/calls")),
            ("phases", format!("/s/{id}/phases")),
            ("checkpoints", format!("/s/{id}/checkpoints")),
            ("checkpoint", format!("/s/{id}/checkpoints/cp-01-before-green?to=now")),
            ("decisions", format!("/s/{id}/decisions")),
            ("session-cost", format!("/s/{id}/cost")),
            ("brief", format!("/s/{id}/brief")),
            ("event", format!("/s/{id}/e/1")),
            ("search", "/search?q=login".to_owned()),
            ("cost", "/cost".to_owned()),
            ("insights", "/insights".to_owned()),
            ("missing", "/nothing".to_owned()),
        ];
        for (name, path) in views {
            chrome.look(1280, false);
            chrome.open(&server, &path).await;
            for (look, width, dark) in [("wide", 1280, false), ("narrow", 360, false), ("dark", 1280, true)] {
                chrome.look(width, dark);
                if width < 600 {
                    chrome.open(&server, &path).await;
                }
                chrome.until(&format!("innerWidth === {width}")).await;
                let over = chrome.run("return document.documentElement.scrollWidth - innerWidth").await;
                assert!(over.as_i64().unwrap() <= 0, "{name} {look} is {over} pixels wider than the window");
                assert_eq!(chrome.serious().await, Vec::<String>::new(), "{name} {look}");
                chrome.picture(&format!("{name}-{look}")).await;
            }
            let elsewhere = "return performance.getEntriesByType('resource').map((it) => it.name)
                .filter((name) => !name.startsWith(location.origin + '/'))";
            assert_eq!(chrome.run(elsewhere).await, json!([]), "{name} needs nothing from elsewhere");
            let complaints = chrome.complaints();
            assert!(complaints.is_empty() || name == "missing", "{name} {complaints:?}");
        }
    });
}

pub(crate) const LOST: &str = "document.querySelector('#line').textContent.includes('lost')";
pub(crate) const LIVE: &str = "document.querySelector('#line').textContent === 'live'";

#[test]
fn it_is_live_and_acts_in_two_tabs_and_after_a_restart() {
    in_browser(async |chrome| {
        let (env, id) = furnished();
        let mut server = Server::start(&env, &[]);
        let port = server.port();
        chrome.sign_in(&server).await;
        let here = format!("/s/{id}");
        let first = chrome.client.window().await.unwrap();
        chrome.open(&server, &here).await;
        chrome.until(LIVE).await;
        let second = chrome.client.new_window(true).await.unwrap().handle;
        chrome.client.switch_to_window(second.clone()).await.unwrap();
        chrome.open(&server, &here).await;
        chrome.until(LIVE).await;
        env.ok(&["--session", &id, "note", "told from a terminal"]);
        chrome.until_told("told from a terminal").await;
        // A note from one tab is in the other.
        chrome.click("details.more:has(form[data-act=note]) > summary").await;
        chrome.click("textarea[name=text]").await;
        chrome.keys("told from <b>a page</b>").await;
        chrome.click("form[data-act=note] button").await;
        chrome.until_told("told from <b>a page</b>").await;
        chrome.client.switch_to_window(first).await.unwrap();
        chrome.until_told("told from <b>a page</b>").await;
        // Paused here, it is paused there, and goes on again.
        chrome.click("form[data-act=pause] button").await;
        chrome.until("document.querySelector('#stand .state').textContent.includes('paused')").await;
        chrome.client.switch_to_window(second).await.unwrap();
        chrome.click("form[data-act=resume] button").await;
        chrome.until("document.querySelector('#stand .state').textContent.includes('active')").await;
        assert_eq!(chrome.complaints(), Vec::<String>::new());
        // The server goes away: the page says so, and takes up where it was. Nothing is left out or told twice.
        drop(server);
        chrome.until(LOST).await;
        chrome.picture("lost-wide").await;
        env.ok(&["--session", &id, "note", "told while it was away"]);
        server = Server::on(&env, &port, &[]);
        chrome.until_told("told while it was away").await;
        chrome.until(LIVE).await;
        chrome
            .until(
                "document.querySelector('#moments').textContent.split('told while it was away').length === 2",
            )
            .await;
        drop(server);
    });
}

/// What an agent says and does is there while it runs, and the page can stop it.
#[test]
fn a_running_agent_is_seen_at_work() {
    in_browser(async |chrome| {
        let (env, _) = furnished();
        env.write("agent.sh", WAITS);
        let server = Server::start(&env, &[]);
        chrome.sign_in(&server).await;
        let mut run = env.command(crate::common::SEGNO);
        let run = run.args(["run", "--agent", "scout", "--topic", "a long build", "--prompt", "build it"]);
        let mut run =
            run.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null()).spawn().unwrap();
        // The list shows it by itself.
        chrome
            .until("document.querySelector('.need-works .row .open')?.textContent === 'a long build'")
            .await;
        chrome.picture("running-list-wide").await;
        chrome.click(".need-works .row .open").await;
        chrome.until_told("first words of a long run").await;
        chrome.until("document.querySelector('li.call details.works')").await;
        chrome.until("document.querySelector('form[data-act=stop]')").await;
        chrome.picture("running-wide").await;
        env.write("project/go-on", "");
        chrome.until_told("second words of a long run").await;
        // The call that was open has ended where it stands.
        chrome.until("!document.querySelector('li.call details.works')").await;
        chrome.until("!document.querySelector('form[data-act=stop]')").await;
        chrome.until("document.querySelector('#aside').textContent.includes('1 completed')").await;
        assert!(run.wait().unwrap().success());
        assert_eq!(chrome.complaints(), Vec::<String>::new());
    });
}

#[test]
fn the_keyboard_is_enough() {
    in_browser(async |chrome| {
        let (env, id) = furnished();
        let server = Server::start(&env, &[]);
        chrome.sign_in(&server).await;
        chrome.keys("?").await;
        chrome.until("document.querySelector('#keys').open").await;
        chrome.picture("keys-wide").await;
        chrome.keys("\u{e00c}").await;
        chrome.until("!document.querySelector('#keys').open").await;
        chrome.keys("jj").await;
        chrome.until("document.querySelectorAll('.row')[1].classList.contains('at')").await;
        chrome.keys("\u{e007}").await;
        chrome.until("location.pathname.startsWith('/s/') && document.readyState === 'complete'").await;
        chrome.keys("u").await;
        chrome.until("location.pathname === '/' && document.readyState === 'complete'").await;
        chrome.keys("/").await;
        chrome.until("document.activeElement.id === 'find'").await;
        chrome.keys("login\u{e007}").await;
        chrome.until("location.pathname === '/search' && document.readyState === 'complete'").await;
        chrome.until_text("login form with rate limits").await;
        // Everything that can be done is reached by Tab, and does what it says by Enter.
        chrome.open(&server, &format!("/s/{id}")).await;
        for _ in 0..60 {
            if chrome.run("return document.activeElement.closest('form')?.dataset.act").await == "checkpoint"
            {
                break;
            }
            chrome.keys("\u{e004}").await;
        }
        chrome.keys("\u{e007}").await;
        chrome.until_text("checkpoint made").await;
        assert_eq!(chrome.complaints(), Vec::<String>::new());
    });
}

/// Elsewhere than on this machine it speaks TLS alone; everything works there too.
#[test]
fn over_tls_it_is_the_same_page() {
    in_browser(async |chrome| {
        let (env, id) = furnished();
        let Some((cert, key)) = certificate(&env) else { return };
        let tls = ["--cert", &cert, "--cert-key", &key];
        let server = Server::with(&env, &[&["--listen", "127.0.0.1:0"], &tls[..]].concat());
        assert_eq!(server.scheme, "https");
        // Whoever speaks no TLS is told nothing.
        assert_eq!(server.ask("GET", "/", &[("Host", &server.host)], "").status, 0);
        chrome.sign_in(&server).await;
        let cookies = chrome.client.get_all_cookies().await.unwrap();
        let kept: Vec<_> = cookies.iter().map(|it| (it.secure(), it.http_only())).collect();
        assert_eq!(kept, [(Some(true), Some(true))]);
        chrome.open(&server, &format!("/s/{id}")).await;
        chrome.until(LIVE).await;
        chrome.click("form[data-act=checkpoint] button").await;
        chrome.until_text("checkpoint made").await;
        env.ok(&["--session", &id, "note", "told from a terminal"]);
        chrome.until_told("told from a terminal").await;
        assert_eq!(chrome.complaints(), Vec::<String>::new());
    });
}

/// What is put back is shown first, and done only after a yes.
#[test]
fn files_are_put_back_after_a_question() {
    in_browser(async |chrome| {
        let (env, id) = furnished();
        let server = Server::start(&env, &[]);
        chrome.sign_in(&server).await;
        chrome.open(&server, &format!("/s/{id}/checkpoints/cp-01-before-green?to=now")).await;
        chrome.click("form[data-act=restore] button").await;
        chrome.until("document.querySelector('#ask').open").await;
        assert!(chrome.text().await.contains("write src/auth.rs"));
        assert_eq!(chrome.serious().await, Vec::<String>::new());
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
fn a_long_session_is_scrolled_and_stays_small() {
    in_browser(async |chrome| {
        let env = TestEnv::new();
        let id = env.start(&["long"]);
        crate::large::notes(&env, &id, 1_500);
        let server = Server::start(&env, &[]);
        chrome.sign_in(&server).await;
        chrome.open(&server, &format!("/s/{id}")).await;
        chrome.until_told("note number 1499").await;
        // It begins at its end, and stays there.
        chrome.until("innerHeight + scrollY >= document.documentElement.scrollHeight - 120").await;
        to_the_beginning(&chrome).await;
        // And back again, without a gap.
        to_the_end(&chrome, 1_499).await;
        env.ok(&["--session", &id, "note", "the newest of all"]);
        chrome.until_told("the newest of all").await;
        assert_eq!(chrome.complaints(), Vec::<String>::new());
    });
}

pub(crate) const FEW: &str = "document.querySelectorAll('#moments > li').length <= 600";

/// Scrolls up until there is nothing more.
pub(crate) async fn to_the_beginning(chrome: &Chrome) {
    let begins = "document.querySelector('#timeline .ends').innerText.includes('the beginning')";
    let mut first = u64::MAX;
    while chrome.run(&format!("return {begins}")).await == json!(false) {
        chrome.run("scrollTo(0, 0)").await;
        // It is at the beginning, or something earlier has come.
        chrome.until(&format!("{begins} || {FIRST} < {first}")).await;
        first = chrome.run(&format!("return {FIRST}")).await.as_u64().unwrap();
        chrome.until(FEW).await;
    }
    chrome.until("document.querySelector('#moments').textContent.includes('note number 0')").await;
}

const FIRST: &str = "Number(document.querySelector('#moments > li').dataset.seq)";
const LAST: &str = "Number(document.querySelector('#moments > li:last-child').dataset.seq)";

/// Scrolls down until this note is there; all that lie between have been there, each once and in order.
async fn to_the_end(chrome: &Chrome, last: usize) {
    chrome.run("window.seen = new Set()").await;
    let look =
        "const all = [...document.querySelectorAll('#moments > li')].map((it) => Number(it.dataset.seq));
        for (const seq of all) window.seen.add(seq);
        return all.every((seq, at) => at === 0 || seq > all[at - 1])";
    let end = format!("document.querySelector('#moments').textContent.includes('note number {last}')");
    let mut newest = 0;
    chrome.run(look).await;
    while chrome.run(&format!("return {end}")).await == json!(false) {
        chrome.run("scrollTo(0, document.documentElement.scrollHeight)").await;
        chrome.until(&format!("{end} || {LAST} > {newest}")).await;
        newest = chrome.run(&format!("return {LAST}")).await.as_u64().unwrap();
        assert_eq!(chrome.run(look).await, json!(true), "the moments stand in order");
        chrome.until(FEW).await;
    }
    chrome.run(look).await;
    let seen = chrome.run("return window.seen.size").await;
    assert!(seen.as_u64().unwrap() > last as u64, "{seen} of {last} were seen");
}
