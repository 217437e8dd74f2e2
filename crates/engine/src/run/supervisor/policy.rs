//! The reasons for which a run is stopped, in the order in which they count. To add one, write a function of what is
//! known and put it into [`POLICIES`].

use std::time::Duration;

use segno_core::state::OpenRequest;
use serde_json::Value;
use serde_json::json;

use super::Rules;
use crate::run::Ask;
use crate::run::stop::Cause;
use crate::run::tree::Usage;

/// A driver that could neither renew nor read its lease for so long stops its agent, if somebody elsewhere could have
/// taken its place. Nobody takes it before [`SILENCE_SECONDS`](crate::lease::SILENCE_SECONDS) are over.
const LEASE: Duration = Duration::from_secs(45);
/// What the processes use is counted for so long before silence is judged by it.
const NEAR: Duration = Duration::from_secs(3);

/// What is known of a run.
#[derive(Clone, Debug, Default)]
pub(in crate::run) struct Known {
    /// Now, in running time since the watch began. It stands still while the machine sleeps.
    pub(super) now: Duration,
    /// How often somebody at this process asked to stop, and how first.
    pub(super) asked: Option<(usize, Ask)>,
    /// What others ask for.
    pub(super) requests: Vec<OpenRequest>,
    /// The hard cap that is used up, in words.
    pub(super) used_up: Option<String>,
    /// Tool calls of this run.
    pub(super) tool_calls: u64,
    /// How much was recorded of this run, in bytes.
    pub(super) recorded: u64,
    /// A tool is at work.
    pub(super) tool_open: bool,
    /// When the agent last gave a sign of life.
    pub(super) last_sign: Duration,
    /// What its processes used when that was last counted.
    pub(super) usage: Option<(Duration, Usage)>,
    /// How much processor time they had used when silence was last excused.
    pub(super) excused: u64,
    /// The right to drive.
    pub(super) lease: Lease,
}

/// What is known of the right to drive.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::run) enum Lease {
    /// Known when the watch began.
    #[default]
    Taken,
    /// Known then.
    Ours {
        /// When.
        since: Duration,
    },
    /// Somebody else has it, or there is nothing left to drive.
    Lost(String),
}

/// What a policy says.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Verdict {
    /// Nothing against it.
    GoOn,
    /// It looks stuck and is not; this is why.
    Excused(Value),
    /// It has to stop.
    Stop(Cause),
}

impl Verdict {
    /// Why it has to stop.
    pub(super) fn cause(self) -> Option<Cause> {
        match self {
            Self::Stop(cause) => Some(cause),
            Self::GoOn | Self::Excused(_) => None,
        }
    }

    fn stop_if(stop: bool, cause: Cause) -> Self {
        if stop { Self::Stop(cause) } else { Self::GoOn }
    }
}

/// Decides on what is known.
pub(super) type Policy = fn(&Known, &Rules) -> Verdict;

/// Who has no right to drive stops first; then the user's own word counts, then what others ask for, then caps, then
/// limits, and last of all what is only guessed.
pub(super) const POLICIES: &[Policy] =
    &[replaced, asked, request, caps, turns, resources, record, max_duration, silence, lease_unknown];

fn replaced(known: &Known, _: &Rules) -> Verdict {
    match &known.lease {
        Lease::Lost(why) => Verdict::Stop(Cause::Replaced(why.clone())),
        Lease::Taken | Lease::Ours { .. } => Verdict::GoOn,
    }
}

fn asked(known: &Known, _: &Rules) -> Verdict {
    known.asked.map_or(Verdict::GoOn, |(_, how)| Verdict::Stop(Cause::Asked(how)))
}

pub(super) fn request(known: &Known, _: &Rules) -> Verdict {
    known.requests.first().map_or(Verdict::GoOn, |open| Verdict::Stop(Cause::Request(open.clone())))
}

fn caps(known: &Known, _: &Rules) -> Verdict {
    known.used_up.clone().map_or(Verdict::GoOn, |what| Verdict::Stop(Cause::Budget(what)))
}

fn turns(known: &Known, rules: &Rules) -> Verdict {
    Verdict::stop_if(rules.limits.turns.is_some_and(|most| known.tool_calls > u64::from(most)), Cause::Turns)
}

fn max_duration(known: &Known, rules: &Rules) -> Verdict {
    Verdict::stop_if(
        rules.limits.max_duration.is_some_and(|max_duration| known.now >= max_duration),
        Cause::MaxDuration,
    )
}

fn resources(known: &Known, rules: &Rules) -> Verdict {
    let Some((_, usage)) = known.usage else { return Verdict::GoOn };
    let second = rustix::param::clock_ticks_per_second().max(1);
    let over = |what: &str, used: u64, most: Option<u64>| {
        most.filter(|most| used > *most)
            .map(|most| format!("its processes use {used} {what}, more than {most}"))
    };
    let limits = &rules.resources;
    over("bytes of memory", usage.memory, limits.memory)
        .or_else(|| over("seconds of processor time", usage.ticks / second, limits.cpu_seconds))
        .or_else(|| over("processes", usage.processes, limits.processes))
        .map_or(Verdict::GoOn, |why| Verdict::Stop(Cause::Resources(why)))
}

fn record(known: &Known, rules: &Rules) -> Verdict {
    let most = rules.resources.record.filter(|most| known.recorded > *most);
    most.map_or(Verdict::GoOn, |most| {
        let why = format!("more than {} MB were recorded of this run (run.record_mb)", most >> 20);
        Verdict::Stop(Cause::Resources(why))
    })
}

/// An agent that says nothing while a tool works is not stuck as long as its processes do something.
fn silence(known: &Known, rules: &Rules) -> Verdict {
    let quiet = known.now.saturating_sub(known.last_sign);
    if rules.limits.silence.is_none_or(|silence| quiet < silence) {
        return Verdict::GoOn;
    }
    if !may_work_quietly(known, rules) {
        return Verdict::Stop(Cause::Silence);
    }
    match known.usage {
        Some((when, usage)) if known.now.saturating_sub(when) <= NEAR => {
            if usage.ticks == known.excused {
                return Verdict::Stop(Cause::Silence);
            }
            Verdict::Excused(json!({ "cause": "silence", "did": "waited: a tool is at work" }))
        }
        // It is being counted.
        _ => Verdict::GoOn,
    }
}

/// Whether silence will soon be judged by what the processes use.
pub(super) fn silence_is_near(known: &Known, rules: &Rules) -> bool {
    let quiet = known.now.saturating_sub(known.last_sign);
    may_work_quietly(known, rules) && rules.limits.silence.is_some_and(|silence| quiet + NEAR >= silence)
}

fn may_work_quietly(known: &Known, rules: &Rules) -> bool {
    known.tool_open && !rules.heartbeats
}

/// Nobody can take a session over in a store on this machine's own disk without being seen; so a full, locked or
/// vanished one stops nobody.
fn lease_unknown(known: &Known, rules: &Rules) -> Verdict {
    let since = match known.lease {
        Lease::Ours { since } => since,
        Lease::Taken | Lease::Lost(_) => Duration::ZERO,
    };
    let unknown = rules.shared_store && known.now.saturating_sub(since) >= LEASE;
    let why = "for too long nobody could tell whether another driver took over";
    Verdict::stop_if(unknown, Cause::Replaced(why.to_owned()))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use segno_core::event::Request as Asked;

    use super::*;
    use crate::run::Limits;
    use crate::run::resources::Resources;

    fn rules() -> Rules {
        Rules {
            limits: Limits {
                silence: Some(Duration::from_secs(600)),
                max_duration: Some(Duration::from_secs(3_600)),
                grace: Duration::from_secs(5),
                turns: Some(3),
                ..Limits::default()
            },
            resources: Resources {
                memory: Some(100),
                cpu_seconds: None,
                processes: Some(5),
                record: Some(1_000),
            },
            ladder: Vec::new(),
            heartbeats: false,
            every_calls: 0,
            shared_store: false,
        }
    }

    fn known(change: impl FnOnce(&mut Known)) -> Known {
        let mut known = Known::default();
        change(&mut known);
        known
    }

    fn verdict(known: &Known, rules: &Rules) -> String {
        let first = POLICIES.iter().map(|policy| policy(known, rules)).find(|said| *said != Verdict::GoOn);
        match first {
            None => "go on".to_owned(),
            Some(Verdict::Excused(_)) => "excused".to_owned(),
            Some(Verdict::Stop(cause)) => cause.word().to_owned(),
            Some(Verdict::GoOn) => unreachable!(),
        }
    }

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn used(memory: u64, ticks: u64, processes: u64) -> Usage {
        Usage { processes, memory, ticks }
    }

    fn open(request: Asked) -> OpenRequest {
        OpenRequest { seq: 1, request, details: None }
    }

    #[rstest]
    #[case::nothing(known(|_| {}), "go on")]
    #[case::asked(known(|k| k.asked = Some((1, Ask::Hangup))), "signal")]
    #[case::requested(known(|k| k.requests = vec![open(Asked::Pause)]), "request")]
    #[case::cap(known(|k| k.used_up = Some("all".to_owned())), "budget")]
    #[case::three_turns(known(|k| k.tool_calls = 3), "go on")]
    #[case::four_turns(known(|k| k.tool_calls = 4), "turns")]
    #[case::memory(known(|k| k.usage = Some((at(0), used(101, 0, 1)))), "resources")]
    #[case::just_enough(known(|k| k.usage = Some((at(0), used(100, 9, 5)))), "go on")]
    #[case::recorded(known(|k| k.recorded = 1_000), "go on")]
    #[case::recorded_too_much(known(|k| k.recorded = 1_001), "resources")]
    #[case::processes(known(|k| k.usage = Some((at(0), used(1, 0, 6)))), "resources")]
    #[case::late(known(|k| { k.now = at(3_600); k.last_sign = at(3_599) }), "wall_time")]
    #[case::quiet(known(|k| { k.now = at(599) }), "go on")]
    #[case::too_quiet(known(|k| { k.now = at(600) }), "silence")]
    #[case::replaced(known(|k| k.lease = Lease::Lost("x".to_owned())), "replaced")]
    fn each_alone(#[case] known: Known, #[case] expected: &str) {
        assert_eq!(verdict(&known, &rules()), expected);
    }

    /// The earlier one counts when two have something to say.
    #[test]
    fn in_their_order() {
        let mut known = known(|k| {
            k.now = at(4_000);
            k.tool_calls = 9;
            k.used_up = Some("all".to_owned());
            k.requests = vec![open(Asked::Stop)];
            k.asked = Some((1, Ask::Terminate));
            k.lease = Lease::Lost("x".to_owned());
        });
        let rules = rules();
        assert_eq!(verdict(&known, &rules), "replaced");
        known.lease = Lease::Taken;
        assert_eq!(verdict(&known, &rules), "signal");
        known.asked = None;
        assert_eq!(verdict(&known, &rules), "request");
        known.requests.clear();
        assert_eq!(verdict(&known, &rules), "budget");
        known.used_up = None;
        assert_eq!(verdict(&known, &rules), "turns");
        known.tool_calls = 0;
        assert_eq!(verdict(&known, &rules), "wall_time");
    }

    #[rstest]
    #[case::works(7, Some(600), false, "excused")]
    #[case::does_nothing(0, Some(600), false, "silence")]
    #[case::not_counted_yet(7, None, false, "go on")]
    #[case::counted_long_ago(7, Some(500), false, "go on")]
    #[case::would_have_said_so(7, Some(600), true, "silence")]
    fn a_quiet_tool(
        #[case] ticks: u64,
        #[case] counted: Option<u64>,
        #[case] heartbeats: bool,
        #[case] expected: &str,
    ) {
        let known = known(|k| {
            k.now = at(601);
            k.tool_open = true;
            k.usage = counted.map(|when| (at(when), used(0, ticks, 1)));
        });
        let rules = Rules { heartbeats, ..rules() };
        assert_eq!(verdict(&known, &rules), expected);
        assert_eq!(silence_is_near(&known, &rules), !heartbeats);
    }

    #[rstest]
    #[case::local(false, 1_000, "go on")]
    #[case::shared_and_heard_of(true, 44, "go on")]
    #[case::shared_and_unknown(true, 45, "replaced")]
    fn a_lease_nobody_can_read(#[case] shared_store: bool, #[case] now: u64, #[case] expected: &str) {
        let rules = Rules {
            shared_store,
            limits: Limits { silence: None, max_duration: None, ..rules().limits },
            ..rules()
        };
        assert_eq!(verdict(&known(|k| k.now = at(now)), &rules), expected);
        let renewed = known(|k| {
            k.now = at(now + 10);
            k.lease = Lease::Ours { since: at(10) };
        });
        assert_eq!(verdict(&renewed, &rules), expected);
    }
}
