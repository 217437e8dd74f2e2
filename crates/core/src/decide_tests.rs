//! Tests of the rules, by subject.

#[path = "decide_tests/arrange.rs"]
mod arrange;
#[path = "decide_tests/budget.rs"]
mod budget;
#[path = "decide_tests/ledger.rs"]
mod ledger;
#[path = "decide_tests/plan.rs"]
mod plan;
#[path = "decide_tests/run.rs"]
mod run;
#[path = "decide_tests/table.rs"]
mod table;
#[path = "decide_tests/values.rs"]
mod values;
#[path = "decide_tests/work.rs"]
mod work;
