//! A few lines of ours at the end of a text of somebody else's, between two marks.

use std::ops::Range;

use super::Installed;
use super::Standing;
use super::edit;

/// Lines that are put at the end of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    begin: &'static str,
    lines: String,
    end: &'static str,
}

impl Block {
    /// A server of the Model Context Protocol for a file in TOML.
    pub fn server(program: &str) -> Self {
        let (word, name) = super::wanted::SERVER;
        // A text in JSON is one in TOML, too.
        let (program, word) = (serde_json::Value::from(program), serde_json::Value::from(word));
        Self {
            begin: "# segno init --mcp: begin",
            lines: format!("[mcp_servers.{name}]\ncommand = {program}\nargs = [{word}]"),
            end: "# segno init --mcp: end",
        }
    }

    /// What agents read of us in AGENTS.md.
    pub fn agents_md() -> Self {
        Self {
            begin: "<!-- segno init --agents-md: begin -->",
            lines: "## Sessions are kept by segno\n\n\
                    `segno` records this session: what was asked, each tool call, files, checkpoints.\n\
                    - After an interruption, `segno resume --show-brief` says what was done, what is in doubt and what the files\n  \
                    really look like. Look at what is in doubt before you do it again.\n\
                    - `segno note TEXT`, `segno decide TEXT` and `segno phase NAME` keep what the next context window should know.\n\
                    - Taking files back (`segno undo`) is for the person: say so, and do not run it yourself."
                .to_owned(),
            end: "<!-- segno init --agents-md: end -->",
        }
    }

    fn text(&self, line: &str) -> String {
        let Self { begin, lines, end } = self;
        format!("{begin}\n{lines}\n{end}\n").replace('\n', line)
    }

    /// What a text has of it.
    pub fn standing(&self, text: &str) -> Standing {
        match self.find(text) {
            None => Standing::Missing,
            Some(span) if text[span.clone()].replace("\r\n", "\n") == self.text("\n") => Standing::Complete,
            Some(_) => Standing::Changed(vec![self.begin.to_owned()]),
        }
    }

    /// The text with the block at its end.
    pub fn put_in(&self, text: &str) -> Installed {
        let line = if text.contains("\r\n") { "\r\n" } else { "\n" };
        let before = match text {
            "" => String::new(),
            text if text.ends_with('\n') => line.to_owned(),
            _ => line.repeat(2),
        };
        let added = format!("{before}{}", self.text(line));
        let own = text.len()..text.len() + added.len();
        Installed { text: format!("{text}{added}"), ranges: vec![own], made: Vec::new() }
    }

    /// The text without the block, whoever changed it since; with the empty line that was put before it.
    pub fn take_out(&self, text: &str) -> String {
        let Some(span) = self.find(text) else { return text.to_owned() };
        let before = &text[..span.start];
        let blank = ["\r\n", "\n"].iter().find(|line| before.ends_with(&line.repeat(2)));
        let start = span.start - blank.map_or(0, |line| line.len());
        let own = start..span.end;
        edit::without(text, &[own]).unwrap_or_else(|| text.to_owned())
    }

    /// From the first mark to the end of the line of the second.
    fn find(&self, text: &str) -> Option<Range<usize>> {
        let start = text.match_indices(self.begin).map(|(at, _)| at).find(|at| is_line_start(text, *at))?;
        let end = start + text[start..].find(self.end)? + self.end.len();
        let rest = &text[end..];
        let line = ["\r\n", "\n"].iter().find(|line| rest.starts_with(**line)).map_or(0, |line| line.len());
        Some(start..end + line)
    }
}

fn is_line_start(text: &str, at: usize) -> bool {
    at == 0 || text[..at].ends_with('\n')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_goes_to_the_end_and_comes_out_again() {
        for block in [Block::server("/opt/my tools/segno"), Block::agents_md()] {
            for text in ["", "\n", "# mine\n", "# mine", "a = 1\r\nb = 2\r\n", "x\n\n\n"] {
                let installed = block.put_in(text);
                assert_eq!(block.standing(&installed.text), Standing::Complete, "{text:?}");
                assert_eq!(edit::without(&installed.text, &installed.ranges).as_deref(), Some(text));
                let changed = format!("{}more\n", installed.text);
                let taken = block.take_out(&changed);
                assert_eq!((block.standing(&taken), taken.ends_with("more\n")), (Standing::Missing, true));
                assert!(taken.starts_with(text), "{text:?}: {taken:?}");
            }
        }
        let block = Block::server("segno");
        let changed = block.put_in("").text.replace("segno]", "segno] # mine");
        assert!(matches!(block.standing(&changed), Standing::Changed(_)));
        assert_eq!(block.take_out(&changed), "");
        assert_eq!(block.standing("x # segno init --mcp: begin"), Standing::Missing);
    }
}
