//! `session-config.json` of ultra-create, as a layer: where its files are kept current, what it says about going on with a
//! session counts where nobody says anything else here.

use std::path::Path;
use std::path::PathBuf;

use segno_engine::layouts::ultra_create::CONFIG;
use segno_engine::layouts::ultra_create::CONFIG_FOLDERS;
use segno_engine::layouts::ultra_create::Config;
use toml::Value;

use super::MAX_SIZE;
use super::file::Notice;
use super::file::Topic;
use super::layers::Layers;
use super::layers::Origin;
use super::layers::Setting;
use super::schema;
use crate::files::Links;
use crate::files::{self};

/// The file as it was found.
#[derive(Clone, Debug)]
pub struct SessionConfig {
    /// Where.
    pub path: PathBuf,
    /// What it says.
    pub config: Config,
    /// The hash of its content, by which its commands are trusted.
    pub hash: String,
}

/// Reads the first such file below a home directory; what cannot be read is said, and counts as not there.
pub fn find(home: &Path, notices: &mut Vec<Notice>) -> Option<SessionConfig> {
    let mut problem = |message: String| {
        notices.push(Notice { topic: Topic::Ignored, message, hints: Vec::new() });
    };
    let paths = CONFIG_FOLDERS.iter().map(|folder| home.join(folder).join(CONFIG));
    for path in paths {
        let bytes = match files::read_bounded(&path, MAX_SIZE, Links::Follow) {
            Ok(Some(bytes)) => bytes,
            Ok(None) => continue,
            Err(why) => {
                problem(format!("{} is ignored: {why}", path.display()));
                continue;
            }
        };
        match Config::read(&bytes) {
            Ok((config, warnings)) => {
                warnings.into_iter().for_each(&mut problem);
                let hash = blake3::hash(&bytes).to_hex()[..32].to_owned();
                return Some(SessionConfig { path, config, hash });
            }
            Err(damage) => problem(format!("{} is ignored: {}", path.display(), damage.why)),
        }
    }
    None
}

/// Lays what it says under everything but the defaults.
pub fn lay(layers: &mut Layers, found: &SessionConfig) {
    let recovery = &found.config.recovery;
    let whole =
        |number: Option<u64>| number.and_then(|number| i64::try_from(number).ok()).map(Value::Integer);
    let said = [
        ("resume.ask", recovery.auto_resume.map(Value::Boolean)),
        ("resume.attempts", whole(recovery.max_resume_attempts)),
        ("resume.delay_seconds", whole(recovery.resume_delay_ms.map(|ms| ms.div_ceil(1_000)))),
    ];
    for (name, value) in said {
        let is_default = layers.get(name).is_some_and(|known| known.origin == Origin::Default);
        if let (Some(key), Some(value), true) = (schema::find(name), value, is_default)
            && key.check(&value).is_ok()
        {
            layers.lay([Setting { key, value, origin: Origin::Layout(found.path.clone()) }]);
        }
    }
}

/// Whether the user trusts the commands in it as they are; says so if not, unless there are none.
pub fn trusts(found: &SessionConfig, trusted: &str, notices: &mut Vec<Notice>) -> bool {
    if found.config.hooks.is_empty() {
        return false;
    }
    if trusted == found.hash {
        return true;
    }
    let message = match trusted {
        "" => format!("the commands in {} are not run: nobody trusts them yet", found.path.display()),
        _ => format!(
            "the commands in {} are not run: it has changed since you trusted it",
            found.path.display()
        ),
    };
    let hints = vec![format!("look at it, then: segno config set layout.hooks {}", found.hash)];
    notices.push(Notice { topic: Topic::Untrusted, message, hints });
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_it_says_counts_where_nobody_else_says_anything() {
        let temp = tempfile::tempdir().unwrap();
        let folder = temp.path().join(".ultra-create/config");
        std::fs::create_dir_all(&folder).unwrap();
        let text = r#"{"recovery": {"auto_resume": false, "resume_delay_ms": 1500, "max_resume_attempts": 7},
            "storage": {"max_sessions": "many", "compression": false}, "hooks": {"on_crash": "true"}}"#;
        std::fs::write(folder.join(CONFIG), text).unwrap();
        let mut notices = Vec::new();
        let found = find(temp.path(), &mut notices).unwrap();
        let said: Vec<&str> = notices.iter().map(|notice| notice.message.as_str()).collect();
        assert_eq!(
            said,
            ["session-config.json: storage.max_sessions is text, not a whole number from 0 up; left out"]
        );
        assert!(!found.config.compression);
        assert_eq!(found.config.max_sessions, 10);
        let mut layers = Layers::defaults().unwrap();
        let key = schema::find("resume.attempts").unwrap();
        layers.lay_text(key, "2", Origin::Variable("SEGNO_RESUME_ATTEMPTS".to_owned())).unwrap();
        lay(&mut layers, &found);
        let config = layers.config().unwrap();
        assert_eq!((config.resume.ask, config.resume.attempts, config.resume.delay_seconds), (false, 2, 2));
        assert_eq!(layers.get("resume.ask").unwrap().origin, Origin::Layout(folder.join(CONFIG)));
        notices.clear();
        assert!(!trusts(&found, "", &mut notices));
        assert!(!trusts(&found, "other", &mut notices));
        assert_eq!(notices.len(), 2);
        assert!(trusts(&found, &found.hash, &mut notices));
        assert!(find(&temp.path().join("nowhere"), &mut notices).is_none());
    }
}
