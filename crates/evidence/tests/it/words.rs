//! Questions and errors in what an agent says.

use segno_evidence::MOST_ERRORS;
use segno_evidence::asks_question;
use segno_evidence::error_lines;
use segno_evidence::failure_lines;

#[test]
fn questions() {
    for text in [
        "Should I go on with the parser?",
        "I looked at it.\n\nWould you like me to fix the tests too?",
        "Do you want the old name?",
        "Which approach do you like better?\n\n1. The first\n2. The second",
        "Which option is it?",
        "How should errors be shown?",
        "What should I do next?",
        "Shall I?",
        "Do you prefer tabs?",
        "Can you clarify the second point",
        "Could you run it once more?",
        "What do you think?",
        "Please confirm.",
        "I need clarification on the format.",
        "I am awaiting your input.",
        "Waiting for your response.",
        "Tell me your preference.",
        "Let me know which one.",
        "Should I\ngo on?",
        "Shall I go on?\n\n---RALPH_STATUS---\nSTATUS: BLOCKED\nRECOMMENDATION: ask\n---END_RALPH_STATUS---\n",
    ] {
        assert!(asks_question(text), "{text}");
    }
}

#[test]
fn no_questions() {
    for text in [
        "",
        "All done.",
        "That is what should happen.",
        "You would see that you could use it.",
        "It shows how should-clauses work.",
        "Why does it fail? Because the file is missing. I fixed it.",
        "The prompt was \"Should I go on?\" and I answered it.",
        "The code asks `Do you want it?` at the start.",
        "> Should I go on?\n\nYes, and it is done.",
        "It prints:\n\n```\nShould I go on?\n```\n\nDone.",
        "---RALPH_STATUS---\nSTATUS: COMPLETE\nRECOMMENDATION: Should I go on?\n---END_RALPH_STATUS---\n",
        "Should I do it? I did.\n\nFirst I read the file.\n\nThen I changed it.\n\nAll tests pass.",
        "awaitings inputs",
    ] {
        assert!(!asks_question(text), "{text}");
    }
}

#[test]
fn errors() {
    let text = "\
Error: no such file
all is well
  error[E0425]: cannot find function
\"is_error\": false,
{\"error\": null}
  \"errors\": 0
thread 'main' panicked at src/main.rs:3:5:
ValueError: no
java.lang.NullPointerException: null
with the exception of one
0 errors
the build failed with error 3
Unhandled exception in the worker
error handling was improved
fatal: not a git repository
[main]: error in line 3
";
    assert_eq!(
        error_lines(text),
        [
            "Error: no such file",
            "error[E0425]: cannot find function",
            "thread 'main' panicked at src/main.rs:3:5:",
            "ValueError: no",
            "java.lang.NullPointerException: null",
            "the build failed with error 3",
            "Unhandled exception in the worker",
            "fatal: not a git repository",
            "[main]: error in line 3",
        ]
    );
    assert_eq!(error_lines(&"Error: x\n".repeat(1000)).len(), MOST_ERRORS);
}

#[test]
fn what_a_failing_command_says_is_wrong_in_a_fixed_order() {
    let text = "test b ... ok\nthread 'a' (7) panicked at src/lib.rs:3:5:\nassertion failed\n  left: 1\n right: 2\n\
                FAILED tests/test_a.py::test_x - assert 1 == 2\nnothing else\n  left: 1\n";
    let lines = [
        "FAILED tests/test_a.py::test_x - assert 1 == 2",
        "left: 1",
        "right: 2",
        "thread 'a' (7) panicked at src/lib.rs:3:5:",
    ];
    assert_eq!(failure_lines(text), lines);
    assert_eq!(failure_lines("all is well\n"), [""; 0]);
}
