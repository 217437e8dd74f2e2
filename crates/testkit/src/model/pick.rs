//! Which turn a request gets.

use regex::Regex;

use super::query::Query;
use super::script::Index;
use super::script::Script;
use super::script::Then;
use super::script::Track;
use super::script::When;
use super::turn::Fault;
use super::turn::Turn;

/// A script being played.
#[derive(Debug)]
pub(super) struct Picker {
    tracks: Vec<(Patterns, Playing)>,
    main: Playing,
    side: Turn,
}

/// The turn of one request.
#[derive(Debug, Clone)]
pub(super) struct Picked {
    pub(super) track: String,
    /// Which turn of the track, from 0; past its end too. None for side requests.
    pub(super) index: Option<usize>,
    pub(super) turn: Turn,
}

impl Picker {
    pub(super) fn new(script: Script) -> Result<Self, regex::Error> {
        let main = Track {
            name: "main".to_owned(),
            when: When::default(),
            turns: script.turns,
            then: script.then,
            index: script.index,
        };
        let track = |track: Track| Ok((Patterns::new(&track.when)?, Playing::new(track)));
        Ok(Self {
            tracks: script.tracks.into_iter().map(track).collect::<Result<_, regex::Error>>()?,
            main: Playing::new(main),
            side: script.side.unwrap_or_else(|| Turn::text("ok")),
        })
    }

    pub(super) fn pick(&mut self, query: &Query) -> Picked {
        let mut tracks = self.tracks.iter_mut();
        let fitting = tracks.find(|(patterns, playing)| !playing.passes() && patterns.fit(query));
        match fitting {
            Some((_, playing)) => playing.take(query),
            None if query.is_side() => {
                Picked { track: "side".to_owned(), index: None, turn: self.side.clone() }
            }
            None => self.main.take(query),
        }
    }
}

#[derive(Debug)]
struct Playing {
    track: Track,
    cursor: usize,
}

impl Playing {
    /// Turns that stand for several requests are laid out one by one.
    fn new(mut track: Track) -> Self {
        let turns = track.turns.into_iter();
        track.turns = turns.flat_map(|turn| std::iter::repeat_n(turn.clone(), turn.times as usize)).collect();
        Self { track, cursor: 0 }
    }

    /// Whether it has had its turns and leaves the rest to others.
    fn passes(&self) -> bool {
        self.track.then == Then::Pass && self.cursor >= self.track.turns.len()
    }

    fn take(&mut self, query: &Query) -> Picked {
        let index = match self.track.index {
            Index::Cursor => self.cursor,
            Index::History => query.answers,
        };
        self.cursor += 1;
        let turns = &self.track.turns;
        let turn = match (turns.get(index), self.track.then, turns.last()) {
            (Some(turn), _, _) => turn.clone(),
            (None, Then::Repeat, Some(last)) => last.clone(),
            (None, Then::Loop, Some(_)) => turns[index % turns.len()].clone(),
            (None, Then::Error, _) => Turn::from(Fault::Error {
                status: 500,
                kind: None,
                message: Some(format!("the script has no turn {index} on track {}", self.track.name)),
                headers: [].into(),
                body: None,
            }),
            (None, Then::End | Then::Repeat | Then::Loop | Then::Pass, _) => Turn::text("done."),
        };
        Picked { track: self.track.name.clone(), index: Some(index), turn }
    }
}

#[derive(Debug)]
struct Patterns {
    when: When,
    first_user: Option<Regex>,
    last_user: Option<Regex>,
    lacks: Option<Regex>,
    system: Option<Regex>,
    model: Option<Regex>,
}

impl Patterns {
    fn new(when: &When) -> Result<Self, regex::Error> {
        let compile = |pattern: &Option<String>| pattern.as_deref().map(Regex::new).transpose();
        Ok(Self {
            first_user: compile(&when.first_user)?,
            last_user: compile(&when.last_user)?,
            lacks: compile(&when.lacks)?,
            system: compile(&when.system)?,
            model: compile(&when.model)?,
            when: when.clone(),
        })
    }

    fn fit(&self, query: &Query) -> bool {
        let matches =
            |regex: &Option<Regex>, text: &str| regex.as_ref().is_none_or(|regex| regex.is_match(text));
        matches(&self.first_user, query.first_user())
            && matches(&self.last_user, query.last_user())
            && self.lacks.as_ref().is_none_or(|regex| !regex.is_match(&query.conversation))
            && matches(&self.system, &query.system)
            && matches(&self.model, &query.model)
            && self.when.tools.is_none_or(|tools| tools != query.is_side())
            && self.when.has_tool.as_ref().is_none_or(|name| query.tools.contains_key(name))
            && self.when.compaction.is_none_or(|compaction| compaction == query.is_compaction())
            && self.when.api.is_none_or(|api| api == query.api)
    }
}
