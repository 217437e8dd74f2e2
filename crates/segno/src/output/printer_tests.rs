use std::rc::Rc;

use super::*;

#[derive(Clone, Default)]
struct Shared(Rc<RefCell<Vec<u8>>>);

impl Shared {
    fn text(&self) -> String {
        String::from_utf8(self.0.borrow().clone()).unwrap()
    }
}

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

struct Closed;

impl Write for Closed {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(io::Error::from(io::ErrorKind::BrokenPipe))
    }

    fn flush(&mut self) -> io::Result<()> {
        Err(io::Error::from(io::ErrorKind::BrokenPipe))
    }
}

fn printer(manner: Manner) -> (Printer, Shared, Shared) {
    let (out, err) = (Shared::default(), Shared::default());
    (Printer::to(Box::new(out.clone()), Box::new(err.clone()), manner), out, err)
}

#[test]
fn data_and_talk_are_apart() {
    let (printer, out, err) = printer(Manner::default());
    printer.data("data").unwrap();
    printer.talk("talk");
    printer.warn_with("careful", &["do this".into()]);
    assert_eq!(out.text(), "data\n");
    assert_eq!(err.text(), "talk\nwarning: careful\n  hint: do this\n");
}

#[test]
fn quiet_keeps_warnings_and_data() {
    let (printer, out, err) = printer(Manner { quiet: true, ..Manner::default() });
    printer.data("data").unwrap();
    printer.talk("talk");
    printer.hint("hint");
    printer.warn("careful");
    assert_eq!(out.text(), "data\n");
    assert_eq!(err.text(), "warning: careful\n");
}

#[test]
fn in_json_standard_error_is_json_too() {
    let (printer, _, err) = printer(Manner { json: true, ..Manner::default() });
    printer.talk("talk");
    printer.warn("careful");
    printer.error(&CommandError::usage("no"));
    for line in err.text().lines() {
        serde_json::from_str::<serde_json::Value>(line).unwrap();
    }
    assert_eq!(err.text().lines().count(), 2);
}

#[test]
fn a_closed_pipe_is_no_failure() {
    let printer = Printer::to(Box::new(Closed), Box::new(Closed), Manner::default());
    let error = printer.data("x").unwrap_err();
    assert!(error.is_silent());
    assert_eq!(error.exit(), crate::exit::ExitCode::Ok);
    assert!(printer.json(&1).unwrap_err().is_silent());
    printer.talk("nobody hears this");
    printer.error(&error);
}

#[test]
fn no_pager_without_a_terminal() {
    let (printer, out, _) = printer(Manner::default());
    let text = Text::from("long");
    crate::output::pager::show(&printer, &Environment::default(), "/nonexistent/pager", &text).unwrap();
    assert_eq!(out.text(), "long\n");
}

#[test]
fn lines_that_a_narrow_terminal_folds_take_more_rows() {
    let lines = [("x".to_owned(), 0), ("y".to_owned(), 80), ("z".to_owned(), 81)];
    assert_eq!((rows(&lines, 100), rows(&lines, 80), rows(&lines, 40)), (3, 4, 6));
}
