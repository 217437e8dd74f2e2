//! The tables that the build script makes of `rules.toml`.

use std::borrow::Cow;

use crate::prefilter::{Bits, Keyword};
use crate::rule::{AFTER, Rule, Terms};
use crate::shape::{Edge, Run, Shape};
use crate::spec::Guess;

include!(concat!(env!("OUT_DIR"), "/tables.rs"));
