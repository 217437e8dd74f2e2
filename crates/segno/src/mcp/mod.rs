//! The face that agents use: tools, resources and prompts of the Model Context Protocol.
//!
//! Two threads. One speaks the protocol; the other, which was here first, does what is asked, one thing after another, so
//! that what an agent records keeps its order. Each tool is one of the program's own commands, given as a value: what it
//! may do, what it refuses and how it answers is said once, there.

pub(crate) mod confirm;
mod documents;
mod members;
mod server;
mod start;
mod tools;
mod worker;

use std::sync::mpsc;

use self::worker::Ended;
use self::worker::Job;
use crate::context::Context;
use crate::error::CommandError;
use crate::error::Outcome;

/// Serves until the client goes away.
///
/// # Errors
/// If there is no way to serve.
pub(crate) fn serve(context: &Context) -> Outcome {
    let (sender, jobs) = mpsc::channel();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .map_err(|why| CommandError::io("cannot start to serve", why))?;
    let _signals = worker::end_at_signals(&sender)?;
    std::thread::scope(|scope| {
        let speaking = scope.spawn(move || {
            // However it ends: whoever works must not wait for more.
            let _over = Over(sender.clone());
            runtime.block_on(server::speak(sender))
        });
        match worker::work(context, &jobs) {
            Ended::ClientGone => {
                speaking.join().unwrap_or_else(|_| Err(CommandError::internal("cannot serve")))
            }
            // The other thread still waits for the client: it ends with the process.
            Ended::Signal => leave(context),
        }
    })
}

/// Says that the client is gone when it is dropped.
struct Over(mpsc::Sender<Job>);

impl Drop for Over {
    fn drop(&mut self) {
        let _ = self.0.send(Job::End(Ended::ClientGone));
    }
}

/// Ends the process although a thread waits for input that may never come. All that was acknowledged is on the disk.
fn leave(context: &Context) -> Outcome {
    let _ = context.printer.flush();
    #[expect(clippy::exit, reason = "standard input cannot be given up by the thread that reads it")]
    std::process::exit(0)
}
