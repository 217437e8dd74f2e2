//! Numbers and runs as OpenTelemetry's protocol writes them in JSON, with the names of its conventions for generative AI where
//! there are such. Names, times and numbers only: never what was said, asked or given.

use std::collections::BTreeMap;

use segno_engine::core::Timestamp;
use segno_engine::core::rows::ToolRow;
use segno_engine::metrics::ALL;
use segno_engine::metrics::Kind;
use segno_engine::metrics::Name;
use segno_engine::metrics::Number;
use segno_engine::metrics::RunTrace;
use segno_engine::metrics::SUM;
use segno_engine::metrics::attribute;
use serde_json::Value;
use serde_json::json;

/// Since the beginning, as numbers in a protocol.
const CUMULATIVE: u32 = 2;
const INTERNAL: u32 = 1;
const OK: u32 = 1;
const FAILED: u32 = 2;

/// Who tells it, and when.
pub(super) struct About {
    /// The store.
    pub(super) store: String,
    /// Since when it is counted.
    pub(super) began: Option<Timestamp>,
    /// Now.
    pub(super) now: Timestamp,
}

fn nanos(at: Timestamp) -> String {
    (i128::from(at.as_micros().max(0)) * 1_000).to_string()
}

fn words(key: &str, value: impl Into<String>) -> Value {
    json!({ "key": key, "value": { "stringValue": value.into() } })
}

fn count(key: &str, value: u64) -> Value {
    json!({ "key": key, "value": { "intValue": value.to_string() } })
}

fn resource(about: &About) -> Value {
    json!({ "attributes": [
        words("service.name", "segno"),
        words("service.version", env!("CARGO_PKG_VERSION")),
        words("service.instance.id", &about.store),
    ] })
}

fn scope() -> Value {
    json!({ "name": "segno", "version": env!("CARGO_PKG_VERSION") })
}

/// All numbers, as one request.
pub(super) fn metrics(about: &About, numbers: &[Number]) -> String {
    let mut by_name: BTreeMap<Name, Vec<&Number>> = BTreeMap::new();
    for number in numbers {
        by_name.entry(number.name).or_default().push(number);
    }
    let metrics: Vec<Value> = by_name.iter().map(|(name, numbers)| metric(about, *name, numbers)).collect();
    json!({ "resourceMetrics": [{
        "resource": resource(about),
        "scopeMetrics": [{ "scope": scope(), "metrics": metrics }],
    }] })
    .to_string()
}

fn metric(about: &About, name: Name, numbers: &[&Number]) -> Value {
    let family = name.family();
    let (start, now) = (nanos(about.began.unwrap_or(about.now)), nanos(about.now));
    let attributes = |number: &Number| {
        let labels = family.labels.iter().zip(&number.labels);
        labels.map(|(label, value)| words(attribute(label), value)).collect::<Vec<_>>()
    };
    let point = |number: &&Number| {
        let mut point =
            json!({ "attributes": attributes(number), "startTimeUnixNano": start, "timeUnixNano": now });
        match family.parts {
            1 => point["asInt"] = json!(number.value.to_string()),
            _ => point["asDouble"] = json!(number.amount()),
        }
        point
    };
    let mut metric = json!({ "name": family.otel, "description": family.help, "unit": family.unit });
    match family.kind {
        Kind::Gauge => {
            metric["gauge"] = json!({ "dataPoints": numbers.iter().map(point).collect::<Vec<_>>() });
        }
        Kind::Counter => {
            let points: Vec<Value> = numbers.iter().map(point).collect();
            metric["sum"] = json!({
                "aggregationTemporality": CUMULATIVE, "isMonotonic": true, "dataPoints": points,
            });
        }
        Kind::Histogram => {
            let mut points: BTreeMap<&[String], Vec<&Number>> = BTreeMap::new();
            for number in numbers {
                let labels = number.labels.get(..family.labels.len()).unwrap_or_default();
                points.entry(labels).or_default().push(number);
            }
            let points: Vec<Value> = points
                .values()
                .map(|parts| {
                    let mut point = histogram(parts);
                    point["attributes"] = json!(parts.first().map(|it| attributes(it)).unwrap_or_default());
                    point["startTimeUnixNano"] = json!(start);
                    point["timeUnixNano"] = json!(now);
                    point
                })
                .collect();
            metric["histogram"] = json!({ "aggregationTemporality": CUMULATIVE, "dataPoints": points });
        }
    }
    metric
}

/// What is told as "at most so large" is wanted as "between these".
fn histogram(parts: &[&Number]) -> Value {
    let le = |number: &Number| number.labels.last().cloned().unwrap_or_default();
    let sum = parts.iter().find(|it| le(it) == SUM).map_or(0.0, |it| it.amount());
    let all = parts.iter().find(|it| le(it) == ALL).map_or(0, |it| it.value);
    let bounded = parts.iter().filter_map(|it| Some((le(it).parse::<u64>().ok()?, it.value)));
    let mut bounded: Vec<(u64, u64)> = bounded.collect();
    bounded.sort_unstable();
    let (mut before, mut counts) = (0, Vec::new());
    for count in bounded.iter().map(|(_, count)| *count).chain([all]) {
        counts.push(count.saturating_sub(before).to_string());
        before = count.max(before);
    }
    let bounds: Vec<u64> = bounded.iter().map(|(bound, _)| *bound).collect();
    json!({ "count": all.to_string(), "sum": sum, "bucketCounts": counts, "explicitBounds": bounds })
}

/// A name of so many bytes that is the same whenever the same thing is told of.
fn id(what: &str, name: &str, bytes: usize) -> String {
    let hash = blake3::hash(format!("segno {what}\n{name}").as_bytes()).to_hex();
    hash[..bytes * 2].to_owned()
}

/// A run and its calls, as one request.
pub(super) fn traces(about: &About, it: &RunTrace) -> String {
    let run = &it.run;
    let (trace, root) = (id("trace", &run.run, 16), id("run", &run.run, 8));
    let began = run.started_at.unwrap_or(about.now);
    let ended = run.ended_at.unwrap_or(began).max(began);
    let outcome = run.outcome.clone().unwrap_or_default();
    let mut attributes = vec![
        words("gen_ai.operation.name", "invoke_agent"),
        words("gen_ai.agent.name", &run.agent),
        words("segno.session.id", it.session.to_string()),
        words("segno.run.id", &run.run),
        words("segno.outcome", &outcome),
        count("segno.turns", run.turns),
    ];
    let said = [
        ("gen_ai.agent.version", &run.version),
        ("gen_ai.response.model", &run.model),
        ("gen_ai.conversation.id", &run.native_id),
        ("segno.phase", &run.phase),
    ];
    attributes.extend(said.into_iter().filter_map(|(key, value)| Some(words(key, value.as_deref()?))));
    if let Some(tokens) = run.tokens {
        // What is sent counts whole there, wherever it came from.
        let input = tokens.input.saturating_add(tokens.cache_read).saturating_add(tokens.cache_write);
        attributes.extend([
            count("gen_ai.usage.input_tokens", input),
            count("gen_ai.usage.output_tokens", tokens.output),
            count("gen_ai.usage.cache_read.input_tokens", tokens.cache_read),
            count("gen_ai.usage.cache_creation.input_tokens", tokens.cache_write),
        ]);
    }
    if let Some(micros) = run.money() {
        #[expect(clippy::cast_precision_loss, reason = "beyond 2^53 millionths of a dollar nobody counts")]
        let dollars = micros as f64 / 1e6;
        attributes.push(json!({ "key": "segno.cost.usd", "value": { "doubleValue": dollars } }));
    }
    let failed = outcome != "completed";
    if failed {
        attributes.push(words("error.type", &outcome));
    }
    let mut spans = vec![json!({
        "traceId": trace, "spanId": root, "name": format!("invoke_agent {}", run.agent), "kind": INTERNAL,
        "startTimeUnixNano": nanos(began), "endTimeUnixNano": nanos(ended),
        "attributes": attributes, "status": { "code": if failed { FAILED } else { OK } },
    })];
    for (key, call) in it.calls.iter().rev() {
        let Some(at) = call.started_at else { continue };
        spans.push(json!({
            "traceId": trace, "spanId": id("call", &format!("{}\n{key}", run.run), 8), "parentSpanId": root,
            "name": format!("execute_tool {}", call.tool), "kind": INTERNAL,
            "startTimeUnixNano": nanos(at), "endTimeUnixNano": nanos(call.ended_at.unwrap_or(ended).max(at)),
            "attributes": of_call(call),
            "status": { "code": if call.state == "completed" { OK } else { FAILED } },
        }));
    }
    json!({ "resourceSpans": [{
        "resource": resource(about),
        "scopeSpans": [{ "scope": scope(), "spans": spans }],
    }] })
    .to_string()
}

fn of_call(call: &ToolRow) -> Vec<Value> {
    let mut attributes = vec![
        words("gen_ai.operation.name", "execute_tool"),
        words("gen_ai.tool.name", &call.tool),
        words("gen_ai.tool.call.id", &call.call),
        words("gen_ai.tool.type", "function"),
        words("segno.outcome", &call.state),
        json!({ "key": "segno.call.recorded_before", "value": { "boolValue": call.write_ahead } }),
    ];
    if call.state != "completed" {
        attributes.push(words("error.type", &call.state));
    }
    attributes
}
