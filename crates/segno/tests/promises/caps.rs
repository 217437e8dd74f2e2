//! A cap stops, whichever way a session goes on.
