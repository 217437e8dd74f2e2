//! What comes before an agent: whether it may be started at all, and what the session is made of that it works in.

mod arguments;
mod caps;
mod start;
mod successor;

pub use arguments::Overridden;
