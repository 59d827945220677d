//! Queries with a single statement.

use crate::store::query::Query;
use crate::store::session::{Cells, Dialect, Statement};
use crate::store::{Store, StoreError};

impl dyn Store + '_ {
    /// Runs a statement and converts all result rows.
    pub(super) async fn rows<T: Send>(
        &self,
        doing: &'static str,
        statement: impl Fn(Dialect) -> Statement + Send + Sync,
        convert: impl Fn(&dyn Cells) -> Result<T, sqlx::Error> + Send + Sync,
    ) -> Result<Vec<T>, StoreError> {
        let mut rows = Vec::new();
        let take_row = |row: &dyn Cells| {
            rows.push(convert(row)?);
            Ok(())
        };
        self.query(Query::new(doing, statement, take_row)).await?;
        Ok(rows)
    }

    /// Runs a statement and converts the first result row.
    pub(super) async fn first_row<T: Send>(
        &self,
        doing: &'static str,
        statement: impl Fn(Dialect) -> Statement + Send + Sync,
        convert: impl Fn(&dyn Cells) -> Result<T, sqlx::Error> + Send + Sync,
    ) -> Result<Option<T>, StoreError> {
        Ok(self.rows(doing, statement, convert).await?.into_iter().next())
    }

    /// Returns `true` if the statement returns at least one row.
    pub(super) async fn has_row(
        &self,
        doing: &'static str,
        statement: impl Fn(Dialect) -> Statement + Send + Sync,
    ) -> Result<bool, StoreError> {
        Ok(self.first_row(doing, statement, |_| Ok(())).await?.is_some())
    }
}
