//! What everybody meets in the first minute.
