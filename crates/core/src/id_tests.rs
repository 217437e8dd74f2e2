use super::*;

#[test]
fn session_id_reads_what_it_prints() {
    let text = "session_20261115_143512_804211";
    let id: SessionId = text.parse().unwrap();
    assert_eq!(id.to_string(), text);
    assert_eq!(id.next().to_string(), "session_20261115_143512_804212");
}

#[test]
fn next_carries_over_the_second() {
    let id: SessionId = "session_20261231_235959_999999".parse().unwrap();
    assert_eq!(id.next().to_string(), "session_20270101_000000_000000");
}

#[test]
fn dangerous_ids_are_refused() {
    let long = "9".repeat(10_000);
    let cases = [
        "",
        "..",
        "a/b",
        "session_../../../../etc/passwd_x",
        "session_20261115_143512_80421\0",
        "session_20261115_143512_80421",
        "session_20261315_143512_804211",
        "session_20261115_243512_804211",
        "session_20261115_143512_-04211",
        "session_20261115_143512_８",
        &long,
    ];
    for case in cases {
        assert!(case.parse::<SessionId>().is_err(), "{case:.40}");
        assert!(case.parse::<CheckpointId>().is_err(), "{case:.40}");
        assert!(case.parse::<Uid>().is_err(), "{case:.40}");
        assert!(case.parse::<RunId>().is_err(), "{case:.40}");
        assert!(case.parse::<StoreId>().is_err(), "{case:.40}");
    }
}

#[test]
fn event_keys_are_short_and_plain() {
    assert!("run-1@4096".parse::<EventKey>().is_ok());
    for bad in ["", "a b", "a\n", "ü", &"k".repeat(201)] {
        assert!(bad.parse::<EventKey>().is_err());
    }
    let key: EventKey = "k".parse().unwrap();
    assert_eq!(key.part(0).as_str(), "k");
    assert_eq!(key.part(2).as_str(), "k/2");
}

#[test]
fn checkpoint_ids_are_made_safe() {
    assert_eq!(CheckpointId::new(3, "After the Big ../../ change!").as_str(), "cp-03-after-the-big-change");
    assert_eq!(CheckpointId::new(120, "").as_str(), "cp-120");
    for ordinal in [1, 99, 100, 12_345] {
        let id = CheckpointId::new(ordinal, "x y");
        assert_eq!(id.as_str().parse::<CheckpointId>().unwrap(), id);
    }
}

#[test]
fn parts_of_a_long_key_read_back_and_differ() {
    let long: EventKey = "k".repeat(EventKey::MAX_LEN).parse().unwrap();
    let other: EventKey = format!("x{}", "k".repeat(EventKey::MAX_LEN - 1)).parse().unwrap();
    let parts: Vec<EventKey> = (0..1_002).flat_map(|n| [long.part(n), other.part(n)]).collect();
    for part in &parts {
        assert_eq!(part.as_str().parse::<EventKey>().as_ref(), Ok(part));
    }
    let different: std::collections::BTreeSet<_> = parts.iter().collect();
    assert_eq!(different.len(), parts.len());
}

#[test]
fn run_ids_are_hexadecimal_digits_and_nothing_else() {
    let run = RunId::new(uuid::Uuid::from_u128(0xab));
    assert_eq!(run.as_str(), "000000000000000000000000000000ab");
    assert_eq!(run.short(), "0000000000ab");
    assert_eq!(run.as_str().parse::<RunId>(), Ok(run));
    for bad in ["", "ab", "/p/evil", "..", &"A".repeat(32), &"g".repeat(32), &"a".repeat(33), &"ä".repeat(16)]
    {
        assert!(bad.parse::<RunId>().is_err(), "{bad}");
    }
}

#[test]
fn keys_of_users_have_a_namespace_of_their_own() {
    let key = |text: &str| text.parse::<UserKey>().unwrap().event_key();
    assert_eq!(key("deploy-42").as_str(), "user:deploy-42");
    assert_ne!(key("job/1"), key("job").part(1));
    assert_ne!(key("job%2F1"), key("job/1"));
    for ours in ["run-00ff@end", "hook-00ff-PreToolUse-1"] {
        assert_ne!(key(ours).as_str(), ours);
        assert_eq!(ours.parse::<UserKey>().unwrap().former().as_str(), ours);
    }
    let long: Vec<EventKey> =
        ["a", "b"].map(|end| key(&format!("{}{end}", "/".repeat(199)))).into_iter().collect();
    assert_ne!(long[0], long[1]);
    for key in &long {
        assert!(key.as_str().starts_with("user:"));
        assert_eq!(key.as_str().parse::<EventKey>().as_ref(), Ok(key));
        assert_ne!(key.part(1), *key);
    }
    assert!("".parse::<UserKey>().is_err());
}
