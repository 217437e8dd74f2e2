//! Files that are there whole or not at all. Everything that segno writes beside its database is written here.
//!
//! What survives what:
//!
//! | call | when it has returned | if the process is killed in it | if the power fails in it |
//! |---|---|---|---|
//! | [`replace`], [`replace_in`], [`Draft::finish`] | the new content, also after a loss of power | the old or the new content, never a part | the old or the new content, never a part |
//! | [`Draft::finish_new`], [`rename_to_free`] | the same, and nothing was replaced | the new file or none | the new file or none |
//! | [`replace_known`] | the same as [`replace_in`], or what somebody else wrote meanwhile | the old, the new or theirs, never a part | the same |
//! | [`replace_lazily`] | the new content for every process | the old or the new content | the old, the new, or an empty file: for what can be made again |
//! | [`create_lazily`] | the same, unless there was a file | the new file or none | the new file, none, or an empty one |
//! | [`make_directory`], [`private_directory`], [`dir_in`] | the directory and its name in its parent, also after a loss of power | the directory or none | the directory or none |
//!
//! So an acknowledgement may follow any of these but the two lazy ones. A temporary file that a killed process left has
//! a name that begins with a dot and ends in `.tmp`; it is never taken for the file, and [`sweep`] removes it. That
//! holds as far as the file system keeps its word about `fsync` and renames within a directory.
//!
//! Links: the last part of a name is never followed when something is written; a link in its place is replaced. New
//! files are created under a name that nobody has, so that nobody can have put a link or a file of their own there.

mod directory;
mod draft;
mod read;

pub use directory::check_ours;
pub use directory::dir_below;
pub use directory::dir_in;
pub use directory::lock;
pub use directory::make_directory;
pub use directory::open_dir;
pub use directory::private_directory;
pub use directory::sync_dir;
pub use directory::sync_parent;
pub use draft::Access;
pub use draft::Draft;
pub use draft::Replaced;
pub use draft::also_as;
pub use draft::create_lazily;
pub use draft::rename_to_free;
pub use draft::replace;
pub use draft::replace_in;
pub use draft::replace_known;
pub use draft::replace_lazily;
pub use draft::sweep;
pub use draft::sweep_of;
pub use read::Links;
pub use read::ReadError;
pub use read::open_in;
pub use read::open_regular;
pub use read::read_bounded;
pub use read::read_in;

/// Whether this file system, or this kernel, cannot do what was asked for at all.
fn is_unsupported(why: rustix::io::Errno) -> bool {
    use rustix::io::Errno;
    matches!(why, Errno::INVAL | Errno::NOSYS | Errno::NOTSUP)
}
