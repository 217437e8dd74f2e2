//! Plays one turn to one client.

use std::io::Write;
use std::io::{self};
use std::net::Shutdown;
use std::net::TcpStream;
use std::thread;
use std::time::Duration;
use std::time::Instant;

use super::answer::Answer;
use super::answer::Event;
use super::http;
use super::log::End;
use super::query::Query;
use super::state::Shared;
use super::turn::Fault;
use super::turn::Turn;

/// How often a waiting answer looks whether its client is still there.
const TICK: Duration = Duration::from_millis(10);

pub(super) struct Play<'a> {
    pub(super) stream: &'a TcpStream,
    pub(super) shared: &'a Shared,
    pub(super) query: &'a Query,
    pub(super) number: usize,
}

/// Why a turn is not played to its end.
enum Cut {
    Dropped,
    Stopped,
    Gone,
}

impl From<io::Error> for Cut {
    fn from(_: io::Error) -> Self {
        Self::Gone
    }
}

impl Play<'_> {
    /// Plays `turn` and says how it ended.
    pub(super) fn turn(&self, turn: &Turn) -> End {
        let answer = match Answer::new(turn, self.query) {
            Ok(answer) => answer,
            Err(reason) => {
                // An error no agent retries: the test shall see it soon.
                let body = self.query.api.wire().error(400, None, &format!("bad script: {reason}"));
                let end = self.about_to(End::BadScript(reason));
                // Whether anybody reads it or not, that is how it ended.
                let _ = http::respond(&mut { self.stream }, 400, &turn.headers, &body);
                return end;
            }
        };
        match self.answer(turn, &answer) {
            Ok(end) => end,
            Err(Cut::Dropped) => {
                let end = self.about_to(End::Dropped);
                // Already closed is as good.
                let _ = self.stream.shutdown(Shutdown::Both);
                end
            }
            Err(Cut::Stopped) => End::Stopped,
            Err(Cut::Gone) if self.shared.is_stopped() => End::Stopped,
            Err(Cut::Gone) => End::ClientGone,
        }
    }

    /// Notes the end before the last bytes go out: a client that has its answer finds it in the log.
    fn about_to(&self, end: End) -> End {
        self.shared.mark(self.number, end.clone());
        end
    }

    fn answer(&self, turn: &Turn, answer: &Answer) -> Result<End, Cut> {
        let wire = self.query.api.wire();
        let mut output = self.stream;
        // Without a stream there are no places inside the answer: all happens before it.
        let streams = self.query.stream;
        self.at(turn, None)?;
        if !streams {
            for position in
                [turn.gate.as_ref().and_then(|gate| gate.after), position(turn)].into_iter().flatten()
            {
                self.at(turn, Some(position))?;
            }
        }
        self.rest(Some(turn.delay_ms))?;
        match &turn.fault {
            Some(Fault::Error { status, kind, message, headers, body }) => {
                let message = message.as_deref().unwrap_or("scripted error");
                let body = body.clone().unwrap_or_else(|| wire.error(*status, kind.as_deref(), message));
                let mut all = turn.headers.clone();
                all.extend(headers.clone());
                let end = self.about_to(End::Error(*status));
                http::respond(&mut output, *status, &all, &body)?;
                return Ok(end);
            }
            Some(Fault::Raw { body, content_type }) => {
                let end = self.about_to(End::Raw);
                http::respond_text(&mut output, 200, &turn.headers, content_type, body)?;
                return Ok(end);
            }
            Some(Fault::StreamError { kind, message, .. }) if !streams => {
                let message = message.as_deref().unwrap_or("scripted error");
                let end = self.about_to(End::Error(500));
                http::respond(&mut output, 500, &turn.headers, &wire.error(500, Some(kind), message))?;
                return Ok(end);
            }
            _ => {}
        }
        if streams {
            return self.stream(turn, answer, wire.events(answer));
        }
        let end = self.about_to(End::Done);
        http::respond(&mut output, 200, &turn.headers, &wire.whole(answer))?;
        Ok(end)
    }

    fn stream(&self, turn: &Turn, answer: &Answer, events: Vec<Event>) -> Result<End, Cut> {
        let mut output = self.stream;
        http::begin_stream(&mut output, &turn.headers)?;
        output.flush()?;
        let length = events.len();
        let failure = self.failure(turn, answer, length);
        for (sent, event) in events.iter().enumerate() {
            self.at(turn, Some(sent))?;
            if let Some((_, last)) = failure.as_ref().filter(|(position, _)| *position == sent) {
                let end = self.about_to(End::StreamError);
                http::send(&mut output, last)?;
                http::finish(&mut output, "")?;
                return Ok(end);
            }
            http::send(&mut output, event)?;
            self.rest(Some(turn.chunk_delay_ms))?;
        }
        self.at_end(turn, length)?;
        let end = self.about_to(End::Done);
        http::finish(&mut output, self.query.api.wire().closing())?;
        Ok(end)
    }

    /// What happens at a place: a gate, a stall, a cut.
    fn at(&self, turn: &Turn, here: Option<usize>) -> Result<(), Cut> {
        if let Some(gate) = turn.gate.as_ref().filter(|gate| gate.after == here) {
            self.hold(&gate.name)?;
        }
        match &turn.fault {
            Some(Fault::Stall { after, ms }) if *after == here => self.rest(*ms),
            Some(Fault::Drop { after }) if *after == here => Err(Cut::Dropped),
            _ => Ok(()),
        }
    }

    /// Places beyond the last event are the end.
    fn at_end(&self, turn: &Turn, length: usize) -> Result<(), Cut> {
        let gate = turn.gate.as_ref().and_then(|gate| gate.after);
        for position in [gate, position(turn)].into_iter().flatten().filter(|position| *position >= length) {
            self.at(turn, Some(position))?;
        }
        Ok(())
    }

    /// The event that ends a failing stream, and its place: always before the one that would complete the answer.
    fn failure(&self, turn: &Turn, answer: &Answer, length: usize) -> Option<(usize, Event)> {
        let Some(Fault::StreamError { kind, message, after }) = &turn.fault else { return None };
        let last = length.saturating_sub(1);
        let message = message.as_deref().unwrap_or("scripted error");
        let event = self.query.api.wire().stream_error(answer, kind, message);
        Some((after.unwrap_or(last).min(last), event))
    }

    fn hold(&self, gate: &str) -> Result<(), Cut> {
        if !self.shared.is_gate_open(gate) {
            self.shared.mark(self.number, End::Held(gate.to_owned()));
            self.wait(None, || self.shared.is_gate_open(gate))?;
            self.shared.mark(self.number, End::Open);
        }
        Ok(())
    }

    fn rest(&self, ms: Option<u64>) -> Result<(), Cut> {
        match ms {
            Some(0) => Ok(()),
            ms => self.wait(ms.map(Duration::from_millis), || false),
        }
    }

    /// Waits for a time, for something, or for the client to go away.
    fn wait(&self, time: Option<Duration>, ready: impl Fn() -> bool) -> Result<(), Cut> {
        let begin = Instant::now();
        self.stream.set_read_timeout(Some(TICK))?;
        let waited = loop {
            if ready() || time.is_some_and(|time| begin.elapsed() >= time) {
                break Ok(());
            }
            if self.shared.is_stopped() {
                break Err(Cut::Stopped);
            }
            match self.stream.peek(&mut [0]) {
                Ok(0) => break Err(Cut::Gone),
                // The next request is already here; it has to wait too.
                Ok(_) => thread::sleep(TICK),
                Err(error) if is_timeout(&error) => {}
                Err(_) => break Err(Cut::Gone),
            }
        };
        self.stream.set_read_timeout(None)?;
        waited
    }
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted)
}

/// Where in the stream the fault is, if it has a place there.
fn position(turn: &Turn) -> Option<usize> {
    match turn.fault {
        Some(Fault::Stall { after, .. } | Fault::Drop { after }) => after,
        _ => None,
    }
}
