//! Connections: how many, how long, from whom, and what speaks over them.

use std::net::SocketAddr;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;
use std::time::Duration;
use std::time::Instant;

use axum::Router;
use hyper_util::rt::TokioIo;
use hyper_util::rt::TokioTimer;
use hyper_util::service::TowerToHyperService;
use segno_engine::run::ancestry::Below;
use segno_engine::run::ancestry::below_run_of;
use segno_engine::run::ancestry::owner_of_connection;
use tokio::io::AsyncRead;
use tokio::io::AsyncWrite;
use tokio::net::TcpListener;
use tokio::net::UnixListener;
use tokio::task::AbortHandle;
use tokio_rustls::TlsAcceptor;

use crate::error::CommandError;
use crate::error::Outcome;

/// How many connections there may be. One more, and the one that was silent for the longest time is closed.
const MOST: usize = 512;
/// How long a client may take to say what it wants, and to begin.
const PATIENCE: Duration = Duration::from_secs(10);
/// The most that the head of a request may have, in bytes.
const HEAD: usize = 32 << 10;

/// Who is at the other end.
#[derive(Clone, Debug)]
pub(super) struct Peer {
    place: Place,
    connection: Arc<Connection>,
}

#[derive(Clone, Debug)]
enum Place {
    Tcp { peer: SocketAddr, own: SocketAddr },
    Process(u32),
    Unknown,
}

impl Peer {
    /// Whether an agent, or something that it started, is known to be at the other end. The token is what keeps others out:
    /// this keeps an agent from acting in the name of its person with a browser of theirs.
    pub(super) fn is_below_run(&self) -> bool {
        let pid = match &self.place {
            Place::Tcp { peer, own } if peer.ip().is_loopback() => owner_of_connection(*peer, *own),
            Place::Process(pid) => Some(*pid),
            Place::Tcp { .. } | Place::Unknown => None,
        };
        pid.is_some_and(|pid| below_run_of(pid) == Below::Run)
    }

    /// From now on something is sent for as long as the client likes.
    pub(super) fn streams(&self) {
        self.connection.streams.store(true, Ordering::Relaxed);
    }

    fn is_heard(&self) {
        self.connection.heard.store(moments(), Ordering::Relaxed);
    }
}

#[derive(Debug, Default)]
struct Connection {
    heard: AtomicU64,
    streams: AtomicBool,
}

/// Milliseconds since this program began to listen.
fn moments() -> u64 {
    static BEGAN: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    u64::try_from(BEGAN.get_or_init(Instant::now).elapsed().as_millis()).unwrap_or(u64::MAX)
}

/// The connections that there are.
#[derive(Clone, Default)]
struct Connections(Arc<Mutex<Vec<Open>>>);

/// What ends a connection, and what is known of it.
type Open = (AbortHandle, Arc<Connection>);

impl Connections {
    /// Makes room for one more; false if there is none.
    fn make_room(&self) -> bool {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|(handle, _)| !handle.is_finished());
        if all.len() < MOST {
            return true;
        }
        let silent = all.iter().enumerate().filter(|(_, (_, it))| !it.streams.load(Ordering::Relaxed));
        let silent =
            silent.min_by_key(|(_, (_, it))| it.heard.load(Ordering::Relaxed)).map(|(index, _)| index);
        let Some((handle, _)) = silent.map(|index| all.swap_remove(index)) else { return false };
        handle.abort();
        true
    }

    fn add(&self, handle: AbortHandle, connection: Arc<Connection>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push((handle, connection));
    }
}

/// Where is listened.
pub(super) enum Listener {
    /// On a port, maybe with TLS.
    Tcp(TcpListener, Option<TlsAcceptor>),
    /// On a socket in the file system, which is removed at the end.
    Unix {
        /// What takes connections.
        listener: UnixListener,
        /// Removes the file at the end.
        _file: Bound,
    },
}

/// A socket file that is removed when it is dropped.
pub(super) struct Bound(PathBuf);

impl Drop for Bound {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// A private socket in a private directory. One that nobody listens on any more is replaced.
pub(super) fn bind_unix(path: &Path) -> Outcome<Listener> {
    use std::os::unix::fs::FileTypeExt as _;
    use std::os::unix::fs::PermissionsExt as _;
    let failed = |why| CommandError::io(format!("cannot listen on {}", path.display()), why);
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if !directory.exists() {
        segno_files::private_directory(directory).map_err(failed)?;
    }
    segno_files::check_ours(directory).map_err(|why| {
        failed(why).hint(
            "name a place in a directory that only you can write to, such as $XDG_RUNTIME_DIR/segno.sock",
        )
    })?;
    let is_socket = std::fs::symlink_metadata(path).is_ok_and(|meta| meta.file_type().is_socket());
    if is_socket && std::os::unix::net::UnixStream::connect(path).is_err() {
        std::fs::remove_file(path).map_err(failed)?;
    }
    // The socket is born inside of a directory that nobody else may enter, and moved when it is private.
    let nest = tempfile::Builder::new().prefix(".segno-").tempdir_in(directory).map_err(failed)?;
    let draft = nest.path().join("s");
    let listener = UnixListener::bind(&draft).map_err(failed)?;
    std::fs::set_permissions(&draft, std::fs::Permissions::from_mode(0o600)).map_err(failed)?;
    std::fs::hard_link(&draft, path).map_err(failed)?;
    Ok(Listener::Unix { listener, _file: Bound(path.to_owned()) })
}

/// Takes connections until the task is dropped.
pub(super) async fn accept(listener: Listener, app: Router) {
    let connections = Connections::default();
    moments();
    loop {
        let taken = match &listener {
            Listener::Tcp(listener, tls) => match listener.accept().await {
                Ok((stream, peer)) => {
                    let own = stream.local_addr();
                    let place = own.map_or(Place::Unknown, |own| Place::Tcp { peer, own });
                    let _ = stream.set_nodelay(true);
                    let tls = tls.clone();
                    take(&connections, place, &app, |serve| async move {
                        match tls {
                            None => serve.over(stream).await,
                            Some(tls) => {
                                // Who cannot speak TLS, or takes too long, has said nothing.
                                if let Ok(Ok(stream)) =
                                    tokio::time::timeout(PATIENCE, tls.accept(stream)).await
                                {
                                    serve.over(stream).await;
                                }
                            }
                        }
                    });
                    Ok(())
                }
                Err(why) => Err(why),
            },
            Listener::Unix { listener, .. } => match listener.accept().await {
                Ok((stream, _)) => {
                    let who = stream.peer_cred().ok();
                    // The directory and the mode say so already.
                    if who.is_some_and(|who| who.uid() == rustix::process::getuid().as_raw()) {
                        let pid = who.and_then(|who| u32::try_from(who.pid()?).ok());
                        let place = pid.map_or(Place::Unknown, Place::Process);
                        take(&connections, place, &app, |serve| serve.over(stream));
                    }
                    Ok(())
                }
                Err(why) => Err(why),
            },
        };
        if let Err(why) = taken {
            tracing::warn!(%why, "a connection was not taken");
            // Out of descriptors, for example: it passes when others end.
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

fn take<F: Future<Output = ()> + Send + 'static>(
    connections: &Connections,
    place: Place,
    app: &Router,
    serve: impl FnOnce(Serving) -> F,
) {
    if !connections.make_room() {
        return;
    }
    let connection = Arc::new(Connection::default());
    let peer = Peer { place, connection: Arc::clone(&connection) };
    peer.is_heard();
    let serving = Serving { app: app.clone(), peer };
    let task = tokio::spawn(serve(serving));
    connections.add(task.abort_handle(), connection);
}

struct Serving {
    app: Router,
    peer: Peer,
}

impl Serving {
    async fn over(self, stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) {
        let peer = self.peer;
        let app = self.app.layer(axum::middleware::from_fn(
            move |mut request: axum::extract::Request, next: axum::middleware::Next| {
                peer.is_heard();
                request.extensions_mut().insert(peer.clone());
                next.run(request)
            },
        ));
        let mut http = hyper::server::conn::http1::Builder::new();
        http.timer(TokioTimer::new()).header_read_timeout(PATIENCE).max_buf_size(HEAD);
        // A client that goes away is none of our business.
        let _ = http.serve_connection(TokioIo::new(stream), TowerToHyperService::new(app)).await;
    }
}
