//! What a tracker or a checklist lists, and whether an item is closed there.

use std::path::Path;
use std::time::Duration;

use segno_core::event::WorkItemMark;
use segno_core::limits;
use segno_core::looping::QueueItem;
use segno_core::looping::QueuePlan;
use segno_evidence::OPTIONAL_SECTIONS;
use segno_evidence::SkipReason;
use segno_evidence::WorkItem;
use segno_redact::Redactor;

use crate::files;
use crate::files::Links;
use crate::launch::LaunchSettings;
use crate::looping::evidence::command::Cut;
use crate::looping::evidence::command::EvidenceCommand;
use crate::looping::evidence::command::HEAD;
use crate::looping::evidence::command::Shown;
use crate::looping::evidence::command::TAIL;
use crate::looping::evidence::command::run_evidence;

/// How long a tracker may take to answer.
const PATIENCE: Duration = Duration::from_secs(60);
/// The largest checklist that is read.
const LARGEST: u64 = 4 * 1024 * 1024;

/// An item that can be taken up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListedItem {
    /// It, for whoever decides what comes next.
    pub item: QueueItem,
    /// What is to be done.
    pub description: String,
}

/// What a tracker or a checklist lists.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkList {
    /// What can be taken up, in order.
    pub ready: Vec<ListedItem>,
    /// What cannot, and why.
    pub skipped: Vec<(WorkItemMark, String)>,
    /// Those of them that are open, and that nothing but another id would help.
    pub unfit: Vec<(WorkItemMark, String)>,
}

/// Why it cannot be told what there is to do. That is never "nothing".
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Unlisted {
    /// Somebody wants it to stop.
    Stopped,
    /// In words.
    Because(String),
}

/// Asks for what there is to do.
///
/// # Errors
/// In words, if it cannot be told.
pub fn list_work(
    queue: &QueuePlan,
    project: &Path,
    settings: &LaunchSettings,
    redactor: &Redactor,
) -> Result<WorkList, String> {
    let asks = Asks { project, settings, redactor, stops: &|| false };
    asks.list(queue).map_err(|why| match why {
        Unlisted::Stopped => "it was stopped".to_owned(),
        Unlisted::Because(why) => why,
    })
}

/// Whoever asks, and where.
pub(crate) struct Asks<'a> {
    pub(crate) project: &'a Path,
    pub(crate) settings: &'a LaunchSettings,
    pub(crate) redactor: &'a Redactor,
    pub(crate) stops: &'a dyn Fn() -> bool,
}

impl Asks<'_> {
    pub(crate) fn list(&self, queue: &QueuePlan) -> Result<WorkList, Unlisted> {
        match (&queue.command, &queue.checklist) {
            (Some(command), _) => Ok(tracked(self.ask(command)?)),
            (None, Some(path)) => Ok(ticked_off(path, &self.read(path)?, self.redactor)),
            (None, None) => Err(Unlisted::Because("the loop has no queue".to_owned())),
        }
    }

    /// Whether an item is closed: its box is ticked, its tracker says so, or it is listed no more where nobody can be
    /// asked for a single one.
    pub(crate) fn is_closed(&self, queue: &QueuePlan, item: &str) -> Result<bool, Unlisted> {
        if let Some(path) = &queue.checklist {
            let items = segno_evidence::checklist(&self.read(path)?, &[]);
            return Ok(items.iter().any(|one| one.id == item && one.done));
        }
        if let Some(show) = queue.show_command(item) {
            let shown = self.ask(&show)?;
            let closed =
                |(one, why): &(WorkItem, SkipReason)| one.id == item && matches!(why, SkipReason::Closed(_));
            let listed = shown.ready.iter().chain(shown.skipped.iter().map(|(one, _)| one));
            if !listed.clone().any(|one| one.id == item) {
                let why = format!("`{show}` does not show it");
                return Err(Unlisted::Because(why));
            }
            return Ok(shown.skipped.iter().any(closed));
        }
        let listed = self.ask(queue.command.as_deref().unwrap_or_default())?;
        let closed = |why: &SkipReason| matches!(why, SkipReason::Closed(_));
        let open = listed.ready.iter().any(|one| one.id == item)
            || listed.skipped.iter().any(|(one, why)| one.id == item && !closed(why));
        Ok(!open)
    }

    /// What a tracker prints. What it says beside may come in between; then it is asked again without that.
    fn ask(&self, command: &str) -> Result<segno_evidence::WorkList, Unlisted> {
        let shown = self.run(command)?;
        if !shown.passes() {
            return Err(Unlisted::Because(failed(command, &shown)));
        }
        if let Ok(list) = segno_evidence::work_items(&shown.output) {
            return Ok(list);
        }
        let shown = self.run(&format!("{{ {command}\n}} 2>/dev/null"))?;
        if shown.left_out > 0 {
            return Err(Unlisted::Because(too_long(command, &shown)));
        }
        segno_evidence::work_items(&shown.output)
            .map_err(|why| Unlisted::Because(format!("`{command}` printed no list of work: {why}")))
    }

    fn run(&self, command: &str) -> Result<Shown, Unlisted> {
        let guard = self.settings.guard();
        let wanted = EvidenceCommand {
            command,
            directory: self.project,
            environment: &self.settings.environment,
            timeout: PATIENCE,
            resources: self.settings.resources,
            adopts: self.settings.sole_process,
            guard: &guard,
        };
        match run_evidence(&wanted, self.redactor, self.stops) {
            Ok(shown) if shown.cut == Some(Cut::Stopped) => Err(Unlisted::Stopped),
            Ok(shown) => Ok(shown),
            Err(why) => Err(Unlisted::Because(format!("`{command}`: {why}"))),
        }
    }

    fn read(&self, path: &str) -> Result<String, Unlisted> {
        let whole = self.project.join(path);
        let because = |why: String| Unlisted::Because(format!("cannot read {path}: {why}"));
        let read = files::read_bounded(&whole, LARGEST, Links::Follow);
        let bytes = read.map_err(|why| because(why.to_string()))?;
        let bytes = bytes.ok_or_else(|| because("there is no such file".to_owned()))?;
        String::from_utf8(bytes).map_err(|why| because(why.to_string()))
    }
}

fn failed(command: &str, shown: &Shown) -> String {
    let last = shown.output.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let last = segno_core::text::shorten(last.trim(), 200);
    let said = if last.is_empty() { String::new() } else { format!(": {last}") };
    format!("`{command}` {}{said}", shown.words())
}

/// What a tracker lists is in order already: the most urgent first, of these the oldest.
fn tracked(list: segno_evidence::WorkList) -> WorkList {
    let mut work = WorkList::default();
    for (rank, one) in (0_i64..).zip(list.ready) {
        if let Some(why) = unfit(&one.id) {
            work.unfit.push((mark(&one), why.to_owned()));
            continue;
        }
        let title = mark(&one).title;
        let group = one.parent.clone().filter(|group| unfit(group).is_none());
        let item = QueueItem { id: one.id, title, priority: Some(rank), group, ..QueueItem::default() };
        work.ready.push(ListedItem { item, description: one.description });
    }
    let no_id = list.skipped.iter().filter(|(_, why)| *why == SkipReason::NoId);
    work.unfit.extend(no_id.map(|(one, why)| (mark(one), why.to_string())));
    let others = list.skipped.iter().filter(|(_, why)| *why != SkipReason::NoId);
    work.skipped.extend(work.unfit.iter().cloned());
    work.skipped.extend(others.map(|(one, why)| (mark(one), why.to_string())));
    work
}

fn mark(one: &WorkItem) -> WorkItemMark {
    let title: String = one.title.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    WorkItemMark { id: one.id.clone(), title: segno_core::text::shorten(title.trim(), limits::NAME) }
}

/// Why an id is not used: it comes from outside, and becomes part of commands, branches and names.
fn unfit(id: &str) -> Option<&'static str> {
    match limits::name("work item", id) {
        Err(_) => Some("its id is no name"),
        Ok(()) if id.starts_with('-') => Some("its id begins with a dash"),
        Ok(()) => None,
    }
}

/// The open items of a checklist, in the order of the file. What has open items below it comes after them.
fn ticked_off(path: &str, text: &str, redactor: &Redactor) -> WorkList {
    let items = segno_evidence::checklist(text, OPTIONAL_SECTIONS);
    let mut work = WorkList::default();
    for one in items.iter().filter(|one| !one.done) {
        let mut listed = WorkItem::from(one);
        // What is cut here goes into the record: half a secret would not be known for one there.
        listed.title = redactor.text(&listed.title).into();
        let title = mark(&listed).title;
        if one.optional {
            let section = one.section.as_deref().unwrap_or("an optional section");
            let marked = WorkItemMark { id: one.id.clone(), title };
            work.skipped.push((marked, format!("it stands under {section}")));
            continue;
        }
        let below = items.iter().any(|other| !other.done && other.parent.as_ref() == Some(&one.id));
        let under = one.section.as_ref().map_or(String::new(), |section| format!(", under {section}"));
        work.ready.push(ListedItem {
            item: QueueItem {
                id: one.id.clone(),
                title,
                priority: Some(i64::try_from(one.line).unwrap_or(i64::MAX)),
                is_blocked: below,
                group: one.parent.clone(),
                ..QueueItem::default()
            },
            description: format!("{}\n\nIt stands in {path}, line {}{under}.", one.text, one.line),
        });
    }
    work
}

/// A list of which a part is missing is none: what is missing could be the most urgent.
fn too_long(command: &str, shown: &Shown) -> String {
    let most = (HEAD + TAIL) >> 10;
    let printed = (shown.output.len() as u64).saturating_add(shown.left_out) >> 10;
    format!(
        "`{command}` printed {printed} KB, and at most {most} KB are read; let it list fewer items (such as the first hundred)"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redactor() -> Redactor {
        Redactor::new(segno_redact::Options::default())
    }

    #[test]
    fn a_title_loses_its_secret_before_it_is_cut() {
        let key = "sk-ant-api03-Zk3vQ9xT7mB1cW5yR8pL2nH6dF0gJ4sA";
        let before = "word ".repeat(limits::NAME / 5);
        let text = format!("- [ ] {}{key}\n", &before[5..]);
        let work = ticked_off("TODO.md", &text, &redactor());
        let title = &work.ready[0].item.title;
        assert!(!title.contains("sk-ant"), "{title}");
    }

    #[test]
    fn a_checklist_goes_from_top_to_bottom_and_children_come_first() {
        let text = "# Plan\n- [x] zero\n- [ ] two\n  - [ ] one\n- [ ] three\n## Optional\n- [ ] gold\n";
        let work = ticked_off("TODO.md", text, &redactor());
        let ready: Vec<(&str, bool)> =
            work.ready.iter().map(|one| (one.item.id.as_str(), one.item.is_blocked)).collect();
        assert_eq!(ready, [("two", true), ("one", false), ("three", false)]);
        assert_eq!(work.skipped[0].1, "it stands under Optional");
        assert_eq!(work.ready[1].description, "one\n\nIt stands in TODO.md, line 4, under Plan.");
    }

    #[test]
    fn ids_that_would_be_flags_or_break_lines_are_left_out() {
        let list = r#"[{"id":"-rf","title":"a"},{"id":"b\nc","title":"b"},{"id":"ok","title":"c\td"}]"#;
        let work = tracked(segno_evidence::work_items(list).unwrap());
        assert_eq!(work.ready.iter().map(|one| one.item.id.as_str()).collect::<Vec<_>>(), ["ok"]);
        assert_eq!(work.ready[0].item.title, "c d");
        assert_eq!(work.skipped.len(), 2);
    }
}
