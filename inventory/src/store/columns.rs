//! The columns of the table `records` with values from the record. The rest of a record is in its document.
//!
//! A new column needs a migration, an entry in the table below, and a value in [`Record::columns`](super::Record). The
//! statements that read and write records use all entries of the table.

use std::collections::BTreeSet;

use uuid::Uuid;

use super::session::{Cells, Value, ValueType};
use super::values::{decode_error, id_of, text_of};

/// A column of `records`.
pub(super) struct Column {
    /// The name in the database.
    pub(super) name: &'static str,
    pub(super) value_type: ValueType,
    /// Whether a change keeps the stored value if a later check-in is stored.
    pub(super) is_of_check_in: bool,
    /// Reads the column of a row into its field.
    pub(super) read: fn(&mut Columns, &dyn Cells) -> Result<(), sqlx::Error>,
    /// Returns the database value of the field.
    pub(super) write: fn(&Columns) -> Value,
}

/// The representation of a Rust type in a column.
trait Form<T> {
    const TYPE: ValueType;
    const IS_OF_CHECK_IN: bool = false;

    fn read(row: &dyn Cells, name: &'static str) -> Result<T, sqlx::Error>;
    fn write(value: &T) -> Value;
}

/// An id or NULL.
struct NullableId;
/// An id, or an empty text for no id.
struct IdOrEmpty;
/// 0 or 1.
struct Flag;
struct Text;
/// An integer or NULL.
struct NullableNumber;
/// An integer or NULL. A check-in sets the integer without a change to the record.
struct OfCheckIn;

impl Form<Option<Uuid>> for NullableId {
    const TYPE: ValueType = ValueType::Text;

    fn read(row: &dyn Cells, name: &'static str) -> Result<Option<Uuid>, sqlx::Error> {
        row.optional_text(name)?.map_or(Ok(None), id_of)
    }

    fn write(id: &Option<Uuid>) -> Value {
        Value::Text(id.map(|id| id.to_string()))
    }
}

impl Form<Option<Uuid>> for IdOrEmpty {
    const TYPE: ValueType = ValueType::Text;

    fn read(row: &dyn Cells, name: &'static str) -> Result<Option<Uuid>, sqlx::Error> {
        id_of(row.text(name)?)
    }

    fn write(id: &Option<Uuid>) -> Value {
        Value::from(text_of(*id))
    }
}

impl Form<bool> for Flag {
    const TYPE: ValueType = ValueType::Integer;

    fn read(row: &dyn Cells, name: &'static str) -> Result<bool, sqlx::Error> {
        match row.integer(name)? {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(decode_error(name, other)),
        }
    }

    fn write(flag: &bool) -> Value {
        Value::from(i64::from(*flag))
    }
}

impl Form<String> for Text {
    const TYPE: ValueType = ValueType::Text;

    fn read(row: &dyn Cells, name: &'static str) -> Result<String, sqlx::Error> {
        row.text(name).map(str::to_owned)
    }

    fn write(text: &String) -> Value {
        Value::from(text.as_str())
    }
}

impl Form<Option<i64>> for NullableNumber {
    const TYPE: ValueType = ValueType::Integer;

    fn read(row: &dyn Cells, name: &'static str) -> Result<Option<i64>, sqlx::Error> {
        row.optional_integer(name)
    }

    fn write(number: &Option<i64>) -> Value {
        Value::Integer(*number)
    }
}

impl Form<Option<i64>> for OfCheckIn {
    const TYPE: ValueType = ValueType::Integer;
    const IS_OF_CHECK_IN: bool = true;

    fn read(row: &dyn Cells, name: &'static str) -> Result<Option<i64>, sqlx::Error> {
        row.optional_integer(name)
    }

    fn write(number: &Option<i64>) -> Value {
        Value::Integer(*number)
    }
}

/// Defines [`Columns`] and the table [`COLUMNS`]. Each entry has a field, its form, and the name of its column.
macro_rules! columns {
    ($($(#[$doc:meta])* $field:ident: $type:ty = $form:ident($name:literal),)+) => {
        /// The searchable parts of a record, each in a column. All other parts are in the document.
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct Columns {
            $($(#[$doc])* pub $field: $type,)+
            /// MAC addresses of a host in lower case, which have their own table. `None` in records read from the
            /// database. A change with `None` leaves the addresses unchanged.
            pub macs: Option<BTreeSet<String>>,
        }

        /// The columns in the order of the fields.
        pub(super) const COLUMNS: &[Column] = &[$(Column {
            name: $name,
            value_type: <$form as Form<$type>>::TYPE,
            is_of_check_in: <$form as Form<$type>>::IS_OF_CHECK_IN,
            read: |columns, row| {
                columns.$field = <$form as Form<$type>>::read(row, $name)?;
                Ok(())
            },
            write: |columns| <$form as Form<$type>>::write(&columns.$field),
        },)+];
    };
}

columns! {
    /// Id of the cluster that the record belongs to.
    cluster: Option<Uuid> = NullableId("cluster_id"),
    /// Id of the key that signed the token in the record's URLs.
    token_key: Option<Uuid> = IdOrEmpty("token_key"),
    /// Whether the record is deleted but kept for some time.
    deleted: bool = Flag("deleted"),
    /// Status of a host or a cluster. Empty for other records.
    status: String = Text("status"),
    /// Role of a host. Empty for other records.
    role: String = Text("role"),
    /// Time of a host's last check-in, in microseconds since 1970. A change never moves the stored time back, but
    /// `None` removes it.
    checked_in_at: Option<i64> = OfCheckIn("checked_in_at"),
    /// The host's clock at its last check-in, in seconds since 1970. `None` if only the document contains it.
    clock: Option<i64> = OfCheckIn("clock"),
    /// Number of hosts on which the assessment of a cluster is based. `None` for other records.
    seen_hosts: Option<i64> = NullableNumber("seen_hosts"),
    /// [Sum](super::generation_sum) of the generations of these hosts. `None` for other records.
    seen_generations: Option<i64> = NullableNumber("seen_generations"),
    /// Generation of the cluster on which its assessment is based. `None` for other records.
    seen_cluster: Option<i64> = NullableNumber("seen_cluster"),
    /// [Basis](crate::Settings::assessment_basis) of the assessment of a cluster. Empty for other records.
    seen_basis: String = Text("seen_basis"),
}

impl Columns {
    pub(super) fn read(row: &dyn Cells) -> Result<Self, sqlx::Error> {
        let mut columns = Self::default();
        for column in COLUMNS {
            (column.read)(&mut columns, row)?;
        }
        Ok(columns)
    }

    /// Returns the columns to store after a second write of the same change: the later check-in, and `before.macs` if
    /// `self` has no MAC addresses.
    pub(super) fn after(self, before: &Self) -> Self {
        let is_later =
            self.checked_in_at.is_some_and(|at| before.checked_in_at.is_some_and(|then| then > at));
        let (checked_in_at, clock) =
            if is_later { (before.checked_in_at, before.clock) } else { (self.checked_in_at, self.clock) };
        Self { checked_in_at, clock, macs: self.macs.or_else(|| before.macs.clone()), ..self }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use sqlx::{Connection as _, SqliteConnection};
    use tempfile::TempDir;

    use super::*;
    use crate::store::session::{Session as _, Statement};
    use crate::store::{SqlStore, Store as _};

    /// The columns that are not part of [`Columns`].
    const OTHERS: [&str; 8] =
        ["kind", "parent", "id", "document", "size", "schema_version", "record_generation", "made_at"];

    #[tokio::test]
    async fn table_has_the_columns_of_the_database() {
        let directory = TempDir::new().unwrap();
        let path = directory.path().join("kindling.db");
        SqlStore::open_file(&path).await.unwrap().close().await;
        let mut connection = SqliteConnection::connect(&format!("sqlite:{}", path.display())).await.unwrap();
        let names = Statement::new("SELECT name FROM pragma_table_info('records')");
        let names = connection.fetch(names, |row| row.text("name").map(str::to_owned)).await.unwrap();
        let names: BTreeSet<_> = names.iter().map(String::as_str).collect();
        let expected = COLUMNS.iter().map(|column| column.name).chain(OTHERS);
        assert_eq!(names, expected.collect());
        connection.close().await.unwrap();
    }

    /// Returns the paths and texts of all Rust files in a folder.
    fn rust_files(folder: &Path) -> Vec<(String, String)> {
        let mut files = Vec::new();
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                files.extend(rust_files(&path));
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                files.push((path.display().to_string(), fs::read_to_string(&path).unwrap()));
            }
        }
        files
    }

    /// A new column needs three additions: a migration, an entry in the table, and a value in the columns of its
    /// record. A statement that lists columns would need a fourth, so no statement may do that.
    #[test]
    fn no_statement_lists_columns() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/store");
        let names: Vec<_> = COLUMNS.iter().map(|column| column.name).collect();
        for (path, text) in rust_files(&folder) {
            for three in names.windows(3) {
                assert!(!text.contains(&three.join(", ")), "{path}: {three:?}");
            }
        }
        let entries = include_str!("columns.rs");
        let migrations = fs::read_dir(folder.join("migrations")).unwrap();
        let migrations: Vec<_> =
            migrations.map(|file| fs::read_to_string(file.unwrap().path()).unwrap()).collect();
        for Column { name, .. } in COLUMNS {
            assert_eq!(entries.matches(&format!("(\"{name}\")")).count(), 1, "{name}");
            let definition = |sql: &String| {
                sql.contains(&format!("ADD COLUMN {name} ")) || sql.contains(&format!("\n    {name} "))
            };
            assert!(migrations.iter().any(definition), "{name}");
        }
    }
}
