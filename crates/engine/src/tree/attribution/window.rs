//! When calls were open, and how sure that is.

/// Microseconds since 1970.
pub(super) type Moment = i64;

/// A stretch of time in which a call was open.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    /// From when on the call may have been open already.
    pub(super) perhaps_from: Moment,
    pub(super) from: Moment,
    pub(super) to: Moment,
    /// Until when the call may have been open still.
    pub(super) perhaps_to: Moment,
}

impl Window {
    pub(super) fn sure(from: Moment, to: Moment) -> Self {
        Self { perhaps_from: from, from, to, perhaps_to: to }
    }

    pub(super) fn has(&self, at: Moment) -> bool {
        self.from <= at && at <= self.to
    }

    /// The same for a call that names the file. It is often told of after it has written; what changed after it was told
    /// to have ended is somebody else's, or that of something it left behind.
    pub(super) fn wrote(&self, at: Moment) -> bool {
        earlier(self.perhaps_from, NEAR) <= at && at <= self.to
    }

    pub(super) fn may_have(&self, at: Moment) -> bool {
        earlier(self.perhaps_from, NEAR) <= at && at <= later(self.perhaps_to, NEAR)
    }

    pub(super) fn meets(&self, (from, to): (Moment, Moment)) -> bool {
        self.perhaps_from <= to && from <= self.perhaps_to
    }

    pub(super) fn covers(&self, (from, to): (Moment, Moment)) -> bool {
        self.from <= from && to <= self.to
    }
}

/// What a call does is told with this delay at most before it is called uncertain.
pub(super) const NEAR: i64 = 2_000_000;
/// The system's marks of files lag by one tick of its clock.
pub(super) const TICK: i64 = 20_000;
/// A stream tells of a call that began up to this much earlier: what changed then may be the call's or anybody's.
pub(super) const READ_LATE: i64 = 300_000;
/// The checkpoint at the end of a run follows within this time.
pub(super) const AT_ONCE: i64 = 10_000_000;

pub(super) fn earlier(at: Moment, by: i64) -> Moment {
    at.saturating_sub(by)
}

pub(super) fn later(at: Moment, by: i64) -> Moment {
    at.saturating_add(by)
}

pub(super) fn widened((from, to): (Moment, Moment)) -> (Moment, Moment) {
    (earlier(from, NEAR), later(to, NEAR))
}
