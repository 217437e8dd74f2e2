//! What the real Gemini CLI and opencode printed, driven by the scripted model of `segno-testkit`: its tests of the
//! same names made these recordings.

use segno_agents::AgentEvent;
use segno_agents::ExitInfo;
use segno_agents::OutcomeKind;

use crate::support::read;

macro_rules! recording {
    ($($part:literal),*) => {
        include_str!(concat!("../recordings/", $($part),*))
    };
}

/// A recording, how the process ended (a negative number is a signal), and what is to be found in it: the outcome, the
/// calls, those of them without an end, the refused ones.
type Case = (&'static str, &'static str, i32, OutcomeKind, [usize; 3]);

const NONE: [usize; 3] = [0, 0, 0];

fn check(agent: &str, cases: &[Case]) {
    for (name, stream, exit, kind, [calls, open, denied]) in cases {
        let exit = if *exit < 0 { ExitInfo::signal(-exit) } else { ExitInfo::code(*exit) };
        let (events, outcome) = read(agent, stream, &exit);
        assert_eq!(outcome.outcome, *kind, "{name}: {}", outcome.reason);
        assert_eq!(outcome.unparsed, 0, "{name}");
        assert!(outcome.native_id.is_some(), "{name}");
        let mut started: Vec<&str> = Vec::new();
        let mut ended: Vec<&str> = Vec::new();
        for event in &events {
            match &event.event {
                AgentEvent::ToolStarted { call_id, .. } => started.push(call_id),
                AgentEvent::ToolFinished { call_id, .. }
                | AgentEvent::ToolFailed { call_id, .. }
                | AgentEvent::ToolDenied { call_id, .. } => ended.push(call_id),
                _ => {}
            }
        }
        for list in [&mut started, &mut ended] {
            list.sort_unstable();
            let told = list.len();
            list.dedup();
            assert_eq!(list.len(), told, "{name}: each call is told once");
        }
        assert!(ended.iter().all(|call| started.contains(call)), "{name}");
        assert_eq!((started.len(), started.len() - ended.len()), (*calls, *open), "{name}");
        assert_eq!((outcome.open_calls.len(), outcome.denials.len()), (*open, *denied), "{name}");
    }
}

macro_rules! cases {
    ($agent:literal; $($name:literal $exit:literal $kind:ident $counts:expr;)*) => {
        &[$(($name, recording!($agent, "/", $name, ".jsonl"), $exit, OutcomeKind::$kind, $counts)),*]
    };
}

#[test]
fn gemini() {
    check(
        "gemini",
        cases! { "gemini";
            "says_something" 0 Completed NONE;
            "uses_tools" 0 Completed [5, 0, 0];
            "tools_that_fail" 0 Completed [2, 0, 0];
            "a_sub_agent" 0 Completed [1, 0, 0];
            "a_conversation_goes_on" 0 Completed NONE;
            "a_call_that_a_rule_forbids" 0 Denied [1, 0, 1];
            "a_call_that_somebody_would_have_to_allow" 0 Denied [1, 0, 1];
            "a_hook_can_deny" 0 Completed [2, 0, 1];
            "a_hook_can_end_the_run" 0 Stopped [1, 0, 0];
            "too_many_requests_then_success" 0 Completed NONE;
            "too_many_requests_to_the_end" 173 Limit NONE;
            "a_bad_key" 145 Failed NONE;
            "nobody_to_ask" 144 Failed NONE;
            "a_stream_that_breaks" 1 Failed NONE;
            "a_cap_on_turns" 53 MaxTurns [2, 0, 0];
            "it_ends_a_loop_by_itself" 0 Failed [4, 0, 0];
            "an_interrupt" 0 Interrupted [2, 1, 0];
            "a_termination" 0 Interrupted [2, 1, 0];
            "a_kill" -9 Interrupted [2, 1, 0];
            "after_a_kill" 0 Completed NONE;
        },
    );
}

#[test]
fn opencode() {
    check(
        "opencode",
        cases! { "opencode";
            "says_something" 0 Completed NONE;
            "uses_tools" 0 Completed [5, 0, 0];
            "tools_that_fail" 0 Completed [3, 0, 0];
            "a_sub_agent" 0 Completed [1, 0, 0];
            "a_conversation_goes_on" 0 Completed NONE;
            "a_conversation_is_copied" 0 Completed NONE;
            "nobody_to_ask" 0 Denied [1, 0, 1];
            "a_call_that_a_rule_forbids" 0 Denied [1, 0, 1];
            "a_hook_can_deny" 0 Completed [2, 0, 1];
            "too_many_requests_then_success" 0 Completed NONE;
            "a_stream_that_breaks" 0 Completed NONE;
            "a_bad_key" 1 Failed NONE;
            "an_interrupt" -2 Interrupted [1, 0, 0];
            "a_termination" -15 Interrupted [1, 0, 0];
            "a_kill" -9 Interrupted [1, 0, 0];
            "after_a_kill" 0 Completed NONE;
        },
    );
}

#[test]
fn what_is_no_stream() {
    // Output in another format has no events. Each line is kept; that the process ended well proves nothing.
    for (agent, text) in [
        ("gemini", recording!("gemini/no_stream_json.txt")),
        ("gemini", recording!("gemini/no_stream_list.txt")),
        ("opencode", recording!("opencode/no_stream.txt")),
    ] {
        let (events, outcome) = read(agent, text, &ExitInfo::code(0));
        assert_eq!(outcome.outcome, OutcomeKind::Interrupted);
        assert!(!events.is_empty() && events.iter().all(|event| event.event.is_unparsed()));
        assert_eq!((outcome.tool_calls, outcome.native_id), (0, None));
    }
}
