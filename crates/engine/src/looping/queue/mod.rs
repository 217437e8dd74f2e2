//! A work queue: what a tracker or a checklist lists, and the work on one item after another.

pub(super) mod branch;
pub(super) mod item;
pub(super) mod items;
pub(super) mod list;
