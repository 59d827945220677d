//! Queries of one statement.

use crate::store::query::Query;
use crate::store::session::{Cells, Dialect, Statement};
use crate::store::{Store, StoreError};

impl dyn Store + '_ {
    /// Returns the converted rows of a statement.
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

    /// Returns the first row of a statement, converted.
    pub(super) async fn first_row<T: Send>(
        &self,
        doing: &'static str,
        statement: impl Fn(Dialect) -> Statement + Send + Sync,
        convert: impl Fn(&dyn Cells) -> Result<T, sqlx::Error> + Send + Sync,
    ) -> Result<Option<T>, StoreError> {
        Ok(self.rows(doing, statement, convert).await?.into_iter().next())
    }

    /// Returns `true` if a statement has a row.
    pub(super) async fn has_row(
        &self,
        doing: &'static str,
        statement: impl Fn(Dialect) -> Statement + Send + Sync,
    ) -> Result<bool, StoreError> {
        Ok(self.first_row(doing, statement, |_| Ok(())).await?.is_some())
    }
}
