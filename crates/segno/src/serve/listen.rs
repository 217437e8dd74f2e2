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
use segno_engine::run::ancestry::Caller;
use segno_engine::run::ancestry::caller;
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
    /// Which programs may be at the other end, as the system tells now. Takes a moment.
    pub(super) fn caller(&self) -> Caller {
        match &self.place {
            Place::Tcp { peer, own } => caller(*peer, *own),
            Place::Process(pid) => Caller::These(vec![*pid]),
            Place::Unknown => Caller::Unknown,
        }
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

/// A socket file that is removed when it is dropped, if it is still the same.
pub(super) struct Bound {
    path: PathBuf,
    file: Option<(u64, u64)>,
}

impl Drop for Bound {
    fn drop(&mut self) {
        // Another server may have taken the place.
        if self.file.is_some() && self.file == file_at(&self.path) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

fn file_at(path: &Path) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt as _;
    std::fs::symlink_metadata(path).ok().map(|meta| (meta.dev(), meta.ino()))
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
    if let Ok(meta) = std::fs::symlink_metadata(path) {
        let taken = |what: &str| {
            CommandError::failure("socket_taken", format!("cannot listen on {}: {what}", path.display()))
                .hint("segno serve --unix PATH   with another path")
        };
        if !meta.file_type().is_socket() {
            return Err(taken("there is a file that is no socket"));
        }
        match std::os::unix::net::UnixStream::connect(path) {
            Ok(_) => return Err(taken("somebody listens there already")),
            // Whoever listened there has gone. Anything else does not say so.
            Err(why) if why.kind() == std::io::ErrorKind::ConnectionRefused => {
                std::fs::remove_file(path).map_err(failed)?;
            }
            Err(why) => return Err(failed(why)),
        }
    }
    // The socket is born inside of a directory that nobody else may enter, and moved when it is private.
    let nest = tempfile::Builder::new().prefix(".segno-").tempdir_in(directory).map_err(failed)?;
    let draft = nest.path().join("s");
    let listener = UnixListener::bind(&draft).map_err(failed)?;
    std::fs::set_permissions(&draft, std::fs::Permissions::from_mode(0o600)).map_err(failed)?;
    std::fs::hard_link(&draft, path).map_err(failed)?;
    let file = Bound { path: path.to_owned(), file: file_at(path) };
    Ok(Listener::Unix { listener, _file: file })
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
