//! What all connections of a server share.

use std::collections::BTreeSet;
use std::collections::HashMap;
use std::net::Shutdown;
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::Condvar;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;
use std::time::Duration;
use std::time::Instant;

use serde_json::Value;

use super::handle::Limits;
use super::log::End;
use super::log::Request;
use super::pick::Picked;
use super::pick::Picker;
use super::query::Query;

/// Shared by the handle, the thread that accepts, and the threads that answer.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) limits: Limits,
    started: Instant,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    picker: Picker,
    requests: Vec<Request>,
    small: Vec<String>,
    gates: BTreeSet<String>,
    connections: HashMap<u64, TcpStream>,
    accepted: u64,
    stopped: bool,
}

impl Shared {
    pub(super) fn new(picker: Picker, limits: Limits) -> Self {
        Self {
            limits,
            started: Instant::now(),
            state: Mutex::new(State {
                picker,
                requests: Vec::new(),
                small: Vec::new(),
                gates: BTreeSet::new(),
                connections: HashMap::new(),
                accepted: 0,
                stopped: false,
            }),
            changed: Condvar::new(),
        }
    }

    /// A thread that panicked leaves nothing half done here: every change is one step.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a connection in; None when the server has ended or has too many.
    pub(super) fn connect(&self, stream: &TcpStream) -> Option<u64> {
        let mut state = self.state();
        if state.stopped || state.connections.len() >= self.limits.connections {
            return None;
        }
        let id = state.accepted;
        state.accepted += 1;
        state.connections.insert(id, stream.try_clone().ok()?);
        Some(id)
    }

    pub(super) fn disconnect(&self, id: u64) {
        self.state().connections.remove(&id);
        self.changed.notify_all();
    }

    /// Notes a request and chooses its turn; None when there have been too many.
    pub(super) fn ask(&self, query: &Query, body: Arc<Value>) -> Option<(usize, Picked)> {
        let mut state = self.state();
        if state.requests.len() >= self.limits.requests {
            return None;
        }
        let picked = state.picker.pick(query);
        let number = state.requests.len() + 1;
        state.requests.push(Request {
            number,
            api: query.api,
            track: picked.track.clone(),
            turn: picked.index,
            model: query.model.clone(),
            stream: query.stream,
            tools: query.tools.len(),
            at: self.started.elapsed(),
            end: End::Open,
            last_user: query.last_user().to_owned(),
            conversation: query.conversation.clone(),
            body,
        });
        self.changed.notify_all();
        Some((number, picked))
    }

    /// Notes how request `number` stands.
    pub(super) fn mark(&self, number: usize, end: End) {
        if let Some(request) = self.state().requests.get_mut(number - 1) {
            request.end = end;
        }
        self.changed.notify_all();
    }

    pub(super) fn small(&self, method: &str, path: &str) {
        self.state().small.push(format!("{method} {path}"));
    }

    pub(super) fn smalls(&self) -> Vec<String> {
        self.state().small.clone()
    }

    pub(super) fn requests(&self) -> Vec<Request> {
        self.state().requests.clone()
    }

    pub(super) fn open_gate(&self, name: &str) {
        self.state().gates.insert(name.to_owned());
        self.changed.notify_all();
    }

    pub(super) fn is_gate_open(&self, name: &str) -> bool {
        self.state().gates.contains(name)
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.state().stopped
    }

    /// Ends everything that is under way.
    pub(super) fn stop(&self) {
        let mut state = self.state();
        state.stopped = true;
        for stream in state.connections.values() {
            // Already closed is as good.
            let _ = stream.shutdown(Shutdown::Both);
        }
        self.changed.notify_all();
    }

    /// Waits until `ready` says so of the requests, the server ends, or the time is over; says whether it is so.
    pub(super) fn wait(&self, time: Duration, ready: impl Fn(&[Request]) -> bool) -> bool {
        let waiting = |state: &mut State| !state.stopped && !ready(&state.requests);
        let waited = self.changed.wait_timeout_while(self.state(), time, waiting);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        ready(&state.requests)
    }

    /// Waits until the server has ended, or the time is over.
    pub(super) fn wait_stopped(&self, time: Duration) {
        drop(self.changed.wait_timeout_while(self.state(), time, |state| !state.stopped));
    }

    /// Waits until no connection is left, or the time is over.
    pub(super) fn wait_idle(&self, time: Duration) {
        drop(self.changed.wait_timeout_while(self.state(), time, |state| !state.connections.is_empty()));
    }
}
