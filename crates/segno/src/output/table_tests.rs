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
