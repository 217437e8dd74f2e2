use std::io::BufRead;
use std::io::BufReader;
use std::io::Read as _;
use std::io::Write as _;
use std::net::TcpListener;
use std::sync::Mutex;

use rstest::rstest;

use super::*;

fn at(seconds: i64) -> Timestamp {
    "2026-01-16T10:00:00Z".parse::<Timestamp>().unwrap().plus_seconds(seconds)
}

fn message(occasion: Occasion, seconds: i64) -> Message {
    let session = SessionId::at(at(0));
    Message {
        occasion,
        session,
        topic: "boats".to_owned(),
        text: "the sail is\nset".to_owned(),
        at: at(seconds),
    }
}

fn redactor() -> Redactor {
    Redactor::new(segno_redact::Options::default())
}

fn environment() -> Vec<(OsString, OsString)> {
    vec![("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into())]
}

/// A server that takes one request and answers it; gives back the head and the body.
fn server(answer: &'static str) -> (String, std::thread::JoinHandle<(String, String)>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/hook?x=1", listener.local_addr().unwrap());
    let heard = std::thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let (mut head, mut length) = (String::new(), 0);
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).unwrap();
            if line == "\r\n" {
                break;
            }
            if let Some(value) = line.strip_prefix("Content-Length: ") {
                length = value.trim().parse().unwrap();
            }
            head.push_str(&line);
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        (&stream).write_all(answer.as_bytes()).unwrap();
        (head, String::from_utf8(body).unwrap())
    });
    (url, heard)
}

/// Keeps what is heard.
#[derive(Default)]
struct Heard(Mutex<Vec<LoopNews>>);

impl LoopListener for Heard {
    fn hear(&self, news: &LoopNews) {
        self.0.lock().unwrap().push(news.clone());
    }
}

impl Heard {
    fn problems(&self) -> Vec<String> {
        let all = self.0.lock().unwrap();
        let problem = |news: &LoopNews| match news {
            LoopNews::Problem(text) => Some(text.clone()),
            _ => None,
        };
        all.iter().filter_map(problem).collect()
    }

    fn notices(&self) -> Vec<Message> {
        let all = self.0.lock().unwrap();
        let notice = |news: &LoopNews| match news {
            LoopNews::Notice(message) => Some(message.clone()),
            _ => None,
        };
        all.iter().filter_map(notice).collect()
    }
}

fn tell(recipients: Recipients, message: &Message) -> Vec<String> {
    tell_with(recipients, &environment(), Path::new("/"), std::slice::from_ref(message)).problems()
}

/// Tells one after the other, and waits until all are told.
fn tell_with(
    recipients: Recipients,
    environment: &[(OsString, OsString)],
    directory: &Path,
    messages: &[Message],
) -> Heard {
    let heard = Heard::default();
    let post = Post::new(recipients, environment, directory, Arc::new(redactor()));
    std::thread::scope(|scope| {
        let mut notifier = Notifier::new(scope, &post, &heard);
        messages.iter().for_each(|message| notifier.tell(message));
    });
    heard
}

#[rstest]
// The test cases 1, 2 and 6 of RFC 4231.
#[case(&[0x0b; 20], b"Hi There", "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7")]
#[case(
    b"Jefe",
    b"what do ya want for nothing?",
    "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
)]
#[case(&[0xaa; 131], b"Test Using Larger Than Block-Size Key - Hash Key First", "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54")]
fn signatures(#[case] key: &[u8], #[case] body: &[u8], #[case] expected: &str) {
    assert_eq!(signature(key, body), expected);
}

#[test]
fn a_webhook_gets_a_signed_message_without_secrets() {
    let (url, heard) = server("HTTP/1.1 204 No Content\r\n\r\n");
    let webhook = Webhook { url: url.clone(), secret: Some("key".to_owned()) };
    let secret = "ghp_a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8";
    let said = Message { text: format!("token {secret}\nis used up"), ..message(Occasion::Limit, 0) };
    assert_eq!(tell(Recipients { webhook: Some(webhook), ..Recipients::default() }, &said), [] as [&str; 0]);
    let (head, body) = heard.join().unwrap();
    assert!(head.starts_with("POST /hook?x=1 HTTP/1.1\r\n"), "{head}");
    assert!(head.contains(&format!("X-Segno-Signature: sha256={}\r\n", signature(b"key", body.as_bytes()))));
    let body: serde_json::Value = serde_json::from_str(&body).unwrap();
    assert_eq!((&body["what"], &body["topic"]), (&json!("limit"), &json!("boats")));
    let text = body["text"].as_str().unwrap();
    assert!(text.starts_with("token ") && text.ends_with(" is used up") && !text.contains(secret), "{text}");
}

#[rstest]
#[case("HTTP/1.1 500 Oh\r\n\r\n", "the webhook: it answered with status 500")]
#[case("SSH-2.0-thing\r\n\r\n", "the webhook: it did not answer in HTTP")]
fn an_answer_that_is_no_yes_is_told(#[case] answer: &'static str, #[case] expected: &str) {
    let (url, heard) = server(answer);
    let webhook = Some(Webhook { url, secret: None });
    assert_eq!(
        tell(Recipients { webhook, ..Recipients::default() }, &message(Occasion::Done, 0)),
        [expected]
    );
    let (head, _) = heard.join().unwrap();
    assert!(!head.contains("Signature"));
}

#[rstest]
#[case("ftp://x/", "the webhook: its address has to begin with http:// or https://")]
#[case("http://a b/", "the webhook: its address has characters that no address has")]
#[case("http://u:p@127.0.0.1/", "the webhook: its address must not hold a name and a password")]
fn an_address_that_cannot_be_is_told(#[case] url: &str, #[case] expected: &str) {
    let webhook = Some(Webhook { url: url.to_owned(), secret: None });
    assert_eq!(
        tell(Recipients { webhook, ..Recipients::default() }, &message(Occasion::Done, 0)),
        [expected]
    );
}

#[test]
fn https_without_curl_says_what_it_needs() {
    let webhook = Some(Webhook { url: "https://127.0.0.1:1/".to_owned(), secret: None });
    let recipients = Recipients { webhook, ..Recipients::default() };
    let nothing = [("PATH".into(), "/nowhere".into())];
    let told = tell_with(recipients, &nothing, Path::new("/"), &[message(Occasion::Done, 0)]).problems();
    let why = "the webhook: an https:// address needs curl, which is not installed; http:// works without it";
    assert_eq!(told, [why]);
}

#[test]
fn a_command_gets_the_message_in_variables() {
    let dir = tempfile::tempdir().unwrap();
    let command = "echo \"$NOTICE_WHAT $NOTICE_TOPIC: $NOTICE_TEXT\" > told; exit 4".to_owned();
    let recipients = Recipients { command: Some(command), ..Recipients::default() };
    let asks = [message(Occasion::Question, 0)];
    let problems = tell_with(recipients, &environment(), dir.path(), &asks).problems();
    assert_eq!(problems, ["the command that tells somebody: exit 4"]);
    let told = std::fs::read_to_string(dir.path().join("told")).unwrap();
    assert_eq!(told, "question boats: the sail is set\n");
}

#[test]
fn nobody_is_told_too_often() {
    let told = |messages: &[Message]| {
        tell_with(Recipients::default(), &[], Path::new("/"), messages).notices().len()
    };
    let limits = |seconds: &[i64]| -> Vec<Message> {
        seconds.iter().map(|second| message(Occasion::Limit, *second)).collect()
    };
    assert_eq!(told(&limits(&[0, 59])), 1, "the same within a minute");
    assert_eq!(told(&[limits(&[0]), vec![message(Occasion::Done, 59)], limits(&[60])].concat()), 3);
    let each_minute: Vec<i64> = (0..40).map(|minute| minute * 60).collect();
    assert_eq!(told(&limits(&each_minute)), 40, "one a minute is never too much");
    let kinds = [Occasion::Done, Occasion::Halted, Occasion::Waiting, Occasion::Crash];
    let four_a_minute: Vec<Message> =
        (0..25).flat_map(|minute| kinds.map(|kind| message(kind, minute * 60))).collect();
    assert_eq!(told(&four_a_minute), 60, "twenty in ten minutes, then when the first are ten minutes old");
}

/// A receiver that takes a connection and never answers, until it is told to.
fn silent_server() -> (String, std::sync::mpsc::Sender<()>, std::thread::JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let (answer, asked) = std::sync::mpsc::channel();
    let waits = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        asked.recv().unwrap();
        stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").unwrap();
    });
    (url, answer, waits)
}

#[test]
fn who_does_not_answer_holds_up_nobody_who_tells_or_is_told() {
    let (url, answer, waits) = silent_server();
    let dir = tempfile::tempdir().unwrap();
    let recipients = Recipients {
        webhook: Some(Webhook { url, secret: None }),
        command: Some("echo \"$NOTICE_WHAT\" > told".to_owned()),
        ..Recipients::default()
    };
    let (heard, environment) = (Heard::default(), environment());
    let post = Post::new(recipients, &environment, dir.path(), Arc::new(redactor()));
    std::thread::scope(|scope| {
        let mut notifier = Notifier::new(scope, &post, &heard);
        notifier.tell(&message(Occasion::Limit, 0));
        assert_eq!(heard.notices().len(), 1, "whoever watches has heard it");
        // The command has told it although the receiver has not answered, and its process is gone.
        notifier.settle();
        assert_eq!(std::fs::read_to_string(dir.path().join("told")).unwrap(), "limit\n");
        answer.send(()).unwrap();
    });
    waits.join().unwrap();
    assert_eq!(heard.problems(), [] as [&str; 0]);
}

#[test]
fn what_is_told_at_the_terminal_has_no_secrets_and_no_control_characters() {
    let secret = "ghp_a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8";
    let said = Message { text: format!("token {secret}\x1b]0;x\x07"), ..message(Occasion::Done, 0) };
    let heard = tell_with(Recipients::default(), &[], Path::new("/"), &[said]);
    let notices = heard.notices();
    let [notice] = notices.as_slice() else { panic!("{notices:?}") };
    assert!(!notice.text.contains(secret) && !notice.text.contains(char::is_control), "{notice:?}");
    assert_eq!(notice.title(), "segno: boats done");
}
