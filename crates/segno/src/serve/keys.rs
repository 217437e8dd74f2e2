//! Who may see the page: a key of this user, one-time links, and what a browser keeps after it has used one.
//!
//! The key lies in a private file, so that browsers stay signed in when the server starts anew. Nothing that a browser is given
//! lets anybody make the key, and a new key makes everything void that was given out before.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Duration;
use std::time::SystemTime;
use std::time::UNIX_EPOCH;

use segno_files::Access;
use segno_files::Links;

use super::places::Places;
use crate::commands::serve::Scope;
use crate::error::CommandError;
use crate::error::Outcome;

/// How long a browser stays signed in.
const SIGNED_IN: Duration = Duration::from_secs(30 * 24 * 3600);
/// How long a link can be used.
const LINK: Duration = Duration::from_secs(10 * 60);

/// What a browser is signed in for. Every server of a user has the same key: what is signed says for what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// To see, and to act.
    Acts,
    /// Only to see.
    Shows,
}

impl Mode {
    fn word(self) -> &'static str {
        match self {
            Self::Acts => "acts",
            Self::Shows => "shows",
        }
    }

    /// The modes that are enough for this one.
    fn enough(self) -> &'static [Self] {
        match self {
            Self::Acts => &[Self::Acts],
            Self::Shows => &[Self::Shows, Self::Acts],
        }
    }
}

impl Scope {
    const EACH: [Self; 3] = [Self::All, Self::Read, Self::Metrics];

    fn word(self) -> &'static str {
        match self {
            Self::All => "",
            Self::Read => "read",
            Self::Metrics => "metrics",
        }
    }
}

/// The key, and where everything is.
#[derive(Debug)]
pub(super) struct Keys {
    directory: PathBuf,
    key: Mutex<Held>,
}

#[derive(Clone, Debug)]
struct Held {
    key: [u8; 32],
    generation: u64,
}

impl Keys {
    /// Those of this user, made if there are none.
    pub(super) fn open(state: &Path) -> Outcome<Self> {
        let directory = directory(state)?;
        let file = directory.join("key");
        if std::fs::symlink_metadata(&file).is_ok_and(|meta| meta.mode() & 0o077 != 0) {
            let why = format!("others could have read the key of the page: {}", file.display());
            return Err(CommandError::failure("key_not_private", why).hint(
                "segno serve --sign-out   makes a new one: every browser and every token is signed out",
            ));
        }
        let key = match read_key(&directory) {
            Some(key) => key,
            None => make_key(&directory)?,
        };
        Ok(Self { directory, key: Mutex::new(Held { key, generation: 0 }) })
    }

    /// Makes a new key: whoever was signed in is not any more, in every server of this user.
    pub(super) fn renew(state: &Path) -> Outcome {
        make_key(&directory(state)?).map(drop)
    }

    /// Looks whether somebody made a new key. Counts up if so.
    pub(super) fn look(&self) -> u64 {
        // A key that cannot be read lets nobody in who could not get in before.
        if let Some(key) = read_key(&self.directory) {
            self.take(key);
        }
        self.generation()
    }

    pub(super) fn generation(&self) -> u64 {
        self.held().generation
    }

    fn take(&self, key: [u8; 32]) {
        let mut held = self.key.lock().unwrap_or_else(PoisonError::into_inner);
        if held.key != key {
            *held = Held { key, generation: held.generation + 1 };
        }
    }

    fn held(&self) -> Held {
        self.key.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn sign(&self, what: &str, text: &str) -> blake3::Hash {
        blake3::keyed_hash(&self.held().key, format!("{what}\n{text}").as_bytes())
    }

    /// What the address of a one-time link ends with, to a server of this mode.
    pub(super) fn make_link(&self, mode: Mode) -> Outcome<String> {
        let code = random()?;
        let failed = |why| CommandError::io("cannot make a link", why);
        self.sweep_links();
        segno_files::replace(&self.link_file(&code), mode.word().as_bytes(), Access::Private)
            .map_err(failed)?;
        Ok(code)
    }

    /// Uses a link up; false if there is no such link for a server of this mode, or it is too old.
    pub(super) fn use_link(&self, code: &str, mode: Mode) -> bool {
        if code.len() != 64 || !code.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return false;
        }
        let path = self.link_file(code);
        let made = segno_files::read_bounded(&path, 16, Links::Refuse).ok().flatten().unwrap_or_default();
        let fits = mode.enough().iter().any(|mode| mode.word().as_bytes() == made);
        let fresh = fits && is_fresh(&path);
        // Whoever removes it has used it: nobody else can.
        fresh && std::fs::remove_file(&path).is_ok()
    }

    fn link_file(&self, code: &str) -> PathBuf {
        self.directory.join("links").join(blake3::hash(code.as_bytes()).to_hex().as_str())
    }

    fn sweep_links(&self) {
        for entry in std::fs::read_dir(self.directory.join("links")).into_iter().flatten().flatten() {
            if !is_fresh(&entry.path()) {
                let _ = std::fs::remove_file(entry.path());
            }
        }
    }

    /// What a browser keeps that was signed in for this.
    pub(super) fn cookie(&self, mode: Mode) -> Outcome<String> {
        let until = seconds().saturating_add(SIGNED_IN.as_secs());
        let body = format!("{until}.{}", random()?);
        let mac = self.sign(mode.word(), &body).to_hex();
        Ok(format!("{body}.{mac}"))
    }

    /// Whether this is what a browser was given, for at least this, and not too long ago.
    pub(super) fn knows_cookie(&self, cookie: &str, mode: Mode) -> bool {
        let Some((body, mac)) = cookie.rsplit_once('.') else { return false };
        let Ok(mac) = blake3::Hash::from_hex(mac) else { return false };
        let until = body.split('.').next().and_then(|until| until.parse::<u64>().ok());
        // Equality of hashes takes the same time whatever is different.
        mode.enough().iter().any(|mode| self.sign(mode.word(), body) == mac)
            && until.is_some_and(|until| until > seconds())
    }

    /// What a page has to send along with an action.
    pub(super) fn csrf(&self, cookie: &str) -> String {
        self.sign("csrf", cookie).to_hex().to_string()
    }

    /// Whether it is that of this browser.
    pub(super) fn knows_csrf(&self, cookie: &str, csrf: &str) -> bool {
        blake3::Hash::from_hex(csrf).is_ok_and(|csrf| self.sign("csrf", cookie) == csrf)
    }

    /// The token of programs that may do this.
    pub(super) fn token(&self, scope: Scope) -> String {
        self.sign("token", scope.word()).to_hex().to_string()
    }

    /// What the bearer of this token may do.
    pub(super) fn knows_token(&self, token: &str) -> Option<Scope> {
        let token = blake3::Hash::from_hex(token).ok()?;
        Scope::EACH.into_iter().find(|scope| self.sign("token", scope.word()) == token)
    }

    /// Where servers say that they are.
    pub(super) fn places(&self) -> Places {
        Places::below(&self.directory)
    }
}

/// The private directory of all servers of this user.
fn directory(state: &Path) -> Outcome<PathBuf> {
    let directory = state.join("serve");
    let failed = |why| CommandError::io(format!("cannot use {}", directory.display()), why);
    segno_files::private_directory(&directory.join("links")).map_err(failed)?;
    segno_files::check_ours(&directory).map_err(failed)?;
    Ok(directory)
}

fn is_fresh(path: &Path) -> bool {
    let made = std::fs::symlink_metadata(path).and_then(|meta| meta.modified());
    made.is_ok_and(|made| SystemTime::now().duration_since(made).is_ok_and(|age| age < LINK))
}

fn seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(u64::MAX, |since| since.as_secs())
}

fn read_key(directory: &Path) -> Option<[u8; 32]> {
    let bytes = segno_files::read_bounded(&directory.join("key"), 64, Links::Refuse).ok()??;
    <[u8; 32]>::try_from(bytes.as_slice()).ok()
}

fn make_key(directory: &Path) -> Outcome<[u8; 32]> {
    let mut key = [0; 32];
    fill(&mut key)?;
    segno_files::replace(&directory.join("key"), &key, Access::Private)
        .map_err(|why| CommandError::io("cannot keep the key of the page", why))?;
    Ok(key)
}

fn fill(bytes: &mut [u8]) -> Outcome {
    getrandom::fill(bytes).map_err(|why| {
        CommandError::failure("no_random", format!("the system gives no random numbers: {why}"))
    })
}

/// 256 random bits as hexadecimal digits.
pub(super) fn random() -> Outcome<String> {
    let mut bytes = [0; 32];
    fill(&mut bytes)?;
    Ok(blake3::Hash::from(bytes).to_hex().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_can_be_used_once_and_a_new_key_makes_all_void() {
        let dir = tempfile::tempdir().unwrap();
        let keys = Keys::open(dir.path()).unwrap();
        let code = keys.make_link(Mode::Acts).unwrap();
        assert!(!keys.use_link("../key", Mode::Acts) && !keys.use_link(&"0".repeat(64), Mode::Acts));
        assert!(keys.use_link(&code, Mode::Acts));
        assert!(!keys.use_link(&code, Mode::Acts));
        let (cookie, tokens) = (keys.cookie(Mode::Acts).unwrap(), Scope::EACH.map(|scope| keys.token(scope)));
        let csrf = keys.csrf(&cookie);
        let again = Keys::open(dir.path()).unwrap();
        assert!(again.knows_cookie(&cookie, Mode::Acts) && again.knows_csrf(&cookie, &csrf));
        assert_eq!(tokens.each_ref().map(|token| again.knows_token(token)), Scope::EACH.map(Some));
        let late = format!("9{cookie}");
        assert!(!again.knows_cookie(&late, Mode::Acts) && !again.knows_csrf(&late, &csrf));
        Keys::renew(dir.path()).unwrap();
        assert_eq!(keys.look(), 1);
        assert!(!keys.knows_cookie(&cookie, Mode::Acts) && !keys.knows_csrf(&cookie, &csrf));
        assert_eq!(tokens.each_ref().map(|token| keys.knows_token(token)), [None; 3]);
    }

    #[test]
    fn who_may_look_may_not_act() {
        let dir = tempfile::tempdir().unwrap();
        let keys = Keys::open(dir.path()).unwrap();
        let (shows, acts) = (keys.cookie(Mode::Shows).unwrap(), keys.cookie(Mode::Acts).unwrap());
        assert!(keys.knows_cookie(&shows, Mode::Shows) && !keys.knows_cookie(&shows, Mode::Acts));
        assert!(keys.knows_cookie(&acts, Mode::Shows) && keys.knows_cookie(&acts, Mode::Acts));
        let code = keys.make_link(Mode::Shows).unwrap();
        assert!(!keys.use_link(&code, Mode::Acts));
        assert!(keys.use_link(&code, Mode::Shows));
    }

    #[test]
    fn a_key_that_others_could_read_is_not_used() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().unwrap();
        let old = Keys::open(dir.path()).unwrap().token(Scope::All);
        let file = dir.path().join("serve/key");
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
        assert_eq!(Keys::open(dir.path()).map(drop).unwrap_err().code(), "key_not_private");
        Keys::renew(dir.path()).unwrap();
        assert_ne!(Keys::open(dir.path()).unwrap().token(Scope::All), old);
    }

    #[test]
    fn an_old_link_is_none() {
        let dir = tempfile::tempdir().unwrap();
        let keys = Keys::open(dir.path()).unwrap();
        let code = keys.make_link(Mode::Acts).unwrap();
        let old = SystemTime::now() - LINK - Duration::from_secs(1);
        std::fs::File::options().write(true).open(keys.link_file(&code)).unwrap().set_modified(old).unwrap();
        assert!(!keys.use_link(&code, Mode::Acts));
    }
}
