//! What the page is made of beside its text: inside of the program, under names that change with what they hold.

use std::sync::LazyLock;

pub(super) const CSS: &str = include_str!("assets/page.css");
const JS: &str = include_str!("assets/page.js");
const ICON: &str = include_str!("assets/icon.svg");

/// Where they are.
#[derive(Debug)]
pub(super) struct Addresses {
    pub(super) css: String,
    pub(super) js: String,
    pub(super) icon: String,
}

pub(super) fn addresses() -> &'static Addresses {
    static ADDRESSES: LazyLock<Addresses> = LazyLock::new(|| Addresses {
        css: address(CSS, "css"),
        js: address(JS, "js"),
        icon: address(ICON, "svg"),
    });
    &ADDRESSES
}

fn address(text: &str, ending: &str) -> String {
    format!("/a/{}.{ending}", &blake3::hash(text.as_bytes()).to_hex()[..16])
}

/// Type and content of what has this name.
pub(super) fn by_name(name: &str) -> Option<(&'static str, &'static str)> {
    let all = addresses();
    let known = [
        (&all.css, "text/css; charset=utf-8", CSS),
        (&all.js, "text/javascript; charset=utf-8", JS),
        (&all.icon, "image/svg+xml", ICON),
    ];
    known
        .into_iter()
        .find(|(address, ..)| address.strip_prefix("/a/") == Some(name))
        .map(|(_, kind, text)| (kind, text))
}
