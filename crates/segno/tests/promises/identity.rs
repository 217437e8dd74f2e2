//! Every store knows what is its own.
