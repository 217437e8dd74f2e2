//! Going back never destroys, and takes back only what the session did.
