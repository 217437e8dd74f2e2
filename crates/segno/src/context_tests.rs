use std::time::Duration;

use segno_engine::StoreLocation;

use super::*;
use crate::exit::ExitCode;

const NOW: i64 = 1_700_000_000;

/// A context in an empty home, with these variables.
fn context(variables: &[(&str, &str)], global: GlobalArgs) -> (tempfile::TempDir, Context) {
    let temp = tempfile::tempdir().unwrap();
    let at = |name: &str| temp.path().join(name);
    let paths = Paths {
        home: at("home"),
        config: at("config.toml"),
        config_named: false,
        data: at("data"),
        state: at("state"),
    };
    let now = Timestamp::from_second(NOW).unwrap();
    let context = Context::new(global, Environment::of(variables), paths, temp.path(), now).unwrap();
    (temp, context)
}

fn reference(text: &str) -> SessionRef {
    text.parse().unwrap()
}

#[test]
fn the_session_is_the_nearest_one_named() {
    let global = GlobalArgs { session: Some(reference("flag")), ..GlobalArgs::default() };
    let (_temp, with_flag) = context(&[("SEGNO_SESSION", "variable")], global);
    let named = reference("argument");
    assert_eq!(with_flag.session(Some(&named)).unwrap(), Some(named));
    assert_eq!(with_flag.session(None).unwrap(), Some(reference("flag")));
    let (_temp, without) = context(&[("SEGNO_SESSION", "variable")], GlobalArgs::default());
    assert_eq!(without.session(None).unwrap(), Some(reference("variable")));
    let (_temp, nothing) = context(&[("SEGNO_SESSION", "")], GlobalArgs::default());
    assert_eq!(nothing.session(None).unwrap(), None);
}

#[test]
fn a_session_in_the_environment_is_checked_too() {
    let (_temp, context) = context(&[("SEGNO_SESSION", "../x")], GlobalArgs::default());
    assert_eq!(context.session(None).unwrap_err().exit(), ExitCode::Config);
}

const RUN: &str = "0192f0c4a1b27c3d8e4f5a6b7c8d9e0f";

#[test]
fn commands_under_an_agent_know_their_run() {
    let (_temp, free) = context(&[], GlobalArgs::default());
    assert_eq!(free.under_run().unwrap(), None);
    let (_temp, bound) = context(&[("SEGNO_RUN", RUN), ("SEGNO_EPOCH", "7")], GlobalArgs::default());
    assert_eq!(
        bound.under_run().unwrap(),
        Some(UnderRun { run: RUN.parse().unwrap(), epoch: Some(7), session: None })
    );
    let (_temp, wrong) = context(&[("SEGNO_RUN", RUN), ("SEGNO_EPOCH", "x")], GlobalArgs::default());
    assert!(wrong.under_run().is_err());
    let (_temp, wrong) = context(&[("SEGNO_RUN", "../x")], GlobalArgs::default());
    assert_eq!(wrong.under_run().unwrap_err().exit(), ExitCode::Config);
}

#[test]
fn the_store_is_in_the_data_directory_unless_said_otherwise() {
    let (temp, context_) = context(&[], GlobalArgs::default());
    assert_eq!(context_.store_location().unwrap(), StoreLocation::File(temp.path().join("data/segno.db")));
    let global = GlobalArgs { store: Some("sqlite:/flag".into()), ..GlobalArgs::default() };
    let (_temp, flagged) = context(&[("SEGNO_STORE", "sqlite:/variable")], global);
    assert_eq!(flagged.store_location().unwrap(), StoreLocation::File("/flag".into()));
}

#[test]
fn times_follow_the_setting() {
    let then = Timestamp::from_second(NOW).unwrap() - Duration::from_secs(7200);
    let (_temp, relative) = context(&[], GlobalArgs::default());
    assert_eq!(relative.time(then), "2h ago");
    assert_eq!(relative.time(relative.now), "now");
    let (_temp, iso) = context(&[("SEGNO_UI_TIME", "iso")], GlobalArgs::default());
    assert_eq!(iso.time(then), "2023-11-14T20:13:20Z");
}

#[test]
fn a_wrong_setting_is_an_error_only_for_those_who_need_settings() {
    let (_temp, context) = context(&[("SEGNO_LS_LIMIT", "many")], GlobalArgs::default());
    assert_eq!(context.config().unwrap_err().exit(), ExitCode::Config);
    assert_eq!(context.time(context.now), "now");
}
