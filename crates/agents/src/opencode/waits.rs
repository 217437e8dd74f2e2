//! Waits that opencode says nothing about: our plug-in does, on standard error.

use serde::Deserialize;

use super::launch::WAITS;
use crate::classify::understand;
use crate::limit::Limit;
use crate::limit::LimitClass;
use crate::limit::ResetTime;

/// What the plug-in writes behind its word.
#[derive(Deserialize)]
struct Waits {
    message: String,
    /// When it tries again, in milliseconds since 1970.
    next: f64,
}

/// What the plug-in said last of a wait for the provider.
pub(super) fn silent_wait(stderr: &str) -> Option<Limit> {
    let line = stderr.lines().rev().find_map(|line| line.strip_prefix(WAITS))?;
    let waits: Waits = serde_json::from_str(line.trim()).ok()?;
    // The words are the provider's. Whatever they are: it was told a time, so it is refused for now.
    let limit = match understand(None, None, &waits.message).limit {
        Some(limit) if limit.class.ends_by_itself() => *limit,
        Some(_) => return None,
        None => Limit::new(LimitClass::Transient),
    };
    let seconds = (0.0..1e16).contains(&waits.next).then(|| (waits.next / 1_000.0).ceil() as i64)?;
    Some(Limit { resets: Some(ResetTime::At(seconds)), ..limit }.in_words(&waits.message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_plug_in_says() {
        let waits = |message: &str| {
            silent_wait(&format!(
                "other words\n{WAITS} {{\"attempt\":1,\"message\":\"{message}\",\"next\":1794968416761}}\n"
            ))
        };
        let limit = waits("Rate limit exceeded. Please try again later.").unwrap();
        assert_eq!((limit.class, limit.resets), (LimitClass::Transient, Some(ResetTime::At(1_794_968_417))));
        assert_eq!(waits("Weekly usage limit reached. Resets in 3h.").unwrap().class, LimitClass::Plan);
        assert_eq!(waits("come back later").unwrap().class, LimitClass::Transient, "it was told a time");
        assert_eq!(
            waits("Insufficient balance. Manage your billing here."),
            None,
            "that does not end by itself"
        );
        assert_eq!(silent_wait("Rate limit exceeded"), None, "only the plug-in's own lines count");
    }
}
