//! Resume says what is so, and does what it was asked.
