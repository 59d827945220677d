//! Queries that are not lists of records.

use std::fmt;

use super::session::{Cells, Dialect, Statement};

/// Returns the statements of a query in a dialect.
type Statements<'a> = Box<dyn Fn(Dialect) -> Vec<Statement> + Send + Sync + 'a>;

/// Takes a row of the statement with a number.
type TakeRow<'a> = Box<dyn FnMut(usize, &dyn Cells) -> Result<(), sqlx::Error> + Send + 'a>;

/// A query on the tables of a store. The functions of `dyn Store` make and run them.
pub struct Query<'a> {
    /// What the caller does, for errors.
    pub(super) doing: &'static str,
    pub(super) statements: Statements<'a>,
    pub(super) take_row: TakeRow<'a>,
}

impl<'a> Query<'a> {
    /// Returns a query of one statement.
    pub(super) fn new(
        doing: &'static str,
        statement: impl Fn(Dialect) -> Statement + Send + Sync + 'a,
        mut take_row: impl FnMut(&dyn Cells) -> Result<(), sqlx::Error> + Send + 'a,
    ) -> Self {
        let statements = Box::new(move |dialect| vec![statement(dialect)]);
        Self { doing, statements, take_row: Box::new(move |_, row| take_row(row)) }
    }

    /// Returns the text of errors of this query: what the caller does.
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
