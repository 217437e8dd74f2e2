//! Tokens counted while messages stream.

use std::collections::VecDeque;

use segno_agents::AgentEvent;
use segno_agents::TokenCounts;
use segno_core::Fact;
use segno_core::TokenUse;
use segno_core::event::Source;

/// How many messages are remembered by what they used.
const MESSAGES: usize = 256;

/// Counts tokens while messages stream, so that a budget is held before the agent says what the turn used, and takes
/// off what was counted when it does.
#[derive(Default)]
pub(super) struct LiveTokens {
    messages: VecDeque<(String, TokenCounts)>,
    pub(super) ahead: TokenCounts,
    pub(super) recorded: TokenCounts,
}

impl LiveTokens {
    pub(super) fn take(&mut self, event: &AgentEvent) -> Option<Fact> {
        let (news, estimated) = match event {
            AgentEvent::MessageUsage { message_id, tokens } => {
                let known = self.messages.iter_mut().find(|(id, _)| id == message_id);
                let before = known.as_ref().map_or_else(TokenCounts::default, |(_, before)| *before);
                match known {
                    Some((_, known)) => *known = *tokens,
                    None => self.messages.push_back((message_id.clone(), *tokens)),
                }
                if self.messages.len() > MESSAGES {
                    self.messages.pop_front();
                }
                let news = tokens.minus(before);
                self.ahead = self.ahead.plus(news);
                (news, true)
            }
            AgentEvent::Tokens { delta: Some(delta), .. } => {
                let news = delta.minus(self.ahead);
                self.ahead = self.ahead.minus(*delta);
                (news, false)
            }
            _ => return None,
        };
        self.recorded = self.recorded.plus(news);
        used(news, estimated)
    }

    pub(super) fn missing(&mut self, whole: TokenCounts) -> Option<TokenUse> {
        let news = whole.minus(self.recorded);
        (news.total() > 0).then(|| token_use(news))
    }
}

fn used(tokens: TokenCounts, estimated: bool) -> Option<Fact> {
    let source = Source::Stream;
    (tokens.total() > 0).then(|| Fact::TokensRecorded { tokens: token_use(tokens), estimated, source })
}

/// The same counts as the journal has them.
pub(crate) fn token_use(counts: TokenCounts) -> TokenUse {
    TokenUse {
        input: counts.input,
        output: counts.output,
        cache_read: counts.cache_read,
        cache_write: counts.cache_write,
        other: 0,
        // A part of what was put out cannot be more than that, whatever an agent's sums say after a resume.
        reasoning: counts.reasoning.min(counts.output),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(input: u64, output: u64) -> TokenCounts {
        TokenCounts { input, output, ..TokenCounts::default() }
    }

    fn usage(id: &str, input: u64, output: u64) -> AgentEvent {
        AgentEvent::MessageUsage { message_id: id.to_owned(), tokens: counts(input, output) }
    }

    fn told(event: Option<Fact>) -> Option<(u64, u64, bool)> {
        event.map(|fact| match fact {
            Fact::TokensRecorded { tokens, estimated, .. } => (tokens.input, tokens.output, estimated),
            other => panic!("{other:?}"),
        })
    }

    #[test]
    fn what_was_only_thought_is_a_part_of_what_was_put_out() {
        let told = |output, reasoning| token_use(TokenCounts { output, reasoning, ..TokenCounts::default() });
        assert_eq!((told(10, 4).reasoning, told(10, 4).total()), (4, 10));
        assert_eq!(told(10, 400).reasoning, 10, "sums of a conversation may be more than one run's");
    }

    #[test]
    fn tokens_count_as_they_come_and_only_once() {
        let mut live = LiveTokens::default();
        assert_eq!(told(live.take(&usage("a", 100, 1))), Some((100, 1, true)));
        assert_eq!(told(live.take(&usage("a", 100, 1))), None);
        assert_eq!(told(live.take(&usage("b", 50, 1))), Some((50, 1, true)));
        assert_eq!(told(live.take(&usage("a", 100, 9))), Some((0, 8, true)));
        // The turn is over and the exact numbers come: only what is new is counted.
        let exact = AgentEvent::Tokens { model: None, delta: Some(counts(160, 40)), total: None };
        assert_eq!(told(live.take(&exact)), Some((10, 30, false)));
        assert_eq!(told(live.take(&usage("c", 7, 0))), Some((7, 0, true)));
        assert_eq!(live.missing(counts(170, 40)).map(|tokens| tokens.total()), Some(3));
        assert_eq!(live.missing(counts(167, 40)), None);
    }
}
