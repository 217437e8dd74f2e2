//! What a loop is told to do: workflows, the plan made from one, its session, and the prompt of an iteration.

pub(super) mod begin;
pub(super) mod dry;
pub(super) mod elsewhere;
pub(super) mod limits_file;
pub(super) mod phases;
pub(super) mod prompt;
pub(super) mod protected;
pub(super) mod workflow;
