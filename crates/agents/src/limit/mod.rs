//! Why a provider refuses to go on, and until when.

mod reset;
mod time_words;
mod windows;
mod words;

use serde::Serialize;

use crate::bounds::excerpt;
use crate::event::LimitWindow;
use crate::outcome::ErrorClass;
use crate::outcome::OutcomeKind;
use words::Named;

pub use reset::ClockDate;
pub use reset::ClockTime;
pub use reset::ClockZone;
pub use reset::ResetTime;
pub use segno_core::looping::LimitClass;

pub(crate) use time_words::delay;
pub(crate) use time_words::reset_in;
pub(crate) use windows::Windows;
pub(crate) use words::class_in;

/// The class of error that a limit is told as.
impl From<LimitClass> for ErrorClass {
    fn from(class: LimitClass) -> Self {
        match class {
            LimitClass::Plan | LimitClass::Transient => Self::Limit,
            LimitClass::Overload => Self::Overloaded,
            LimitClass::Pay => Self::Billing,
            LimitClass::Auth => Self::Authentication,
            LimitClass::Budget => Self::Budget,
            LimitClass::Setup => Self::Setup,
        }
    }
}

/// Pay-as-you-go beyond the plan, in the vendor's words.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Overage {
    /// Whether it may be used: `allowed`, `allowed_warning` or `rejected`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// Why it may not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disabled_reason: Option<String>,
    /// Whether it is being used: money is spent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_use: Option<bool>,
}

impl Overage {
    /// The facts, if there are any.
    pub(crate) fn some(self) -> Option<Self> {
        (self != Self::default()).then_some(self)
    }
}

/// A limit that a run ended for.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(into = "Told")]
pub struct Limit {
    /// What kind of limit it is.
    pub class: LimitClass,
    /// The window as the vendor names it, such as `five_hour`, `weekly` or `5-hour`.
    pub window: Option<String>,
    /// The one model whose window it is: another model still works.
    pub model: Option<String>,
    /// When it ends.
    pub resets: Option<ResetTime>,
    /// That time in the agent's words, such as `7:04pm (UTC)`.
    pub resets_text: Option<String>,
    /// What the agent said.
    pub text: Option<String>,
    /// How full the windows of the plan were.
    pub windows: Vec<LimitWindow>,
    /// Pay-as-you-go beyond the plan.
    pub overage: Option<Overage>,
}

impl Limit {
    /// A limit of which nothing but its class is known.
    pub fn new(class: LimitClass) -> Self {
        Self {
            class,
            window: None,
            model: None,
            resets: None,
            resets_text: None,
            text: None,
            windows: Vec::new(),
            overage: None,
        }
    }

    /// What a text says about a limit of this class. The text must be what the agent itself reports as an error.
    pub(crate) fn from_text(class: LimitClass, text: &str) -> Self {
        let time = reset_in(text);
        let named = if class == LimitClass::Plan { words::window_in(text) } else { Named::default() };
        Self {
            window: named.window,
            model: named.model,
            resets_text: time.as_ref().and_then(|(_, words)| words.clone()),
            resets: time.map(|(time, _)| time),
            ..Self::new(class)
        }
    }

    /// What a run that ended for it is, where its error alone was judged: a window that opens again is a limit, what
    /// only a person can mend is a failure.
    pub(crate) fn kind_of(&self, judged: OutcomeKind) -> Option<OutcomeKind> {
        match (judged, self.class) {
            (OutcomeKind::Failed, LimitClass::Plan) => Some(OutcomeKind::Limit),
            (OutcomeKind::Limit, LimitClass::Pay) => Some(OutcomeKind::Failed),
            _ => None,
        }
    }

    /// The same with what the agent said.
    pub(crate) fn in_words(mut self, text: &str) -> Self {
        self.text = (!text.trim().is_empty()).then(|| excerpt(text.trim()).to_owned());
        self
    }

    /// Whether an attempt may succeed soon without anybody changing anything.
    pub fn is_transient(&self) -> bool {
        self.class.is_transient()
    }
}

/// How a limit is told: the time in the one field that fits it.
#[derive(Serialize)]
struct Told {
    class: LimitClass,
    #[serde(skip_serializing_if = "Option::is_none")]
    window: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    /// Epoch seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    resets_at: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resets_clock: Option<ClockTime>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resets_text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    windows: Vec<LimitWindow>,
    #[serde(skip_serializing_if = "Option::is_none")]
    overage: Option<Overage>,
}

impl From<Limit> for Told {
    fn from(limit: Limit) -> Self {
        let (resets_at, retry_after_ms, resets_clock) = match limit.resets {
            None => (None, None, None),
            Some(ResetTime::At(seconds)) => (Some(seconds), None, None),
            Some(ResetTime::After(ms)) => (None, Some(ms), None),
            Some(ResetTime::Clock(clock)) => (None, None, Some(clock)),
        };
        Self {
            class: limit.class,
            window: limit.window,
            model: limit.model,
            resets_at,
            resets_clock,
            resets_text: limit.resets_text,
            retry_after_ms,
            text: limit.text,
            windows: limit.windows,
            overage: limit.overage,
        }
    }
}

#[cfg(test)]
#[path = "table_tests.rs"]
mod table_tests;
