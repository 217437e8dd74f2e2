//! What stands behind the question mark of an address: fields of forms are given even when they are empty, and what is not
//! understood is said in words.

use std::str::FromStr;

use axum::extract::FromRequestParts;
use axum::extract::Query;
use axum::http::request::Parts;
use serde::Deserialize;
use serde::Deserializer;
use serde::de::DeserializeOwned;
use serde::de::Error as _;

use super::problem::Problem;

/// What was asked.
pub(super) struct Asked<T>(pub(super) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Asked<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        Query::try_from_uri(&parts.uri).map(|Query(asked)| Self(asked)).map_err(|why| {
            let why = why.body_text();
            let (_, what) = why.split_once(": ").unwrap_or(("", &why));
            Problem::bad(format!("this address is not understood: {what}"))
        })
    }
}

/// A number, or nothing.
pub(super) fn number<'de, D: Deserializer<'de>, T: FromStr>(from: D) -> Result<Option<T>, D::Error> {
    let text = String::deserialize(from)?;
    match text.trim() {
        "" => Ok(None),
        text => {
            text.parse().map(Some).map_err(|_| D::Error::custom(format!("{text:?} is not such a number")))
        }
    }
}

/// A number; nothing is 0.
pub(super) fn count<'de, D: Deserializer<'de>>(from: D) -> Result<usize, D::Error> {
    number(from).map(Option::unwrap_or_default)
}

/// A box of a form that is ticked or not.
pub(super) fn flag<'de, D: Deserializer<'de>>(from: D) -> Result<bool, D::Error> {
    match String::deserialize(from)?.trim() {
        "" | "false" | "off" | "no" | "0" => Ok(false),
        "true" | "on" | "yes" | "1" => Ok(true),
        other => Err(D::Error::custom(format!("{other:?} is neither true nor false"))),
    }
}
