//! Many clients at once.

use std::time::Instant;

use segno_testkit::model::End;
use segno_testkit::model::Model;
use segno_testkit::model::Op;
use segno_testkit::model::Script;
use segno_testkit::model::Then;
use segno_testkit::model::Turn;

use crate::client::Client;
use crate::client::messages;
use crate::client::responses;

#[test]
fn sixty_four_clients_with_ten_requests_each() {
    let turn = Turn::ops([Op::Text("thinking about it".to_owned()), Op::sh("ls"), Op::Fill(2000)]);
    let model = Model::start(Script::new([turn]).then(Then::Repeat)).unwrap();
    let begin = Instant::now();
    std::thread::scope(|scope| {
        for number in 0..64 {
            let model = &model;
            scope.spawn(move || {
                let mut client = Client::new(model);
                for round in 0..10 {
                    let stream = round % 3 != 0;
                    let answer = if number % 2 == 0 {
                        client.post("/v1/messages", &messages("go", &["Bash"], stream))
                    } else {
                        client.post("/v1/responses", &responses("go", &["exec_command"], stream))
                    };
                    assert!(answer.status == 200 && !answer.cut, "client {number} round {round}");
                }
            });
        }
    });
    println!("640 requests in {:?}", begin.elapsed());
    let requests = model.requests();
    assert_eq!(requests.len(), 640);
    assert!(requests.iter().all(|request| request.end == End::Done));
    assert!(requests.iter().enumerate().all(|(at, request)| request.number == at + 1));
}
