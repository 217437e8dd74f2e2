//! As much of HTTP/1.1 as agents use.

use std::collections::BTreeMap;
use std::io::BufRead;
use std::io::Read;
use std::io::Write;
use std::io::{self};

use serde_json::Value;

use super::answer::Event;

const HEAD_LIMIT: u64 = 64 * 1024;

/// The first lines of a request.
#[derive(Debug, Default)]
pub(super) struct Head {
    pub(super) method: String,
    /// Without the query.
    pub(super) path: String,
    headers: BTreeMap<String, String>,
}

impl Head {
    /// Reads one; None when the client has no more requests.
    pub(super) fn read(input: &mut impl BufRead) -> io::Result<Option<Self>> {
        let mut input = input.take(HEAD_LIMIT);
        let mut line = String::new();
        if input.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        let mut words = line.split_whitespace();
        let (Some(method), Some(target)) = (words.next(), words.next()) else {
            return Err(invalid("not a request line"));
        };
        let path = target.split('?').next().unwrap_or_default().to_owned();
        let mut head = Self { method: method.to_owned(), path, headers: BTreeMap::new() };
        loop {
            let mut line = String::new();
            if input.read_line(&mut line)? == 0 {
                return Err(invalid("the head ends too early or is too long"));
            }
            let line = line.trim_end();
            if line.is_empty() {
                return Ok(Some(head));
            }
            let (name, value) = line.split_once(':').ok_or_else(|| invalid("not a header"))?;
            head.headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
        }
    }

    fn has(&self, name: &str, value: &str) -> bool {
        self.headers.get(name).is_some_and(|header| header.to_ascii_lowercase().contains(value))
    }

    /// Whether the connection ends after this request.
    pub(super) fn closes(&self) -> bool {
        self.has("connection", "close")
    }

    /// The body, unless it is longer than `limit` or packed in a way we do not read.
    pub(super) fn body(
        &self,
        input: &mut impl BufRead,
        output: &mut impl Write,
        limit: usize,
    ) -> io::Result<Vec<u8>> {
        if self.has("expect", "100-continue") {
            output.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
        }
        let mut body = Vec::new();
        if self.has("transfer-encoding", "chunked") {
            loop {
                let length = chunk_length(input)?;
                take(input, length, limit, &mut body)?;
                input.take(2).read_to_end(&mut Vec::new())?;
                if length == 0 {
                    break;
                }
            }
        } else if let Some(length) = self.headers.get("content-length") {
            let length = length.parse().map_err(|_| invalid("no content length"))?;
            take(input, length, limit, &mut body)?;
        }
        match self.headers.get("content-encoding").map(String::as_str) {
            None | Some("identity") => Ok(body),
            Some(other) => Err(invalid(&format!("cannot read a body in {other}: switch compression off"))),
        }
    }
}

fn invalid(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

fn chunk_length(input: &mut impl BufRead) -> io::Result<usize> {
    let mut line = String::new();
    input.take(64).read_line(&mut line)?;
    let digits = line.split(';').next().unwrap_or_default().trim();
    usize::from_str_radix(digits, 16).map_err(|_| invalid("no chunk length"))
}

fn take(input: &mut impl BufRead, length: usize, limit: usize, body: &mut Vec<u8>) -> io::Result<()> {
    if body.len().saturating_add(length) > limit {
        return Err(invalid("the body is too long"));
    }
    let before = body.len();
    input.take(length as u64).read_to_end(body)?;
    if body.len() - before < length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(())
}

/// Writes a whole response. `Null` is an empty body.
pub(super) fn respond(
    output: &mut impl Write,
    status: u16,
    headers: &BTreeMap<String, String>,
    body: &Value,
) -> io::Result<()> {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    respond_text(output, status, headers, "application/json", &body)
}

/// Writes a whole response of any type.
pub(super) fn respond_text(
    output: &mut impl Write,
    status: u16,
    headers: &BTreeMap<String, String>,
    content_type: &str,
    body: &str,
) -> io::Result<()> {
    let mut text = start(status, headers, content_type);
    text.push_str(&format!("content-length: {}\r\n\r\n{body}", body.len()));
    output.write_all(text.as_bytes())
}

/// Begins a stream of events; [`send`] and [`finish`] go on.
pub(super) fn begin_stream(output: &mut impl Write, headers: &BTreeMap<String, String>) -> io::Result<()> {
    let mut text = start(200, headers, "text/event-stream");
    text.push_str("cache-control: no-cache\r\ntransfer-encoding: chunked\r\n\r\n");
    output.write_all(text.as_bytes())
}

/// Writes one event. Not all interfaces name theirs.
pub(super) fn send(output: &mut impl Write, event: &Event) -> io::Result<()> {
    let name = if event.name.is_empty() { String::new() } else { format!("event: {}\n", event.name) };
    chunk(output, &format!("{name}data: {}\n\n", event.data))
}

/// Ends a stream properly, after some last words if the interface has them.
pub(super) fn finish(output: &mut impl Write, closing: &str) -> io::Result<()> {
    if !closing.is_empty() {
        chunk(output, closing)?;
    }
    output.write_all(b"0\r\n\r\n")
}

fn chunk(output: &mut impl Write, text: &str) -> io::Result<()> {
    output.write_all(format!("{:x}\r\n{text}\r\n", text.len()).as_bytes())
}

fn start(status: u16, headers: &BTreeMap<String, String>, content_type: &str) -> String {
    // Clients read the number, not the words.
    let mut text = format!("HTTP/1.1 {status} Scripted\r\ncontent-type: {content_type}\r\n");
    text.push_str(&format!("request-id: req_{}\r\n", uuid::Uuid::now_v7().simple()));
    for (name, value) in headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, limit: usize) -> io::Result<(Head, Vec<u8>)> {
        let mut input = io::Cursor::new(text.as_bytes());
        let head = Head::read(&mut input)?.ok_or(io::ErrorKind::UnexpectedEof)?;
        let body = head.body(&mut input, &mut io::sink(), limit)?;
        Ok((head, body))
    }

    #[test]
    fn requests() {
        let (head, body) = read("POST /v1/x?beta=1 HTTP/1.1\r\nContent-Length: 3\r\n\r\nabcdef", 10).unwrap();
        assert_eq!(
            (head.method.as_str(), head.path.as_str(), body.as_slice()),
            ("POST", "/v1/x", &b"abc"[..])
        );
        let chunked =
            "PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n";
        assert_eq!(read(chunked, 10).unwrap().1, b"abcde");
        assert!(read(chunked, 4).is_err(), "too long");
        assert!(read("GET / HTTP/1.1\r\nContent-Length: 9\r\n\r\nabc", 10).is_err(), "cut off");
        assert!(read("GET / HTTP/1.1\r\n", 10).is_err(), "no end of the head");
        assert!(read("GET / HTTP/1.1\r\nContent-Encoding: zstd\r\n\r\n", 10).is_err());
        assert!(Head::read(&mut io::Cursor::new(b"")).unwrap().is_none());
    }
}
