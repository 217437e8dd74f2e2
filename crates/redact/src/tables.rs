//! The tables that the build script makes of `rules.toml`.

use std::borrow::Cow;

use crate::prefilter::Bits;
use crate::prefilter::Keyword;
use crate::rule::AFTER;
use crate::rule::Rule;
use crate::rule::Terms;
use crate::shape::Edge;
use crate::shape::Run;
use crate::shape::Shape;
use crate::spec::Guess;

include!(concat!(env!("OUT_DIR"), "/tables.rs"));
