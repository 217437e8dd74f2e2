use super::*;

fn sessions() -> Table {
    let mut table = Table::new([
        Column::right("#"),
        Column::left("session"),
        Column::left("topic"),
        Column::right("tokens"),
        Column::left("next"),
    ])
    .indented(1);
    table.row(["1", "…804211", "login form", "84.2k", ""]);
    table.row(["2", "…118830", "支払い gateway", "1.2M", "segno resume 2, then look at what it did"]);
    table
}

#[test]
fn aligned_without_borders() {
    insta::assert_snapshot!(sessions().render(Palette::plain(), None), @r"
     #  session  topic           tokens  next
     1  …804211  login form       84.2k
     2  …118830  支払い gateway    1.2M  segno resume 2, then look at what it did
    ");
}

#[test]
fn the_last_column_gives_way() {
    let shown = sessions().render(Palette::plain(), Some(52));
    insta::assert_snapshot!(shown, @r"
     #  session  topic           tokens  next
     1  …804211  login form       84.2k
     2  …118830  支払い gateway    1.2M  segno resume 2…
    ");
    assert!(shown.lines().all(|line| line.width() <= 52));
}

#[test]
fn another_column_may_give_way() {
    let mut table = Table::new([Column::left("topic").elastic(), Column::right("n")]).without_titles();
    table.row(["a very long topic that nobody reads", "1"]);
    table.row(["kurz", "12"]);
    assert_eq!(table.render(Palette::plain(), Some(16)), "a very long…   1\nkurz          12\n");
}

#[test]
fn hostile_cells_stay_in_their_cell() {
    let mut table = Table::new([Column::left("a"), Column::left("b")]);
    table.row(["x\ny\u{1b}[2J", "z"]);
    assert_eq!(table.render(Palette::plain(), None), "a          b\nx\\ny\\e[2J  z\n");
}

#[test]
fn colour_does_not_change_the_widths() {
    let mut table = Table::new([Column::left("state"), Column::left("b")]);
    table.row([Text::new().painted(Meaning::Done, "ok"), Text::from("z")]);
    let coloured = table.render(Palette::new(true, true), None);
    assert!(coloured.contains("\u{1b}[32mok\u{1b}[0m     z"), "{coloured:?}");
}

#[test]
fn an_empty_table_does_not_panic() {
    assert_eq!(Table::new([]).render(Palette::plain(), Some(0)), "\n");
}

fn listed() -> Table {
    let mut table = Table::new([
        Column::right("#"),
        Column::left("session"),
        Column::left("topic").elastic(),
        Column::left("phase").goes(3),
        Column::left("status").shortens_to(20),
        Column::right("progress").goes(1),
        Column::right("age").goes(5),
        Column::right("tokens").goes(4),
        Column::right("cost").goes(2),
    ])
    .indented(1);
    let crash = "lost: crash, segno run claude (pid 4211 on shipyard); its agent lives on";
    table.row([
        "1",
        "…804211",
        "a login form with a second factor",
        "green 2/3",
        crash,
        "40 %",
        "2 m",
        "84.2k",
        "-",
    ]);
    table.row(["2", "…118830", "boats", "-", "done", "-", "3 d", "1.2M of 2.0M", "-"]);
    table
}

#[test]
fn a_table_fits_whatever_the_width_is() {
    for width in 20..240 {
        let shown = listed().render(Palette::plain(), Some(width));
        assert!(shown.lines().all(|line| line.width() <= width), "{width}:\n{shown}");
        assert_eq!(shown.lines().count(), 3, "{width}:\n{shown}");
    }
    let (piped, wide) =
        (listed().render(Palette::plain(), None), listed().render(Palette::plain(), Some(200)));
    assert_eq!(piped, wide);
    assert!(piped.contains("its agent lives on"), "{piped}");
}

#[test]
fn what_matters_less_is_left_out_first() {
    let titles = |width| {
        let shown = listed().render(Palette::plain(), Some(width));
        shown.lines().next().unwrap().split_whitespace().map(ToOwned::to_owned).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(titles(200), "# session topic phase status progress age tokens cost");
    assert_eq!(titles(100), "# session topic phase status progress age tokens");
    assert_eq!(titles(80), "# session topic status age tokens");
    assert_eq!(titles(60), "# session topic status age");
}

#[test]
fn without_columns_that_may_go_the_widest_is_cut() {
    let mut table = Table::new([Column::left("key"), Column::left("value"), Column::left("origin")]);
    table.row(["store.busy_timeout_ms", "a value that goes on and on and on and on and on", "default"]);
    let shown = table.render(Palette::plain(), Some(40));
    assert!(shown.lines().all(|line| line.width() <= 40), "{shown}");
}
