//! The time zones that this machine knows.

use std::path::Path;
use std::sync::OnceLock;

use jiff::tz::TimeZone;
use segno_files::Links;
use segno_files::read_bounded;

/// Where systems keep their zones.
const DIRECTORIES: &[&str] = &["/usr/share/zoneinfo", "/usr/lib/zoneinfo", "/etc/zoneinfo"];

/// The zone of the machine.
const LOCAL: &str = "/etc/localtime";

/// Larger than the file of any zone.
const LARGEST: u64 = 1024 * 1024;

/// The zone of whoever uses the program. It is read when somebody asks what day it is: most processes never do, and a hook
/// has no time for it.
#[derive(Clone, Debug, Default)]
pub struct LocalZone {
    tz: Option<String>,
    zone: OnceLock<TimeZone>,
}

impl LocalZone {
    /// That of programs with this value of `TZ`.
    pub fn of(tz: Option<&str>) -> Self {
        Self { tz: tz.map(ToOwned::to_owned), zone: OnceLock::new() }
    }

    /// The zone.
    pub fn get(&self) -> &TimeZone {
        self.zone.get_or_init(|| local(self.tz.as_deref()))
    }
}

impl From<TimeZone> for LocalZone {
    fn from(zone: TimeZone) -> Self {
        Self { tz: None, zone: OnceLock::from(zone) }
    }
}

/// The zone of this name, such as `Europe/Paris`.
pub fn named(name: &str) -> Option<TimeZone> {
    DIRECTORIES.iter().find_map(|directory| named_in(Path::new(directory), name))
}

/// The zone that programs with this value of `TZ` take for their own; without one, the machine's. UTC if it cannot be
/// told: so do programs.
pub fn local(tz: Option<&str>) -> TimeZone {
    local_in(Path::new(LOCAL), tz, &named)
}

fn local_in(machine: &Path, tz: Option<&str>, named: &dyn Fn(&str) -> Option<TimeZone>) -> TimeZone {
    let zone = match tz.map(|tz| tz.strip_prefix(':').unwrap_or(tz)) {
        None => from_file("local", machine),
        Some(path) if path.starts_with('/') => from_file("local", Path::new(path)),
        Some(tz) => named(tz).or_else(|| TimeZone::posix(tz).ok()),
    };
    zone.unwrap_or(TimeZone::UTC)
}

fn named_in(directory: &Path, name: &str) -> Option<TimeZone> {
    if !is_name(name) {
        return None;
    }
    from_file(name, &directory.join(name))
}

fn from_file(name: &str, path: &Path) -> Option<TimeZone> {
    let bytes = read_bounded(path, LARGEST, Links::Follow).ok()??;
    TimeZone::tzif(name, &bytes).ok()
}

/// A name comes from an agent's words: it must not lead out of the directory.
fn is_name(name: &str) -> bool {
    let part = |part: &str| {
        let letters = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '+');
        !part.is_empty() && part.chars().all(letters)
    };
    name.len() <= 64 && name.split('/').all(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A zone's file with nothing but a rule.
    fn file(rule: &str) -> Vec<u8> {
        let header = |version: u8| {
            let mut bytes = b"TZif".to_vec();
            bytes.push(version);
            bytes.extend([0; 15]);
            // Of all that can be counted there is one kind of time, and its name of four bytes.
            for count in [0u32, 0, 0, 0, 1, 4] {
                bytes.extend(count.to_be_bytes());
            }
            bytes.extend([0, 0, 0, 0, 0, 0]);
            bytes.extend(b"UTC\0");
            bytes
        };
        [header(b'2'), header(b'2'), format!("\n{rule}\n").into_bytes()].concat()
    }

    fn noon(zone: &TimeZone) -> String {
        zone.to_datetime("2026-07-01T12:00:00Z".parse().unwrap()).to_string()
    }

    #[test]
    fn zones_are_read_from_their_files() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("Europe")).unwrap();
        std::fs::write(dir.path().join("Europe/Paris"), file("CET-1CEST,M3.5.0,M10.5.0/3")).unwrap();
        std::fs::write(dir.path().join("broken"), b"TZif").unwrap();
        std::fs::write(dir.path().join("..x"), file("UTC0")).unwrap();
        let paris = named_in(dir.path(), "Europe/Paris").unwrap();
        assert_eq!(noon(&paris), "2026-07-01T14:00:00");
        assert_eq!(paris.iana_name(), Some("Europe/Paris"));
        let inner = dir.path().join("Europe");
        for (directory, name) in [
            (dir.path(), "Europe"),
            (dir.path(), "Europe/Rome"),
            (dir.path(), "broken"),
            (dir.path(), "..x"),
            (dir.path(), ""),
            (dir.path(), "Europe//Paris"),
            (inner.as_path(), "../Europe/Paris"),
        ] {
            assert!(named_in(directory, name).is_none(), "{name}");
        }
        let absolute = dir.path().join("Europe/Paris");
        assert!(named_in(&inner, absolute.to_str().unwrap()).is_none());
    }

    #[test]
    fn the_zone_of_a_program_is_what_tz_says() {
        let dir = tempfile::tempdir().unwrap();
        let machine = dir.path().join("localtime");
        std::fs::write(&machine, file("JST-9")).unwrap();
        let named = |name: &str| (name == "Asia/Kolkata").then(|| TimeZone::posix("IST-5:30").unwrap());
        let path = machine.to_str().unwrap().to_owned();
        for (tz, shown) in [
            (None, "2026-07-01T21:00:00"),
            (Some("Asia/Kolkata"), "2026-07-01T17:30:00"),
            (Some(":Asia/Kolkata"), "2026-07-01T17:30:00"),
            (Some("EST5EDT,M3.2.0,M11.1.0"), "2026-07-01T08:00:00"),
            (Some(path.as_str()), "2026-07-01T21:00:00"),
            (Some(""), "2026-07-01T12:00:00"),
            (Some("Nowhere"), "2026-07-01T12:00:00"),
        ] {
            assert_eq!(noon(&local_in(&machine, tz, &named)), shown, "{tz:?}");
        }
        assert_eq!(noon(&local_in(&dir.path().join("none"), None, &named)), "2026-07-01T12:00:00");
    }
}
