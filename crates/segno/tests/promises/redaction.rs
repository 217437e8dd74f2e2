//! Secrets stay out of the record.
