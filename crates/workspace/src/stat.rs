//! What the system says of a file, as far as it tells whether the file has changed.

use std::time::Duration;
use std::time::SystemTime;

use rustix::fs::FileType;

/// A moment as the file system keeps it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Moment {
    pub(crate) seconds: i64,
    pub(crate) nanos: u32,
}

/// One file's marks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stat {
    pub(crate) size: u64,
    pub(crate) modified: Moment,
    pub(crate) changed: Moment,
    pub(crate) inode: u64,
    pub(crate) device: u64,
    /// Kind and permissions.
    pub(crate) mode: u32,
}

impl Stat {
    #[expect(clippy::unnecessary_cast, reason = "the types differ from system to system")]
    pub(crate) fn from(stat: &rustix::fs::Stat) -> Self {
        Self {
            size: stat.st_size as u64,
            modified: Moment { seconds: stat.st_mtime as i64, nanos: stat.st_mtime_nsec as u32 },
            changed: Moment { seconds: stat.st_ctime as i64, nanos: stat.st_ctime_nsec as u32 },
            inode: stat.st_ino as u64,
            device: stat.st_dev as u64,
            mode: stat.st_mode as u32,
        }
    }

    pub(crate) fn kind(&self) -> FileType {
        FileType::from_raw_mode(self.mode as _)
    }

    /// The permission bits.
    pub(crate) fn permissions(&self) -> u32 {
        self.mode & 0o7777
    }

    /// Whether a later change must show, given that the content was read after `now`. A change within the same tick
    /// of the file system's clock would not: ticks are some milliseconds long, or two seconds on file systems that
    /// keep no fractions.
    pub(crate) fn is_settled(&self, now: SystemTime) -> bool {
        let newest = self.modified.max(self.changed);
        let tick = if newest.nanos == 0 { Duration::from_millis(2_100) } else { Duration::from_millis(50) };
        let Ok(since) = now.duration_since(SystemTime::UNIX_EPOCH) else { return false };
        let Some(limit) = since.checked_sub(tick) else { return false };
        let limit = Moment { seconds: limit.as_secs() as i64, nanos: limit.subsec_nanos() };
        newest < limit
    }

    /// Whether it is the same file with the same content, going by what a rename does not change.
    pub(crate) fn is_same_content(&self, other: &Self) -> bool {
        (self.size, self.modified, self.inode, self.device, self.mode)
            == (other.size, other.modified, other.inode, other.device, other.mode)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fresh_file_is_not_settled() {
        let now = SystemTime::UNIX_EPOCH + Duration::new(1_000_000, 500_000_000);
        let at = |seconds, nanos| Stat {
            modified: Moment { seconds, nanos },
            changed: Moment { seconds: 5, nanos: 0 },
            ..Stat::default()
        };
        assert!(at(999_999, 7).is_settled(now));
        assert!(at(1_000_000, 400_000_000).is_settled(now));
        assert!(!at(1_000_000, 460_000_000).is_settled(now));
        assert!(!at(999_999, 0).is_settled(now), "a coarse clock needs longer");
        assert!(at(999_990, 0).is_settled(now));
        assert!(!at(1_000_001, 7).is_settled(now), "from the future");
        let recent = Stat { changed: Moment { seconds: 1_000_000, nanos: 499_000_000 }, ..at(5, 5) };
        assert!(
            !recent.is_settled(now),
            "the time of change counts, whatever the time of modification was set to"
        );
    }
}
