//! How the server begins and ends.

use std::net::IpAddr;
use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject;
use segno_engine::run::ancestry::is_below;
use serde_json::json;
use signal_hook::consts::SIGHUP;
use signal_hook::consts::SIGINT;
use signal_hook::consts::SIGTERM;
use signal_hook::iterator::Signals;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::app::App;
use super::app::Guard;
use super::app::refused;
use super::keys::Keys;
use super::listen;
use super::listen::Listener;
use super::places::Place;
use super::routes;
use crate::command_context::CommandContext;
use crate::commands::serve::Scope;
use crate::context::Context;
use crate::error::CommandError;
use crate::error::Outcome;
use crate::exit::ExitCode;
use crate::perform::Surroundings;

/// How the page is to be served.
#[derive(Clone, Debug)]
pub(crate) struct Wish {
    /// On this port of this machine alone.
    pub(crate) port: u16,
    /// On this address instead, with TLS.
    pub(crate) listen: Option<SocketAddr>,
    /// On this socket in the file system instead.
    pub(crate) unix: Option<PathBuf>,
    /// The certificate and its key.
    pub(crate) tls: Option<(PathBuf, PathBuf)>,
    /// Further names by which browsers reach it.
    pub(crate) hosts: Vec<String>,
    /// Nothing can be changed.
    pub(crate) read_only: bool,
    /// Numbers are served too.
    pub(crate) metrics: bool,
    /// Only make a link to the page that is served already.
    pub(crate) link: bool,
    /// Only print a token for programs.
    pub(crate) token: Option<Scope>,
    /// Only make a new key: everybody has to sign in anew.
    pub(crate) sign_out: bool,
}

/// The interface as a document, for the documentation.
pub(crate) fn openapi() -> serde_json::Value {
    routes::openapi()
}

/// Serves until it is asked to end.
///
/// # Errors
/// If there is no way to serve.
pub(crate) fn serve(context: &Context, wish: &Wish) -> Outcome {
    refuse_agents(context)?;
    let printer = &context.printer;
    if wish.sign_out {
        Keys::renew(&context.paths.state)?;
        printer.talk("every browser and every token is signed out");
        return Ok(());
    }
    let keys = Keys::open(&context.paths.state)?;
    if let Some(scope) = wish.token {
        return printer.data(keys.token(scope));
    }
    if wish.link {
        let mut places = keys.places().living().into_iter();
        let place = places.next().ok_or_else(|| {
            CommandError::failure("not_served", "the page is not served now").hint("segno serve")
        })?;
        printer.data(format!("{}/in/{}", place.address, keys.make_link(place.mode())?))?;
        for other in places {
            printer.talk(format!("it is served at {} too; this link is for the newest", other.address));
        }
        return Ok(());
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .build()
        .map_err(|why| CommandError::io("cannot start to serve", why))?;
    let served = runtime.block_on(begin(context, keys, wish));
    // Whoever still reads has had their answer, or has gone away.
    runtime.shutdown_background();
    served
}

/// Whoever has a link, a token or a server of their own can answer in the name of a person.
fn refuse_agents(context: &Context) -> Outcome {
    let below = match CommandContext::open_to_look_if_any(context)? {
        Some(ctx) => ctx.engine.is_below_an_agent()?,
        None => is_below(&[]),
    };
    if below {
        let why = "an agent cannot serve the page, on which a person decides: this was started by one whose session is \
                   recorded here";
        return Err(CommandError::new(ExitCode::Refused, "refused_below_run", why)
            .hint("type it in a terminal of your own"));
    }
    Ok(())
}

async fn begin(context: &Context, keys: Keys, wish: &Wish) -> Outcome {
    let (listener, guard, address, own) = bind(wish).await?;
    let place = Place { address: address.clone(), read_only: wish.read_only };
    let _kept = keys.places().keep(&place)?;
    let link = format!("{address}/in/{}", keys.make_link(place.mode())?);
    let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
    let app = Arc::new(App::new(Surroundings::from(context), keys, guard, wish.metrics, tell)?);
    // Whoever reads that it is served may ask it to end.
    let mut ended = end_at_signals()?;
    say(context, wish, (&address, own), &link)?;
    let watching = Arc::clone(&app);
    std::thread::spawn(move || watching.watch());
    if app.metrics.wanted() {
        let counting = Arc::clone(&app);
        std::thread::spawn(move || counting.count());
    }
    let mut serving = std::pin::pin!(listen::accept(listener, routes::router(app)));
    loop {
        tokio::select! {
            () = &mut serving => return Ok(()),
            _ = &mut ended => {
                context.printer.talk("ended");
                return Ok(());
            }
            Some(words) = told.recv() => context.printer.warn(words),
        }
    }
}

fn say(context: &Context, wish: &Wish, (address, own): (&str, Option<SocketAddr>), link: &str) -> Outcome {
    let printer = &context.printer;
    if printer.is_json() {
        printer.json_line(
            &json!({ "address": address, "listens": own, "link": link, "unix": wish.unix, "read_only": wish.read_only }),
        )?;
        return printer.flush();
    }
    match &wish.unix {
        None => {
            printer.data(link)?;
            printer.talk(
                "the link signs one browser in, once, within ten minutes; segno serve --link prints another",
            );
        }
        Some(path) => {
            printer.data(path.display().to_string())?;
            printer.talk(format!(
                "behind a tunnel, for example ssh -L 7346:{} HOST, open {link}",
                path.display()
            ));
        }
    }
    printer.talk("Ctrl-C ends it; sessions and their agents go on");
    printer.flush()
}

/// What listens, who may ask, the address for browsers, and the one of the socket.
async fn bind(wish: &Wish) -> Outcome<(Listener, Guard, String, Option<SocketAddr>)> {
    if let Some(host) = wish.hosts.iter().find(|host| !is_host(host)) {
        return Err(refused(format!("{host:?} is no name by which a browser reaches a server"))
            .hint("segno serve --host NAME   or NAME:PORT, such as box.example:8443"));
    }
    let mut hosts: Vec<String> = wish.hosts.iter().map(|host| host.to_ascii_lowercase()).collect();
    let guard = |hosts: Vec<String>, scheme: &'static str, port: u16| Guard {
        hosts,
        any_loopback: false,
        scheme,
        read_only: wish.read_only,
        cookie: format!("segno-{port}"),
    };
    if let Some(path) = &wish.unix {
        let listener = listen::bind_unix(path)?;
        let guard = Guard { any_loopback: true, ..guard(hosts, "http", 7346) };
        return Ok((listener, guard, "http://localhost:7346".to_owned(), None));
    }
    let wanted = wish.listen.unwrap_or_else(|| SocketAddr::from(([127, 0, 0, 1], wish.port)));
    let tls = wish.tls.as_ref().map(tls).transpose()?;
    if !wanted.ip().is_loopback() && tls.is_none() {
        return Err(refused(
            "whoever is on the way could read and change everything: this address needs TLS",
        )
        .hint(
            "segno serve --listen ADDR:PORT --cert FILE --cert-key FILE   (or: ssh -L 7346:127.0.0.1:7346 HOST)",
        ));
    }
    if wanted.ip().is_unspecified() && hosts.is_empty() {
        return Err(refused(format!(
            "browsers cannot go to {}: say by which name they reach it",
            wanted.ip()
        ))
        .hint(format!(
            "segno serve --listen {wanted} --host NAME:PORT …   with the name in the certificate"
        )));
    }
    let listener = TcpListener::bind(wanted).await.map_err(|why| {
        let taken = why.kind() == std::io::ErrorKind::AddrInUse;
        let error = CommandError::io(format!("cannot listen on {wanted}"), why);
        match taken {
            true => error.hint("segno serve --link   if it is served already   (or: segno serve --port 0)"),
            false => error,
        }
    })?;
    let own = listener.local_addr().map_err(|why| CommandError::io("the address is not known", why))?;
    let scheme = if tls.is_some() { "https" } else { "http" };
    hosts.extend(own_names(own, scheme));
    let name = hosts.first().cloned().unwrap_or_else(|| own.to_string());
    Ok((
        Listener::Tcp(listener, tls),
        guard(hosts, scheme, own.port()),
        format!("{scheme}://{name}"),
        Some(own),
    ))
}

/// Whether this is a name, or an address, with or without a port.
fn is_host(text: &str) -> bool {
    text.parse::<axum::http::uri::Authority>().is_ok_and(|it| {
        let name = it.host().trim_start_matches('[').trim_end_matches(']');
        let plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_".contains(&byte));
        !text.contains('@')
            && !text.ends_with(':')
            && !name.is_empty()
            && (plain || name.parse::<std::net::Ipv6Addr>().is_ok())
    })
}

/// How browsers may name what is bound to this address.
fn own_names(own: SocketAddr, scheme: &str) -> Vec<String> {
    let mut names = Vec::new();
    if own.ip().is_loopback() {
        let first = if own.is_ipv6() { "[::1]" } else { "127.0.0.1" };
        names.extend([first, "localhost"].map(ToOwned::to_owned));
    } else if !own.ip().is_unspecified() {
        names.push(match own.ip() {
            IpAddr::V4(four) => four.to_string(),
            IpAddr::V6(six) => format!("[{six}]"),
        });
    }
    let usual = if scheme == "https" { 443 } else { 80 };
    let port = own.port();
    names.into_iter().map(|name| if port == usual { name } else { format!("{name}:{port}") }).collect()
}

fn tls((certificate, key): &(PathBuf, PathBuf)) -> Outcome<TlsAcceptor> {
    let bad = |file: &PathBuf, why: &dyn std::fmt::Display| {
        CommandError::failure("bad_certificate", format!("cannot use {}: {why}", file.display()))
    };
    let chain: Result<Vec<CertificateDer<'static>>, _> =
        CertificateDer::pem_file_iter(certificate).and_then(Iterator::collect);
    let chain = chain.map_err(|why| bad(certificate, &why))?;
    if chain.is_empty() {
        return Err(bad(certificate, &"there is no certificate in it")
            .hint("a PEM file: -----BEGIN CERTIFICATE-----"));
    }
    let mode = std::fs::metadata(key).map_err(|why| bad(key, &why))?.mode();
    // A group may read it, as some systems do for their servers.
    if mode & 0o027 != 0 {
        let why = format!("others can read or change it (its mode is {:03o})", mode & 0o777);
        return Err(bad(key, &why).hint(format!("chmod 600 {}", key.display())));
    }
    let private = PrivateKeyDer::from_pem_file(key).map_err(|why| bad(key, &why))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|why| bad(certificate, &why))?
        .with_no_client_auth()
        .with_single_cert(chain, private)
        .map_err(|why| bad(certificate, &why))?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// Comes when this process is asked to end.
fn end_at_signals() -> Outcome<tokio::sync::oneshot::Receiver<()>> {
    let wanted = [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|signal| !crate::signals::is_ignored(*signal));
    let mut signals =
        Signals::new(wanted).map_err(|why| CommandError::io("cannot listen to signals", why))?;
    let (sender, receiver) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || {
        if signals.forever().next().is_some() {
            let _ = sender.send(());
        }
    });
    Ok(receiver)
}
