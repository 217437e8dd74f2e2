use proptest::prelude::*;
use rstest::rstest;

use super::*;

#[rstest]
#[case(0, "0")]
#[case(999, "999")]
#[case(1000, "1.0k")]
#[case(12_400, "12.4k")]
#[case(84_249, "84.2k")]
#[case(999_949, "999.9k")]
#[case(999_950, "1.0M")]
#[case(1_200_000, "1.2M")]
#[case(u64::MAX, "18446744.1T")]
fn counts(#[case] n: u64, #[case] shown: &str) {
    assert_eq!(count(n), shown);
}

#[test]
fn with_units() {
    assert_eq!(tokens(12_400), "12.4k tok");
    assert_eq!(bytes(512), "512 B");
    assert_eq!(bytes(4_100), "4.1 kB");
    assert_eq!(percent(2, 3), "66 %");
    assert_eq!(percent(0, 0), "0 %");
}

#[rstest]
#[case(0, "$0.00")]
#[case(420_000, "$0.42")]
#[case(4_200, "$0.0042")]
#[case(10_000, "$0.01")]
#[case(9_999, "$0.009999")]
#[case(12_000, "$0.012")]
#[case(12_345, "$0.012")]
#[case(19_999, "$0.02")]
#[case(99_400, "$0.099")]
#[case(99_900, "$0.10")]
#[case(123_000, "$0.12")]
#[case(9_800_000, "$9.80")]
#[case(1_999_999, "$2.00")]
fn money(#[case] micros: u64, #[case] shown: &str) {
    assert_eq!(dollars(micros), shown);
}

#[rstest]
#[case(18, "18 ms")]
#[case(6_200, "6.2 s")]
#[case(41_900, "41 s")]
#[case(192_000, "3m 12s")]
#[case(7_500_000, "2h 05m")]
#[case(273_600_000, "3d 04h")]
fn durations(#[case] millis: u64, #[case] shown: &str) {
    assert_eq!(duration(Duration::from_millis(millis)), shown);
}

#[rstest]
#[case(0, "now")]
#[case(12, "12s")]
#[case(120, "2m")]
#[case(3 * HOUR + 59 * MINUTE, "3h")]
#[case(DAY, "1d")]
#[case(29 * DAY, "29d")]
#[case(45 * DAY, "6w")]
#[case(800 * DAY, "2y")]
fn ages(#[case] seconds: u64, #[case] shown: &str) {
    assert_eq!(age(Duration::from_secs(seconds)), shown);
}

#[rstest]
#[case("7d", Some(7 * DAY))]
#[case("15m", Some(900))]
#[case("15min", Some(900))]
#[case("2w", Some(2 * WEEK))]
#[case("7", None)]
#[case("d", None)]
#[case("-1d", None)]
#[case("99999999999999999999d", None)]
#[case("9999999999999999999w", None)]
fn typed_ages(#[case] text: &str, #[case] seconds: Option<u64>) {
    assert_eq!(parse_age(text).ok(), seconds.map(Duration::from_secs));
}

#[rstest]
#[case("0.42", Some(420_000))]
#[case("$12", Some(12_000_000))]
#[case(".5", Some(500_000))]
#[case("0.000001", Some(1))]
#[case("0.0000001", None)]
#[case("1.", None)]
#[case("", None)]
#[case("-1", None)]
#[case("1e3", None)]
#[case("99999999999999999999", None)]
fn typed_money(#[case] text: &str, #[case] micros: Option<u64>) {
    assert_eq!(parse_dollars(text).ok(), micros);
}

#[rstest]
#[case("5000", Some(5000))]
#[case("100_000", Some(100_000))]
#[case("50k", Some(50_000))]
#[case("1.5M", Some(1_500_000))]
#[case("1.2345k", None)]
#[case("1.5", None)]
#[case("k", None)]
#[case("-5", None)]
fn typed_counts(#[case] text: &str, #[case] n: Option<u64>) {
    assert_eq!(parse_count(text).ok(), n);
}

proptest! {
    #[test]
    fn nothing_panics(n in any::<u64>(), text in "\\PC{0,12}") {
        let _ = (count(n), bytes(n), dollars(n), duration(Duration::from_millis(n)), age(Duration::from_secs(n)));
        let _ = (parse_age(&text), parse_dollars(&text), parse_count(&text));
    }
}
