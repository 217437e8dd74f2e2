use rstest::rstest;

use super::*;

fn parse(text: &str) -> Result<NamedWorkflow, WorkflowError> {
    NamedWorkflow::parse("mine", None, text)
}

fn phase(rest: &str) -> String {
    format!("[[phase]]\nname = \"a\"\nprompt = \"p\"\ngate = \"until\"\n{rest}")
}

#[test]
fn those_built_in_can_be_read_and_have_their_phases() {
    let nowhere = Path::new("/nowhere");
    let found: Vec<(String, Vec<String>)> = NamedWorkflow::list(nowhere)
        .into_iter()
        .map(|(name, found)| {
            (name, found.unwrap().workflow.phases.into_iter().map(|phase| phase.name).collect())
        })
        .collect();
    let expected = [
        ("simple", vec!["WORK"]),
        ("prp", vec!["RED", "GREEN", "REFACTOR", "DOCUMENT", "QA"]),
        ("tdflow", vec!["red", "green", "refactor"]),
        ("spec", vec!["specify", "implement", "verify"]),
        (
            "go-team",
            vec![
                "init",
                "requirements",
                "architecture",
                "implementation",
                "testing",
                "review",
                "optimization",
                "release",
                "synthesis",
            ],
        ),
    ];
    let expected: Vec<(String, Vec<String>)> = expected
        .into_iter()
        .map(|(name, phases)| (name.to_owned(), phases.into_iter().map(ToOwned::to_owned).collect()))
        .collect();
    assert_eq!(found, expected);
}

#[test]
fn prp_has_the_thresholds_of_its_phases() {
    let prp = NamedWorkflow::find("prp", Path::new("/nowhere")).unwrap().workflow;
    let thresholds: Vec<(Option<u32>, Option<u32>)> =
        prp.phases.iter().map(|phase| (phase.thresholds.no_progress, phase.thresholds.same_error)).collect();
    let some = |a, b| (Some(a), Some(b));
    assert_eq!(thresholds, [some(3, 5), some(2, 3), some(5, 5), some(3, 5), some(3, 3)]);
    let qa = &prp.phases[4];
    assert!(qa.optional);
    let reject = RejectFile { to: "GREEN".to_owned(), most: 3, other_model: true };
    assert_eq!((qa.on_reject.clone(), qa.context), (Some(reject), ContextFile::Fresh));
    assert_eq!(prp.phases[1].gate, GateFile::Green { runs: 2 });
}

#[rstest]
#[case("", "mine: there is no [[phase]]")]
#[case("descripton = \"x\"\n", "mine:1: descripton is not known here; did you mean description?")]
#[case(&phase("promt = \"x\"\n"), "mine:5: promt is not known here; did you mean prompt?")]
#[case(&phase("thresholds = { no_progres = 1 }\n"), "mine:5: no_progres is not known here; did you mean no_progress?")]
#[case(&phase("context = \"frech\"\n"), "mine:5: frech is not known here; did you mean fresh?")]
#[case(&phase("context = { auto = 0 }\n"), "mine:2: context = { auto = N } needs 1 to 100 per cent")]
#[case(&phase("optional = true\n"), "mine: every phase is optional, so nothing would be done")]
#[case(&phase("on_reject = { to = \"b\" }\n"), "mine:2: on_reject.to: no phase before it is called b")]
#[case(&phase("evidence = [{ name = \"t\", command = \" \" }]\n"), "mine:2: a command is empty")]
#[case(&format!("{}{}", phase(""), phase("")), "mine:6: there are two phases called a")]
#[case(
    "[[phase]]\nname = \"a\"\nprompt = \"p\"\ngate = { green = { runs = 0 } }\n",
    "mine:2: gate = { green = { runs = N } } needs at least 1"
)]
#[case(
    "[[phase]]\nname = \"a\"\nprompt = \"p\"\ngate = { metrics = {} }\n",
    "mine:2: gate = { metrics = { … } } names no metric, and would always pass"
)]
#[case("[[phase]]\nname = \"a\"\nprompt = \"p\"\n", "mine:1: missing field `gate`")]
#[case(&phase("max_iterations = 0\n"), "mine:2: with max_iterations = 0 the loop would stop before it does anything")]
#[case(&phase("max_seconds = 0\n"), "mine:2: with max_seconds = 0 the loop would stop before it does anything")]
#[case(
    &phase("thresholds = { no_progress = 0 }\n"),
    "mine:2: no_progress = 0: a loop that gets nowhere has to stop at some time"
)]
#[case(
    &phase("thresholds = { start_failures = 0 }\n"),
    "mine:2: start_failures = 0: a loop that gets nowhere has to stop at some time"
)]
#[case(
    &phase("evidence = [{ name = \"t\", command = \"x\" }, { name = \"t\", command = \"y\" }]\n"),
    "mine: bad evidence: t is listed twice"
)]
fn what_cannot_be_is_refused_with_its_line(#[case] text: &str, #[case] expected: &str) {
    assert_eq!(parse(text).unwrap_err().to_string(), expected);
}

#[test]
fn what_a_workflow_leaves_to_others_is_known() {
    let own = parse(
        "[limits]\nagents = [\"claude\", \"codex\"]\n\
         [[phase]]\nname = \"a\"\nprompt = \"p\"\ngate = { red = {} }\nagent = \"codex\"\n\
         [[phase]]\nname = \"b\"\nprompt = \"p\"\ngate = \"signal\"\nagent = \"mine\"\non_reject = { to = \"a\" }\n\
         [[phase]]\nname = \"c\"\nprompt = \"p\"\ngate = \"qa\"\non_reject = { to = \"a\" }\n",
    )
    .unwrap();
    assert_eq!(own.agents(), ["claude", "codex", "mine"]);
    assert_eq!(own.measured_by_others(), ["a"]);
    assert_eq!(own.not_reviewed(), ["b"]);
}

#[test]
fn a_project_has_its_own_and_they_come_first() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join(PLACE);
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("mine.toml"), phase("")).unwrap();
    std::fs::write(folder.join("prp.toml"), phase("on_start = [\"make clean\"]\n")).unwrap();
    let names: Vec<String> = NamedWorkflow::list(dir.path()).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["simple", "prp", "tdflow", "spec", "go-team", "mine"]);
    let prp = NamedWorkflow::find("prp", dir.path()).unwrap();
    assert_eq!(prp.workflow.phases.len(), 1);
    let unknown = NamedWorkflow::find("mien", dir.path()).unwrap_err();
    assert_eq!(unknown.to_string(), "there is no workflow called mien; did you mean mine?");
    assert!(NamedWorkflow::find("../mine", dir.path()).is_err(), "a name is no path");
}

#[rstest]
#[case("on_start = [\"make clean\"]\n", Some("make clean"))]
#[case("on_error = [\"make report\"]\n", Some("make report"))]
#[case("evidence = [{ name = \"t\", command = \"make test\" }]\n", Some("make test"))]
#[case("", None)]
fn commands_of_a_project_that_nobody_trusts_refuse_it(#[case] rest: &str, #[case] expected: Option<&str>) {
    let path = Path::new("/p/.segno/workflows/mine.toml");
    let own = NamedWorkflow::parse("mine", Some(path), &phase(rest)).unwrap();
    assert_eq!(own.check_trust(true), Ok(()));
    let refused = match own.check_trust(false) {
        Ok(()) => None,
        Err(WorkflowError::Untrusted { command, .. }) => Some(command),
        Err(other) => panic!("{other}"),
    };
    assert_eq!(refused.as_deref(), expected);
    // One that is built in is ours.
    assert_eq!(NamedWorkflow::parse("mine", None, &phase(rest)).unwrap().check_trust(false), Ok(()));
}
