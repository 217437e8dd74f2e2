//! What an agent did is read from its own words in one way.
