use super::*;

#[test]
fn numbers_are_unique_and_sorted() {
    let numbers: Vec<u8> = ExitCode::ALL.iter().map(|code| code.number()).collect();
    let mut sorted = numbers.clone();
    sorted.sort_unstable();
    sorted.dedup();
    assert_eq!(numbers, sorted);
}

#[test]
fn the_table_is_documentation() {
    insta::assert_snapshot!("exit_codes", ExitCode::markdown());
}
