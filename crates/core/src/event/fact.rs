//! Events that a fact can make.

use super::Event;

/// An event that follows from a [`crate::Fact`]: the only kind that may wait in a file beside the store. Which events
/// these are is said in the list of all events.
#[derive(Clone, Debug, PartialEq)]
pub struct FactEvent(pub(super) Event);

impl FactEvent {
    /// An event that was read from somewhere, if a fact can make it.
    pub fn new(event: Event) -> Option<Self> {
        event.is_fact().then_some(Self(event))
    }

    /// The event.
    pub fn event(&self) -> &Event {
        &self.0
    }

    /// The event.
    pub fn into_event(self) -> Event {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::samples::samples;

    #[test]
    fn a_fact_is_the_event_it_was_made_of() {
        let facts: Vec<Event> =
            samples().into_iter().filter_map(FactEvent::new).map(FactEvent::into_event).collect();
        let events: Vec<Event> = samples().into_iter().filter(Event::is_fact).collect();
        assert_eq!(facts, events);
        let kinds: std::collections::BTreeSet<&str> = facts.iter().map(Event::kind).collect();
        assert_eq!(kinds.len(), 19);
    }
}
