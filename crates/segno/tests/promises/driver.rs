//! One driver, every voice heard: who may act, and what a driver does when it meets trouble.
