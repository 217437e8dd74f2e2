//! Pictures of numbers: made here, so that they need no script, and with a table of the same numbers for whoever cannot see them.

/// A picture.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Chart {
    /// What it shows.
    pub(super) title: String,
    /// The same in a sentence.
    pub(super) words: String,
    pub(super) width: u32,
    pub(super) height: u32,
    pub(super) bars: Vec<Bar>,
    pub(super) lines: Vec<Path>,
    pub(super) labels: Vec<Label>,
    pub(super) points: Vec<Spot>,
    /// The numbers: a heading, and rows.
    pub(super) heads: Vec<String>,
    pub(super) rows: Vec<Vec<String>>,
}

/// A rectangle.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Bar {
    pub(super) x: String,
    pub(super) y: String,
    pub(super) w: String,
    pub(super) h: String,
    pub(super) class: &'static str,
    pub(super) title: String,
}

/// A line.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Path {
    pub(super) d: String,
    pub(super) class: &'static str,
}

/// A word.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Label {
    pub(super) x: String,
    pub(super) y: String,
    pub(super) anchor: &'static str,
    pub(super) text: String,
}

/// A place to look at, and to go to.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Spot {
    pub(super) x: String,
    pub(super) y: String,
    pub(super) class: &'static str,
    pub(super) title: String,
    pub(super) href: String,
}

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 180.0;
const LEFT: f64 = 56.0;
const RIGHT: f64 = 12.0;
const TOP: f64 = 10.0;
const BOTTOM: f64 = 24.0;

fn n(number: f64) -> String {
    format!("{number:.1}")
}

/// The next number above that is 1, 2 or 5 and zeros.
fn nice(most: f64) -> f64 {
    if most <= 0.0 || !most.is_finite() {
        return 1.0;
    }
    let ten = 10_f64.powf(most.log10().floor());
    [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .map(|step| step * ten)
        .find(|step| *step >= most * 0.999)
        .unwrap_or(most)
}

/// The same for things that are counted: half of it is a whole number too.
fn nice_count(most: u64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "a picture")]
    let top = nice(most as f64);
    if top < 10.0 && top % 2.0 != 0.0 { top + 1.0 } else { top }
}

impl Chart {
    fn new(title: &str, words: String) -> Self {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "both are small constants"
        )]
        let (width, height) = (WIDTH as u32, HEIGHT as u32);
        Self { title: title.to_owned(), words, width, height, ..Self::default() }
    }

    fn axis(&mut self, top: f64, said: impl Fn(f64) -> String) {
        for part in [0.0, 0.5, 1.0] {
            let y = TOP + (HEIGHT - TOP - BOTTOM) * (1.0 - part);
            self.lines.push(Path { d: format!("M{} {}H{}", n(LEFT), n(y), n(WIDTH - RIGHT)), class: "grid" });
            self.label(LEFT - 6.0, y + 4.0, "end", said(top * part));
        }
    }

    fn label(&mut self, x: f64, y: f64, anchor: &'static str, text: String) {
        self.labels.push(Label { x: n(x), y: n(y), anchor, text });
    }
}

/// A value over time: steps, with a line for what is allowed.
pub(super) fn steps(
    title: &str,
    points: &[(i64, u64)],
    limit: Option<u64>,
    said: impl Fn(u64) -> String,
    when: impl Fn(i64) -> String,
) -> Option<Chart> {
    let ((first, _), (last, end)) = (points.first()?, points.last()?);
    let words = format!("{} at the end.", said(*end));
    let mut chart = Chart::new(title, words);
    // A limit that is far away would press the line flat: it is said in words then.
    let most = points.iter().map(|(_, value)| *value).max().unwrap_or(0);
    let near = limit.filter(|limit| *limit <= most.saturating_mul(4));
    #[expect(clippy::cast_precision_loss, reason = "a picture")]
    let float = |value: u64| value as f64;
    #[expect(clippy::cast_precision_loss, reason = "a picture")]
    let span = (last - first).max(1) as f64;
    let top = nice_count(most.max(near.unwrap_or(0)));
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an axis of whole numbers")]
    chart.axis(top, |value| said(value as u64));
    let (wide, high) = (WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM);
    #[expect(clippy::cast_precision_loss, reason = "a picture")]
    let x = |at: i64| LEFT + wide * ((at - first) as f64 / span);
    let y = |value: u64| TOP + high * (1.0 - float(value) / top);
    let mut d = format!("M{} {}", n(x(*first)), n(y(0)));
    for (at, value) in points {
        d.push_str(&format!("H{}V{}", n(x(*at)), n(y(*value))));
    }
    d.push_str(&format!("H{}", n(LEFT + wide)));
    chart.lines.push(Path { d: format!("{d}V{}H{}Z", n(y(0)), n(LEFT)), class: "area" });
    chart.lines.push(Path { d, class: "line" });
    if let Some(limit) = near {
        let d = format!("M{} {}H{}", n(LEFT), n(y(limit)), n(WIDTH - RIGHT));
        chart.lines.push(Path { d, class: "limit" });
        // Above the line, unless that is the edge.
        let beside = if y(limit) < TOP + 12.0 { 14.0 } else { -4.0 };
        chart.label(WIDTH - RIGHT, y(limit) + beside, "end", format!("allowed {}", said(limit)));
    }
    chart.label(LEFT, HEIGHT - 6.0, "start", when(*first));
    chart.label(WIDTH - RIGHT, HEIGHT - 6.0, "end", when(*last));
    chart.heads = vec!["when".to_owned(), title.to_owned()];
    let step = points.len().div_ceil(40).max(1);
    let rows = points.iter().enumerate().filter(|(at, _)| at % step == 0 || *at + 1 == points.len());
    chart.rows = rows.map(|(_, (at, value))| vec![when(*at), said(*value)]).collect();
    Some(chart)
}

/// One thing in a row of bars: its name, and values that stand on each other with their classes.
pub(super) struct Column {
    pub(super) name: String,
    pub(super) parts: Vec<(u64, &'static str, String)>,
}

/// Bars beside each other.
pub(super) fn bars(
    title: &str,
    words: String,
    heads: &[&str],
    columns: &[Column],
    said: impl Fn(u64) -> String,
) -> Option<Chart> {
    if columns.is_empty() {
        return None;
    }
    let mut chart = Chart::new(title, words);
    #[expect(clippy::cast_precision_loss, reason = "a picture")]
    let float = |value: u64| value as f64;
    let sum = |column: &Column| column.parts.iter().map(|(value, ..)| *value).sum::<u64>();
    let top = nice_count(columns.iter().map(sum).max().unwrap_or(0));
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an axis of whole numbers")]
    chart.axis(top, |value| said(value as u64));
    #[expect(clippy::cast_precision_loss, reason = "a picture")]
    let slot = (WIDTH - LEFT - RIGHT) / columns.len() as f64;
    let wide = (slot * 0.7).min(48.0);
    let every = columns.len().div_ceil(10);
    let mut x = LEFT;
    for (index, column) in columns.iter().enumerate() {
        let mut y = HEIGHT - BOTTOM;
        for (value, class, title) in &column.parts {
            let h = (HEIGHT - TOP - BOTTOM) * float(*value) / top;
            y -= h;
            let title = format!("{}: {title}", column.name);
            let left = x + (slot - wide) / 2.0;
            chart.bars.push(Bar { x: n(left), y: n(y), w: n(wide), h: n(h), class, title });
        }
        if index % every == 0 {
            chart.label(x + slot / 2.0, HEIGHT - 6.0, "middle", column.name.clone());
        }
        x += slot;
    }
    chart.heads = heads.iter().map(|head| (*head).to_owned()).collect();
    let row = |column: &Column| {
        let parts = column.parts.iter().map(|(.., said)| said.clone());
        std::iter::once(column.name.clone()).chain(parts).collect()
    };
    chart.rows = columns.iter().map(row).collect();
    Some(chart)
}

/// A line with places to hover over and to go to.
pub(super) fn line(
    title: &str,
    words: String,
    spots: &[(i64, &'static str, String, String)],
) -> Option<Chart> {
    let (first, last) = (spots.first()?.0, spots.last()?.0);
    let mut chart = Chart::new(title, words);
    chart.height = 48;
    let wide = WIDTH - 24.0;
    chart.lines.push(Path { d: format!("M12 24H{}", n(WIDTH - 12.0)), class: "grid" });
    #[expect(clippy::cast_precision_loss, reason = "a picture")]
    let (span, gap) = ((last - first).max(1) as f64, wide / (spots.len().max(2) - 1) as f64);
    for (index, (at, class, title, href)) in spots.iter().enumerate() {
        // Half by time and half in order: what came in a burst can still be told apart.
        #[expect(clippy::cast_precision_loss, reason = "a picture")]
        let by_time = wide * ((at - first) as f64 / span);
        #[expect(clippy::cast_precision_loss, reason = "a picture")]
        let by_order = gap * index as f64;
        let x = n(12.0 + f64::midpoint(by_time, by_order));
        chart.points.push(Spot { x, y: n(24.0), class, title: title.clone(), href: href.clone() });
    }
    Some(chart)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_become_pictures_and_tables() {
        assert_eq!([0.0, 0.7, 1.0, 3.0, 42.0, 1_234.0].map(nice), [1.0, 1.0, 1.0, 5.0, 50.0, 2_000.0]);
        let said = |value: u64| value.to_string();
        assert_eq!([0, 1, 2, 3, 4, 9, 42].map(nice_count), [2.0, 2.0, 2.0, 6.0, 6.0, 10.0, 50.0]);
        assert_eq!(steps("money", &[], None, said, |at| at.to_string()), None);
        let chart = steps("money", &[(0, 1), (10, 4)], Some(5), said, |at| at.to_string());
        let chart = chart.unwrap_or_default();
        assert_eq!(chart.rows, [["0", "1"], ["10", "4"]]);
        assert_eq!(chart.lines.iter().filter(|line| line.class == "limit").count(), 1);
        let far =
            steps("money", &[(0, 1), (10, 4)], Some(500), said, |at| at.to_string()).unwrap_or_default();
        assert_eq!(far.lines.iter().filter(|line| line.class == "limit").count(), 0);
        let column =
            |name: &str| Column { name: name.to_owned(), parts: vec![(3, "good", "3 pass".to_owned())] };
        let chart = bars("tests", String::new(), &["turn", "pass"], &[column("1"), column("2")], said);
        let chart = chart.unwrap_or_default();
        assert_eq!(chart.bars.len(), 2);
        // What stands at a line of the grid is what that line means.
        let axis: Vec<&str> =
            chart.labels.iter().filter(|it| it.anchor == "end").map(|it| it.text.as_str()).collect();
        assert_eq!(axis, ["0", "3", "6"]);
    }
}
