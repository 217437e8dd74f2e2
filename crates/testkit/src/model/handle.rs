//! Starts, watches and ends a server.

use std::io;
use std::net::Ipv4Addr;
use std::net::SocketAddr;
use std::net::TcpListener;
use std::net::TcpStream;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::thread::{self};
use std::time::Duration;

use super::log::End;
use super::log::Request;
use super::pick::Picker;
use super::script::Script;
use super::server;
use super::state::Shared;

/// What a server does at most. Whatever a test does wrong, it ends.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// How long it lives.
    pub lifetime: Duration,
    /// Connections at one time; more are closed at once.
    pub connections: usize,
    /// Requests to the model in its life; more are refused.
    pub requests: usize,
    /// Bytes of one request.
    pub body_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            lifetime: Duration::from_secs(600),
            connections: 256,
            requests: 10_000,
            body_bytes: 64 * 1024 * 1024,
        }
    }
}

/// A running server. It ends when this is dropped.
#[derive(Debug)]
pub struct Model {
    shared: Arc<Shared>,
    address: SocketAddr,
    threads: Vec<JoinHandle<()>>,
}

impl Model {
    /// Starts a server on a free port of the loopback interface.
    ///
    /// # Errors
    /// The port cannot be had, a thread cannot be started, or a pattern of the script is wrong.
    pub fn start(script: Script) -> io::Result<Self> {
        Self::start_with(script, Limits::default())
    }

    /// Starts a server with limits of its own.
    ///
    /// # Errors
    /// As [`Model::start`].
    pub fn start_with(script: Script, limits: Limits) -> io::Result<Self> {
        let picker =
            Picker::new(script).map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared::new(picker, limits));
        let mut model = Self { shared: Arc::clone(&shared), address, threads: Vec::new() };
        let for_accept = Arc::clone(&shared);
        model.threads.push(
            thread::Builder::new()
                .name("model-accept".to_owned())
                .spawn(move || server::accept(&listener, &for_accept))?,
        );
        let end_of_life = thread::Builder::new().name("model-lifetime".to_owned()).spawn(move || {
            shared.wait_stopped(limits.lifetime);
            end(&shared, address);
        });
        model.threads.push(end_of_life?);
        Ok(model)
    }

    /// Where it is, such as `http://127.0.0.1:4321`; interfaces are below `/v1`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The requests to the model so far, in the order they came.
    pub fn requests(&self) -> Vec<Request> {
        self.shared.requests()
    }

    /// The small requests so far, such as `GET /v1/models`: everything that is not a request to the model.
    pub fn small_requests(&self) -> Vec<String> {
        self.shared.smalls()
    }

    /// Lets the answers at this gate go on, and those that come to it later.
    pub fn open_gate(&self, name: &str) {
        self.shared.open_gate(name);
    }

    /// Waits until a request is held at this gate; says whether one is.
    pub fn wait_held(&self, gate: &str, time: Duration) -> bool {
        self.wait(time, |requests| {
            requests.iter().any(|request| matches!(&request.end, End::Held(name) if name == gate))
        })
    }

    /// Waits until the requests so far are as wanted; says whether they are.
    pub fn wait(&self, time: Duration, ready: impl Fn(&[Request]) -> bool) -> bool {
        self.shared.wait(time, ready)
    }

    /// Waits until the server has come to the end of its life, or the time is over.
    pub fn wait_stopped(&self, time: Duration) -> bool {
        self.shared.wait_stopped(time);
        self.shared.is_stopped()
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        end(&self.shared, self.address);
        for thread in self.threads.drain(..) {
            // A panic in there has been printed already.
            let _ = thread.join();
        }
        self.shared.wait_idle(Duration::from_secs(5));
    }
}

fn end(shared: &Shared, address: SocketAddr) {
    shared.stop();
    // Wakes the thread that accepts; if nobody does any more, nothing is to wake.
    let _ = TcpStream::connect_timeout(&address, Duration::from_secs(1));
}
