//! What others try on a local server: each is refused, and nothing has changed afterwards.

use std::io::Read as _;
use std::io::Write as _;

use serde_json::json;

use crate::common::TestEnv;
use crate::server::Answer;
use crate::server::Server;
use crate::server::certificate;
use crate::server::printed;

/// Headers and the body of a request, and the status that answers it.
type Attempt<'a> = (Vec<(&'a str, &'a str)>, &'a str, u16);

/// Every address of the interface and every page, with a session filled in.
fn addresses(id: &str) -> Vec<(String, bool)> {
    let document = segno::interface();
    let paths = document["paths"].as_object().unwrap();
    let interface = paths.iter().map(|(path, it)| (path.replace("{session}", id), it.get("post").is_some()));
    let parts = [
        "",
        "/moments",
        "/e/1",
        "/calls",
        "/calls/x",
        "/phases",
        "/checkpoints",
        "/checkpoints/x",
        "/decisions",
        "/cost",
        "/brief",
    ];
    let pages =
        ["/", "/rows", "/search?q=a", "/cost", "/insights", "/metrics"].into_iter().map(ToOwned::to_owned);
    let pages = pages.chain(parts.into_iter().map(|part| format!("/s/{id}{part}")));
    interface.chain(pages.map(|path| (path, false))).collect()
}

fn seq(env: &TestEnv) -> u64 {
    env.json(&["show", "last"])["session"]["seq"].as_u64().unwrap()
}

#[test]
fn without_a_cookie_or_a_token_nothing_is_told() {
    let env = TestEnv::new();
    let id = env.start(&["hidden words"]);
    let server = Server::start(&env, &[]);
    let old = server.browser().cookie;
    env.ok(&["serve", "--sign-out"]);
    let token = printed(&env, &["serve", "--token"]);
    let wrong = [
        vec![],
        vec![("Cookie", "segno-1=x".to_owned())],
        vec![("Cookie", format!("segno-{}=9999999999.{}.{}", server.port(), "0".repeat(64), "0".repeat(64)))],
        vec![("Cookie", old)],
        vec![("Authorization", "Bearer x".to_owned())],
        vec![("Authorization", format!("Basic {token}"))],
        vec![("Cookie", format!("other={token}"))],
        vec![("X-Segno-Scopes", "admin".to_owned())],
    ];
    // The old key is gone when the server has looked.
    let gone = || server.ask("GET", "/", &[("Host", &server.host), ("Cookie", &wrong[3][0].1)], "").status;
    while gone() == 200 {
        std::thread::yield_now();
    }
    for (path, acts) in addresses(&id) {
        let method = if acts { "POST" } else { "GET" };
        for headers in &wrong {
            let mut all = vec![("Host", server.host.as_str())];
            all.extend(headers.iter().map(|(name, value)| (*name, value.as_str())));
            let answer = server.ask(method, &path, &all, if acts { "{}" } else { "" });
            assert!(matches!(answer.status, 401 | 429), "{path} {headers:?} {answer:?}");
            assert!(!answer.body.contains("hidden"), "{path}");
        }
    }
    // Whoever guessed all the time has used up nobody's patience but their own.
    let right = format!("Bearer {token}");
    let right =
        server.ask("GET", "/api/v1/sessions", &[("Host", &server.host), ("Authorization", &right)], "");
    assert_eq!(right.json()["total"], 1);
    let fresh = printed(&env, &["serve", "--link"]);
    let path = fresh.split_once(&server.host).unwrap().1;
    assert_eq!(server.ask("GET", path, &[("Host", &server.host)], "").status, 303);
}

#[test]
fn a_link_works_once_and_leaves_no_trace_in_addresses() {
    let env = TestEnv::new();
    let server = Server::start(&env, &[]);
    let browser = server.browser();
    let path = server.link.split_once(&server.host).unwrap().1;
    let again = server.ask("GET", path, &[("Host", &server.host)], "");
    assert_eq!((again.status, again.code().as_str(), again.header("set-cookie")), (401, "bad_link", None));
    // Programs look at links before people do: a look uses none up.
    let looked = printed(&env, &["serve", "--link"]);
    let path = looked.split_once(&server.host).unwrap().1;
    assert_eq!(server.ask("HEAD", path, &[("Host", &server.host)], "").status, 405);
    assert_eq!(server.ask("GET", path, &[("Host", &server.host)], "").status, 303);
    for odd in ["/in/", "/in/..%2f..%2fkey", "/in/%00", "/in/key"] {
        let answer = server.ask("GET", odd, &[("Host", &server.host)], "");
        assert!(matches!(answer.status, 401 | 404), "{odd} {answer:?}");
    }
    let fresh = printed(&env, &["serve", "--link"]);
    let path = fresh.split_once(&server.host).unwrap().1;
    let answer = server.ask("GET", path, &[("Host", &server.host)], "");
    assert_eq!((answer.status, answer.header("location")), (303, Some("/")));
    let cookie = answer.header("set-cookie").unwrap();
    assert!(cookie.contains("; HttpOnly; SameSite=Strict;"), "{cookie}");
    // The page names no address with a code or a token, and no other site is told where it was called from.
    let page = browser.get("/");
    assert!(!page.body.contains("/in/") && !page.body.contains(browser.cookie.split('=').nth(1).unwrap()));
    assert_eq!(page.header("referrer-policy"), Some("no-referrer"));
}

#[test]
fn another_name_for_this_server_is_not_answered() {
    let env = TestEnv::new();
    env.start(&["hidden words"]);
    let server = Server::start(&env, &["--host", "box.example:8443"]);
    let browser = server.browser();
    let port = server.port();
    let local = format!("localhost:{port}");
    for host in [&server.host, &local, "box.example:8443"] {
        let answer = server.ask("GET", "/", &[("Host", host), ("Cookie", &browser.cookie)], "");
        assert_eq!(answer.status, 200, "{host}");
    }
    let foreign = [
        format!("evil.example:{port}"),
        format!("127.0.0.1.nip.io:{port}"),
        format!("localhost.:{port}"),
        "127.0.0.1".to_owned(),
        "box.example".to_owned(),
        format!("box.example:{port}"),
        format!("0.0.0.0:{port}"),
        String::new(),
    ];
    for host in &foreign {
        for path in ["/", "/api/v1/sessions", "/in/x", "/a/page.css"] {
            let answer = server.ask("GET", path, &[("Host", host), ("Cookie", &browser.cookie)], "");
            assert!(matches!(answer.status, 400 | 421), "{host} {path} {answer:?}");
            assert!(!answer.body.contains("hidden"));
        }
    }
    let twice = server.ask(
        "GET",
        "/",
        &[("Host", &server.host), ("Host", "evil.example"), ("Cookie", &browser.cookie)],
        "",
    );
    assert_eq!(twice.status, 400);
    let none =
        server.say(&format!("GET / HTTP/1.1\r\nConnection: close\r\nCookie: {}\r\n\r\n", browser.cookie));
    assert_eq!(none.status, 400);
    let whole =
        format!("GET http://evil.example/ HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", server.host);
    assert_eq!(server.say(&whole).status, 401);
}

#[test]
fn only_the_page_itself_can_act() {
    let env = TestEnv::new();
    let id = env.start(&["work"]);
    let server = Server::start(&env, &[]);
    let browser = server.browser();
    let origin = format!("http://{}", server.host);
    let csrf = ("X-Segno-CSRF", browser.csrf.as_str());
    let own = ("Origin", origin.as_str());
    let local = format!("http://localhost:{}", server.port());
    let before = seq(&env);
    let no_csrf = "0".repeat(64);
    let attempts: Vec<Attempt<'_>> = vec![
        (vec![], "{}", 403),
        (vec![own], "{}", 403),
        (vec![csrf], "{}", 403),
        (vec![own, ("X-Segno-CSRF", &no_csrf)], "{}", 403),
        (vec![own, ("X-Segno-CSRF", "")], "{}", 403),
        (vec![("Origin", "http://evil.example"), csrf], "{}", 403),
        (vec![("Origin", "null"), csrf], "{}", 403),
        (vec![("Origin", &local), csrf], "{}", 403),
        (vec![("Origin", "http://127.0.0.1"), csrf], "{}", 403),
        (vec![own, csrf, ("Sec-Fetch-Site", "cross-site")], "{}", 403),
        (vec![own, csrf, ("Sec-Fetch-Site", "same-site")], "{}", 403),
        (vec![own, csrf, ("Content-Type", "text/plain")], "{}", 415),
        (vec![own, csrf, ("Content-Type", "application/x-www-form-urlencoded")], "a=b", 415),
        (vec![own, csrf, ("Content-Type", "multipart/form-data; boundary=x")], "x", 415),
        (vec![own, csrf], "{", 400),
        (vec![own, csrf], "{\"reason\":\"x\",\"command\":\"rm\"}", 400),
    ];
    for (headers, body, status) in &attempts {
        let answer = browser.post_from(&format!("/api/v1/sessions/{id}/pause"), body, headers);
        assert_eq!(answer.status, *status, "{headers:?} {answer:?}");
    }
    for method in ["PUT", "DELETE", "PATCH", "OPTIONS"] {
        let headers = [
            ("Host", server.host.as_str()),
            ("Cookie", &browser.cookie),
            own,
            csrf,
            ("Content-Type", "application/json"),
        ];
        let answer = server.ask(method, &format!("/api/v1/sessions/{id}/pause"), &headers, "{}");
        assert_eq!(answer.status, 405, "{method}");
    }
    let got = browser.get(&format!("/api/v1/sessions/{id}/pause"));
    assert_eq!(got.status, 405);
    assert_eq!(seq(&env), before);
    assert_eq!(browser.act(&id, "pause", &json!({})).status, 200);
}

#[test]
fn a_page_that_only_shows_changes_nothing() {
    let env = TestEnv::new();
    let id = env.start(&["work"]);
    let server = Server::start(&env, &["--read-only"]);
    let browser = server.browser();
    let before = seq(&env);
    for (path, acts) in addresses(&id) {
        if acts {
            let answer = browser.post(&path, &json!({}));
            assert_eq!((answer.status, answer.code().as_str()), (403, "forbidden"), "{path}");
        }
    }
    assert_eq!(seq(&env), before);
    assert!(!browser.get(&format!("/s/{id}")).body.contains("data-act"));
}

#[test]
fn no_answer_may_be_framed_run_or_kept() {
    let env = TestEnv::new();
    let id = env.start(&["work"]);
    let server = Server::start(&env, &[]);
    let browser = server.browser();
    let css = browser
        .get("/")
        .body
        .split_once("href=\"/a/")
        .unwrap()
        .1
        .split('"')
        .next_back()
        .map(ToOwned::to_owned);
    assert!(css.is_some());
    for (path, acts) in addresses(&id) {
        if acts || path.ends_with("events") {
            continue;
        }
        let answer = browser.get(&path);
        let policy = answer.header("content-security-policy").unwrap();
        assert!(
            policy.starts_with("default-src 'none'; script-src 'self';") && !policy.contains("unsafe"),
            "{policy}"
        );
        assert!(policy.contains("frame-ancestors 'none'"), "{path}");
        for (name, value) in [
            ("x-frame-options", "DENY"),
            ("x-content-type-options", "nosniff"),
            ("referrer-policy", "no-referrer"),
            ("cache-control", "no-store"),
            ("cross-origin-resource-policy", "same-origin"),
        ] {
            assert_eq!(answer.header(name), Some(value), "{path}");
        }
        assert!(!answer.headers.iter().any(|(name, _)| name.starts_with("access-control")), "{path}");
        for inline in ["<style", "style=\"", "onclick", "onload", "javascript:", "<script>"] {
            assert!(!answer.body.contains(inline), "{path} {inline}");
        }
    }
}

/// Whatever an agent writes, wherever it writes it, is text on every page.
#[test]
fn what_an_agent_writes_is_only_text() {
    let env = TestEnv::new();
    let evil = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'><a href=\"javascript:alert(3)\">\u{202e}x\u{1b}]8;;http://evil.example\u{7}";
    // A topic has no control characters; everything else may have them.
    let topic =
        "<script>alert(1)</script><img src=x onerror=alert(2)>\"'><a href=\"javascript:alert(3)\">\u{202e}x";
    let id = env.start(&[topic, "--phases", "<b>red</b>,<i>green</i>"]);
    let on: &[&[&str]] = &[
        &["note", evil],
        &["error", evil, "--kind", evil],
        &["error", evil],
        &["error", evil],
        &["decide", evil, evil, "--because", evil, "--alternative", evil],
        &["task", "add", evil],
        &["milestone", evil],
        &["artifact", "add", "a<script>b", "--change", "created"],
        &["output", "set", "result", evil],
        &["memory", "query", evil],
        &["phase", "<i>green</i>"],
        &["checkpoint", "create", "<script>x", "--reason", evil],
        &["tag", "last", "<b>tag</b>"],
        &["breakpoint", "wait", evil],
    ];
    for args in on {
        env.run(args);
    }
    let server = Server::start(&env, &[]);
    let browser = server.browser();
    let pages = ["", "/calls", "/phases", "/checkpoints", "/decisions", "/cost", "/brief"];
    let pages = pages.iter().map(|part| format!("/s/{id}{part}"));
    let events = (1..40).map(|seq| format!("/s/{id}/e/{seq}"));
    let mut seen = 0;
    let lists = [
        "/",
        "/cost?by=session",
        "/insights",
        "/search?q=alert",
        "/search?q=%3Cscript%3Ealert(1)%3C%2Fscript%3E",
        "/?text=%3Cscript%3E",
    ];
    for path in pages.chain(events).chain(lists.map(ToOwned::to_owned)) {
        let answer = browser.get(&path);
        if answer.status == 404 {
            continue;
        }
        seen += 1;
        assert_eq!(answer.status, 200, "{path} {answer:?}");
        for bad in
            ["<script>", "<img", "<b>red", "<i>green", "<b>tag", "href=\"javascript", "\u{202e}", "\u{1b}"]
        {
            assert!(!answer.body.contains(bad), "{path} has {bad}");
        }
    }
    assert!(seen > 20, "{seen}");
    let found = browser.get("/insights").body;
    assert!(found.contains("Errors that come again") && found.contains("&#60;script&#62;"), "{found}");
}

#[test]
fn addresses_lead_nowhere_else() {
    let env = TestEnv::new();
    let id = env.start(&["work"]);
    let server = Server::start(&env, &[]);
    let browser = server.browser();
    let odd = [
        "/s/last",
        "/s/1",
        "/s/../../etc/passwd",
        "/s/%2e%2e%2f%2e%2e%2fetc%2fpasswd",
        "/s/%00",
        "/s/session_20260101_000000_000000",
        "/a/../../Cargo.toml",
        "/a/%2e%2e/page.css",
        "/a/page.css",
        "//etc/passwd",
        "/s//calls",
        "/CON",
        "/api/v1/nothing",
        "/api/v1/sessions/last",
    ];
    for path in odd {
        assert_eq!(browser.get(path).status, 404, "{path}");
    }
    let inside = [
        "/calls/..%2f..%2fetc%2fpasswd",
        "/checkpoints/..%2f..%2fetc%2fpasswd",
        "/e/99999999",
        "/e/0",
        "/calls/%00",
    ];
    for path in inside {
        assert_eq!(browser.get(&format!("/s/{id}{path}")).status, 404, "{path}");
    }
    assert!(matches!(browser.get(&format!("/s/{id}/e/-1")).status, 400 | 404));
    assert!(matches!(browser.get(&format!("/s/{id}/e/x")).status, 400 | 404));
    let long = format!("/s/{}", "a".repeat(20_000));
    assert!(matches!(browser.get(&long).status, 404 | 414 | 431));
    assert_eq!(browser.get("/?order=;drop").status, 400);
    assert_eq!(browser.get("/?nonsense=1").status, 400);
    let bad = browser.act(&id, "restore", &json!({ "checkpoint": "../../etc/passwd" }));
    assert!(matches!(bad.status, 400 | 404 | 409), "{bad:?}");
    let flag = browser.act(&id, "answer", &json!({ "question": "--all", "answer": "yes" }));
    assert_eq!(flag.code(), "unknown_question");
}

#[test]
fn huge_bodies_and_heads_are_refused() {
    let env = TestEnv::new();
    let id = env.start(&["work"]);
    let server = Server::start(&env, &[]);
    let browser = server.browser();
    let large = json!({ "text": "x".repeat(200_000) });
    let answer = browser.act(&id, "note", &large);
    // The answer may come while the rest is still being sent.
    assert!(matches!(answer.status, 413 | 0), "{}", answer.status);
    let said = format!(
        "POST /api/v1/sessions/{id}/note HTTP/1.1\r\nHost: {0}\r\nCookie: {1}\r\nOrigin: http://{0}\r\nX-Segno-CSRF: {2}\r\n\
         Content-Type: application/json\r\nContent-Length: 99999999999\r\nConnection: close\r\n\r\n{{",
        server.host, browser.cookie, browser.csrf
    );
    assert_eq!(server.say(&said).status, 413);
    let chunked = format!(
        "POST /api/v1/sessions/{id}/note HTTP/1.1\r\nHost: {0}\r\nCookie: {1}\r\nOrigin: http://{0}\r\nX-Segno-CSRF: {2}\r\n\
         Content-Type: application/json\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n20000\r\n{3}",
        server.host,
        browser.cookie,
        browser.csrf,
        "x".repeat(0x20000)
    );
    assert!(matches!(server.say(&chunked).status, 413 | 0));
    let head = format!("GET / HTTP/1.1\r\nHost: {}\r\nX-Large: {}\r\n\r\n", server.host, "x".repeat(100_000));
    assert!(matches!(server.say(&head).status, 431 | 0));
    assert!(matches!(server.say("\u{16}\u{3}\u{1}nonsense\r\n\r\n").status, 400 | 0));
    assert_eq!(browser.get("/").status, 200);
}

/// A thousand clients that say nothing, or little by little, keep nobody out.
#[test]
fn a_thousand_silent_clients_keep_nobody_out() {
    let env = TestEnv::new();
    env.start(&["work"]);
    let server = Server::start(&env, &[]);
    let browser = server.browser();
    let mut silent = Vec::new();
    for n in 0..1_000 {
        let Ok(mut stream) = std::net::TcpStream::connect(&server.host) else { break };
        if n % 2 == 0 {
            let _ = stream.write_all(b"GET / HTTP/1.1\r\nHost: ");
        }
        silent.push(stream);
        if n % 100 == 99 {
            assert_eq!(browser.get("/").status, 200, "after {n}");
        }
    }
    assert!(silent.len() >= 500, "{}", silent.len());
    assert_eq!(browser.get("/api/v1/sessions").json()["total"], 1);
    // The server lets go of them by itself.
    let mut first = silent.remove(0);
    first.set_read_timeout(Some(std::time::Duration::from_secs(60))).unwrap();
    let mut rest = Vec::new();
    let _ = first.read_to_end(&mut rest);
    assert!(Answer::read(&rest).status != 200);
}

/// Cookie and link of a server that only shows do not act on another server of the same person.
#[test]
fn who_was_let_in_to_look_may_not_act_elsewhere() {
    let env = TestEnv::new();
    let id = env.start(&["work"]);
    let acts = Server::start(&env, &[]);
    let shows = Server::start(&env, &["--read-only"]);
    let link = printed(&env, &["serve", "--link"]);
    let code = link.split_once("/in/").unwrap().1;
    assert_eq!(acts.ask("GET", &format!("/in/{code}"), &[("Host", &acts.host)], "").status, 401);
    let cookie = shows.browser().cookie;
    let value = cookie.split_once('=').unwrap().1;
    let taken = format!("segno-{}={value}", acts.port());
    assert_eq!(acts.ask("GET", "/", &[("Host", &acts.host), ("Cookie", &taken)], "").status, 401);
    // Who may act may look.
    let cookie = acts.browser().cookie;
    let taken = format!("segno-{}={}", shows.port(), cookie.split_once('=').unwrap().1);
    let path = format!("/s/{id}");
    assert_eq!(shows.ask("GET", &path, &[("Host", &shows.host), ("Cookie", &taken)], "").status, 200);
}

/// A token for less does no more.
#[test]
fn tokens_do_only_what_they_are_for() {
    let env = TestEnv::new();
    let id = env.start(&["work"]);
    let server = Server::start(&env, &["--metrics"]);
    let note = format!("/api/v1/sessions/{id}/note");
    for (scope, expected) in
        [("all", [200, 200, 200]), ("read", [200, 200, 403]), ("metrics", [200, 403, 403])]
    {
        let bearer = format!("Bearer {}", printed(&env, &["serve", "--token", scope]));
        let headers = [
            ("Host", server.host.as_str()),
            ("Authorization", &bearer),
            ("Content-Type", "application/json"),
        ];
        let asked =
            [("GET", "/metrics", ""), ("GET", "/api/v1/sessions", ""), ("POST", &note, "{\"text\":\"x\"}")];
        let got = asked.map(|(method, path, body)| server.ask(method, path, &headers, body).status);
        assert_eq!(got, expected, "{scope}");
    }
    assert_eq!(printed(&env, &["serve", "--token"]), printed(&env, &["serve", "--token", "all"]));
}

/// Who closes the connection at once cannot be looked up: nothing is done for them.
#[test]
fn whoever_does_not_wait_for_the_answer_does_nothing() {
    let env = TestEnv::new();
    let id = env.start(&["work", "--budget", "1000"]);
    let server = Server::start(&env, &[]);
    let browser = server.browser();
    let token = printed(&env, &["serve", "--token"]);
    let body = "{\"tokens\":\"50k\"}";
    for _ in 0..20 {
        let mut stream = server.connect();
        let text = format!(
            "POST /api/v1/sessions/{id}/extend HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {token}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            server.host,
            body.len()
        );
        stream.write_all(text.as_bytes()).unwrap();
        drop(stream);
    }
    for tokens in ["1", "1", "1"] {
        let done = browser.act(&id, "extend", &json!({ "tokens": tokens }));
        assert_eq!(done.status, 200, "{done:?}");
    }
    drop(server);
    assert_eq!(env.json(&["show", &id])["session"]["token_budget"], 1_003);
}

/// An agent that no run of segno has started, but that keeps its session with a server of segno's, is one all the same.
#[test]
fn an_agent_that_keeps_its_own_session_does_not_act() {
    let mut env = TestEnv::new();
    env.set("PATH", "/usr/local/bin:/usr/bin:/bin");
    let id = env.start(&["work", "--budget", "1000"]);
    let server = Server::start(&env, &[]);
    let token = printed(&env, &["serve", "--token"]);
    let script = r#"
mkfifo pipe; exec 3<>pipe
"$SEGNO" mcp < pipe > /dev/null 2>&1 &
until tr '\0' ' ' < /proc/$!/cmdline | grep -q ' mcp'; do sleep 0.05; done
for how in "--token" "--token metrics" "--link" "--sign-out" "--port 0"; do
    "$SEGNO" serve $how > out 2> err; echo "$how: $? $(cat out)"
done
curl -s -H "authorization: Bearer $TOKEN" -H 'content-type: application/json' -d '{"tokens":"50k"}' "$URL"
kill $!
"#;
    let url = format!("http://{}/api/v1/sessions/{id}/extend", server.host);
    let agent = env
        .command("bash")
        .args(["-c", script])
        .env("SEGNO", crate::common::SEGNO)
        .env("TOKEN", &token)
        .env("URL", &url)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&agent.stdout);
    let (refused, answer) = said.split_at(said.find('{').unwrap_or(said.len()));
    let expected: String = ["--token", "--token metrics", "--link", "--sign-out", "--port 0"]
        .map(|how| format!("{how}: 5 \n"))
        .concat();
    assert_eq!(refused, expected, "{}", String::from_utf8_lossy(&agent.stderr));
    assert!(answer.contains("an agent cannot act through the page"), "{answer}");
    assert_eq!(env.json(&["show", &id])["session"]["token_budget"], 1_000);
    // The same person, beside that agent, can.
    let done = server.browser().act(&id, "extend", &json!({ "tokens": "1" }));
    assert_eq!(done.status, 200, "{done:?}");
}

/// A link leads to a server that is there.
#[test]
fn links_are_for_servers_that_live() {
    let env = TestEnv::new();
    let refused = env.run(&["serve", "--link"]);
    assert!(refused.stderr.contains("the page is not served now"), "{}", refused.stderr);
    let first = Server::start(&env, &[]);
    let second = Server::start(&env, &[]);
    assert!(printed(&env, &["serve", "--link"]).contains(&second.host));
    // It is killed: nothing of its own is tidied up.
    drop(second);
    assert!(printed(&env, &["serve", "--link"]).contains(&first.host));
    drop(first);
    assert_eq!(env.run(&["serve", "--link"]).code, 1);
}

#[test]
fn an_agent_neither_starts_it_nor_acts_through_it() {
    let mut env = TestEnv::new();
    env.set("PATH", "/usr/local/bin:/usr/bin:/bin");
    let id = env.start(&["work", "--budget", "1000"]);
    let server = Server::start(&env, &[]);
    let token = printed(&env, &["serve", "--token"]);
    // What a run gives to its agent is handed down to whatever that starts.
    let bearer = format!("authorization: Bearer {token}");
    let url = format!("http://{}/api/v1/sessions/{id}/extend", server.host);
    let curl = [
        "curl",
        "-s",
        "-H",
        &bearer,
        "-H",
        "content-type: application/json",
        "-d",
        "{\"tokens\":\"50k\"}",
        &url,
    ];
    let line = curl.iter().map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" ");
    let run = env
        .command(crate::common::SEGNO)
        .args(["run", "--", "sh", "-c"])
        .arg(format!("{line} > said"))
        .output()
        .unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let said = env.read("project/said");
    assert!(said.contains("an agent cannot act through the page"), "{said}");
    assert_eq!(env.json(&["show", &id])["session"]["token_budget"], 1_000);
    env.set("SEGNO_RUN", "run_0198c5d5-5a44-7bb2-8d3b-5b2f3c6f0a11");
    let refused = env.run(&["serve", "--port", "0"]);
    assert_eq!(refused.code, 5, "{}", refused.stderr);
    assert!(refused.stderr.contains("an agent cannot serve the page"), "{}", refused.stderr);
}

#[test]
fn elsewhere_it_is_served_with_tls_alone() {
    let env = TestEnv::new();
    let refused = env.run(&["serve", "--listen", "0.0.0.0:0"]);
    assert_eq!(refused.code, 2, "{}", refused.stderr);
    assert!(refused.stderr.contains("needs TLS"), "{}", refused.stderr);
    let missing = env.run(&["serve", "--listen", "0.0.0.0:0", "--cert", "no.pem", "--cert-key", "no.pem"]);
    assert_eq!(missing.code, 1, "{}", missing.stderr);
    for host in ["evil com", "http://box.example", "box.example:", "a@b", "box.example/x", ""] {
        let odd = env.run(&["serve", "--port", "0", "--host", host]);
        assert_eq!(odd.code, 2, "{host} {}", odd.stderr);
        assert!(odd.stderr.contains("is no name by which a browser reaches"), "{host} {}", odd.stderr);
    }
}

/// A certificate that is none, and a key that others have, are refused in words.
#[test]
fn certificate_and_key_are_looked_at_before_they_are_used() {
    use std::os::unix::fs::PermissionsExt as _;
    let env = TestEnv::new();
    let Some((cert, key)) = certificate(&env) else { return };
    let with = |cert: &str, listen: &str| {
        env.run(&["serve", "--listen", listen, "--cert", cert, "--cert-key", &key])
    };
    let nameless = with(&cert, "0.0.0.0:0");
    assert_eq!(nameless.code, 2, "{}", nameless.stderr);
    assert!(nameless.stderr.contains("--host NAME"), "{}", nameless.stderr);
    env.write("empty.pem", "this is no certificate\n");
    let empty = with(&env.path("empty.pem").display().to_string(), "127.0.0.1:0");
    assert!(empty.stderr.contains("there is no certificate in it"), "{}", empty.stderr);
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o666)).unwrap();
    let open = with(&cert, "127.0.0.1:0");
    assert_eq!(open.code, 1, "{}", open.stderr);
    assert!(open.stderr.contains("others can read or change it"), "{}", open.stderr);
}

/// A socket belongs to the server that listens on it: another one is told so, and takes nothing away when it ends.
#[test]
fn a_socket_is_not_taken_from_whoever_listens_on_it() {
    let env = TestEnv::new();
    let path = env.path("run/segno.sock");
    let place = path.display().to_string();
    let listens = || std::os::unix::net::UnixStream::connect(&path).is_ok();
    let start = || {
        let mut child = env
            .command(crate::common::SEGNO)
            .args(["--json", "serve", "--unix", &place])
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let out = child.stdout.take().unwrap();
        std::io::BufRead::read_line(&mut std::io::BufReader::new(out), &mut line).unwrap();
        child
    };
    let mut first = start();
    let refused = env.run(&["serve", "--unix", &place]);
    assert_eq!(refused.code, 1, "{}", refused.stderr);
    assert!(refused.stderr.contains("somebody listens there already"), "{}", refused.stderr);
    assert!(listens());
    std::fs::remove_file(&path).unwrap();
    let mut second = start();
    let end = |child: &mut std::process::Child| {
        let pid = rustix::process::Pid::from_child(child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        assert!(child.wait().unwrap().success());
    };
    end(&mut first);
    assert!(listens());
    end(&mut second);
    assert!(!path.exists());
    env.write("run/file", "kept");
    let taken = env.run(&["serve", "--unix", &env.path("run/file").display().to_string()]);
    assert!(taken.stderr.contains("a file that is no socket"), "{}", taken.stderr);
    assert_eq!(env.read("run/file"), "kept");
}
