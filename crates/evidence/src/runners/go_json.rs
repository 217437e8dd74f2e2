//! `go test -json`: one object in each line.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::Before;
use super::Reader;
use crate::report::Outcome;
use crate::report::Part;
use crate::report::Runner;

pub(crate) fn may_begin(line: &str, _: &Before) -> Option<Box<dyn Reader>> {
    Event::read(line).map(|_| Box::new(Stream::default()) as _)
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Event {
    action: String,
    #[serde(default)]
    package: String,
    #[serde(default)]
    test: Option<String>,
    #[serde(default)]
    failed_build: Option<String>,
}

impl Event {
    fn read(line: &str) -> Option<Self> {
        if !line.starts_with('{') || !line.contains("\"Action\"") {
            return None;
        }
        serde_json::from_str(line).ok()
    }
}

#[derive(Default)]
struct Package {
    tests: BTreeMap<String, Option<Outcome>>,
    end: Option<Outcome>,
    not_built: bool,
}

#[derive(Default)]
struct Stream {
    packages: BTreeMap<String, Package>,
    build_failed: bool,
}

impl Stream {
    fn event(&mut self, event: Event) {
        self.build_failed |= event.action == "build-fail" || event.failed_build.is_some();
        if event.package.is_empty() {
            return;
        }
        let package = self.packages.entry(event.package).or_default();
        package.not_built |= event.failed_build.is_some();
        let outcome = match event.action.as_str() {
            "pass" => Outcome::Passed,
            "fail" => Outcome::Failed,
            "skip" => Outcome::Skipped,
            "run" => {
                if let Some(test) = event.test {
                    package.tests.entry(test).or_insert(None);
                }
                return;
            }
            _ => return,
        };
        match event.test {
            // What was never started was only printed by a test.
            Some(test) => {
                if let Some(known) = package.tests.get_mut(&test) {
                    *known = (*known).max(Some(outcome));
                }
            }
            None => package.end = Some(outcome),
        }
    }
}

impl Reader for Stream {
    fn take(&mut self, line: &str) -> bool {
        if let Some(event) = Event::read(line) {
            // A package that ended begins only in another run.
            if self.packages.get(&event.package).is_some_and(|package| package.end.is_some()) {
                return false;
            }
            self.event(event);
            return true;
        }
        // Older versions tell this between the objects.
        let package = line.strip_prefix("FAIL\t").and_then(|rest| rest.strip_suffix(" [build failed]"));
        if let Some(package) = package {
            if self.packages.contains_key(package) {
                return false;
            }
            self.build_failed = true;
            let package = self.packages.entry(package.to_owned()).or_default();
            (package.end, package.not_built) = (Some(Outcome::Failed), true);
            return true;
        }
        false
    }

    fn ended(&self) -> bool {
        !self.packages.is_empty() && self.packages.values().all(|package| package.end.is_some())
    }

    fn finish(self: Box<Self>) -> Option<Part> {
        let mut part = Part::new(Runner::GoTest);
        part.complete = self.ended();
        part.build_failed = self.build_failed;
        for (name, package) in self.packages {
            let failed = package.end == Some(Outcome::Failed);
            let mut shown = false;
            for (test, outcome) in package.tests {
                let outcome = outcome.or(failed.then_some(Outcome::Failed));
                shown |= outcome == Some(Outcome::Failed);
                if let Some(outcome) = outcome {
                    part.add(format!("{name}.{test}"), outcome);
                }
            }
            if package.not_built {
                part.unloaded = part.unloaded.saturating_add(1);
            } else if failed && !shown {
                part.add(name, Outcome::Failed);
            }
        }
        part.count_names();
        Some(part)
    }
}
