//! Files in the folder of a family, or in a folder right in it.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::AtFlags;
use segno_core::Timestamp;
use segno_files::Replaced;
use segno_layouts::MOST_FILE;

use crate::files;

/// Keeps what somebody else wrote under another name, and tells which.
pub(super) fn keep_beside(dir: &OwnedFd, name: &str, now: Timestamp) -> std::io::Result<String> {
    let (stem, end) = name.rsplit_once('.').unwrap_or((name, "txt"));
    for attempt in 0_i64.. {
        let kept = format!("{stem}.edited-{}.{end}", now.as_micros() + attempt);
        if read_below(dir, &kept)?.is_none() {
            let theirs = read_below(dir, name)?.unwrap_or_default();
            write_below(dir, &kept, &theirs)?;
            return Ok(kept);
        }
    }
    Ok(name.to_owned())
}

/// How many such copies of a file there are.
pub(super) fn kept_beside(folder: &Path, name: &str) -> u32 {
    let path = folder.join(name);
    let (stem, end) = name.rsplit_once('.').unwrap_or((name, "txt"));
    let stem = format!("{}.edited-", stem.rsplit('/').next().unwrap_or(stem));
    let entries =
        path.parent().and_then(|folder| std::fs::read_dir(folder).ok()).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let copies = names.filter(|name| name.starts_with(&stem) && name.ends_with(&format!(".{end}"))).count();
    u32::try_from(copies).unwrap_or(u32::MAX)
}

/// Whether a file is in the folder of its family, or in a folder right in it.
pub(super) fn is_below(name: &str) -> bool {
    let parts: Vec<&str> = name.split('/').collect();
    let is_plain =
        |part: &&str| !part.is_empty() && !part.starts_with('.') && !part.chars().any(char::is_control);
    parts.len() <= 2 && parts.iter().all(is_plain)
}

pub(super) fn write_below(dir: &OwnedFd, name: &str, bytes: &[u8]) -> std::io::Result<()> {
    match name.split_once('/') {
        Some((folder, file)) => {
            let inner = files::dir_in(dir, folder, 0o755)?;
            files::replace_in(&inner, file, bytes, 0o600)
        }
        None => files::replace_in(dir, name, bytes, 0o600),
    }
}

pub(super) fn write_known(
    dir: &OwnedFd,
    name: &str,
    bytes: &[u8],
    known: Option<&[u8]>,
) -> std::io::Result<Replaced> {
    match name.split_once('/') {
        Some((folder, file)) => {
            let inner = files::dir_in(dir, folder, 0o755)?;
            files::replace_known(&inner, file, bytes, 0o600, known)
        }
        None => files::replace_known(dir, name, bytes, 0o600, known),
    }
}

/// Removes what a writer left that was killed. Only for who holds the lock.
pub(super) fn sweep_below(dir: &OwnedFd, wanted: &[(String, Vec<u8>)]) {
    let mut folders: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (name, _) in wanted {
        let (folder, file) = name.split_once('/').unwrap_or(("", name));
        folders.entry(folder).or_default().push(file);
    }
    for (folder, names) in folders {
        if folder.is_empty() {
            files::sweep_of(dir, &names);
        } else if let Ok(Some(inner)) = files::dir_below(dir, &[folder]) {
            files::sweep_of(&inner, &names);
        }
    }
}

pub(super) fn read_below(dir: &OwnedFd, name: &str) -> std::io::Result<Option<Vec<u8>>> {
    match name.split_once('/') {
        Some((folder, file)) => match files::dir_below(dir, &[folder])? {
            Some(inner) => files::read_in(&inner, file, MOST_FILE),
            None => Ok(None),
        },
        None => files::read_in(dir, name, MOST_FILE),
    }
}

pub(super) fn remove_below(dir: &OwnedFd, name: &str) -> std::io::Result<bool> {
    let gone = |result: rustix::io::Result<()>| match result {
        Ok(()) => Ok(true),
        Err(rustix::io::Errno::NOENT) => Ok(false),
        Err(why) => Err(why.into()),
    };
    match name.split_once('/') {
        Some((folder, file)) => {
            let Some(inner) = files::dir_below(dir, &[folder])? else { return Ok(false) };
            let removed = gone(rustix::fs::unlinkat(&inner, file, AtFlags::empty()))?;
            drop(inner);
            // It goes with its last file.
            let _ = rustix::fs::unlinkat(dir, folder, AtFlags::REMOVEDIR);
            Ok(removed)
        }
        None => gone(rustix::fs::unlinkat(dir, name, AtFlags::empty())),
    }
}
