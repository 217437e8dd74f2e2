//! The hook server of a run: hooks send their payload to the driver, which has the store open already and writes what
//! arrives at the same time together. A hook that finds no server, or gets no answer, writes to the store itself; the
//! key of its payload is the same, so that nothing is recorded twice.

use std::io::PipeReader;
use std::io::PipeWriter;
use std::io::Read;
use std::io::Write;
use std::os::fd::AsFd;
use std::os::unix::net::UnixListener;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::thread::Scope;
use std::time::Duration;
use std::time::Instant;

use rustix::event::PollFd;
use rustix::event::PollFlags;
use segno_core::EventKey;
use segno_core::SessionId;
use segno_core::StoreId;
use serde::Deserialize;
use serde::Serialize;

use crate::Actor;
use crate::Engine;
use crate::hook::HookAnswer;
use crate::hook::HookCall;

/// The variable that names the socket of a run's hook server. Agents that run already know it by this name.
pub const VARIABLE: &str = "SEGNO_DOOR";
/// The socket's name beside the capture of a run.
pub const NAME: &str = "door";
/// Larger payloads are not handed over: the driver's memory is bounded.
pub const LARGEST: usize = 1024 * 1024;
/// How many hooks are served at once; more wait in the socket's queue.
const AT_ONCE: usize = 16;
/// How long the driver waits for a hook that connected to send its payload.
const LISTEN: Duration = Duration::from_secs(2);
/// Said when what was brought is durable.
const RECORDED: u8 = b'r';
/// Said when everything is done that the agent has to wait for; what to print follows.
const ANSWERED: u8 = b'a';

/// What a hook says before its payload.
#[derive(Debug, Serialize, Deserialize)]
pub struct HookRequest {
    /// Whose hook it is.
    pub agent: String,
    /// The session that the hook is told to record in.
    pub session: SessionId,
    /// The store that the hook is told to record in.
    #[serde(default)]
    pub store: Option<StoreId>,
    /// The key for something that has none of its own.
    pub key: EventKey,
    /// How long the payload is.
    pub bytes: usize,
}

/// Hands a payload to the driver. Nothing means that it has to be recorded in another way.
/// It waits for `patience` until it is durable, and then for `wait` until the agent may go on.
pub fn send(
    socket: &Path,
    request: &HookRequest,
    payload: &[u8],
    patience: Duration,
    wait: Duration,
) -> Option<HookAnswer> {
    let mut stream = UnixStream::connect(socket).ok()?;
    stream.set_write_timeout(Some(patience)).ok()?;
    stream.set_read_timeout(Some(patience)).ok()?;
    let mut message = serde_json::to_vec(request).ok()?;
    message.push(b'\n');
    message.extend_from_slice(payload);
    stream.write_all(&message).ok()?;
    let mut word = [0];
    stream.read_exact(&mut word).ok()?;
    if word[0] != RECORDED {
        return None;
    }
    // It is durable. What the driver does before the agent may go on takes its time, and the agent has its own.
    let mut answer = Vec::new();
    let answered = stream.set_read_timeout(Some(wait)).and_then(|()| stream.read_to_end(&mut answer));
    match (answered, answer.split_first()) {
        (Ok(_), Some((&ANSWERED, text))) => {
            let print = String::from_utf8(text.to_vec()).ok().filter(|text| !text.is_empty());
            Some(HookAnswer { print, spooled: false })
        }
        // A driver that died in between may have meant to deny it: the store decides.
        (Ok(_), _) => None,
        // It takes longer than the agent waits.
        (Err(_), _) => Some(HookAnswer::default()),
    }
}

/// Listens for hooks.
pub struct HookServer(UnixListener);

/// The server stops when this is dropped.
pub struct HookServerHandle {
    closes: PipeWriter,
    left: mpsc::Receiver<()>,
}

impl HookServerHandle {
    /// Stops the server and waits, for a bounded time, for hooks that are being served.
    pub fn close(self) {
        let Self { closes, left } = self;
        drop(closes);
        let _ = left.recv_timeout(LISTEN);
    }
}

/// For whom things are recorded.
#[derive(Clone)]
pub struct RunIdentity {
    /// The session.
    pub session: SessionId,
    /// The run and its driver.
    pub actor: Actor,
}

impl HookServer {
    /// Makes the socket in a folder that is the user's alone, in place of one whose driver is gone. None where the folder's
    /// name is too long for a socket.
    pub fn open(folder: &Path) -> Option<Self> {
        let path = folder.join(NAME);
        let _ = std::fs::remove_file(&path);
        let listener = UnixListener::bind(path).ok()?;
        listener.set_nonblocking(true).ok()?;
        Some(Self(listener))
    }

    /// Serves hooks until the handle goes.
    pub fn serve<'scope, 'env>(
        self,
        scope: &'scope Scope<'scope, 'env>,
        engine: &'env Engine,
        identity: RunIdentity,
    ) -> Option<HookServerHandle> {
        let (closed, closes) = std::io::pipe().ok()?;
        let (leaves, left) = mpsc::channel();
        let handle = std::thread::Builder::new().name("segno-hooks".to_owned());
        let served = handle.spawn_scoped(scope, move || {
            let inside = AtomicUsize::new(0);
            std::thread::scope(|guests| {
                while self.wait(&closed) {
                    let Ok((stream, _)) = self.0.accept() else {
                        // Too many open files, perhaps: hooks write to the store meanwhile.
                        std::thread::sleep(Duration::from_millis(10));
                        continue;
                    };
                    let (inside, identity) = (&inside, &identity);
                    if inside.fetch_add(1, Ordering::Relaxed) >= AT_ONCE {
                        let _ = hear(engine, identity, stream);
                        inside.fetch_sub(1, Ordering::Relaxed);
                        continue;
                    }
                    let guest = std::thread::Builder::new().spawn_scoped(guests, move || {
                        // Whoever could not be heard goes to the store himself.
                        let _ = hear(engine, identity, stream);
                        inside.fetch_sub(1, Ordering::Relaxed);
                    });
                    if guest.is_err() {
                        inside.fetch_sub(1, Ordering::Relaxed);
                    }
                }
            });
            let _ = leaves.send(());
        });
        served.ok()?;
        Some(HookServerHandle { closes, left })
    }

    /// Waits for a connection; false when the server stops.
    fn wait(&self, closed: &PipeReader) -> bool {
        let mut fds = [
            PollFd::from_borrowed_fd(self.0.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(closed.as_fd(), PollFlags::IN),
        ];
        // Interrupted by a signal is no reason to leave.
        rustix::event::poll(&mut fds, None).is_err() || fds[1].revents().is_empty()
    }
}

fn hear(engine: &Engine, identity: &RunIdentity, mut stream: UnixStream) -> Option<()> {
    stream.set_nonblocking(false).ok()?;
    stream.set_write_timeout(Some(LISTEN)).ok()?;
    let (request, payload) = listen(&mut stream)?;
    // An agent inside the agent has a driver of its own.
    if request.session != identity.session || request.store.is_some_and(|store| store != engine.store_id()) {
        return None;
    }
    let agent = segno_agents::by_name(&request.agent)?;
    let (run, redactor) = (identity.actor.run.as_deref(), engine.redactor());
    let call = HookCall::read(agent.as_ref(), run, &payload, request.key, &redactor);
    drop(payload);
    let mut recorded = || stream.write_all(&[RECORDED]).is_ok();
    let answer = engine.hear_hook_of(identity.session, call, &identity.actor, &mut recorded).ok()?;
    let mut message = vec![ANSWERED];
    message.extend_from_slice(answer.print.unwrap_or_default().as_bytes());
    stream.write_all(&message).ok()
}

/// What a hook says, and what it brings.
fn listen(stream: &mut UnixStream) -> Option<(HookRequest, Vec<u8>)> {
    let mut heard = Vec::with_capacity(8 * 1024);
    let until = Instant::now() + LISTEN;
    let (request, start) = loop {
        if let Some(end) = heard.iter().position(|byte| *byte == b'\n') {
            break (serde_json::from_slice::<HookRequest>(&heard[..end]).ok()?, end + 1);
        }
        if heard.len() > 4 * 1024 || more(stream, &mut heard, 8 * 1024, until)? == 0 {
            return None;
        }
    };
    if request.bytes > LARGEST {
        return None;
    }
    let whole = start + request.bytes;
    heard.reserve(whole.saturating_sub(heard.len()));
    while heard.len() < whole {
        let missing = whole - heard.len();
        if more(stream, &mut heard, missing, until)? == 0 {
            return None;
        }
    }
    heard.drain(..start);
    heard.truncate(request.bytes);
    Some((request, heard))
}

fn more(stream: &mut UnixStream, heard: &mut Vec<u8>, most: usize, until: Instant) -> Option<usize> {
    // One who speaks drop by drop is not listened to for ever either.
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return None;
    }
    stream.set_read_timeout(Some(left)).ok()?;
    let before = heard.len();
    heard.resize(before + most, 0);
    let read = stream.read(&mut heard[before..]);
    heard.truncate(before + read.as_ref().map_or(0, |count| *count));
    read.ok()
}

#[cfg(test)]
mod tests {
    use segno_core::Event;
    use segno_store::EventRow;
    use segno_store::Purpose;
    use segno_store::sqlite;

    use super::*;
    use crate::EngineOptions;
    use crate::NewSession;
    use crate::fresh_key;

    const PATIENCE: Duration = Duration::from_secs(60);

    struct House {
        dir: tempfile::TempDir,
        engine: Engine,
        session: SessionId,
    }

    impl House {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            let options = segno_store::OpenOptions { purpose: Purpose::LongLived, ..Default::default() };
            let store = sqlite::SqliteStore::open(&dir.path().join("segno.db"), options).unwrap();
            let view = crate::view::Options { enabled: false, ..Default::default() };
            let engine = Engine::new(Box::new(store), EngineOptions { view, ..EngineOptions::default() });
            let session = engine.create(NewSession::default()).unwrap().state.session_id;
            Self { dir, engine, session }
        }

        fn with_server<T>(&self, epoch: Option<u64>, visit: impl FnOnce(&Path) -> T) -> T {
            let socket = HookServer::open(self.dir.path()).unwrap();
            let actor = Actor { run: Some("r1".to_owned()), epoch, ..Actor::default() };
            std::thread::scope(|scope| {
                let identity = RunIdentity { session: self.session, actor };
                let _handle = socket.serve(scope, &self.engine, identity).unwrap();
                visit(&self.dir.path().join(NAME))
            })
        }

        fn request(&self, socket: &Path, payload: &str) -> Option<HookAnswer> {
            let requests = HookRequest {
                agent: "claude".to_owned(),
                session: self.session,
                store: None,
                key: fresh_key(),
                bytes: payload.len(),
            };
            send(socket, &requests, payload.as_bytes(), PATIENCE, PATIENCE)
        }

        fn started(&self) -> Vec<String> {
            let rows = self.engine.store().events(self.session, 0, 10_000).unwrap();
            rows.into_iter()
                .filter_map(|row| match row {
                    EventRow::Whole(stored) => match stored.event().unwrap() {
                        Event::ToolStarted(started) => Some(started.call),
                        _ => None,
                    },
                    EventRow::Damaged { what, .. } => panic!("{what}"),
                })
                .collect()
        }
    }

    fn payload(call: &str, size: usize) -> String {
        let content = "x".repeat(size);
        serde_json::json!({
            "session_id": "n", "hook_event_name": "PreToolUse", "tool_name": "Write", "tool_use_id": call,
            "tool_input": { "file_path": "/tmp/a", "content": content },
        })
        .to_string()
    }

    #[test]
    fn what_is_brought_at_once_is_recorded_once_each() {
        let house = House::new();
        house.with_server(None, |socket| {
            std::thread::scope(|scope| {
                for number in 0..40 {
                    let house = &house;
                    scope.spawn(move || {
                        let payload = payload(&format!("c{number}"), 100 + number * 5_000);
                        assert_eq!(house.request(socket, &payload), Some(HookAnswer::default()));
                    });
                }
            });
            // The same again is known already.
            assert_eq!(house.request(socket, &payload("c7", 100 + 7 * 5_000)), Some(HookAnswer::default()));
        });
        let mut started = house.started();
        started.sort();
        let mut wanted: Vec<String> = (0..40).map(|number| format!("c{number}")).collect();
        wanted.sort();
        assert_eq!(started, wanted);
    }

    #[test]
    fn a_replaced_driver_denies_what_its_hook_server_is_sent() {
        let house = House::new();
        let epoch = house.engine.drive(house.session, "first").unwrap().epoch();
        drop(house.engine.drive(house.session, "second").unwrap());
        let answer = house.with_server(Some(epoch), |socket| house.request(socket, &payload("late", 1)));
        let text = answer.and_then(|answer| answer.print).unwrap();
        assert!(text.contains("replaced by another driver"), "{text}");
        assert!(house.started().is_empty());
    }

    #[test]
    fn a_hook_that_is_not_heard_is_told_so() {
        let house = House::new();
        let nobody = house.dir.path().join("nobody");
        assert_eq!(house.request(&nobody, &payload("c", 1)), None);
        // A driver that is frozen: the request is never answered.
        let frozen = HookServer::open(house.dir.path()).unwrap();
        let brief = Duration::from_millis(20);
        let bring = |session, agent: &str| {
            let payload = payload("c", 1);
            let requests = HookRequest {
                agent: agent.to_owned(),
                session,
                store: None,
                key: fresh_key(),
                bytes: payload.len(),
            };
            (requests, payload)
        };
        let (requests, text) = bring(house.session, "claude");
        assert_eq!(send(&house.dir.path().join(NAME), &requests, text.as_bytes(), brief, brief), None);
        drop(frozen);
        // One that dies after it has recorded something, and before it said whether the call may run.
        let dying = HookServer::open(house.dir.path()).unwrap();
        dying.0.set_nonblocking(false).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let (mut stream, _) = dying.0.accept().unwrap();
                listen(&mut stream).unwrap();
                stream.write_all(&[RECORDED]).unwrap();
            });
            assert_eq!(
                send(&house.dir.path().join(NAME), &requests, text.as_bytes(), PATIENCE, PATIENCE),
                None
            );
        });
        drop(dying);
        house.with_server(None, |socket| {
            let other = SessionId::at(segno_core::Timestamp::from_micros(1));
            for (session, agent) in [(other, "claude"), (house.session, "nobody's")] {
                let (requests, text) = bring(session, agent);
                assert_eq!(send(socket, &requests, text.as_bytes(), PATIENCE, PATIENCE), None);
            }
            // Noise at the socket, and somebody who goes away in the middle.
            for noise in [&b"\xff\n"[..], b"{", &[b' '; 9_000]] {
                let mut stream = UnixStream::connect(socket).unwrap();
                let _ = stream.write_all(noise);
            }
            let (requests, text) = bring(house.session, "claude");
            let lying = HookRequest { bytes: text.len() + 1, ..requests };
            let mut stream = UnixStream::connect(socket).unwrap();
            serde_json::to_writer(&stream, &lying).unwrap();
            stream.write_all(b"\n{}").unwrap();
            drop(stream);
        });
        assert!(house.started().is_empty());
    }
}
