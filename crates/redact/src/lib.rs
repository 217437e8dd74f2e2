//! Makes text and events fit for the record.
//!
//! Agents print what they read, and what they read holds keys. Before anything is written down, a [`Redactor`]
//! replaces each secret by a tag such as `[redacted:github-pat:7f3a]`: the rule that knew it, and four digits of a keyed
//! hash, so that equal secrets can be seen to be equal and yet not be recovered.
//!
//! * [`Redactor::text`] redacts a text, [`Redactor::json`] a JSON value, [`Pieces`] a text that comes bit by bit.
//! * Secrets are seen through terminal colours, string escapes at any depth, percent-encoding and base64.
//! * Rules are data; see `rules.toml` for the built-in ones and [`RuleSpec`] for their form.
//!
//! This is best effort, never a licence to publish: a password that looks like a word, told in a sentence, stays.
//!
//! The crate is pure: no files, no environment, no clock.

mod announced;
mod assign;
mod columns;
mod entropy;
mod exact;
pub mod forget;
mod guess;
mod islands;
mod json;
mod named;
mod names;
mod pieces;
mod prefilter;
mod record;
mod redactor;
mod rule;
mod shape;
mod spec;
mod table;
mod tables;
mod tag;
mod unwrap;

pub use names::is_secret_name;
pub use names::is_secret_setting;
pub use pieces::Pieces;
pub use record::ASIDE_OVER;
pub use record::Blob;
pub use record::RecordError;
pub use record::Redacted;
pub use redactor::Options;
pub use redactor::Redactor;
pub use rule::RuleError;
pub use spec::Guess;
pub use spec::Reason;
pub use spec::RuleSpec;
pub use tag::fingerprint;
