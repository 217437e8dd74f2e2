//! The terminal: taken over, drawn on, and given back as it was, however this ends.

use std::io::BufWriter;
use std::io::Stdout;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::AtomicI32;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Receiver;
use std::sync::mpsc::Sender;
use std::time::Duration;
use std::time::Instant;

use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::event;
use ratatui::crossterm::event::DisableBracketedPaste;
use ratatui::crossterm::event::DisableMouseCapture;
use ratatui::crossterm::event::EnableBracketedPaste;
use ratatui::crossterm::event::EnableMouseCapture;
use ratatui::crossterm::event::Event;
use ratatui::crossterm::execute;
use ratatui::crossterm::queue;
use ratatui::crossterm::terminal::BeginSynchronizedUpdate;
use ratatui::crossterm::terminal::EndSynchronizedUpdate;
use ratatui::crossterm::terminal::EnterAlternateScreen;
use ratatui::crossterm::terminal::LeaveAlternateScreen;
use ratatui::crossterm::terminal::disable_raw_mode;
use ratatui::crossterm::terminal::enable_raw_mode;
use ratatui::layout::Rect;
use rustix::event::PollFd;
use rustix::event::PollFlags;
use rustix::event::Timespec;
use segno_engine::core::Timestamp;
use signal_hook::consts::SIGCONT;
use signal_hook::consts::SIGHUP;
use signal_hook::consts::SIGINT;
use signal_hook::consts::SIGTERM;
use signal_hook::consts::SIGTSTP;
use signal_hook::iterator::Handle;
use signal_hook::iterator::Signals as SignalIterator;

use super::read::Ask;
use super::state::Act;
use super::state::Effect;
use super::state::Msg;
use super::state::Top;
use super::update::update;
use super::view::view;
use crate::cli;
use crate::error::CommandError;
use crate::error::Outcome;

/// How long a wait for keys lasts when nothing is expected, and so how late what was read is seen.
const CALM: Duration = Duration::from_millis(200);
/// The same while something that was asked for is expected.
const SOON: Duration = Duration::from_millis(15);
/// For so long it is expected.
const EXPECTED: Duration = Duration::from_millis(600);
/// A signal that the loop has not seen by then ends the process without it.
const UNSEEN: Duration = Duration::from_secs(2);
/// How often what depends on the time is drawn.
const SECOND: Duration = Duration::from_secs(1);

type Screen = Terminal<CrosstermBackend<BufWriter<Stdout>>>;

/// The terminal as it is now.
struct Taken {
    screen: Screen,
    mouse: bool,
}

/// Gives the terminal back. What is gone cannot be given back, so nothing here fails.
fn give_back() {
    let mut out = std::io::stdout();
    let _ = execute!(
        out,
        EndSynchronizedUpdate,
        DisableMouseCapture,
        DisableBracketedPaste,
        LeaveAlternateScreen,
        Show
    );
    let _ = disable_raw_mode();
}

fn failed(why: std::io::Error) -> CommandError {
    CommandError::io("cannot use the terminal", why)
}

impl Taken {
    fn take() -> Outcome<Self> {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            // First, or nobody could read what is said.
            give_back();
            before(info);
        }));
        let screen =
            Terminal::new(CrosstermBackend::new(BufWriter::new(std::io::stdout()))).map_err(failed)?;
        let mut taken = Self { screen, mouse: false };
        taken.enter().map_err(failed)?;
        Ok(taken)
    }

    fn enter(&mut self) -> std::io::Result<()> {
        enable_raw_mode()?;
        execute!(std::io::stdout(), EnterAlternateScreen, EnableBracketedPaste)?;
        self.use_mouse(self.mouse)?;
        self.screen.hide_cursor()?;
        self.clear()
    }

    /// Empties the screen, so that everything is drawn. `Terminal::clear` would ask the terminal where its cursor is, and
    /// the answer, which comes among the keys, may never come.
    fn clear(&mut self) -> std::io::Result<()> {
        let size = self.screen.size()?;
        self.screen.resize(Rect::new(0, 0, size.width, size.height))
    }

    fn use_mouse(&mut self, on: bool) -> std::io::Result<()> {
        self.mouse = on;
        match on {
            true => execute!(std::io::stdout(), EnableMouseCapture),
            false => execute!(std::io::stdout(), DisableMouseCapture),
        }
    }

    /// One frame, in one piece: a terminal that can shows it at once.
    fn draw(&mut self, top: &Top) -> std::io::Result<()> {
        queue!(self.screen.backend_mut(), BeginSynchronizedUpdate)?;
        self.screen.draw(|frame| view(top, frame))?;
        execute!(self.screen.backend_mut(), EndSynchronizedUpdate)
    }

    /// Stops this process as a shell expects it, and comes back when it goes on.
    fn suspend(&mut self) -> std::io::Result<()> {
        give_back();
        signal_hook::low_level::emulate_default_handler(SIGTSTP)?;
        self.enter()
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        give_back();
        // The hook would give back a terminal that is somebody else's by then.
        let _ = std::panic::take_hook();
    }
}

/// What came by signals.
struct Signals {
    /// The signal that ends this process, or 0.
    end: Arc<AtomicI32>,
    /// That this loop has seen it.
    seen: Arc<AtomicBool>,
    stop: Arc<AtomicBool>,
    went_on: Arc<AtomicBool>,
    ending: Handle,
}

impl Signals {
    fn listen() -> std::io::Result<Self> {
        let wanted = [SIGTERM, SIGHUP, SIGINT].into_iter();
        let mut ends = SignalIterator::new(wanted.filter(|signal| !crate::signals::is_ignored(*signal)))?;
        let signals = Self {
            end: Arc::default(),
            seen: Arc::default(),
            stop: Arc::default(),
            went_on: Arc::default(),
            ending: ends.handle(),
        };
        signal_hook::flag::register(SIGTSTP, Arc::clone(&signals.stop))?;
        signal_hook::flag::register(SIGCONT, Arc::clone(&signals.went_on))?;
        let (end, seen) = (Arc::clone(&signals.end), Arc::clone(&signals.seen));
        std::thread::spawn(move || {
            for signal in ends.forever() {
                end.store(signal, Ordering::SeqCst);
                std::thread::sleep(UNSEEN);
                // Reading from a terminal that is gone may never return.
                if !seen.load(Ordering::SeqCst) {
                    give_back();
                    let _ = signal_hook::low_level::emulate_default_handler(signal);
                }
            }
        });
        Ok(signals)
    }

    fn end(&self) -> Option<i32> {
        let signal = Some(self.end.load(Ordering::SeqCst)).filter(|signal| *signal > 0);
        self.seen.store(signal.is_some(), Ordering::SeqCst);
        signal
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        self.ending.close();
    }
}

/// Waits until a key was pressed or the time is over; false if the terminal is gone.
fn wait(most: Duration) -> std::io::Result<bool> {
    let stdin = std::io::stdin();
    let mut fds = [PollFd::new(&stdin, PollFlags::IN)];
    let patience = Timespec { tv_sec: 0, tv_nsec: most.subsec_nanos().into() };
    match rustix::event::poll(&mut fds, Some(&patience)) {
        Ok(_) => Ok(!fds[0].revents().intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL)),
        Err(rustix::io::Errno::INTR) => Ok(true),
        Err(why) => Err(why.into()),
    }
}

/// How it ended.
#[derive(Debug)]
pub(super) enum Ended {
    /// Somebody wanted to leave.
    Left,
    /// To run this.
    ToRun(Box<cli::Command>),
    /// By this signal.
    Signal(i32),
}

/// Where effects go.
pub(super) struct Channels {
    pub(super) messages: Receiver<Msg>,
    pub(super) asks: Sender<Ask>,
    pub(super) acts: Sender<Act>,
}

/// Shows and listens until somebody leaves.
pub(super) fn run(top: &mut Top, channels: &Channels) -> Outcome<Ended> {
    let signals = Signals::listen().map_err(failed)?;
    let taken = Taken::take()?;
    let size = taken.screen.size().map_err(failed)?;
    top.size = (size.width, size.height);
    let mut running = Running { taken, channels, expects: None, dirty: true, anew: false };
    let mut ticked = Instant::now();
    loop {
        if let Some(signal) = signals.end() {
            return Ok(Ended::Signal(signal));
        }
        if signals.stop.swap(false, Ordering::Relaxed) {
            running.suspend(top).map_err(failed)?;
        }
        if signals.went_on.swap(false, Ordering::Relaxed) {
            running.anew = true;
        }
        running.follow_size(top).map_err(failed)?;
        if ticked.elapsed() >= SECOND {
            ticked = Instant::now();
            update(top, Msg::Tick(now()));
            running.dirty = true;
        }
        while let Ok(msg) = channels.messages.try_recv() {
            if matches!(msg, Msg::Detail(_) | Msg::Done(_)) {
                running.expects = None;
            }
            if let Some(ended) = running.take(top, msg).map_err(failed)? {
                return Ok(ended);
            }
        }
        running.draw(top).map_err(failed)?;
        let expects = running.expects.is_some_and(|since| since.elapsed() < EXPECTED);
        let most = if expects { SOON } else { CALM };
        if !wait(most).map_err(failed)? {
            return Ok(Ended::Signal(SIGHUP));
        }
        if !event::poll(Duration::ZERO).map_err(failed)? {
            continue;
        }
        // All that was typed is taken in before it is drawn.
        loop {
            if let Some(msg) = message(event::read().map_err(failed)?)
                && let Some(ended) = running.take(top, msg).map_err(failed)?
            {
                return Ok(ended);
            }
            if !event::poll(Duration::ZERO).map_err(failed)? {
                break;
            }
        }
    }
}

fn now() -> Timestamp {
    Timestamp::from_micros(jiff::Timestamp::now().as_microsecond())
}

fn message(event: Event) -> Option<Msg> {
    Some(match event {
        Event::Key(key) => Msg::Key(key),
        Event::Mouse(mouse) => Msg::Mouse(mouse),
        Event::Paste(text) => Msg::Pasted(text),
        Event::Resize(width, height) => Msg::Resized(width, height),
        Event::FocusGained | Event::FocusLost => return None,
    })
}

struct Running<'a> {
    taken: Taken,
    channels: &'a Channels,
    /// Since when something is expected that was asked for.
    expects: Option<Instant>,
    dirty: bool,
    /// Everything is drawn, also what did not change.
    anew: bool,
}

impl Running<'_> {
    fn take(&mut self, top: &mut Top, msg: Msg) -> std::io::Result<Option<Ended>> {
        self.dirty = true;
        self.anew |= matches!(msg, Msg::Resized(..));
        for effect in update(top, msg) {
            match effect {
                Effect::Quit => return Ok(Some(Ended::Left)),
                Effect::Leave(command) => return Ok(Some(Ended::ToRun(command))),
                Effect::Suspend => self.suspend(top)?,
                Effect::Redraw => self.anew = true,
                Effect::Mouse(on) => self.taken.use_mouse(on)?,
                Effect::Watch(session, part) => {
                    self.expects = Some(Instant::now());
                    let _ = self.channels.asks.send(Ask::Watch(session, part));
                }
                Effect::Act(act) => {
                    self.expects = Some(Instant::now());
                    let _ = self.channels.acts.send(act);
                }
            }
        }
        Ok(None)
    }

    fn suspend(&mut self, top: &mut Top) -> std::io::Result<()> {
        self.taken.suspend()?;
        let size = self.taken.screen.size()?;
        top.size = (size.width, size.height);
        (self.dirty, self.anew) = (true, true);
        Ok(())
    }

    /// Asks how large the terminal is: a signal that says so may get lost beside a key that comes with it.
    fn follow_size(&mut self, top: &mut Top) -> std::io::Result<()> {
        let size = self.taken.screen.size()?;
        self.anew |= top.size != (size.width, size.height);
        top.size = (size.width, size.height);
        Ok(())
    }

    fn draw(&mut self, top: &mut Top) -> std::io::Result<()> {
        if self.anew {
            self.taken.clear()?;
            self.follow_size(top)?;
        }
        if self.dirty || self.anew {
            self.taken.draw(top)?;
        }
        (self.dirty, self.anew) = (false, false);
        Ok(())
    }
}
