//! Understands what test runners, trackers and agents say of the work.
//!
//! A command that checks the work prints something, and what it prints is meant for people. This crate makes values of
//! it: how many tests passed, which ones, and whether the runner came to its end.
//!
//! * [`read`] makes a [`TestReport`] of the output of a test command; [`needs`] says which files such a command is made of,
//!   [`masked_runner`] whether its exit status is that of its tests, [`written_tests`] how many stand in a file.
//! * [`last_complete`] finds what an agent says of its own work in a [`StatusBlock`]; [`asks_question`] and
//!   [`error_lines`] what its words give away, [`failure_lines`] what a failing command says is wrong.
//! * [`work_items`] reads what a tracker lists, [`checklist`] a list in Markdown.
//!
//! Text is believed as little as possible. A runner shows what the tests printed, and a test may print anything; each
//! reader knows how its runner marks such text and does not count in it. What cannot be told apart is not counted.
//! [`TestReport::verdict`] is `Passed` only if tests ran, none failed, the runner came to its end, and the command
//! ended with success.
//!
//! The crate is pure: no files, no environment, no clock.

mod command;
mod read;
mod report;
mod runners;
mod status;
mod text;
mod words;
mod work;
mod written;

pub use command::Masked;
pub use command::Need;
pub use command::NeedIn;
pub use command::Toolkit;
pub use command::make_recipes;
pub use command::masked_runner;
pub use command::named_runner;
pub use command::needs;
pub use command::recipes;
pub use command::sections;
pub use read::read;
pub use report::Exit;
pub use report::MOST_TESTS;
pub use report::Outcome;
pub use report::Runner;
pub use report::TestCase;
pub use report::TestReport;
pub use report::Verdict;
pub use status::ClaimedFiles;
pub use status::ClaimedTests;
pub use status::Family;
pub use status::StatusBlock;
pub use status::TestsStatus;
pub use status::WorkStatus;
pub use status::last_complete;
pub use status::status_blocks;
pub use words::MOST_ERRORS;
pub use words::asks_question;
pub use words::error_lines;
pub use words::failure_lines;
pub use work::ChecklistItem;
pub use work::OPTIONAL_SECTIONS;
pub use work::SkipReason;
pub use work::WorkError;
pub use work::WorkItem;
pub use work::WorkList;
pub use work::checklist;
pub use work::work_items;
pub use written::may_run;
pub use written::written_tests;
