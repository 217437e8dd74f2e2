//! Rows of the long lists as values, and what an event changes in them.
//!
//! A row is laid together by the events of years and of programs of different ages, so every field has a value that
//! stands for "not written then", and what a newer program added is carried along in `more`. Reading a row never fails
//! for a field that is missing; adding a field is safe.
//!
//! Each row has a patch: the same fields, each of them only if an event says something about it. The projection makes
//! patches and nothing else, so that a row cannot get a field that its readers do not know.

mod checkpoint;
mod ledger;
mod work;

use serde::Deserialize;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Map;
use serde_json::Value;

pub use self::checkpoint::CheckpointPatch;
pub use self::checkpoint::CheckpointRow;
pub use self::ledger::RunPatch;
pub use self::ledger::RunRow;
pub use self::ledger::ToolPatch;
pub use self::ledger::ToolRow;
pub use self::work::ArtifactPatch;
pub use self::work::ArtifactRow;
pub use self::work::DecisionPatch;
pub use self::work::DecisionRow;
pub use self::work::ErrorPatch;
pub use self::work::ErrorRow;
pub use self::work::FilePatch;
pub use self::work::FileRow;
pub use self::work::HistoryPatch;
pub use self::work::HistoryRow;
pub use self::work::MemoryPatch;
pub use self::work::MemoryRow;
pub use self::work::MilestonePatch;
pub use self::work::MilestoneRow;
pub use self::work::OutputPatch;
pub use self::work::OutputRow;
pub use self::work::TaskPatch;
pub use self::work::TaskRow;
pub use self::work::VerificationPatch;
pub use self::work::VerificationRow;
use crate::project::List;

/// The version of the rows that this program writes. It goes up when a field changes its meaning; a new field does not
/// need it. The first version is not written.
pub const ROW_VERSION: u32 = 1;

/// A row of a list, as a value.
pub trait Row: DeserializeOwned + Default {
    /// The list that it is of.
    const LIST: List;
    /// The names of its fields.
    const FIELDS: &'static [&'static str];

    /// A row as it is kept, of whatever age. None if it is damaged: no object, or a field that is not what it should be.
    fn read(body: &Value) -> Option<Self> {
        body.as_object()?;
        Self::deserialize(body).ok()
    }

    /// What can be read of a row: a field that is not what it should be counts as not written. For rows that somebody
    /// else made, and for readers that want whatever there is.
    fn read_any(body: &Value) -> Self {
        if let Some(row) = Self::read(body) {
            return row;
        }
        let is_readable = |name: &String, value: &Value| {
            Self::read(&Value::Object(Map::from_iter([(name.clone(), value.clone())]))).is_some()
        };
        let fields = body.as_object().into_iter().flatten();
        let readable = fields.filter(|(name, value)| is_readable(name, value));
        let readable = readable.map(|(name, value)| (name.clone(), value.clone())).collect();
        Self::read(&Value::Object(readable)).unwrap_or_default()
    }
}

/// What an event says about a row.
pub trait Patch: Serialize {
    /// The list that the row is of.
    const LIST: List;

    /// The fields to lay over the row.
    fn fields(&self) -> Map<String, Value> {
        match serde_json::to_value(self) {
            Ok(Value::Object(fields)) => fields,
            // A patch is a struct of plain values.
            _ => Map::new(),
        }
    }
}

/// The names of the fields that the rows of a list have.
pub fn fields(list: List) -> &'static [&'static str] {
    match list {
        List::History => HistoryRow::FIELDS,
        List::Artifacts => ArtifactRow::FIELDS,
        List::Outputs => OutputRow::FIELDS,
        List::Tasks => TaskRow::FIELDS,
        List::Decisions => DecisionRow::FIELDS,
        List::Tools => ToolRow::FIELDS,
        List::Files => FileRow::FIELDS,
        List::Errors => ErrorRow::FIELDS,
        List::Memory => MemoryRow::FIELDS,
        List::Milestones => MilestoneRow::FIELDS,
        List::Checkpoints => CheckpointRow::FIELDS,
        List::Verifications => VerificationRow::FIELDS,
        List::Runs => RunRow::FIELDS,
    }
}

/// Which version of a row something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowVersion(pub u32);

impl RowVersion {
    /// Whether it goes without saying.
    fn is_first(&self) -> bool {
        self.0 == ROW_VERSION
    }
}

impl Default for RowVersion {
    fn default() -> Self {
        Self(ROW_VERSION)
    }
}

/// Makes a row and its patch. A field without a value of its own is as its type has it by default if it was not written.
macro_rules! row {
    (
        $(#[$about:meta])*
        $list:ident: $row:ident, $patch:ident {
            $($(#[$field_about:meta])* $field:ident: $type:ty $(= $default:expr)?,)*
        }
    ) => {
        $(#[$about])*
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(default)]
        pub struct $row {
            $($(#[$field_about])* pub $field: $type,)*
            /// Which version of a row it is.
            #[serde(skip_serializing_if = "RowVersion::is_first")]
            pub row_version: RowVersion,
            /// What a newer program added.
            #[serde(flatten)]
            pub more: Map<String, Value>,
        }

        impl Default for $row {
            fn default() -> Self {
                Self {
                    $($field: row!(@default $($default)?),)*
                    row_version: RowVersion::default(),
                    more: Map::new(),
                }
            }
        }

        impl Row for $row {
            const LIST: List = List::$list;
            const FIELDS: &'static [&'static str] = &[$(stringify!($field)),*];
        }

        #[doc = concat!("What an event says about a [`", stringify!($row), "`].")]
        #[derive(Clone, Debug, Default, PartialEq, Serialize)]
        pub struct $patch {
            $(
                $(#[$field_about])*
                #[serde(skip_serializing_if = "Option::is_none")]
                pub $field: Option<$type>,
            )*
        }

        impl Patch for $patch {
            const LIST: List = List::$list;
        }
    };
    (@default) => { Default::default() };
    (@default $default:expr) => { $default };
}
use row;

#[cfg(test)]
#[path = "rows_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "rows_stored_tests.rs"]
mod stored_tests;
