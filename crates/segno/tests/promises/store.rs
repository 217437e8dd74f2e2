//! What was acknowledged is kept, whole and in order.
