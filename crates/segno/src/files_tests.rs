use std::os::unix::fs::symlink;

use super::*;

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o777
}

#[test]
fn private_files_and_directories() {
    let temp = tempfile::tempdir().unwrap();
    let directory = temp.path().join("a/b");
    private_directory(&directory).unwrap();
    assert_eq!(mode(&directory), 0o700);
    fs::set_permissions(&directory, Permissions::from_mode(0o777)).unwrap();
    private_directory(&directory).unwrap();
    assert_eq!(mode(&directory), 0o700);
    let file = directory.join("f");
    fs::write(&file, "old").unwrap();
    replace(&file, b"new", Access::Private).unwrap();
    assert_eq!((fs::read_to_string(&file).unwrap().as_str(), mode(&file)), ("new", 0o600));
    assert_eq!(fs::read_dir(&directory).unwrap().count(), 1);
}

#[test]
fn ordinary_files_keep_their_mode() {
    let temp = tempfile::tempdir().unwrap();
    let file = temp.path().join("f");
    fs::write(&file, "old").unwrap();
    fs::set_permissions(&file, Permissions::from_mode(0o640)).unwrap();
    replace(&file, b"new", Access::Ordinary).unwrap();
    assert_eq!(mode(&file), 0o640);
}

#[test]
fn reading_is_bounded() {
    let temp = tempfile::tempdir().unwrap();
    let file = temp.path().join("f");
    assert!(read_bounded(&file, 3, Links::Refuse).unwrap().is_none());
    fs::write(&file, "abc").unwrap();
    assert_eq!(read_bounded(&file, 3, Links::Refuse).unwrap().unwrap(), b"abc");
    assert!(matches!(read_bounded(&file, 2, Links::Refuse), Err(ReadError::TooLarge(2))));
    assert!(matches!(read_bounded(temp.path(), 2, Links::Refuse), Err(ReadError::NotRegular)));
}

#[test]
fn links_and_pipes_are_refused() {
    let temp = tempfile::tempdir().unwrap();
    let (file, link, pipe) = (temp.path().join("f"), temp.path().join("l"), temp.path().join("p"));
    fs::write(&file, "abc").unwrap();
    symlink(&file, &link).unwrap();
    assert!(matches!(read_bounded(&link, 9, Links::Refuse), Err(ReadError::NotRegular)));
    assert_eq!(read_bounded(&link, 9, Links::Follow).unwrap().unwrap(), b"abc");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RWXU).unwrap();
    assert!(matches!(read_bounded(&pipe, 9, Links::Follow), Err(ReadError::NotRegular)));
}
