//! Secrets stay out of the record.

use std::path::Path;

use rustix::process::Signal;

use crate::lab::Lab;
use crate::lab::Said;
use crate::lab::signal;
use crate::lab::until;

/// Lines of a key that opens nothing, made anew for every test.
fn key_lines(seed: u64, count: usize) -> Vec<String> {
    let digits = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        char::from(digits[(state >> 20) as usize % 64])
    };
    (0..count).map(|_| (0..64).map(|_| next()).collect()).collect()
}

fn pem(lines: &[String]) -> String {
    let (begin, end) = ("-----BEGIN RSA PRIVATE", "-----END RSA PRIVATE");
    format!("{begin} KEY-----\n{}\n{end} KEY-----\n", lines.join("\n"))
}

/// A token of the right form that belongs to nobody.
fn token(seed: u64) -> String {
    let text: String =
        key_lines(seed, 1)[0].chars().map(|c| if c.is_alphanumeric() { c } else { '7' }).collect();
    format!("{}_{}", "ghp", &text[..36])
}

/// Every byte that segno keeps, and everything it shows of it.
fn kept(lab: &Lab) -> Vec<(String, Vec<u8>)> {
    let mut all = Vec::new();
    let home = lab.home.path();
    for directory in [home.join(".local"), home.join(".config/segno/trust"), lab.home.work().join(".segno")] {
        gather(&directory, &mut all);
    }
    for args in [
        &["export", "last"][..],
        &["log", "last", "--json"],
        &["show", "last", "--history", "--limit", "10000"],
        &["show", "last", "--tools", "--limit", "10000", "--json"],
        &["show", "last"],
        &["ls", "--all", "--json"],
    ] {
        let said = lab.run(args);
        all.push((format!("{args:?}"), said.stdout));
        all.push((format!("{args:?} stderr"), said.stderr.into_bytes()));
    }
    all
}

fn gather(directory: &Path, all: &mut Vec<(String, Vec<u8>)>) {
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            gather(&path, all);
        } else if path.is_file() {
            all.push((path.display().to_string(), std::fs::read(&path).unwrap_or_default()));
        }
    }
}

fn assert_gone(all: &[(String, Vec<u8>)], secret: &str) {
    assert!(secret.len() >= 6, "too short to be looked for");
    for (place, bytes) in all {
        let at = bytes.windows(secret.len()).position(|part| part == secret.as_bytes());
        if let Some(at) = at {
            let around = &bytes[at.saturating_sub(60)..(at + secret.len() + 20).min(bytes.len())];
            panic!("{secret} is in {place}: {:?}", String::from_utf8_lossy(around));
        }
    }
}

fn said(said: &Said) -> Vec<(String, Vec<u8>)> {
    vec![
        ("its output".to_owned(), said.stdout.clone()),
        ("its complaints".to_owned(), said.stderr.clone().into_bytes()),
    ]
}

/// No line of the key is anywhere, not even the middle of one.
fn assert_key_gone(all: &[(String, Vec<u8>)], lines: &[String]) {
    for line in lines {
        assert_gone(all, &line[12..40]);
    }
}

/// An agent described by rules, played by a shell script.
pub(crate) fn rules_agent(lab: &Lab, script: &str) {
    lab.write("agent.sh", script);
    let path = lab.path("agent.sh");
    lab.config(&format!(
        r#"
[agents.mine]
command = ["sh", "{path}"]
prompt = "none"
format = "json"
[[agents.mine.rules]]
kind = "text"
when = {{ "$.type" = "piece" }}
fields = {{ text = "$.text", message_id = "$.id" }}
[[agents.mine.rules]]
kind = "tokens"
when = {{ "$.type" = "use" }}
fields = {{ output = "$.output" }}
[[agents.mine.rules]]
kind = "tool_started"
when = {{ "$.type" = "call" }}
fields = {{ call_id = "$.id", tool = "$.tool", input = "$.input" }}
[[agents.mine.rules]]
kind = "tool_finished"
when = {{ "$.type" = "done" }}
fields = {{ call_id = "$.id", output = "$.output" }}
[[agents.mine.rules]]
kind = "result"
when = {{ "$.type" = "result" }}
fields = {{ text = "$.text", error = "$.error" }}
"#
    ));
}

/// A script that prints these documents, one to a line.
pub(crate) fn prints(documents: &[serde_json::Value]) -> String {
    let lines: Vec<String> = documents.iter().map(ToString::to_string).collect();
    format!("cat <<'END'\n{}\nEND\n", lines.join("\n"))
}

promise!(
    /// A private key that a plain command prints is not recorded, though its lines come one by one.
    fn a_key_printed_line_by_line_is_not_recorded() {
        let lab = Lab::new();
        let lines = key_lines(1, 26);
        lab.write("key.pem", &pem(&lines));
        let said = lab.run(&["run", "--", "cat", &lab.path("key.pem")]);
        assert_eq!(said.code, Some(0), "{}", said.stderr);
        assert_key_gone(&kept(&lab), &lines);
    }
);

promise!(
    /// Nor when each line has something before it: a number, a file name, the sign of a diff, a quote.
    fn a_key_with_line_prefixes_is_not_recorded() {
        let prefixes: [fn(usize) -> String; 8] = [
            |n| format!("{n}:"),
            |n| format!("{n:6}\t"),
            |n| format!("deploy/id_rsa:{n}:"),
            |_| "+".to_owned(),
            |_| "-".to_owned(),
            |_| "> ".to_owned(),
            |_| "        ".to_owned(),
            |n| format!("{n:4} │ "),
        ];
        for (number, prefix) in prefixes.into_iter().enumerate() {
            let lab = Lab::new();
            let lines = key_lines(10 + number as u64, 20);
            let text: Vec<String> =
                pem(&lines).lines().enumerate().map(|(n, line)| format!("{}{line}", prefix(n + 1))).collect();
            let text = format!("{}\n", text.join("\n"));
            lab.write("shown.txt", &text);
            let said = lab.run(&["run", "--", "cat", &lab.path("shown.txt")]);
            assert_eq!(said.code, Some(0), "{}", said.stderr);
            assert_key_gone(&kept(&lab), &lines);
            // The same as the result of a tool, whole.
            let call =
                serde_json::json!({"type": "call", "id": "c1", "tool": "Read", "input": {"path": "x"}});
            let done = serde_json::json!({"type": "done", "id": "c1", "output": text});
            rules_agent(&lab, &prints(&[call, done]));
            lab.run(&["run", "--agent", "mine"]);
            assert_key_gone(&kept(&lab), &lines);
        }
    }
);

promise!(
    /// What an agent says in pieces is looked at as one text, wherever the pieces are cut and whatever comes between.
    fn secrets_cut_into_pieces_are_not_recorded() {
        let lab = Lab::new();
        let (token, lines) = (token(3), key_lines(4, 14));
        let password = "winter-meadow-lantern-5";
        let text = format!(
            "The token is {token} and\nDB_PASSWORD={password}\nthen the key:\n{}That is all.",
            pem(&lines)
        );
        let mut documents = Vec::new();
        let characters: Vec<char> = text.chars().collect();
        for (number, piece) in characters.chunks(5).enumerate() {
            let piece: String = piece.iter().collect();
            documents.push(serde_json::json!({"type": "piece", "text": piece}));
            if number % 7 == 0 {
                documents.push(serde_json::json!({"type": "use", "output": 1}));
            }
        }
        documents.push(serde_json::json!({"type": "result", "text": "done"}));
        rules_agent(&lab, &prints(&documents));
        let run = lab.run(&["run", "--agent", "mine", "--json"]);
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        // Pieces may be joined again by whoever reads: so what is kept is joined, too.
        let joined: String = lab
            .journal(Some("said"))
            .iter()
            .filter_map(|event| event["body"]["text"].as_str().map(ToOwned::to_owned))
            .collect();
        assert!(joined.contains("The token is ") && joined.contains("That is all."), "{joined}");
        let all = vec![("the pieces, joined".to_owned(), joined.into_bytes())];
        assert_gone(&all, &token[4..]);
        assert_gone(&all, password);
        assert_key_gone(&all, &lines);
    }
);

promise!(
    /// Nothing that was held back for its rest is lost when everything is killed.
    fn what_is_held_back_survives_a_kill() {
        let lab = Lab::new();
        let go = lab.path("never");
        let piece = |text: &str| serde_json::json!({"type": "piece", "text": text}).to_string();
        rules_agent(
            &lab,
            &format!(
                "cat <<'END'\n{}\n{}\nEND\nwhile [ ! -e {go} ]; do sleep 0.05; done\n",
                piece("one line\n"),
                piece("and a beginning that waits"),
            ),
        );
        let live = lab.start(&["run", "--agent", "mine"], None);
        let run = lab.running();
        until("the first line is recorded", || {
            lab.journal(Some("said")).iter().any(|e| e["body"]["text"] == "one line\n").then_some(())
        });
        live.signal(Signal::KILL);
        drop(live);
        signal(u32::try_from(run["pid"].as_u64().unwrap()).unwrap(), Signal::KILL);
        lab.assert_no_process_left();
        lab.run(&["ls"]);
        until("it is taken in", || {
            lab.run(&["ls"]);
            let said = lab.journal(Some("said"));
            let texts: Vec<&str> = said.iter().filter_map(|e| e["body"]["text"].as_str()).collect();
            (texts == ["one line\n", "and a beginning that waits"]).then_some(())
        });
    }
);

promise!(
    /// The end of what went to standard error may begin inside a key.
    fn the_tail_of_standard_error_has_no_half_key() {
        let lab = Lab::new();
        let lines = key_lines(5, 26);
        let key = pem(&lines);
        let filler = "nothing of importance here\n".repeat(16 * 1024 / 27);
        let rest = &filler[..16 * 1024 - key.len() / 2];
        lab.write("err.txt", &format!("{}{key}{rest}\n", "before\n".repeat(2000)));
        let script = format!("cat {} >&2; exit 3", lab.path("err.txt"));
        let run = lab.run(&["run", "--json", "--", "sh", "-c", &script]);
        assert_key_gone(&said(&run), &lines);
        assert_key_gone(&kept(&lab), &lines);
    }
);

promise!(
    /// A topic, a checkpoint's reason, a variable: whatever is shortened was redacted before.
    fn redacted_first_and_cut_afterwards() {
        let mut lab = Lab::new();
        let token = token(6);
        let command = format!("echo {} {token} >/dev/null", "x".repeat(50));
        assert_eq!(lab.run(&["run", "--", "sh", "-c", &command]).code, Some(0));
        assert_gone(&kept(&lab), &token[..18]);
        let prompt = format!("{} {token} and more", "do it well, ".repeat(5));
        rules_agent(&lab, "true\n");
        lab.run(&["run", "--agent", "mine", "--prompt", &prompt]);
        assert_gone(&kept(&lab), &token[..18]);
        // The variable PATH is recorded, and shortened when it is long.
        let long = format!("{}:{}{token}", lab.env["PATH"], "/".repeat(480 - lab.env["PATH"].len()));
        lab.env.insert("PATH".to_owned(), long);
        assert_eq!(lab.run(&["run", "--", "true"]).code, Some(0));
        assert_gone(&kept(&lab), &token[..14]);
    }
);

promise!(
    /// The variables that the configuration gives to an agent are known secrets, if their names or values say so.
    fn variables_of_the_configuration_are_known_secrets() {
        let lab = Lab::new();
        let (password, key) = ("quiet-harbour-lantern", "Zt4Lm2Pw7Rk1xvQ8");
        lab.write(
            "agent.sh",
            "echo \"I use $SHOP_PASSWORD\"; echo \"and $SHOP_ACCESS\"; echo $SHOP_MODEL >&2\n",
        );
        let path = lab.path("agent.sh");
        lab.config(&format!(
            "[agents.mine]\ncommand = [\"sh\", \"{path}\"]\nprompt = \"none\"\n\
             env = {{ SHOP_PASSWORD = \"{password}\", SHOP_ACCESS = \"{key}\", SHOP_MODEL = \"claude-opus-5\" }}\n"
        ));
        let run = lab.run(&["run", "--agent", "mine", "--json"]);
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        for secret in [password, key] {
            assert_gone(&said(&run), secret);
            assert_gone(&kept(&lab), secret);
        }
        assert!(run.text().contains("claude-opus-5"), "what is no secret stays");
    }
);

promise!(
    /// Who takes in the rest of a run needs no secrets of their own to keep those of the run out.
    fn who_settles_a_run_knows_its_secrets() {
        let mut lab = Lab::new();
        let password = "quiet-harbour-lantern";
        lab.env.insert("SHOP_PASSWORD".to_owned(), password.to_owned());
        let (go, done) = (lab.path("go"), lab.path("done"));
        let script = format!(
            "echo ready; while [ ! -e {go} ]; do sleep 0.02; done; echo \"I use $SHOP_PASSWORD\"; \
             echo \"and $SHOP_PASSWORD\" >&2; touch {done}; sleep 600"
        );
        let live = lab.start(&["run", "--", "sh", "-c", &script], None);
        let run = lab.running();
        until("it is ready", || {
            lab.journal(Some("said")).iter().any(|e| e["body"]["text"] == "ready").then_some(())
        });
        live.signal(Signal::KILL);
        drop(live);
        lab.env.remove("SHOP_PASSWORD");
        lab.write("go", "");
        until("it has printed", || Path::new(&done).exists().then_some(()));
        signal(u32::try_from(run["pid"].as_u64().unwrap()).unwrap(), Signal::KILL);
        until("it is taken in", || {
            lab.run(&["ls"]);
            let said = lab.journal(Some("said"));
            said.iter().any(|e| e["body"]["text"].as_str().unwrap().starts_with("I use")).then_some(())
        });
        let said = lab.journal(Some("said"));
        assert!(
            said.iter().any(|e| e["body"]["text"].as_str().unwrap().starts_with("I use [redacted:")),
            "{said:?}"
        );
        assert_gone(&kept(&lab), password);
    }
);

promise!(
    /// What a run ends with, as a document, in words, and in the log of one in the background.
    fn the_result_of_a_run_has_no_secret() {
        let lab = Lab::new();
        let token = token(7);
        let documents = [
            serde_json::json!({"type": "piece", "text": "working\n"}),
            serde_json::json!({"type": "result", "error": format!("the key {token} was refused")}),
        ];
        rules_agent(&lab, &prints(&documents));
        for args in [&["run", "--agent", "mine", "--json"][..], &["run", "--agent", "mine"]] {
            let run = lab.run(args);
            assert!(run.code != Some(0));
            assert!(run.stderr.contains("the run ended") || run.text().contains("result"), "{}", run.stderr);
            assert_gone(&said(&run), &token);
        }
        let background = lab.run(&["run", "--agent", "mine", "--detach"]);
        assert_eq!(background.code, Some(0), "{}", background.stderr);
        until("it has ended", || {
            let shown = lab.state();
            (shown["run"]["outcome"].is_string()).then_some(())
        });
        lab.assert_no_process_left();
        assert_gone(&kept(&lab), &token);
    }
);

promise!(
    /// A field is a secret by its name, however short its value and however its name is written.
    fn names_of_fields_give_secrets_away() {
        let lab = Lab::new();
        let fields = [
            ("db_pw", "kiwi-77x"),
            ("creds", "kiwi78x9a1"),
            ("connectionString", "Server=db;Uid=shop;kiwi79=x"),
            ("dbPw", "kiwi-80x"),
            ("userCreds", "kiwi81x9a1"),
            ("path", "kiwi82-stays"),
        ];
        let calls: Vec<_> = (fields.iter().enumerate())
            .map(|(number, (name, value))| {
                let mut input = serde_json::json!({});
                input[*name] = (*value).into();
                serde_json::json!({"type": "call", "id": format!("c{number}"), "tool": "Connect", "input": input})
            })
            .collect();
        rules_agent(&lab, &prints(&calls));
        lab.run(&["run", "--agent", "mine"]);
        let all = kept(&lab);
        for secret in ["kiwi-77x", "kiwi78x9a1", "kiwi79=x", "kiwi-80x", "kiwi81x9a1"] {
            assert_gone(&all, secret);
        }
        assert!(lab.tools().iter().any(|tool| tool.to_string().contains("kiwi82-stays")));
    }
);

promise!(
    /// A key that somebody gives to a command is recorded, and so it must be no secret.
    fn the_key_of_a_command_is_no_secret() {
        let lab = Lab::new();
        let (one, other) = (token(8), token(9));
        lab.run(&["new", "t"]);
        for key in [&one, &other, &one] {
            let said = lab.run(&["note", "x", "--key", key]);
            assert_eq!(said.code, Some(0), "{}", said.stderr);
        }
        assert_gone(&kept(&lab), &one);
        assert_gone(&kept(&lab), &other);
        // Doing it twice does it once, and two keys are two.
        assert_eq!(lab.journal(Some("history_noted")).len(), 2);
    }
);
