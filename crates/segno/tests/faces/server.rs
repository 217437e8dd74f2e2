//! A server of the built program, and somebody who speaks to it byte by byte.

use std::io::BufRead as _;
use std::io::BufReader;
use std::io::Read as _;
use std::io::Write as _;
use std::net::TcpStream;
use std::process::Child;
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;

use crate::common::SEGNO;
use crate::common::TestEnv;

/// A server, ended when it is dropped.
pub(crate) struct Server {
    child: Child,
    pub(crate) scheme: String,
    pub(crate) host: String,
    pub(crate) link: String,
}

impl Server {
    pub(crate) fn start(env: &TestEnv, args: &[&str]) -> Self {
        Self::on(env, "0", args)
    }

    pub(crate) fn on(env: &TestEnv, port: &str, args: &[&str]) -> Self {
        Self::with(env, &[&["--port", port], args].concat())
    }

    pub(crate) fn with(env: &TestEnv, args: &[&str]) -> Self {
        Self::spawn(env, args, Stdio::inherit())
    }

    /// One that writes what it has to say into this file.
    pub(crate) fn telling(env: &TestEnv, args: &[&str], file: &str) -> Self {
        Self::spawn(env, args, std::fs::File::create(env.path(file)).unwrap().into())
    }

    fn spawn(env: &TestEnv, args: &[&str], tells: Stdio) -> Self {
        let mut child = env
            .command(SEGNO)
            .args(["--json", "serve"])
            .args(args)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(tells)
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let said: Value = serde_json::from_str(&line).unwrap_or_else(|why| panic!("{why}: {line}"));
        let text = |name: &str| said[name].as_str().unwrap().to_owned();
        let host = text("listens");
        let address = text("address");
        let (scheme, named) = address.split_once("://").unwrap();
        let link = text("link").replace(named, &host);
        Self { child, scheme: scheme.to_owned(), host, link }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn port(&self) -> String {
        self.host.rsplit_once(':').unwrap().1.to_owned()
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.host).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        stream
    }

    /// Sends this, and reads until the server closes.
    pub(crate) fn say(&self, text: &str) -> Answer {
        let mut stream = self.connect();
        stream.write_all(text.as_bytes()).unwrap();
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes);
        Answer::read(&bytes)
    }

    /// Asks with these headers and nothing else.
    pub(crate) fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        let mut text = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
        for (name, value) in headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        if !body.is_empty() {
            text.push_str(&format!("Content-Length: {}\r\n", body.len()));
        }
        self.say(&format!("{text}\r\n{body}"))
    }

    /// A browser that has used the link.
    pub(crate) fn browser(&self) -> Browser<'_> {
        let path = self.link.split_once(&self.host).unwrap().1;
        let answer = self.ask("GET", path, &[("Host", &self.host)], "");
        assert_eq!(answer.status, 303, "{answer:?}");
        let cookie = answer.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
        let mut browser = Browser { server: self, cookie, csrf: String::new() };
        let page = browser.get("/");
        let (_, rest) = page.body.split_once("name=\"segno-csrf\" content=\"").unwrap();
        browser.csrf = rest.split('"').next().unwrap().to_owned();
        browser
    }
}

/// What a command prints, as it is: a world of tests gives names to whatever looks like a secret.
pub(crate) fn printed(env: &TestEnv, args: &[&str]) -> String {
    let output = env.raw(args);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// A certificate for this machine, and its key; none where there is nothing to make them with.
pub(crate) fn certificate(env: &TestEnv) -> Option<(String, String)> {
    let [cert, key] = ["cert.pem", "key.pem"].map(|name| env.path(name).display().to_string());
    let made = env
        .command("openssl")
        .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"])
        .args(["-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"])
        .args(["-keyout", &key, "-out", &cert])
        .output();
    if made.is_ok_and(|made| made.status.success()) {
        return Some((cert, key));
    }
    segno_testkit::agents::skip("openssl is not installed");
    None
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Answer {
    /// 0 if the connection was closed without an answer.
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn read(bytes: &[u8]) -> Self {
        let text = String::from_utf8_lossy(bytes);
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let mut lines = head.lines();
        let status = lines.next().and_then(|line| line.split(' ').nth(1)?.parse().ok()).unwrap_or(0);
        let headers = lines.filter_map(|line| line.split_once(": "));
        let headers: Vec<_> = headers.map(|(name, value)| (name.to_lowercase(), value.to_owned())).collect();
        Self { status, headers, body: body.to_owned() }
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|why| panic!("{why}: {self:?}"))
    }

    pub(crate) fn code(&self) -> String {
        self.json()["error"]["code"].as_str().unwrap_or_default().to_owned()
    }
}

/// A browser that is signed in.
pub(crate) struct Browser<'s> {
    pub(crate) server: &'s Server,
    pub(crate) cookie: String,
    pub(crate) csrf: String,
}

impl Browser<'_> {
    pub(crate) fn get(&self, path: &str) -> Answer {
        let headers =
            [("Host", self.server.host.as_str()), ("Cookie", &self.cookie), ("Accept", "text/html")];
        self.server.ask("GET", path, &headers, "")
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> Answer {
        let origin = format!("http://{}", self.server.host);
        self.post_from(path, &body.to_string(), &[("Origin", &origin), ("X-Segno-CSRF", &self.csrf)])
    }

    pub(crate) fn post_from(&self, path: &str, body: &str, more: &[(&str, &str)]) -> Answer {
        let mut headers = vec![("Host", self.server.host.as_str()), ("Cookie", &self.cookie)];
        if !more.iter().any(|(name, _)| *name == "Content-Type") {
            headers.push(("Content-Type", "application/json"));
        }
        headers.extend_from_slice(more);
        self.server.ask("POST", path, &headers, body)
    }

    /// Does something in a session.
    pub(crate) fn act(&self, session: &str, act: &str, body: &Value) -> Answer {
        self.post(&format!("/api/v1/sessions/{session}/{act}"), body)
    }
}
