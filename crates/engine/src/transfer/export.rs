//! A session as one document.

use std::collections::BTreeSet;
use std::io::Write;

use segno_core::List;
use segno_core::SessionId;
use segno_store::EventRow;
use serde_json::json;
use serde_json::value::RawValue;

use super::document;
use super::document::ExportedEvent;
use crate::Engine;
use crate::Error;
use crate::view;

/// How an export is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Everything, the journal included, for programs and for `import`.
    Json,
    /// The view.
    Yaml,
    /// A report for people.
    Markdown,
}

/// Writes a session as one document, page by page: its size does not matter.
pub fn export(engine: &Engine, session: SessionId, format: Format, out: &mut dyn Write) -> Result<(), Error> {
    let loaded = engine.load(session)?;
    let fail = |why: std::io::Error| Error::File { path: "the export".to_owned(), why: why.to_string() };
    match format {
        Format::Yaml => {
            let mut sink = view::Sink { out, fail: &fail };
            view::yaml(engine, &loaded.state, engine.options.view.most_items, &mut sink)
        }
        Format::Markdown => {
            let text = super::markdown::report(engine, &loaded.state)?;
            out.write_all(text.as_bytes()).map_err(fail)
        }
        Format::Json => json_document(engine, session, &loaded, out),
    }
}

/// The document that [`super::document`] reads. Texts that were set aside stand in the lists where they belong, and once
/// each, by hash, behind the journal, whose events only refer to them.
fn json_document(
    engine: &Engine,
    session: SessionId,
    loaded: &segno_store::Loaded,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let fail = |why: std::io::Error| Error::File { path: "the export".to_owned(), why: why.to_string() };
    let mut put = |text: &str| out.write_all(text.as_bytes()).map_err(fail);
    put("{\"segno_export\":1,\"exported_at\":")?;
    put(&json!(engine.now()).to_string())?;
    put(",\"notices\":")?;
    put(&json!(loaded.notices).to_string())?;
    put(",\n\"session\":")?;
    put(&serde_json::to_string(&loaded.state).map_err(|why| fail(why.into()))?)?;
    put(",\n\"lists\":{")?;
    for (index, list) in List::ALL.into_iter().enumerate() {
        put(if index == 0 { "\n" } else { ",\n" })?;
        put(&format!("\"{}\":[", list.as_str()))?;
        for (index, item) in engine.items(session, list)?.into_iter().enumerate() {
            put(if index == 0 { "" } else { ",\n" })?;
            put(&json!({ "key": item.key, "body": inline(engine, item.body) }).to_string())?;
        }
        put("]")?;
    }
    put("},\n\"events\":[")?;
    let mut texts = BTreeSet::new();
    let mut after = 0;
    // What is recorded while this is written is not of the state above.
    while after < loaded.state.seq {
        let rows = engine.store().events(session, after, 500)?;
        if rows.is_empty() {
            break;
        }
        for row in rows {
            let (seq, line) = match row {
                EventRow::Whole(event) => {
                    texts.extend(segno_store::references(&event.body));
                    (event.seq, event_line(&event))
                }
                EventRow::Damaged { seq, what } => (seq, json!({ "seq": seq, "damaged": what }).to_string()),
            };
            if seq > loaded.state.seq {
                break;
            }
            put(if after == 0 { "\n" } else { ",\n" })?;
            put(&line)?;
            after = seq;
        }
    }
    put("],\n\"texts\":{")?;
    let mut missing = Vec::new();
    let mut first = true;
    for hash in texts {
        let name = document::hex(&hash);
        match engine.store().blob(&hash) {
            Ok(text) => {
                put(if first { "\n" } else { ",\n" })?;
                first = false;
                put(&format!("\"{name}\":{}", json!(text)))?;
            }
            // The rest of the session is worth having all the same.
            Err(why) => missing.push(json!({ "text": name, "why": why.to_string() })),
        }
    }
    put("},\n\"missing_texts\":")?;
    put(&json!(missing).to_string())?;
    put("}\n")
}

/// An event of the journal with all that its hash covers, its body to the byte.
fn event_line(event: &segno_store::StoredEvent) -> String {
    let body = RawValue::from_string(event.body.clone()).ok().filter(|raw| raw.get() == event.body);
    let exported = body.map(|body| ExportedEvent {
        seq: event.seq,
        at: event.at,
        kind: event.kind.clone(),
        version: event.version,
        run: event.run.clone(),
        epoch: event.epoch,
        key: event.key.clone(),
        body,
        hash: Some(document::hex(&event.hash)),
        seal: event.seal.as_ref().map(document::hex),
    });
    exported
        .and_then(|exported| serde_json::to_string(&exported).ok())
        .unwrap_or_else(|| event_json(event).to_string())
}

/// One event as every face shows it.
pub fn event_json(event: &segno_store::StoredEvent) -> serde_json::Value {
    let body: serde_json::Value =
        serde_json::from_str(&event.body).unwrap_or_else(|_| json!({ "unreadable": event.body }));
    json!({
        "seq": event.seq,
        "at": event.at,
        "kind": event.kind,
        "version": event.version,
        "run": event.run,
        "epoch": event.epoch,
        "key": event.key,
        "body": body,
    })
}

/// A value with every text that was set aside in its place, whole. One that cannot be read stays a reference.
pub fn inline(engine: &Engine, value: serde_json::Value) -> serde_json::Value {
    use serde_json::Value;
    match value {
        Value::Object(members) if members.contains_key(segno_core::text::BLOB_MEMBER) => {
            let hash = members.get(segno_core::text::BLOB_MEMBER).and_then(Value::as_str);
            let text =
                hash.and_then(crate::engine::parse_hash).and_then(|hash| engine.store().blob(&hash).ok());
            let json = members.get("json").and_then(Value::as_bool).unwrap_or(false);
            match text {
                Some(text) if json => serde_json::from_str(&text).unwrap_or(Value::String(text)),
                Some(text) => Value::String(text),
                None => Value::Object(members),
            }
        }
        Value::Object(members) => {
            members.into_iter().map(|(name, member)| (name, inline(engine, member))).collect()
        }
        Value::Array(items) => items.into_iter().map(|item| inline(engine, item)).collect(),
        other => other,
    }
}
