//! What comes from outside is never believed.
