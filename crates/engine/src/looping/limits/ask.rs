//! Asking an agent how full its plan's windows are. It costs nothing but a moment: no model is called.

use std::io::BufRead;
use std::io::BufReader;
use std::io::Read;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Child;
use std::process::Command;
use std::process::Stdio;
use std::sync::mpsc;
use std::time::Duration;
use std::time::Instant;

use rustix::process::Pid;
use rustix::process::Signal;
use segno_agents::UsageAnswer;
use segno_core::State;
use segno_core::Timestamp;
use segno_core::event::LoopParked;
use segno_core::looping::LimitClass;
use segno_core::looping::LimitMark;
use segno_core::looping::LoopState;
use segno_core::looping::LoopVerdict;
use segno_core::looping::at_limit;

use crate::launch::Chosen;
use crate::launch::Who;
use crate::looping::driver::turn::Turning;
use crate::looping::driver::turn::jitter;
use crate::looping::evidence::command::OF_A_RUN;

/// How long an answer may take. Agents that answer do so in a second or two; starting one may take a while.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often it is looked whether somebody wants it to stop.
const LOOK: Duration = Duration::from_millis(50);
/// The most that is read.
const MOST: u64 = 4 * 1024 * 1024;
/// How long one that is told to end may take.
const GRACE: Duration = Duration::from_millis(500);

/// Asks, if the agent can be asked. An agent that does not answer, or not in time, cannot tell.
pub(crate) fn ask_usage(chosen: &Chosen, directory: &Path, stops: &dyn Fn() -> bool) -> UsageAnswer {
    let Some(question) = chosen.agent.usage_question() else { return UsageAnswer::CannotTell };
    let kept = chosen.environment.iter().filter(|(name, _)| OF_A_RUN.iter().all(|own| name != own));
    let mut command = Command::new(&chosen.program);
    command
        .args(&question.args)
        .current_dir(directory)
        .env_clear()
        .envs(kept.cloned())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .process_group(0);
    let Ok(mut child) = command.spawn() else { return UsageAnswer::CannotTell };
    let answer = answer(&mut child, &question.input, question.read, stops);
    end(&mut child);
    answer.unwrap_or(UsageAnswer::CannotTell)
}

impl Turning<'_> {
    /// After a wait the agent is asked once whether the account is open again, where it can tell without a call of the
    /// model. Who cannot tell finds out with one iteration.
    pub(crate) fn still_used_up(
        &mut self,
        state: &State,
        looping: &LoopState,
        agent: &str,
        account: &str,
    ) -> Option<LoopParked> {
        if looping.open
            || looping.tries.as_deref() != Some(account)
            || std::mem::replace(&mut self.asked, true)
        {
            return None;
        }
        let chosen = self.host.settings.choose(&Who::Named(agent.to_owned())).ok()?;
        let answer = ask_usage(&chosen, Path::new(&state.project.path), &|| self.stops());
        let window = answer.used_up()?;
        let limit = LimitMark {
            class: LimitClass::Plan,
            until: window.resets_at.map(|seconds| Timestamp::EPOCH.plus_seconds(seconds)),
            window: Some(window.name.clone()),
            account: account.to_owned(),
            words: format!("{agent} says that {} is used up", window.name),
            ..LimitMark::default()
        };
        let waited = looping.windows_waited.saturating_add(1);
        match at_limit(looping, &limit, Some(agent), self.engine.now(), jitter()) {
            LoopVerdict::Park { until, class, why } => Some(LoopParked {
                until: Some(until),
                class,
                account: Some(account.to_owned()),
                window: limit.window,
                windows_waited: waited,
                words: why,
            }),
            // Handing over, or asking a person after too many windows, is decided by the iteration that is refused.
            _ => None,
        }
    }
}

fn answer(
    child: &mut Child,
    input: &[u8],
    read: fn(&[u8]) -> Option<UsageAnswer>,
    stops: &dyn Fn() -> bool,
) -> Option<UsageAnswer> {
    let (mut stdin, stdout) = (child.stdin.take()?, child.stdout.take()?);
    stdin.write_all(input).and_then(|()| stdin.flush()).ok()?;
    let (told, hears) = mpsc::channel();
    // It ends with the program, which is ended below at the latest.
    std::thread::spawn(move || {
        for line in BufReader::new(stdout.take(MOST)).split(b'\n').map_while(Result::ok) {
            if told.send(read(&line)).is_err() {
                return;
            }
        }
    });
    let until = Instant::now() + PATIENCE;
    while Instant::now() < until && !stops() {
        match hears.recv_timeout(LOOK) {
            Ok(Some(answer)) => return Some(answer),
            Ok(None) | Err(mpsc::RecvTimeoutError::Timeout) => {}
            Err(mpsc::RecvTimeoutError::Disconnected) => return None,
        }
    }
    // Its input stays open until here: an agent that sees its end may leave without an answer.
    drop(stdin);
    None
}

/// Nothing that it started is left.
fn end(child: &mut Child) {
    let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let tell = |signal| group.is_some_and(|group| rustix::process::kill_process_group(group, signal).is_ok());
    tell(Signal::TERM);
    let until = Instant::now() + GRACE;
    while Instant::now() < until && matches!(child.try_wait(), Ok(None)) {
        std::thread::sleep(Duration::from_millis(10));
    }
    tell(Signal::KILL);
    let _ = child.wait();
}
