//! The script of the page where somebody types, and where there are many pages.

use serde_json::json;

use crate::agents::asking;
use crate::agents::question;
use crate::agents::until;
use crate::browser::LIVE;
use crate::browser::furnished;
use crate::chrome::in_browser;
use crate::common::TestEnv;
use crate::server::Server;

const WORDS: &str = "form.words input[name=answer]";

fn answered(env: &TestEnv) -> String {
    until("it was answered", || env.path("answered").exists().then(|| env.read("answered")))
}

/// Enter in the box for words sends the words, which are a no; never the word on the first button.
#[test]
fn words_are_the_answer_and_no_yes() {
    in_browser(async |chrome| {
        for page in ["list", "session"] {
            let env = asking(&["rm -rf build"]);
            let id = question(&env)["session_id"].as_str().unwrap().to_owned();
            let server = Server::start(&env, &[]);
            chrome.sign_in(&server).await;
            chrome.open(&server, &if page == "list" { "/".to_owned() } else { format!("/s/{id}") }).await;
            chrome.until(LIVE).await;
            chrome.click(WORDS).await;
            chrome.keys("use make clean\u{e007}").await;
            let said = answered(&env);
            assert!(said.contains("\"deny\"") && said.contains("use make clean"), "{page} {said}");
            chrome.until("!document.querySelector('article.question')").await;
            assert_eq!(chrome.complaints(), Vec::<String>::new());
            chrome.client.goto("about:blank").await.unwrap();
        }
    });
}

/// What somebody types, has opened or has in focus stays while the page changes around it.
#[test]
fn news_take_nothing_from_whoever_types() {
    in_browser(async |chrome| {
        let env = asking(&["rm -rf build", "rm -rf target"]);
        let id = question(&env)["session_id"].as_str().unwrap().to_owned();
        let server = Server::start(&env, &[]);
        chrome.sign_in(&server).await;
        for path in ["/".to_owned(), format!("/s/{id}")] {
            chrome.open(&server, &path).await;
            chrome.until(LIVE).await;
            chrome.click(WORDS).await;
            chrome.keys("not yet, becau").await;
            // The words stay when somebody looks elsewhere, too.
            chrome.run("document.querySelector('form.act button[value=no]').focus()").await;
            let told = format!("told at {path}");
            env.ok(&["--session", &id, "tag", &id, if path == "/" { "one" } else { "two" }]);
            env.ok(&["--session", &id, "note", &told]);
            if path == "/" {
                chrome.until("document.querySelector('#rows').innerText.includes('#one')").await;
            } else {
                chrome.until_told(&told).await;
            }
            let focus = chrome.run("return document.activeElement.value").await;
            assert_eq!(focus, json!("no"), "{path}: the focus is where it was");
            let typed = chrome.run(&format!("return document.querySelector('{WORDS}').value")).await;
            assert_eq!(typed, json!("not yet, becau"), "{path}");
        }
        // Another question is another form: neither words nor focus go over to it.
        env.ok(&["answer", question(&env)["id"].as_str().unwrap(), "no"]);
        let next = "document.querySelector('article.question')?.innerText.includes('rm -rf target')";
        chrome.until(next).await;
        assert_eq!(chrome.run(&format!("return document.querySelector('{WORDS}').value")).await, json!(""));
        assert_eq!(chrome.run("return document.activeElement.closest('form')").await, json!(null));
        // An open menu with words in it stays open.
        chrome.click("details.more:has(form[data-act=note]) > summary").await;
        chrome.click("textarea[name=text]").await;
        chrome.keys("half a note").await;
        env.ok(&["answer", question(&env)["id"].as_str().unwrap(), "no"]);
        chrome.until("!document.querySelector('article.question')").await;
        assert_eq!(chrome.run("return document.activeElement.value").await, json!("half a note"));
        assert_eq!(chrome.complaints(), Vec::<String>::new());
    });
}

/// However many pages one browser shows, each of them opens, acts, and is live when its turn comes.
#[test]
fn a_dozen_tabs_are_all_served() {
    in_browser(async |chrome| {
        let (env, id) = furnished();
        let server = Server::start(&env, &[]);
        chrome.sign_in(&server).await;
        let mut tabs = vec![chrome.client.window().await.unwrap()];
        for tab in 0..12 {
            if tab > 0 {
                tabs.push(chrome.client.new_window(true).await.unwrap().handle);
                chrome.client.switch_to_window(tabs[tab].clone()).await.unwrap();
            }
            chrome.open(&server, &if tab % 3 == 0 { "/".to_owned() } else { format!("/s/{id}") }).await;
            chrome.until("document.querySelector('#main h1')").await;
        }
        env.ok(&["--session", &id, "note", "for all of them"]);
        for (tab, handle) in tabs.iter().enumerate().filter(|(tab, _)| tab % 3 != 0) {
            chrome.client.switch_to_window(handle.clone()).await.unwrap();
            chrome.until_told("for all of them").await;
            assert_eq!(
                chrome.run("return document.querySelectorAll('.chip.off').length").await,
                json!(0),
                "{tab}"
            );
        }
        chrome.click("form[data-act=checkpoint] button").await;
        chrome.until_text("checkpoint made").await;
        assert_eq!(chrome.complaints(), Vec::<String>::new());
    });
}

/// Every part of a session is live, not only its timeline.
#[test]
fn every_part_follows() {
    in_browser(async |chrome| {
        let (env, id) = furnished();
        let server = Server::start(&env, &[]);
        chrome.sign_in(&server).await;
        let on = |args: &[&str]| {
            env.ok(&[&["--session", id.as_str()], args].concat());
        };
        let part =
            |words: &str| format!("document.querySelector('#part').innerText.includes({})", json!(words));
        chrome.open(&server, &format!("/s/{id}/phases")).await;
        chrome.until(LIVE).await;
        on(&["pause"]);
        chrome.until("document.querySelector('#stand .state').textContent.includes('paused')").await;
        chrome.until("!document.querySelector('form[data-act=pause]')").await;
        on(&["resume", "--no-run"]);
        chrome.open(&server, &format!("/s/{id}/decisions")).await;
        chrome.until(LIVE).await;
        on(&["decide", "Who is told?", "--choice", "whoever looks"]);
        chrome.until(&part("whoever looks")).await;
        chrome.open(&server, &format!("/s/{id}/checkpoints")).await;
        chrome.until(LIVE).await;
        on(&["checkpoint", "create", "seen-at-once"]);
        chrome.until(&part("seen-at-once")).await;
        chrome.open(&server, &format!("/s/{id}/cost")).await;
        chrome.until(LIVE).await;
        on(&["tokens", "--input", "1000", "--output", "1", "--cost", "7.77"]);
        chrome.until(&part("$8.30")).await;
        assert_eq!(chrome.complaints(), Vec::<String>::new());
    });
}

/// Whoever was signed out is told so, and asks no more.
#[test]
fn a_tab_that_was_signed_out_says_so_and_rests() {
    in_browser(async |chrome| {
        let (env, id) = furnished();
        let server = Server::start(&env, &[]);
        chrome.sign_in(&server).await;
        chrome.open(&server, &format!("/s/{id}")).await;
        chrome.until(LIVE).await;
        env.ok(&["serve", "--sign-out"]);
        chrome.until("document.querySelector('#line').textContent.startsWith('signed out')").await;
        chrome.run("window.asked = 0; const real = window.fetch; window.fetch = (...it) => { window.asked += 1; return real(...it); }").await;
        tokio::time::sleep(std::time::Duration::from_secs(4)).await;
        assert_eq!(chrome.run("return window.asked").await, json!(0));
    });
}
