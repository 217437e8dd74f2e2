//! Caps that stop a loop between two iterations.

use segno_core::State;
use segno_core::Status;
use segno_core::event::PauseReason;
use segno_core::event::Unit;
use segno_core::looping::CapKind;
use segno_core::looping::LoopVerdict;

use crate::Error;
use crate::looping::driver::drive::Stretch;
use crate::looping::driver::turn::Turning;

impl Turning<'_> {
    /// A cap is reached, and nobody raised it: the session is paused.
    pub(crate) fn capped(&self, verdict: LoopVerdict) -> Result<Stretch, Error> {
        if self.state()?.status != Status::Active {
            let why = segno_core::looping::why(&verdict);
            return self.ended(Some(verdict), why);
        }
        let reason = match &verdict {
            LoopVerdict::Cap { which, .. } => which.pause_reason(),
            _ => PauseReason::Budget,
        };
        self.paused(reason, verdict)
    }

    /// Does it, unless a cap is used up: of this session, or one that it shares with others. These may have used it up since
    /// the last iteration, also in the very moment in which the agent is started.
    pub(crate) fn unless_capped(
        &mut self,
        state: &State,
        go: impl FnOnce(&mut Self) -> Result<Option<Stretch>, Error>,
    ) -> Result<Option<Stretch>, Error> {
        let result = match self.engine.check_start(state) {
            Ok(()) => go(self),
            Err(why) => Err(why),
        };
        match result {
            Err(why) => match cap_verdict(&why) {
                Some(verdict) => self.capped(verdict).map(Some),
                None => Err(why),
            },
            done => done,
        }
    }
}

/// What it means for a loop that nothing may be started, if a cap is the reason.
pub(crate) fn cap_verdict(why: &Error) -> Option<LoopVerdict> {
    let which = match why {
        Error::DayCapReached { unit: Unit::Tokens, .. } => CapKind::DayTokens,
        Error::DayCapReached { unit: Unit::Cost, .. } => CapKind::DayMoney,
        Error::CapReached { .. } | Error::CostUnknown { .. } => CapKind::Budget,
        _ => return None,
    };
    Some(LoopVerdict::Cap { which, why: why.to_string() })
}
