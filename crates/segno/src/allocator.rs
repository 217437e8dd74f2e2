//! How the C library hands out memory here.

/// To be called before a second thread is started, by whatever may live for hours.
///
/// The GNU C library gives threads that allocate at the same moment a region each, and keeps what they freed there: a loop,
/// whose every iteration starts threads, grew by a megabyte each twenty iterations. With one region for all it does not
/// grow (docs/bench.md), and our threads allocate too little at once to be held up by sharing it.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(
    unsafe_code,
    reason = "the library has no other way to be told; a variable would be handed down to every agent"
)]
pub fn share_one_region() {
    // SAFETY: `mallopt` takes two numbers and changes a setting of the allocator under the allocator's own lock. It is
    // sound at any time; M_ARENA_MAX only has an effect on regions that are not there yet, so it is called first.
    unsafe { libc::mallopt(libc::M_ARENA_MAX, 1) };
}

/// Other C libraries keep no region for each thread, or cannot be told.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn share_one_region() {}
