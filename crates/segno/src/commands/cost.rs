//! `segno cost`: what sessions cost.

use std::time::Duration;

use clap::Args as ClapArgs;
use clap::ValueEnum;
use segno_engine::Filter;
use segno_engine::core::TokenUse;
use segno_engine::cost::By;
use segno_engine::cost::Costs;
use segno_engine::cost::Line;
use segno_engine::cost::Sum;

use super::args::age;
use crate::command_context::CommandContext;
use crate::command_context::short;
use crate::context::Context;
use crate::error::CommandError;
use crate::error::Outcome;
use crate::output::style::Symbol;
use crate::output::table::Column;
use crate::output::table::Table;
use crate::output::units;

/// The file with somebody's own prices, beside their configuration.
pub const PRICES_FILE: &str = "prices.toml";

/// Show what sessions cost
///
/// Adds up what agents used and cost, in this project or everywhere. Each run counts once. What the agent itself says
/// counts; where it says nothing, dated list prices do, and the sum says how much of it that is. Tokens of a model
/// without a price are shown as unpriced, never as free. prices.toml beside your configuration overrides the list.
///
/// By block means the five hours that plans count together, from the hour of the first use on. What a run used counts on the day on
/// which it began; in blocks, in the minutes in which its agent told of tokens. What a model only thought is a part of the output, and
/// shown apart where agents tell it.
#[derive(ClapArgs, Clone, Debug)]
#[command(
    after_help = "Examples:\n  segno cost\n  segno cost --by model --everywhere --since 30d\n  segno --session last cost --by phase\n  segno cost --everywhere --by week --csv"
)]
pub struct Args {
    /// What to group by
    #[arg(long, value_name = "WHAT", value_enum, default_value_t = Grouping::Session)]
    pub by: Grouping,
    /// Sessions of all projects
    #[arg(long)]
    pub everywhere: bool,
    /// Only what was begun within this time, like 12h or 7d
    #[arg(long, value_name = "AGE", value_parser = age)]
    pub since: Option<Duration>,
    /// Print comma-separated values
    #[arg(long)]
    pub csv: bool,
}

/// What to group by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[expect(missing_docs, reason = "the words say it")]
pub enum Grouping {
    Session,
    Phase,
    Iteration,
    Run,
    Agent,
    Model,
    Day,
    Week,
    Block,
    Project,
    Branch,
}

impl From<Grouping> for By {
    fn from(by: Grouping) -> Self {
        match by {
            Grouping::Session => Self::Session,
            Grouping::Phase => Self::Phase,
            Grouping::Iteration => Self::Iteration,
            Grouping::Run => Self::Run,
            Grouping::Agent => Self::Agent,
            Grouping::Model => Self::Model,
            Grouping::Day => Self::Day,
            Grouping::Week => Self::Week,
            Grouping::Block => Self::Block,
            Grouping::Branch => Self::Branch,
            Grouping::Project => Self::Project,
        }
    }
}

/// Runs `segno cost`.
///
/// # Errors
/// If the command cannot do what it was asked.
pub fn run(context: &Context, args: &Args) -> Outcome {
    if args.csv && context.printer.is_json() {
        return Err(CommandError::usage("--csv and --json are two forms of the same: name one"));
    }
    let ctx = CommandContext::open_to_look(context)?;
    let prices = ctx.engine.prices()?;
    let by = By::from(args.by);
    let since = args
        .since
        .map(|age| ctx.engine.now().plus_seconds(-i64::try_from(age.as_secs()).unwrap_or(i64::MAX)));
    let costs = match &context.global.session {
        Some(named) => ctx.engine.costs_of(ctx.named(named)?, since, by, &prices)?,
        None => {
            let project = (!args.everywhere).then(|| context.project.root.display().to_string());
            ctx.engine.costs(&Filter { project, since, ..Filter::default() }, by, &prices)?
        }
    };
    let printer = &context.printer;
    if printer.is_json() {
        return printer.json(&costs);
    }
    if args.csv {
        return csv(&costs).into_iter().try_for_each(|line| printer.data(line));
    }
    if costs.lines.is_empty() {
        let where_ = if args.everywhere { "" } else { " in this project" };
        printer.talk(format!("nothing was used{where_}"));
        if !args.everywhere {
            printer.hint("segno cost --everywhere");
        }
        return Ok(());
    }
    // A pipe gets the figures alone.
    let bar = printer.data_width().map(|_| printer.palette().symbol(Symbol::Bar));
    printer.table(&table(&costs, bar))?;
    if let Some(day) = &costs.prices_as_of {
        let part = units::dollars(costs.total.by_list_price_micros);
        printer.talk(format!("{part} of it by list prices of {day}: the agent did not say"));
    }
    if costs.total.unpriced_tokens > 0 {
        let tokens = units::tokens(costs.total.unpriced_tokens);
        printer.warn(format!("{tokens} have no known price and are not in the sum"));
        printer
            .hint(format!("give prices in {}", context.paths.config.with_file_name(PRICES_FILE).display()));
    }
    ctx.finish();
    Ok(())
}

/// What a grouping is called.
fn title(by: By) -> &'static str {
    match by {
        By::Phase => "phase",
        By::Iteration => "iteration",
        By::Run => "run",
        By::Agent => "agent",
        By::Model => "model",
        By::Day => "day",
        By::Week => "week of",
        By::Block => "five hours from",
        By::Branch => "branch",
        By::Project => "project",
        By::Session => "session",
    }
}

/// One line for each group, as other programs read them: money in dollars.
fn csv(costs: &Costs) -> Vec<String> {
    let mut lines = vec![format!(
        "{},runs,input,output,cache_read,cache_write,other,dollars,by_list_price,unpriced_tokens,estimated,reasoning",
        title(costs.by)
    )];
    for Line { name, sum } in &costs.lines {
        let dollars = |micros: u64| format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000);
        let TokenUse { input, output, cache_read, cache_write, other, reasoning } = sum.tokens;
        // What a spreadsheet would take for a formula is text.
        let guard = if name.starts_with(['=', '+', '-', '@']) { "'" } else { "" };
        lines.push(format!(
            "\"{guard}{}\",{},{input},{output},{cache_read},{cache_write},{other},{},{},{},{},{reasoning}",
            name.replace('"', "\"\""),
            sum.runs,
            dollars(sum.micros),
            dollars(sum.by_list_price_micros),
            sum.unpriced_tokens,
            sum.estimated
        ));
    }
    lines
}

/// How wide the longest bar is.
const BAR: u64 = 20;

/// How long each line's bar is: by money, or by tokens where no money is known.
fn bars(costs: &Costs) -> Vec<usize> {
    let has_money = costs.total.micros > 0;
    let size = |sum: &Sum| if has_money { sum.micros } else { sum.tokens.total() };
    let most = costs.lines.iter().map(|line| size(&line.sum)).max().unwrap_or(0).max(1);
    let length = |sum: &Sum| u128::from(size(sum)) * u128::from(BAR) / u128::from(most);
    costs.lines.iter().map(|line| usize::try_from(length(&line.sum)).unwrap_or(0)).collect()
}

fn table(costs: &Costs, bar: Option<&str>) -> Table {
    let is_time = matches!(costs.by, By::Day | By::Week | By::Block);
    let bar = bar.filter(|_| is_time && costs.lines.len() > 1);
    // Most agents do not tell it.
    let thinks = costs.total.tokens.reasoning > 0;
    let reasoning = thinks.then(|| Column::right("of it thought").goes(2));
    let columns = [
        Column::left(title(costs.by)).elastic(),
        Column::right("runs"),
        Column::right("input"),
        Column::right("output"),
    ];
    let more = [Column::right("cache read"), Column::right("cache write"), Column::right("cost")];
    let columns = columns.into_iter().chain(reasoning).chain(more);
    let mut table = Table::new(columns.chain(bar.map(|_| Column::left("").goes(1))));
    for (line, length) in costs.lines.iter().zip(bars(costs)) {
        // The end of an id is enough to type; all of them begin alike.
        let id = line.name.parse().ok().filter(|_| costs.by == By::Session).map(short);
        let cells = cells(id.as_deref().unwrap_or(&line.name), &line.sum, thinks);
        table.row(cells.into_iter().chain(bar.map(|bar| bar.repeat(length))));
    }
    if costs.lines.len() > 1 {
        table.row(cells("together", &costs.total, thinks).into_iter().chain(bar.map(|_| String::new())));
    }
    table
}

fn cells(name: &str, sum: &Sum, thinks: bool) -> Vec<String> {
    let about = if sum.estimated { "~" } else { "" };
    let shown = |n: u64| if n == 0 { "–".to_owned() } else { format!("{about}{}", units::count(n)) };
    let mut cells = vec![
        name.to_owned(),
        sum.runs.to_string(),
        shown(sum.tokens.input.saturating_add(sum.tokens.other)),
        shown(sum.tokens.output),
    ];
    cells.extend(thinks.then(|| shown(sum.tokens.reasoning)));
    cells.extend([shown(sum.tokens.cache_read), shown(sum.tokens.cache_write), cost(sum)]);
    cells
}

/// Money, with a mark where list prices or unpriced tokens are in it.
fn cost(sum: &Sum) -> String {
    let about = if sum.by_list_price_micros > 0 { "~" } else { "" };
    format!("{about}{}", units::money(sum.micros, sum.unpriced_tokens))
}
