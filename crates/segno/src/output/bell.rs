//! How a terminal is asked to call its person: a bell, and where it understands one, a message on the desktop.

use crate::config::env::Environment;

use super::sanitize;

/// What is sent to a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bell {
    /// Nothing.
    Off,
    /// The bell.
    Plain,
    /// The bell and OSC 9, which iTerm2, kitty, WezTerm and Ghostty show.
    Osc9,
    /// The bell and OSC 777, which foot, urxvt and terminals with VTE show.
    Osc777,
}

impl Bell {
    /// What the setting `notify.terminal` asks for; `auto` goes by what the terminal says of itself.
    pub fn of(setting: &str, environment: &Environment) -> Self {
        match setting {
            "off" => Self::Off,
            "bell" => Self::Plain,
            "osc9" => Self::Osc9,
            "osc777" => Self::Osc777,
            _ => Self::known(environment),
        }
    }

    /// What a terminal is known to understand. One that does not would print the rest of it.
    fn known(environment: &Environment) -> Self {
        let is = |name: &str, values: &[&str]| {
            environment.get(name).is_some_and(|value| values.iter().any(|it| value.starts_with(it)))
        };
        // tmux and screen keep such messages for themselves, and show a bell.
        if environment.non_empty("TMUX").is_some() || environment.non_empty("STY").is_some() {
            return Self::Plain;
        }
        if is("TERM_PROGRAM", &["iTerm.app", "WezTerm", "ghostty"])
            || is("TERM", &["xterm-kitty", "xterm-ghostty", "wezterm"])
        {
            return Self::Osc9;
        }
        if is("TERM", &["foot", "rxvt-unicode"]) || environment.non_empty("VTE_VERSION").is_some() {
            return Self::Osc777;
        }
        Self::Plain
    }

    /// The characters for this message. What is in it cannot command the terminal.
    pub fn sequence(self, title: &str, text: &str) -> String {
        let safe = |text: &str| -> String {
            text.chars().map(|c| if c.is_control() || sanitize::is_unsafe(c) { ' ' } else { c }).collect()
        };
        let (title, text) = (safe(title), safe(text));
        match self {
            Self::Off => String::new(),
            Self::Plain => "\x07".to_owned(),
            Self::Osc9 => format!("\x1b]9;{title}: {text}\x1b\\\x07"),
            // The title ends at the first semicolon.
            Self::Osc777 => format!("\x1b]777;notify;{};{text}\x1b\\\x07", title.replace(';', ",")),
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("auto", &[], Bell::Plain)]
    #[case("auto", &[("TERM", "xterm-256color")], Bell::Plain)]
    #[case("auto", &[("TERM", "xterm-kitty")], Bell::Osc9)]
    #[case("auto", &[("TERM_PROGRAM", "iTerm.app"), ("TERM", "xterm-256color")], Bell::Osc9)]
    #[case("auto", &[("TERM_PROGRAM", "WezTerm")], Bell::Osc9)]
    #[case("auto", &[("TERM", "foot-extra")], Bell::Osc777)]
    #[case("auto", &[("TERM", "xterm-256color"), ("VTE_VERSION", "7600")], Bell::Osc777)]
    // Inside a multiplexer the terminal around it does not hear us.
    #[case("auto", &[("TERM", "xterm-kitty"), ("TMUX", "/run/x,1,0")], Bell::Plain)]
    #[case("bell", &[("TERM", "xterm-kitty")], Bell::Plain)]
    #[case("osc9", &[("TMUX", "x")], Bell::Osc9)]
    #[case("osc777", &[], Bell::Osc777)]
    #[case("off", &[("TERM", "xterm-kitty")], Bell::Off)]
    fn what_a_terminal_is_sent(
        #[case] setting: &str,
        #[case] variables: &[(&str, &str)],
        #[case] expected: Bell,
    ) {
        assert_eq!(Bell::of(setting, &Environment::of(variables)), expected);
    }

    #[test]
    fn a_message_cannot_end_its_own_sequence() {
        let (title, text) = ("segno: a;b done", "x\x07\x1b]0;evil\x1b\\ y\u{9c}z\u{202e}");
        assert_eq!(Bell::Off.sequence(title, text), "");
        assert_eq!(Bell::Plain.sequence(title, text), "\x07");
        assert_eq!(Bell::Osc9.sequence(title, text), "\x1b]9;segno: a;b done: x  ]0;evil \\ y z \x1b\\\x07");
        assert_eq!(
            Bell::Osc777.sequence(title, text),
            "\x1b]777;notify;segno: a,b done;x  ]0;evil \\ y z \x1b\\\x07"
        );
    }
}
