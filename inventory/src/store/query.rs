//! Queries other than lists of records.

use std::fmt;

use super::session::{Cells, Dialect, Statement};

/// A function that returns the statements of a query in a dialect.
type Statements<'a> = Box<dyn Fn(Dialect) -> Vec<Statement> + Send + Sync + 'a>;

/// A function that receives each result row with the index of its statement.
type TakeRow<'a> = Box<dyn FnMut(usize, &dyn Cells) -> Result<(), sqlx::Error> + Send + 'a>;

/// A query on the tables of a store. The methods of `dyn Store` build and run queries.
pub struct Query<'a> {
    /// A short description of what the caller is doing, for error messages.
    pub(super) doing: &'static str,
    pub(super) statements: Statements<'a>,
    pub(super) take_row: TakeRow<'a>,
}

impl<'a> Query<'a> {
    /// Returns a query with a single statement.
    pub(super) fn new(
        doing: &'static str,
        statement: impl Fn(Dialect) -> Statement + Send + Sync + 'a,
        mut take_row: impl FnMut(&dyn Cells) -> Result<(), sqlx::Error> + Send + 'a,
    ) -> Self {
        let statements = Box::new(move |dialect| vec![statement(dialect)]);
        Self { doing, statements, take_row: Box::new(move |_, row| take_row(row)) }
    }

    /// Returns a short description of what the caller is doing, for error messages. For example `reading events`.
    #[must_use]
    pub fn doing(&self) -> &'static str {
        self.doing
    }
}

impl fmt::Debug for Query<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Query").field("doing", &self.doing).finish_non_exhaustive()
    }
}
