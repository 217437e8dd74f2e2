use std::path::Path;
use std::path::PathBuf;

use super::*;

struct Place {
    dir: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        Self { dir: tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap() }
    }

    fn kept(&self) -> PathBuf {
        self.dir.path().join("kept")
    }

    fn open(path: &Path) -> Frames {
        let file = File::options().read(true).write(true).create(true).truncate(false).open(path).unwrap();
        Frames::read(file).unwrap()
    }

    fn keep(&self, content: &[u8]) -> Kept {
        let original = self.dir.path().join("original");
        std::fs::write(&original, content).unwrap();
        let mut frames = Self::open(&self.kept());
        frames.tell(b"about").unwrap();
        let kept = frames.keep(&File::open(&original).unwrap()).unwrap();
        let again = Self::open(&self.kept()).keep(&File::open(&original).unwrap()).unwrap();
        assert_eq!((again.bytes, again.packed), (0, 0), "a second time costs nothing");
        kept
    }
}

fn all(frames: &Frames) -> Vec<Vec<u8>> {
    frames.versions.iter().map(|version| given(frames, version).unwrap()).collect()
}

fn given(frames: &Frames, version: &Version) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    frames.give(version, &mut |part| {
        bytes.extend_from_slice(part);
        Ok(())
    })?;
    assert_eq!(bytes.len() as u64, version.length);
    Ok(bytes)
}

/// Lines that look like a transcript.
fn lines(from: usize, upto: usize) -> Vec<u8> {
    let line = |n: usize| {
        let hash = blake3::hash(&n.to_le_bytes());
        format!("{{\"type\":\"user\",\"uuid\":\"{}\",\"n\":{n}}}\n", hash.to_hex())
    };
    (from..upto).map(line).collect::<String>().into_bytes()
}

#[test]
fn what_grows_costs_what_is_new() {
    let place = Place::new();
    let mut content = Vec::new();
    for part in 0..20 {
        let more = lines(part * 50, part * 50 + 50);
        content.extend_from_slice(&more);
        let kept = place.keep(&content);
        assert_eq!(kept.bytes, more.len() as u64);
        assert!(!kept.is_other && !kept.is_shorter);
    }
    let frames = Place::open(&place.kept());
    assert_eq!(all(&frames), [content.clone()]);
    assert!(frames.damage.is_empty());
    assert!(frames.size < content.len() as u64, "{} of {}", frames.size, content.len());
}

#[test]
fn more_than_a_frame() {
    let place = Place::new();
    let content = lines(0, 100_000);
    assert!(content.len() > 2 * CHUNK);
    assert_eq!(place.keep(&content).bytes, content.len() as u64);
    assert_eq!(all(&Place::open(&place.kept())), [content]);
}

#[test]
fn what_was_kept_stays_when_the_file_is_torn_or_written_anew() {
    let place = Place::new();
    let first = lines(0, 200);
    place.keep(&first);
    let torn = &first[..first.len() - 33];
    assert!(place.keep(torn).is_shorter, "nothing to keep");
    let mut other = first[..1_000].to_vec();
    other.extend_from_slice(&lines(300, 320));
    let kept = place.keep(&other);
    assert!(kept.is_other);
    assert_eq!(kept.bytes, (other.len() - 1_000) as u64, "what they have in common is there once");
    let mut grown = first.clone();
    grown.extend_from_slice(&lines(200, 210));
    let kept = place.keep(&grown);
    assert_eq!(kept.bytes, (grown.len() - first.len()) as u64, "it goes on from the first state");
    let frames = Place::open(&place.kept());
    assert_eq!(all(&frames), [first, other, grown]);
    assert_eq!(frames.about, b"about");
}

/// Wherever an append is cut, what was kept before is there, and the next one makes it whole.
#[test]
fn an_append_that_was_cut_short() {
    let place = Place::new();
    let first = lines(0, 3);
    place.keep(&first);
    let whole = std::fs::read(place.kept()).unwrap();
    let mut content = first.clone();
    content.extend_from_slice(&lines(3, 5));
    place.keep(&content);
    let more = std::fs::read(place.kept()).unwrap();
    for cut in whole.len()..more.len() {
        std::fs::write(place.kept(), &more[..cut]).unwrap();
        let frames = Place::open(&place.kept());
        assert_eq!(all(&frames), std::slice::from_ref(&first), "{cut}");
        assert!(frames.damage.is_empty(), "{cut}: {:?}", frames.damage);
        place.keep(&content);
        let frames = Place::open(&place.kept());
        assert_eq!(all(&frames).last(), Some(&content), "{cut}");
        assert!(frames.damage.is_empty(), "{cut}");
    }
}

/// A changed byte is noticed, what is before it can be read, and keeping the file once more heals it.
#[test]
fn every_byte_that_is_damaged_is_noticed() {
    let place = Place::new();
    let mut content = Vec::new();
    for part in 0..3 {
        content.extend_from_slice(&lines(part * 2, part * 2 + 2));
        place.keep(&content);
    }
    let whole = std::fs::read(place.kept()).unwrap();
    for at in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x40;
        std::fs::write(place.kept(), &bytes).unwrap();
        let frames = Place::open(&place.kept());
        assert!(!frames.damage.is_empty() || all(&frames) != [content.clone()], "{at}");
        for version in &frames.versions {
            let read = given(&frames, version).unwrap();
            assert!(content.starts_with(&read), "{at}: nothing that was never there");
        }
        place.keep(&content);
        let frames = Place::open(&place.kept());
        assert_eq!(given(&frames, frames.versions.last().unwrap()).unwrap(), content, "{at}");
    }
}

#[test]
fn what_is_no_such_file_is_damaged_and_panics_nowhere() {
    let place = Place::new();
    let mut noise = Vec::new();
    for n in 0..40_u64 {
        noise.extend_from_slice(blake3::hash(&n.to_le_bytes()).as_bytes());
        noise.extend_from_slice(MAGIC);
        std::fs::write(place.kept(), &noise).unwrap();
        let frames = Place::open(&place.kept());
        assert!(all(&frames).is_empty() && !frames.damage.is_empty());
    }
}
