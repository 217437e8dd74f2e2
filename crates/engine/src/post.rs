//! Sends something to a web address: by hand where it is plain, by curl where it is not.

use std::ffi::OsString;
use std::fmt::Display;
use std::fmt::Formatter;
use std::io::Read;
use std::io::Write;
use std::net::TcpStream;
use std::net::ToSocketAddrs;
use std::process::Stdio;
use std::time::Duration;
use std::time::Instant;

use crate::run::find_program;

/// How long anybody is waited for.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);

/// Why something that was sent was not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotTaken {
    /// It was read, and is not wanted: the same again would be answered with the same status.
    Refused(u16),
    /// What went wrong, as the second half of a sentence. Another time it may be taken.
    Failed(String),
}

impl Display for NotTaken {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Refused(status) => write!(f, "it answered with status {status}"),
            Self::Failed(why) => f.write_str(why),
        }
    }
}

impl From<String> for NotTaken {
    fn from(why: String) -> Self {
        Self::Failed(why)
    }
}

impl From<&str> for NotTaken {
    fn from(why: &str) -> Self {
        Self::Failed(why.to_owned())
    }
}

/// What the status of an answer means.
fn judge(status: Option<u16>) -> Result<(), NotTaken> {
    match status {
        Some(200..=299) => Ok(()),
        // Too slow, too early, too many: that passes.
        Some(status @ (408 | 425 | 429)) => Err(format!("it answered with status {status}").into()),
        Some(status @ 400..=499) => Err(NotTaken::Refused(status)),
        Some(status) => Err(format!("it answered with status {status}").into()),
        None => Err("it did not answer in HTTP".into()),
    }
}

/// Sends a JSON document, with one more line in its head. Only a 2xx answer counts.
///
/// # Errors
/// What went wrong, as the second half of a sentence.
pub fn post_json(
    url: &str,
    signed: Option<&str>,
    body: &str,
    environment: &[(OsString, OsString)],
) -> Result<(), NotTaken> {
    if url.chars().any(|c| c.is_control() || c == ' ') {
        return Err("its address has characters that no address has".into());
    }
    match url.split_once("://") {
        Some(("http", rest)) => post_plain(rest, signed, body),
        Some(("https", _)) => post_by_curl(url, signed, body, environment),
        _ => Err("its address has to begin with http:// or https://".into()),
    }
}

fn post_plain(address: &str, signed: Option<&str>, body: &str) -> Result<(), NotTaken> {
    let (host, path) = address.split_once('/').unwrap_or((address, ""));
    if host.contains('@') {
        return Err("its address must not hold a name and a password".into());
    }
    let has_port = host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    let with_port = if has_port { host.to_owned() } else { format!("{host}:80") };
    let said = |why: std::io::Error| why.to_string();
    let socket = with_port.to_socket_addrs().map_err(said)?.next().ok_or("its host is not known")?;
    let mut stream = TcpStream::connect_timeout(&socket, PATIENCE).map_err(said)?;
    stream.set_read_timeout(Some(PATIENCE)).map_err(said)?;
    stream.set_write_timeout(Some(PATIENCE)).map_err(said)?;
    let signed = signed.map_or_else(String::new, |line| format!("{line}\r\n"));
    let head = format!(
        "POST /{path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: segno\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n{signed}Connection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body.as_bytes())).map_err(said)?;
    let mut answer = [0_u8; 64];
    let mut count = 0;
    while count < 12 {
        match stream.read(&mut answer[count..]).map_err(said)? {
            0 => break,
            more => count += more,
        }
    }
    let answer = String::from_utf8_lossy(&answer[..count]).into_owned();
    judge(answer.split_whitespace().nth(1).and_then(|status| status.parse().ok()))
}

/// There is no TLS in this program.
fn post_by_curl(
    url: &str,
    signed: Option<&str>,
    body: &str,
    environment: &[(OsString, OsString)],
) -> Result<(), NotTaken> {
    let program = find_program("curl", environment)
        .ok_or("an https:// address needs curl, which is not installed; http:// works without it")?;
    let mut command = std::process::Command::new(program);
    command.args(["--silent", "--show-error", "--max-time", "5", "--output", "/dev/null"]);
    command.args(["--write-out", "%{http_code}"]);
    command.args(["--header", "Content-Type: application/json"]);
    if let Some(signed) = signed {
        command.args(["--header", signed]);
    }
    let mut child = command
        .args(["--data-binary", "@-", "--url", url])
        .env_clear()
        .envs(environment.iter().cloned())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|why| why.to_string())?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(body.as_bytes()).map_err(|why| why.to_string())?;
    }
    let said = child.stdout.take();
    match wait(child)? {
        Some(0) => {
            let mut status = String::new();
            let read = said.is_some_and(|said| said.take(8).read_to_string(&mut status).is_ok());
            judge(status.trim().parse().ok().filter(|status| read && *status > 0))
        }
        Some(code) => Err(format!("curl ended with {code}").into()),
        None => Err("curl was ended by a signal".into()),
    }
}

/// Waits for a short program, at most so long.
pub(crate) fn wait(mut child: std::process::Child) -> Result<Option<i32>, String> {
    let until = Instant::now() + PATIENCE + Duration::from_secs(1);
    loop {
        match child.try_wait().map_err(|why| why.to_string())? {
            Some(status) => return Ok(status.code()),
            None if Instant::now() >= until => {
                let _ = child.kill();
                let _ = child.wait();
                return Err("it took too long".to_owned());
            }
            None => std::thread::sleep(Duration::from_millis(5)),
        }
    }
}
