//! `segno serve`: sessions in a browser.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args as ClapArgs;
use clap::ValueEnum;

use crate::context::Context;
use crate::error::Outcome;
use crate::serve;

/// Look at sessions in a browser, and act on them
///
/// Serves one page on this machine alone, and prints a link that signs one browser in, once. It shows all sessions, those that need
/// you first, and each of them live: what was asked, said and done, with differences, calls in doubt, phases, gates, checkpoints and
/// cost. What you do there (pause, go on, stop, allow more, answer, undo …) is what the commands do, under the same rules, and the
/// journal says that it came from the page. An agent can neither start it nor act through it.
///
/// Elsewhere than on this machine it is served only with TLS. A socket in the file system (--unix) is for tunnels.
#[derive(ClapArgs, Clone, Debug)]
#[command(
    visible_alias = "web",
    after_help = "Examples:\n  segno serve\n  segno serve --read-only --port 0\n  segno serve --link"
)]
pub struct Args {
    /// The port on this machine; 0 takes any that is free
    #[arg(long, value_name = "N", default_value_t = 7346, conflicts_with_all = ["listen", "unix"])]
    pub port: u16,
    /// Another address, which needs --cert and --cert-key unless it is this machine's own
    #[arg(long, value_name = "ADDR:PORT", conflicts_with = "unix")]
    pub listen: Option<SocketAddr>,
    /// A private socket in the file system instead of a port
    #[arg(long, value_name = "PATH")]
    pub unix: Option<PathBuf>,
    /// The certificate, as PEM
    #[arg(long, value_name = "FILE", requires = "key_file")]
    pub cert: Option<PathBuf>,
    /// The key of the certificate, as PEM
    #[arg(id = "key_file", long = "cert-key", value_name = "FILE", requires = "cert")]
    pub key: Option<PathBuf>,
    /// Another name by which browsers reach it, such as box.example:8443; may be repeated
    #[arg(long, value_name = "NAME")]
    pub host: Vec<String>,
    /// Only show: nothing can be done from the page
    #[arg(long)]
    pub read_only: bool,
    /// Serve numbers for Prometheus at /metrics, to whoever has a token (`--token metrics` prints one for nothing else)
    #[arg(long)]
    pub metrics: bool,
    /// Print a link that signs another browser in to the page that is served already
    #[arg(long, conflicts_with_all = ["token", "sign_out"])]
    pub link: bool,
    /// Print the token that programs send as `Authorization: Bearer …`: for all that a person can do, or for less
    #[arg(long, value_name = "FOR", num_args = 0..=1, default_missing_value = "all", conflicts_with = "sign_out")]
    pub token: Option<Scope>,
    /// Sign out every browser and every token
    #[arg(long)]
    pub sign_out: bool,
}

/// What a token is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Scope {
    /// Everything that a person can do on the page
    All,
    /// Everything that can be seen there
    Read,
    /// The numbers at /metrics
    Metrics,
}

/// Runs `segno serve`.
///
/// # Errors
/// If there is no way to serve.
pub fn run(context: &Context, args: &Args) -> Outcome {
    let wish = serve::Wish {
        port: args.port,
        listen: args.listen,
        unix: args.unix.clone(),
        tls: args.cert.clone().zip(args.key.clone()),
        hosts: args.host.clone(),
        read_only: args.read_only,
        metrics: args.metrics,
        link: args.link,
        token: args.token,
        sign_out: args.sign_out,
    };
    serve::serve(context, &wish)
}
