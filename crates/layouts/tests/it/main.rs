//! The families of files: what is written is what the documents say, and what is read is what was there.

#![expect(clippy::unwrap_used, reason = "a test that cannot set up its world should stop")]

mod came;
mod damaged;
mod documents;
mod foreign;
mod more;
mod past;
mod round_trip;
mod samples;
mod written;
