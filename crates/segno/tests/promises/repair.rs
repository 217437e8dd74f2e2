//! Repair never makes it worse, and damage is named.
