//! Shared by the tests: made-up secrets and wrappings.

mod base64;

pub(crate) use base64::base64;
use segno_redact::Options;
use segno_redact::Redactor;

pub(crate) fn redactor() -> Redactor {
    Redactor::new(Options { tag_key: [7; 32], ..Options::default() })
}

/// Makes values of a given kind, always the same for the same name.
pub(crate) struct Generator(u64);

impl Generator {
    pub(crate) fn new(name: &str) -> Self {
        Self(
            name.bytes()
                .fold(0xcbf2_9ce4_8422_2325, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3))
                | 1,
        )
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 >> 11
    }

    /// `length` characters of the kind; letters and digits both occur wherever the kind has both.
    pub(crate) fn value(&mut self, kind: &str, length: usize) -> String {
        let alphabet: &[u8] = match kind {
            "alnum" => b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789",
            "alpha" => b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz",
            "lower" => b"abcdefghijklmnopqrstuvwxyz0123456789",
            "upper" => b"ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789",
            "b32" => b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567",
            "b64" => b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
            "hex" => b"0123456789abcdef",
            "digits" => b"0123456789",
            other => panic!("no kind {other}"),
        };
        loop {
            let value: String =
                (0..length).map(|_| char::from(alphabet[self.next() as usize % alphabet.len()])).collect();
            let mixed = ["alnum", "lower", "upper", "hex"].contains(&kind) && length >= 8;
            let digits = value.bytes().filter(u8::is_ascii_digit).count();
            if !mixed || (digits > 0 && digits < length) {
                return value;
            }
        }
    }

    /// The template with every `{kind:length}` filled in, and the values.
    pub(crate) fn expand(&mut self, template: &str) -> (String, Vec<String>) {
        let mut text = String::new();
        let mut values = Vec::new();
        let mut rest = template;
        while let Some(open) = rest.find('{') {
            text.push_str(&rest[..open]);
            rest = &rest[open..];
            let value = rest.find('}').and_then(|close| Some((self.named(&rest[1..close])?, close)));
            match value {
                Some((value, close)) => {
                    text.push_str(&value);
                    if value.len() >= 6 {
                        values.push(value);
                    }
                    rest = &rest[close + 1..];
                }
                None => {
                    text.push('{');
                    rest = &rest[1..];
                }
            }
        }
        text.push_str(rest);
        (text, values)
    }

    fn named(&mut self, inner: &str) -> Option<String> {
        if inner == "uuid" || inner == "uuid4" {
            let parts = [8, 4, 4, 4, 12].map(|length| self.value("hex", length));
            let [a, b, c, d, e] = parts;
            return Some(if inner == "uuid" {
                format!("{a}-{b}-{c}-{d}-{e}")
            } else {
                format!("{a}-{b}-4{}-a{}-{e}", &c[1..], &d[1..])
            });
        }
        let (kind, length) = inner.split_once(':')?;
        let length = length.parse().ok()?;
        if !kind.bytes().all(|b| b.is_ascii_alphanumeric()) {
            return None;
        }
        Some(self.value(kind, length))
    }
}

/// As a search tool would show it: every longer word in colour from its fourth character on.
pub(crate) fn coloured(text: &str) -> String {
    let mut out = String::new();
    let mut run = 0;
    for c in text.chars() {
        run = if c.is_alphanumeric() { run + 1 } else { 0 };
        if run == 4 {
            out.push_str("\u{1b}[01;31m\u{1b}[K");
        }
        out.push(c);
        if run == 9 {
            out.push_str("\u{1b}[m\u{1b}[K");
        }
    }
    out
}

/// Percent-encoded as the value of a form field is.
pub(crate) fn percent(text: &str) -> String {
    text.bytes().fold(String::new(), |mut out, b| {
        if b.is_ascii_alphanumeric() || b"-_.~".contains(&b) {
            out.push(char::from(b));
        } else {
            out.push_str(&format!("%{b:02X}"));
        }
        out
    })
}
