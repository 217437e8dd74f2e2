//! Whose one change was, by what calls did and when.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use segno_workspace::Change;
use segno_workspace::ChangeKind;

use super::Whose;
use super::calls::Work;
use super::window::Moment;
use super::window::NEAR;
use super::window::TICK;
use super::window::Window;
use super::window::earlier;
use super::window::later;
use super::window::widened;

/// Judges one change after the other.
pub(super) struct Judge<'a> {
    pub(super) root: &'a Path,
    pub(super) ours: &'a Work,
    pub(super) theirs: &'a Work,
}

impl Judge<'_> {
    pub(super) fn whose(&self, change: &Change, between: (Moment, Moment)) -> Whose {
        let named = |work: &Work| -> Vec<Window> {
            let of_path = work.named.iter().filter(|(path, _)| *path == change.path);
            of_path.map(|(_, window)| *window).filter(|window| window.meets(widened(between))).collect()
        };
        let shell = |work: &Work| -> Vec<Window> {
            let windows = work.shell.iter().map(|(window, _)| *window);
            windows.filter(|window| window.meets(between)).collect()
        };
        let is_gone = change.kind == ChangeKind::Deleted;
        let (mut our_named, their_named) = (named(self.ours), named(self.theirs));
        if is_gone {
            // A command that was given the name of what it removed says enough.
            let commands = self.ours.shell.iter().filter(|(window, _)| window.meets(between));
            let commands = commands.filter(|(_, command)| names(command, &change.path));
            our_named.extend(commands.map(|(window, _)| *window));
        }
        let (our_shell, their_shell) = (shell(self.ours), shell(self.theirs));
        let at = self.changed_at(change);
        let theirs_then = at.is_some_and(|at| their_shell.iter().any(|window| window.has(at)));
        if our_named.is_empty() && our_shell.is_empty() {
            return Whose::Others;
        }
        if !their_named.is_empty() {
            return if our_named.is_empty() { Whose::Others } else { Whose::Unsure };
        }
        // A command that was at work all the time between the two checkpoints.
        if our_shell.iter().any(|window| window.covers(between)) {
            return if theirs_then { Whose::Unsure } else { Whose::Session };
        }
        // We brought it here ourselves, when we went back or forward: then it was judged already.
        if at.is_some_and(|at| self.ours.restored.iter().any(|window| window.has(at))) {
            return Whose::Session;
        }
        let told = at.filter(|at| earlier(between.0, TICK) <= *at && *at <= later(between.1, NEAR));
        let Some(at) = told else {
            // Its marks tell of something later: it changed again.
            return if our_named.is_empty() { Whose::Unsure } else { Whose::Session };
        };
        if is_gone && !our_named.is_empty() {
            return Whose::Session;
        }
        if our_named.iter().any(|window| window.wrote(at)) {
            return Whose::Session;
        }
        if our_shell.iter().any(|window| window.has(at)) {
            return if theirs_then { Whose::Unsure } else { Whose::Session };
        }
        // Seen late, and it names the file: that is enough.
        let begun = |window: &Window| window.perhaps_from <= at && at < window.from;
        let late = self.ours.shell.iter().filter(|(window, _)| begun(window));
        if !theirs_then && late.into_iter().any(|(_, command)| names(command, &change.path)) {
            return Whose::Session;
        }
        let perhaps = our_shell.iter().any(|window| window.may_have(at));
        // When something went away is told by its directory alone, and somebody may have been there since.
        if perhaps || !our_named.is_empty() || (is_gone && !our_shell.is_empty()) {
            return Whose::Unsure;
        }
        Whose::Others
    }

    /// When a path last changed, as the system has it; for one that is gone, its directory.
    pub(super) fn changed_at(&self, change: &Change) -> Option<Moment> {
        let path = self.root.join(&change.path);
        let moment = |seconds: i64, nanos: i64| Some(seconds.checked_mul(1_000_000)? + nanos / 1000);
        if change.kind != ChangeKind::Deleted {
            let meta = std::fs::symlink_metadata(&path).ok()?;
            return moment(meta.ctime(), meta.ctime_nsec());
        }
        let above = path.ancestors().skip(1).take_while(|above| above.starts_with(self.root));
        let meta =
            above.filter_map(|above| std::fs::symlink_metadata(above).ok()).find(|meta| meta.is_dir())?;
        moment(meta.mtime(), meta.mtime_nsec())
    }
}

/// Whether a command names a path, or a directory above it.
pub(super) fn names(command: &str, path: &Path) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    let says = |text: &str| {
        !text.is_empty()
            && command.match_indices(text).any(|(at, _)| {
                let before = command.get(..at).and_then(|before| before.chars().next_back());
                let after = command.get(at + text.len()..).and_then(|after| after.chars().next());
                !before.is_some_and(is_part) && !after.is_some_and(is_part)
            })
    };
    path.ancestors().filter_map(Path::to_str).any(says)
        || path.file_name().and_then(std::ffi::OsStr::to_str).is_some_and(says)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_names_what_it_removes() {
        for (command, path) in [
            ("rm gone.txt", "gone.txt"),
            ("rm -rf build && ls", "build/a/b.o"),
            ("git rm src/old.rs", "src/old.rs"),
            ("cd src; rm old.rs", "src/old.rs"),
        ] {
            assert!(names(command, Path::new(path)), "{command}");
        }
        for (command, path) in [("rm gone.txt.bak", "gone.txt"), ("ls", "a"), ("rm -rf rebuild", "build/x")] {
            assert!(!names(command, Path::new(path)), "{command}");
        }
    }

    fn change(path: &str, kind: ChangeKind) -> Change {
        Change {
            path: path.into(),
            kind,
            directory: false,
            size_before: None,
            size_after: None,
            permissions: (None, None),
            lines: None,
        }
    }

    #[test]
    fn what_changed_is_judged_by_calls_and_times() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("f"), "").unwrap();
        let meta = std::fs::symlink_metadata(dir.path().join("f")).unwrap();
        let at = meta.ctime() * 1_000_000 + meta.ctime_nsec() / 1000;
        let window = |from: i64, to: i64| Window::sure(at + from, at + to);
        let (long, second) = (60_000_000, 1_000_000);
        let between = (at - long, at + long);
        let judge = |ours: &Work, theirs: &Work| {
            Judge { root: dir.path(), ours, theirs }.whose(&change("f", ChangeKind::Modified), between)
        };
        let shell = |window| Work { shell: vec![(window, String::new())], ..Work::default() };
        let named = |window| Work { named: vec![("f".into(), window)], ..Work::default() };
        let none = Work::default();
        assert_eq!(judge(&none, &none), Whose::Others);
        assert_eq!(judge(&shell(window(-second, second)), &none), Whose::Session);
        assert_eq!(judge(&shell(window(second, 2 * second)), &none), Whose::Unsure, "just before it");
        assert_eq!(judge(&shell(window(9 * second, 20 * second)), &none), Whose::Others);
        assert_eq!(judge(&shell(window(-2 * long, 2 * long)), &none), Whose::Session);
        assert_eq!(judge(&named(window(-second, second)), &none), Whose::Session);
        assert_eq!(judge(&named(window(second, 2 * second)), &none), Whose::Session, "told of late");
        assert_eq!(judge(&named(window(-3 * second, -second)), &none), Whose::Unsure, "touched since");
        assert_eq!(judge(&named(window(-30 * second, -20 * second)), &none), Whose::Unsure, "touched since");
        let both = shell(window(-second, second));
        assert_eq!(judge(&both, &both), Whose::Unsure);
        assert_eq!(judge(&both, &named(window(-second, second))), Whose::Others);
        let doubt = Window { perhaps_to: at + second, ..window(-30 * second, -20 * second) };
        assert_eq!(judge(&shell(doubt), &none), Whose::Unsure, "nobody heard how it ended");
        let seen = Window { perhaps_from: at - 1000, ..window(1000, second) };
        assert_eq!(judge(&shell(seen), &none), Whose::Unsure, "it may have begun before it was seen");
        let naming = Work { shell: vec![(seen, "echo x > f".to_owned())], ..Work::default() };
        assert_eq!(judge(&naming, &none), Whose::Session);
    }
}
