//! Shell text as simple commands, each a list of words.
//!
//! This is no shell: it only has to find which programs and files are named. Quotes and escapes are taken off, what
//! stands in `$(…)` or backticks is read as commands of its own, and what depends on variables stays as it is written.

/// The most commands that are read in one text.
const MOST: usize = 2_000;
/// How deep `$(…)` may stand in `$(…)`.
const DEEPEST: usize = 8;

/// One simple command.
#[derive(Default)]
pub(super) struct Simple {
    /// Its words, without redirections.
    pub(super) words: Vec<String>,
    /// Files that it gets as its input.
    pub(super) inputs: Vec<String>,
    /// How the next one follows.
    pub(super) then: Then,
    /// It stands in the `$(…)` of another one.
    pub(super) nested: bool,
}

/// How one command follows another.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Then {
    /// Whatever became of it; also the end.
    #[default]
    Next,
    /// It gets what the first one prints.
    Pipe,
    /// If the first one succeeds.
    And,
    /// If it fails.
    Or,
    /// At once.
    Beside,
}

/// The simple commands of a text, in their order; those inside `$(…)` stand before the one that they are part of.
pub(super) fn simple_commands(text: &str) -> Vec<Simple> {
    let mut reader = Reader { commands: Vec::new(), depth: 0 };
    reader.read(text);
    reader.commands
}

struct Reader {
    commands: Vec<Simple>,
    depth: usize,
}

/// The command that is being read.
#[derive(Default)]
struct Current {
    words: Vec<String>,
    inputs: Vec<String>,
    word: Option<String>,
    /// The next word is where a redirection goes to.
    redirects: bool,
    /// And the command reads it.
    reads: bool,
    /// The next word ends a text that follows in later lines.
    here: bool,
    /// Words that end such texts.
    ends: Vec<String>,
}

impl Current {
    fn push(&mut self, c: char) {
        self.word.get_or_insert_default().push(c);
    }

    fn end_word(&mut self) {
        let Some(word) = self.word.take() else { return };
        if std::mem::take(&mut self.here) {
            self.ends.push(word);
        } else if !std::mem::take(&mut self.redirects) {
            self.words.push(word);
        } else if self.reads {
            self.inputs.push(word);
        }
    }
}

type Chars<'a> = std::iter::Peekable<std::str::Chars<'a>>;

impl Reader {
    fn read(&mut self, text: &str) {
        if self.depth >= DEEPEST {
            return;
        }
        self.depth += 1;
        let mut now = Current::default();
        let mut chars = text.chars().peekable();
        while let Some(c) = chars.next() {
            if self.commands.len() >= MOST {
                break;
            }
            match c {
                '\\' => match chars.next() {
                    // A line goes on.
                    Some('\n') | None => {}
                    Some(c) => now.push(c),
                },
                '\'' => {
                    now.word.get_or_insert_default();
                    chars.by_ref().take_while(|c| *c != '\'').for_each(|c| now.push(c));
                }
                '"' => self.quoted(&mut chars, &mut now),
                '$' if chars.peek() == Some(&'(') => {
                    chars.next();
                    let inside = until_closed(&mut chars);
                    self.nested(&inside, &mut now);
                }
                '`' => {
                    let inside: String = chars.by_ref().take_while(|c| *c != '`').collect();
                    self.nested(&inside, &mut now);
                }
                '#' if now.word.is_none() => while chars.next_if(|c| *c != '\n').is_some() {},
                '>' | '<' => redirect(c, &mut chars, &mut now),
                ' ' | '\t' | '\r' => now.end_word(),
                '\n' => {
                    self.end(&mut now, Then::Next);
                    skip_texts(&mut chars, &mut now.ends);
                }
                // Both streams go to the file that follows.
                '&' if chars.peek() == Some(&'>') => {}
                ';' | '(' | ')' => self.end(&mut now, Then::Next),
                '&' | '|' => {
                    let twice = chars.next_if_eq(&c).is_some();
                    chars.next_if(|next| c == '|' && *next == '&');
                    self.end(
                        &mut now,
                        match (c, twice) {
                            ('&', false) => Then::Beside,
                            ('&', true) => Then::And,
                            (_, false) => Then::Pipe,
                            (_, true) => Then::Or,
                        },
                    );
                }
                c => now.push(c),
            }
        }
        self.end(&mut now, Then::Next);
        self.depth -= 1;
    }

    fn quoted(&mut self, chars: &mut Chars<'_>, now: &mut Current) {
        now.word.get_or_insert_default();
        while let Some(c) = chars.next() {
            match c {
                '"' => return,
                '\\' => match chars.next() {
                    Some(c @ ('"' | '\\' | '$' | '`')) => now.push(c),
                    Some('\n') | None => {}
                    Some(c) => {
                        now.push('\\');
                        now.push(c);
                    }
                },
                '$' if chars.peek() == Some(&'(') => {
                    chars.next();
                    let inside = until_closed(chars);
                    self.nested(&inside, now);
                }
                '`' => {
                    let inside: String = chars.by_ref().take_while(|c| *c != '`').collect();
                    self.nested(&inside, now);
                }
                c => now.push(c),
            }
        }
    }

    /// Commands whose output becomes part of a word.
    fn nested(&mut self, inside: &str, now: &mut Current) {
        self.read(inside);
        format!("$({inside})").chars().for_each(|c| now.push(c));
    }

    fn end(&mut self, now: &mut Current, then: Then) {
        now.end_word();
        (now.redirects, now.here) = (false, false);
        let (words, inputs) = (std::mem::take(&mut now.words), std::mem::take(&mut now.inputs));
        if !words.is_empty() {
            self.commands.push(Simple { words, inputs, then, nested: self.depth > 1 });
        } else if then != Then::Next
            && let Some(last) = self.commands.last_mut()
        {
            // It stands behind a bracket.
            last.then = then;
        }
    }
}

/// What stands before the bracket that closes this one.
fn until_closed(chars: &mut Chars<'_>) -> String {
    let mut inside = String::new();
    let mut open = 1;
    for c in chars.by_ref() {
        match c {
            '(' => open += 1,
            ')' => open -= 1,
            _ => {}
        }
        if open == 0 {
            break;
        }
        inside.push(c);
    }
    inside
}

/// `>file`, `2>&1`, `<<END`, `>|file`: the word that follows is no argument.
fn redirect(first: char, chars: &mut Chars<'_>, now: &mut Current) {
    // A number before it is the stream.
    if now.word.as_ref().is_some_and(|word| word.chars().all(|c| c.is_ascii_digit())) {
        now.word = None;
    }
    now.end_word();
    let mut arrows = String::from(first);
    while let Some(c) = chars.next_if(|c| matches!(c, '>' | '<' | '&' | '|' | '-')) {
        arrows.push(c);
    }
    now.here = arrows.starts_with("<<") && !arrows.starts_with("<<<");
    now.redirects = !now.here;
    now.reads = arrows == "<";
}

/// Texts that follow a line for its `<<END`.
fn skip_texts(chars: &mut Chars<'_>, ends: &mut Vec<String>) {
    for end in ends.drain(..) {
        loop {
            let line: String = std::iter::from_fn(|| chars.next_if(|c| *c != '\n')).collect();
            let last = chars.next().is_none();
            if line.trim_start_matches('\t') == end || last {
                break;
            }
        }
    }
}
