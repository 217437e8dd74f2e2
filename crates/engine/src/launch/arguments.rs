//! Arguments that the configuration adds to an agent's command line.

/// Which of segno's own settings are passed on, and so must not be contradicted by the configuration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Overridden {
    /// The model.
    pub model: bool,
    /// The cap on turns.
    pub max_turns: bool,
    /// The cap on money.
    pub max_cost: bool,
}

/// How agents call these settings. All of them take a value.
const MODEL: &[&str] = &["--model", "-m"];
const MAX_TURNS: &[&str] = &["--max-turns"];
const MAX_COST: &[&str] = &["--max-budget-usd"];

impl Overridden {
    /// The configured arguments without those that are said otherwise. Some agents take the last of two, others refuse
    /// to start: what is left out decides it the same way for all.
    pub fn take_out(self, configured: &[String]) -> Vec<String> {
        let names: Vec<&str> = [(self.model, MODEL), (self.max_turns, MAX_TURNS), (self.max_cost, MAX_COST)]
            .into_iter()
            .filter(|(said, _)| *said)
            .flat_map(|(_, names)| names.iter().copied())
            .collect();
        let mut kept = Vec::with_capacity(configured.len());
        let mut rest = configured.iter();
        while let Some(argument) = rest.next() {
            let joined = argument.split_once('=').is_some_and(|(name, _)| names.contains(&name));
            if names.contains(&argument.as_str()) {
                rest.next();
            } else if !joined {
                kept.push(argument.clone());
            }
        }
        kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take_out(overridden: Overridden, line: &str) -> String {
        let words: Vec<String> = line.split(' ').map(ToOwned::to_owned).collect();
        overridden.take_out(&words).join(" ")
    }

    #[test]
    fn what_is_said_otherwise_is_left_out() {
        let model = Overridden { model: true, ..Overridden::default() };
        assert_eq!(
            take_out(model, "--model a --add-dir x -m b --model=c --modelled"),
            "--add-dir x --modelled"
        );
        let caps = Overridden { max_turns: true, max_cost: true, ..Overridden::default() };
        assert_eq!(take_out(caps, "--max-turns 9 --model a --max-budget-usd=1"), "--model a");
        assert_eq!(take_out(Overridden::default(), "--model a"), "--model a");
    }
}
