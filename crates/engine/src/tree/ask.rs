//! Going somewhere as one use case: look, keep, ask, look again, go.

use std::collections::BTreeMap;
use std::path::PathBuf;

use segno_core::SessionId;

use super::checkpoint::Checkpoint;
use super::restore::Preview;
use super::restore::RestoreRequest;
use super::restore::Restored;
use crate::Engine;
use crate::Error;
use crate::frontend::Frontend;
use crate::frontend::Question;

/// How many paths of a kind are shown.
const SHOWN: usize = 40;

impl Engine {
    /// Goes somewhere, after having asked unless `yes` was said beforehand. The right to the tree is not held while
    /// somebody thinks; what changed meanwhile is shown, and asked about again.
    pub fn go_back(
        &self,
        session: SessionId,
        request: &RestoreRequest,
        yes: bool,
        frontend: &dyn Frontend,
    ) -> Result<(Checkpoint, Restored), Error> {
        let mut preview = self.preview(session, request.clone())?;
        let mut takes_unsure = false;
        loop {
            for notice in std::mem::take(&mut preview.notices) {
                frontend.notice(&notice);
            }
            self.keep_present(&mut preview)?;
            if yes {
                let target = preview.target.clone();
                return Ok((target, self.go(preview)?));
            }
            let unsure = preview.unsure();
            if !unsure.is_empty() && !takes_unsure && frontend.ask(&about_unsure(&unsure)) == Some(1) {
                takes_unsure = true;
                preview.take_unsure();
            }
            match frontend.ask(&about(&preview)) {
                Some(1) => {}
                other => {
                    self.forget(preview);
                    return Err(if other.is_none() { Error::NobodyToAsk } else { Error::Declined });
                }
            }
            let mut fresh = match self.preview(session, request.clone()) {
                Ok(fresh) => fresh,
                Err(why) => {
                    self.forget(preview);
                    return Err(why);
                }
            };
            if takes_unsure {
                fresh.take_unsure();
            }
            if fresh.does_the_same_as(&preview) {
                self.forget(fresh);
                let target = preview.target.clone();
                match self.go(preview) {
                    // Somebody else was quicker: what would happen now is another thing, and is asked about anew.
                    Err(why @ Error::TreeMoved) => {
                        frontend.notice(&why.to_string());
                        preview = self.preview(session, request.clone())?;
                        continue;
                    }
                    done => return Ok((target, done?)),
                }
            }
            frontend.notice("the files changed while you were asked");
            self.forget(preview);
            preview = fresh;
        }
    }
}

fn yes_or_no(about: Vec<String>, text: String) -> Question {
    let answers = [("n", "change nothing"), ("y", "do it")];
    Question { about, text, answers: answers.map(|(word, means)| (word.to_owned(), means.to_owned())).into() }
}

fn about_unsure(paths: &[PathBuf]) -> Question {
    let mut lines = Vec::new();
    list(&mut lines, paths.iter().map(|path| format!("  unsure  {}", path.display())));
    let text = "this session or somebody else changed these: take them back too?".to_owned();
    yes_or_no(lines, text)
}

fn about(preview: &Preview) -> Question {
    yes_or_no(preview.lines(), format!("go to {}?", preview.target.id))
}

impl Preview {
    /// What it will do, line by line.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if let Some(plan) = &self.plan {
            let modes: BTreeMap<PathBuf, u32> = plan.modes().collect();
            let mode =
                |path: &PathBuf| modes.get(path).map_or(String::new(), |mode| format!("   {mode:04o}"));
            list(
                &mut lines,
                plan.writes().map(|path| format!("  writes  {}{}", path.display(), mode(&path))),
            );
            list(&mut lines, plan.removals().map(|path| format!("  removes {}", path.display())));
            let deeds = plan.writes().count() + plan.removals().count();
            if let Some(ran) = self.ran.as_ref().filter(|_| deeds > 0) {
                lines.push(format!("  changed while {ran} ran, by it or by anybody else"));
            }
            let kept = plan.kept.iter();
            list(&mut lines, kept.map(|kept| format!("  left    {}   {}", kept.path.display(), kept.why)));
        }
        if let Some((from, to)) = &self.branch {
            lines.push(format!("  moves the branch from {from} to {to}"));
        }
        lines
    }
}

/// The first of them, and how many more there are.
fn list(lines: &mut Vec<String>, all: impl Iterator<Item = String>) {
    let mut more = 0;
    for (number, line) in all.enumerate() {
        if number < SHOWN { lines.push(line) } else { more += 1 }
    }
    if more > 0 {
        lines.push(format!("  … and {more} more"));
    }
}
