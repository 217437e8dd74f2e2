//! Numbers and traces: what is told, to whom, and that programs which nobody here wrote understand it.
#![expect(clippy::disallowed_methods, reason = "where tools are is told by the environment of the tests")]

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::io::BufRead as _;
use std::io::BufReader;
use std::io::Read as _;
use std::io::Write as _;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;
use std::time::Instant;

use segno_engine::metrics::Kind;
use segno_engine::metrics::Name;
use segno_engine::metrics::attribute;
use serde_json::Value;
use serde_json::json;

use crate::browser::furnished;
use crate::common::TestEnv;
use crate::server::Answer;
use crate::server::Server;
use crate::server::printed;

const DOCS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs");
const PATIENCE: Duration = Duration::from_secs(60);

fn scrape(env: &TestEnv, server: &Server) -> String {
    let bearer = format!("Bearer {}", printed(env, &["serve", "--token"]));
    let answer = server.ask("GET", "/metrics", &[("Host", &server.host), ("Authorization", &bearer)], "");
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(answer.header("content-type"), Some("text/plain; version=0.0.4; charset=utf-8"));
    answer.body
}

/// All samples of a number together.
fn sum(text: &str, name: &str, with: &str) -> f64 {
    let of_it = text.lines().filter(|line| line.starts_with(&format!("{name}{{")) && line.contains(with));
    of_it.map(|line| line.rsplit_once(' ').unwrap().1.parse::<f64>().unwrap()).sum()
}

#[test]
fn numbers_are_told_to_whoever_has_the_token() {
    let (env, id) = furnished();
    let server = Server::start(&env, &["--metrics"]);
    let stranger = server.ask("GET", "/metrics", &[("Host", &server.host)], "");
    assert_eq!((stranger.status, stranger.body.contains("segno_sessions")), (401, false));
    let text = scrape(&env, &server);
    assert_eq!(sum(&text, "segno_sessions", ""), 4.0, "{text}");
    assert_eq!(sum(&text, "segno_sessions", "need=\"you\""), 1.0, "{text}");
    assert_eq!(sum(&text, "segno_questions_waiting", ""), 1.0);
    assert_eq!(
        sum(&text, "segno_runs_total", "agent=\"scout\",model=\"scout-2\",outcome=\"completed\""),
        1.0
    );
    assert_eq!(sum(&text, "segno_run_duration_seconds_count", "agent=\"scout\""), 1.0);
    assert_eq!(sum(&text, "segno_calls_total", "outcome=\"completed\""), 3.0);
    assert_eq!(sum(&text, "segno_tokens_total", "type=\"input\""), 51_000.0);
    assert!((sum(&text, "segno_cost_dollars_total", "project=\"project\"") - 0.53).abs() < 1e-6, "{text}");
    assert_eq!(sum(&text, "segno_checkpoints_total", ""), 7.0);
    // Nothing of what was said, asked or given.
    for words in ["login form", "Let people log in", "cargo test auth", "src/auth.rs", "guess"] {
        assert!(!text.contains(words), "{words}\n{text}");
    }
    // What was done was done, also when its session is gone, and when the server is another one.
    env.ok(&["tokens", "--session", &id, "--input", "1000"]);
    env.ok(&["complete", &id, "--summary", "done"]);
    env.ok(&["rm", &id, "--yes"]);
    let port = server.port();
    let gone = |server: &Server| {
        let begun = Instant::now();
        let mut text = scrape(&env, server);
        // What was read a moment ago is told again.
        while sum(&text, "segno_sessions", "") != 3.0 {
            assert!(begun.elapsed() < PATIENCE, "{text}");
            text = scrape(&env, server);
        }
        assert!(sum(&text, "segno_tokens_total", "type=\"input\"") >= 51_000.0, "{text}");
    };
    gone(&server);
    drop(server);
    gone(&Server::on(&env, &port, &["--metrics"]));
}

#[test]
fn without_being_asked_for_there_are_no_numbers() {
    let env = TestEnv::new();
    let server = Server::start(&env, &[]);
    assert_eq!(server.browser().get("/metrics").status, 404);
    drop(server);
    // Before there is a store, there is only the program.
    let server = Server::start(&env, &["--metrics"]);
    let text = scrape(&env, &server);
    assert!(text.contains("segno_build_info{version=") && !text.contains("segno_sessions"), "{text}");
}

/// The table of the documents is made of the schema.
#[test]
fn the_documents_name_every_number() {
    let path = format!("{DOCS}/metrics.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = text.split_once("writes it anew -->\n").unwrap();
    let (_, after) = rest.split_once("<!-- end -->").unwrap();
    let mut table =
        "\n| Prometheus | OpenTelemetry | kind, unit | labels | what |\n|---|---|---|---|---|\n".to_owned();
    for name in Name::ALL {
        let it = name.family();
        let kind = match it.kind {
            Kind::Gauge => "gauge",
            Kind::Counter => "counter",
            Kind::Histogram => "histogram",
        };
        let labels: Vec<String> = it.labels.iter().map(|label| format!("`{label}`")).collect();
        table.push_str(&format!(
            "| `{}` | `{}` | {kind}, `{}` | {} | {} |\n",
            it.name,
            it.otel,
            it.unit,
            labels.join(" "),
            it.help
        ));
    }
    table.push_str("\n| label | attribute |\n|---|---|\n");
    let labels: BTreeSet<&str> = Name::ALL.iter().flat_map(|name| name.family().labels).copied().collect();
    for label in labels {
        assert_ne!(attribute(label), "segno.other", "{label}");
        table.push_str(&format!("| `{label}` | `{}` |\n", attribute(label)));
    }
    let wanted = format!("{before}writes it anew -->\n{table}\n<!-- end -->{after}");
    if std::env::var_os("SEGNO_BLESS").is_some() {
        std::fs::write(&path, &wanted).unwrap();
    }
    let text = std::fs::read_to_string(&path).unwrap();
    assert_eq!(text, wanted, "SEGNO_BLESS=1 writes it anew");
}

/// What the dashboard asks.
fn queries() -> Vec<String> {
    let text = std::fs::read_to_string(format!("{DOCS}/grafana/segno.json")).unwrap();
    let dashboard: Value = serde_json::from_str(&text).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let targets = panels.iter().flat_map(|panel| panel["targets"].as_array().unwrap());
    targets.map(|target| target["expr"].as_str().unwrap().to_owned()).collect()
}

/// The words of a query that are not in quotes.
fn words(query: &str) -> Vec<String> {
    let plain: String = query.split('"').step_by(2).collect::<Vec<_>>().join(" ");
    let part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    plain.split(|c| !part(c)).filter(|word| !word.is_empty()).map(ToOwned::to_owned).collect()
}

#[test]
fn the_dashboard_asks_for_what_is_told() {
    let mut known: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    known.insert("segno_build_info".to_owned(), vec!["version"]);
    for name in Name::ALL {
        let family = name.family();
        let endings: &[&str] =
            if family.kind == Kind::Histogram { &["_bucket", "_sum", "_count"] } else { &[""] };
        for ending in endings {
            known.insert(format!("{}{ending}", family.name), [family.labels, &["le"]].concat());
        }
    }
    let language = [
        "sum",
        "by",
        "rate",
        "increase",
        "histogram_quantile",
        "max",
        "vector",
        "or",
        "1h",
        "6h",
        "10m",
        "24h",
        "0",
        "60",
        "3600",
        "1000",
        "5",
        "95",
        "1",
    ];
    let mut asked = BTreeSet::new();
    for query in queries() {
        let words = words(&query);
        let names: Vec<&String> = words.iter().filter(|word| word.starts_with("segno_")).collect();
        assert!(!names.is_empty(), "{query}");
        for word in &words {
            if word.starts_with("segno_") {
                assert!(known.contains_key(word), "{word} in {query}");
                asked.insert(word.clone());
            } else if !language.contains(&word.as_str()) {
                assert!(names.iter().all(|name| known[*name].contains(&word.as_str())), "{word} in {query}");
            }
        }
    }
    // And it shows each of them somewhere.
    for name in Name::ALL {
        let name = name.family().name;
        assert!(asked.iter().any(|word| word.starts_with(name)), "{name} is nowhere on the dashboard");
    }
}

/// Somebody who takes what is sent over HTTP.
struct Collector {
    address: String,
    heard: Arc<Mutex<Vec<(String, Value)>>>,
}

impl Collector {
    fn start() -> Self {
        Self::answering(|_| "200 OK")
    }

    /// One that says what it thinks of what has come.
    fn answering(status: impl Fn(&[(String, Value)]) -> &'static str + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let heard = Arc::new(Mutex::new(Vec::new()));
        let hears = Arc::clone(&heard);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let mut stream = BufReader::new(stream);
                let (mut path, mut length) = (String::new(), 0);
                loop {
                    let mut line = String::new();
                    if stream.read_line(&mut line).unwrap_or(0) == 0 || line.trim().is_empty() {
                        break;
                    }
                    if let Some(rest) = line.strip_prefix("POST ") {
                        rest.split(' ').next().unwrap().clone_into(&mut path);
                    }
                    if let Some((name, value)) = line.split_once(':')
                        && name.eq_ignore_ascii_case("content-length")
                    {
                        length = value.trim().parse().unwrap();
                    }
                }
                let mut body = vec![0; length];
                if stream.read_exact(&mut body).is_ok()
                    && let Ok(body) = serde_json::from_slice(&body)
                {
                    hears.lock().unwrap().push((path, body));
                }
                let status = status(&hears.lock().unwrap());
                let answer = format!("HTTP/1.1 {status}\r\nContent-Length: 2\r\n\r\n{{}}");
                let _ = stream.get_mut().write_all(answer.as_bytes());
            }
        });
        Self { address, heard }
    }

    /// Waits until what was heard is enough.
    fn until(&self, enough: impl Fn(&[(String, Value)]) -> bool) -> Vec<(String, Value)> {
        let begun = Instant::now();
        loop {
            let heard = self.heard.lock().unwrap().clone();
            if enough(&heard) {
                return heard;
            }
            assert!(begun.elapsed() < PATIENCE, "{heard:?}");
            std::thread::sleep(Duration::from_millis(30));
        }
    }
}

/// What a server sends while an agent runs once.
fn sent() -> Vec<(String, Value)> {
    let collector = Collector::start();
    let (mut env, id) = furnished();
    env.set("SEGNO_OTEL_ENDPOINT", &collector.address);
    env.set("SEGNO_OTEL_SECONDS", "1");
    let server = Server::start(&env, &[]);
    collector.until(|heard| heard.iter().any(|(path, _)| path == "/v1/metrics"));
    env.ok(&["--session", &id, "run", "--agent", "scout", "--prompt", "and now the lock"]);
    let heard = collector.until(|heard| {
        let traced = heard.iter().position(|(path, _)| path == "/v1/traces");
        traced.is_some_and(|at| heard[at..].iter().filter(|(path, _)| path == "/v1/metrics").count() > 1)
    });
    drop(server);
    heard
}

#[test]
fn runs_and_numbers_are_sent_to_a_collector() {
    let heard = sent();
    let traces: Vec<&Value> =
        heard.iter().filter(|(path, _)| path == "/v1/traces").map(|(_, body)| body).collect();
    // The run before the server began is none of it, and the other one is told of once.
    assert_eq!(traces.len(), 1);
    let spans = traces[0]["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap();
    let names: Vec<&str> = spans.iter().map(|span| span["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["invoke_agent scout", "execute_tool Read", "execute_tool Edit", "execute_tool Bash"]);
    let has = |span: &Value, key: &str, value: &str| {
        let all = span["attributes"].as_array().unwrap();
        all.iter().any(|it| it["key"] == key && it["value"]["stringValue"] == value)
    };
    assert!(
        has(&spans[0], "gen_ai.agent.name", "scout") && has(&spans[0], "gen_ai.response.model", "scout-2")
    );
    assert!(has(&spans[2], "gen_ai.tool.name", "Edit") && has(&spans[2], "segno.outcome", "completed"));
    for span in &spans[1..] {
        assert_eq!((&span["parentSpanId"], &span["traceId"]), (&spans[0]["spanId"], &spans[0]["traceId"]));
    }
    let last = heard.iter().rfind(|(path, _)| path == "/v1/metrics").unwrap();
    let metrics = last.1["resourceMetrics"][0]["scopeMetrics"][0]["metrics"].as_array().unwrap();
    let runs = metrics.iter().find(|metric| metric["name"] == "segno.runs").unwrap();
    assert_eq!(runs["sum"]["dataPoints"][0]["asInt"], "2", "{runs}");
    // Nothing of what was said, asked or given.
    let all = format!("{heard:?}");
    for words in ["login form", "and now the lock", "cargo test auth", "src/auth.rs", "One test is left"] {
        assert!(!all.contains(words), "{words}");
    }
}

/// What a collector does not want is sent once, is no reason not to send the rest, and is said where the server was started.
#[test]
fn what_is_not_wanted_is_not_sent_for_ever() {
    let traces = |heard: &[(String, Value)]| {
        let of = |(path, body): &(String, Value)| {
            let span = &body["resourceSpans"][0]["scopeSpans"][0]["spans"][0];
            (path == "/v1/traces").then(|| span["traceId"].as_str().unwrap().to_owned())
        };
        heard.iter().filter_map(of).collect::<Vec<_>>()
    };
    // It takes no numbers at all, and not the first trace.
    let collector = Collector::answering(move |heard| match heard.last() {
        Some((path, _)) if path == "/v1/metrics" => "404 Not Found",
        _ if traces(heard).len() == 1 => "400 Bad Request",
        _ => "200 OK",
    });
    let (mut env, id) = furnished();
    env.set("SEGNO_OTEL_ENDPOINT", &collector.address);
    env.set("SEGNO_OTEL_SECONDS", "1");
    let server = Server::telling(&env, &["--port", "0"], "told");
    collector.until(|heard| heard.iter().any(|(path, _)| path == "/v1/metrics"));
    env.ok(&["--session", &id, "run", "--agent", "scout", "--prompt", "and now the lock"]);
    collector.until(|heard| traces(heard).len() == 1);
    env.ok(&["--session", &id, "run", "--agent", "scout", "--prompt", "and now the key"]);
    let heard = collector.until(|heard| {
        let second = heard.iter().rposition(|(path, _)| path == "/v1/traces").unwrap();
        traces(heard).len() == 2 && heard[second..].len() > 3
    });
    let traces = traces(&heard);
    assert_ne!(traces[0], traces[1]);
    drop(server);
    let told = env.read("told");
    assert_eq!(told.matches("it answered with status 404").count(), 1, "{told}");
}

#[test]
fn no_project_says_where_numbers_go() {
    let env = TestEnv::new();
    env.write("project/.segno/config.toml", "[otel]\nendpoint = \"http://127.0.0.1:9\"\nseconds = 1\n");
    env.run(&["trust", "--yes"]);
    assert_eq!(env.ok(&["config", "get", "otel.endpoint"]).stdout.trim(), "");
    assert_eq!(env.ok(&["config", "get", "otel.seconds"]).stdout.trim(), "30");
    let refused = env.run(&["config", "set", "otel.endpoint", "http://127.0.0.1:9", "--in-project"]);
    assert_eq!(refused.code, 13, "{}", refused.stderr);
    assert!(refused.stderr.contains("only your own configuration may set it"), "{}", refused.stderr);
    for bad in ["127.0.0.1:4318", "ftp://a", "http://", "http://me:word@host/"] {
        assert_eq!(env.run(&["config", "set", "otel.endpoint", bad]).code, 13, "{bad}");
    }
    env.ok(&["config", "set", "otel.endpoint", "http://127.0.0.1:4318"]);
}

fn cache(name: &str) -> Option<PathBuf> {
    let cache = std::env::var_os("SEGNO_CACHE").map(PathBuf::from);
    let home = std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache/segno"));
    cache.or(home).map(|cache| cache.join(name)).filter(|path| path.exists())
}

/// The types that OpenTelemetry publishes read it, in a language that is not ours.
#[test]
fn an_independent_reader_understands_what_is_sent() {
    let Some(python) = cache("otel/bin/python") else {
        return segno_testkit::agents::skip("opentelemetry-proto is not installed: scripts/test installs it");
    };
    let reader = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/readers/otlp.py");
    let mut child = std::process::Command::new(python)
        .args(["-B", reader])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = String::new();
    for (path, body) in sent() {
        lines.push_str(&format!("{}\n", json!({ "path": path, "body": body })));
    }
    child.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    let read: Value = serde_json::from_slice(&output.stdout).unwrap();
    for (name, kind) in [
        ("segno.sessions", "gauge"),
        ("segno.tokens", "sum"),
        ("segno.cost", "sum"),
        ("segno.calls", "sum"),
        ("gen_ai.invoke_agent.duration", "histogram"),
    ] {
        assert_eq!(read["metrics"][name]["kind"], kind, "{name}");
    }
    assert_eq!(read["spans"].as_array().unwrap().len(), 4);
    assert_eq!(read["spans"][0]["attributes"]["gen_ai.operation.name"], "invoke_agent");
}

/// A real Prometheus scrapes the server and answers everything that the dashboard asks.
#[test]
fn a_real_prometheus_answers_every_query_of_the_dashboard() {
    let Some(prometheus) = cache("prometheus/usr/bin/prometheus") else {
        return segno_testkit::agents::skip("prometheus is not there: scripts/test fetches it");
    };
    let (env, id) = furnished();
    let server = Server::start(&env, &["--metrics"]);
    env.write("token", &printed(&env, &["serve", "--token"]));
    let config = format!(
        "global: {{ scrape_interval: 1s, scrape_timeout: 1s }}\nscrape_configs:\n- job_name: segno\n  authorization: {{ credentials_file: {} }}\n  \
         static_configs: [{{ targets: ['{}'] }}]\n",
        env.path("token").display(),
        server.host
    );
    env.write("prometheus.yml", &config);
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut child = std::process::Command::new(prometheus)
        .arg(format!("--config.file={}", env.path("prometheus.yml").display()))
        .arg(format!("--storage.tsdb.path={}", env.path("tsdb").display()))
        .arg(format!("--web.listen-address=127.0.0.1:{port}"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let ask = |query: &str| -> Option<Value> {
        let encoded: String = query.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let mut stream = std::net::TcpStream::connect(("127.0.0.1", port)).ok()?;
        let text = format!(
            "GET /api/v1/query?query={encoded} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n"
        );
        stream.write_all(text.as_bytes()).ok()?;
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).ok()?;
        let answer = Answer::read(&bytes);
        // In pieces, each after its size.
        let body = answer.body.get(answer.body.find('{')?..=answer.body.rfind('}')?)?;
        serde_json::from_str(body).ok()
    };
    let begun = Instant::now();
    let until = |query: &str| {
        while ask(query).is_none_or(|said| said["data"]["result"].as_array().is_none_or(Vec::is_empty)) {
            assert!(begun.elapsed() < 2 * PATIENCE, "{query}");
            std::thread::sleep(Duration::from_millis(100));
        }
    };
    until("segno_tokens_total");
    // Growth is between two looks.
    env.ok(&["tokens", "--session", &id, "--input", "700", "--cost", "0.05"]);
    until("sum(increase(segno_tokens_total[1m])) > 0");
    // Nobody told of a window of a plan, and everything has its price.
    let nothing = ["segno_limit_", "segno_tokens_unpriced_total"];
    for query in queries() {
        let query = query.replace("$project", ".*").replace("$agent", ".*");
        let said = ask(&query).unwrap();
        assert_eq!(said["status"], "success", "{query} {said}");
        let empty = said["data"]["result"].as_array().unwrap().is_empty();
        assert!(!empty || nothing.iter().any(|name| query.contains(name)), "{query} {said}");
    }
    let _ = child.kill();
    let _ = child.wait();
}
