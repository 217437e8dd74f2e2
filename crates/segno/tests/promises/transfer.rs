//! What leaves a store is whole.
