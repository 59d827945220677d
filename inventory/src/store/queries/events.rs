//! Pages of events, and the deletion of old events.

use chrono::{DateTime, Utc};

use crate::event::{EventPage, EventPosition, EventQuery, Severity};
use crate::store::query::Query;
use crate::store::session::Cells;
use crate::store::statements::events::{EventConditions, event, position, select_forgettable, severity};
use crate::store::values::unsigned;
use crate::store::{Changes, Step, Store, StoreError};

/// Index of the statement that counts the events. The other statement reads them.
const COUNT: usize = 0;

impl dyn Store + '_ {
    /// Returns the events that match a query. If the query has a limit, returns one page. To save memory, a page may
    /// have fewer events than the limit, but it has at least one if any event matches.
    ///
    /// # Errors
    ///
    /// Returns an error if the database fails or contains an invalid event.
    pub async fn events(&self, query: &EventQuery) -> Result<EventPage, StoreError> {
        let mut page = EventPage::default();
        let is_counted = query.after.is_none();
        let statements = move |dialect| {
            let conditions = EventConditions::from_query(query, dialect);
            let count = is_counted.then(|| conditions.count());
            let events = (!is_counted || query.limit != Some(0)).then(|| conditions.page(query));
            count.into_iter().chain(events).collect()
        };
        let take_row = |statement, row: &dyn Cells| {
            if is_counted && statement == COUNT {
                return add_count(&mut page, query, row);
            }
            page.last = Some(position(row)?);
            page.events.push(event(row)?);
            Ok(())
        };
        let query =
            Query { doing: "reading events", statements: Box::new(statements), take_row: Box::new(take_row) };
        self.query(query).await?;
        Ok(page)
    }

    /// Deletes the first `most` events after a position and before a time that refer to no existing record. Returns the
    /// position of the last deleted event, or `None` if no more such events are left.
    ///
    /// # Errors
    ///
    /// Returns an error if the database fails.
    pub async fn forget_events(
        &self,
        after: EventPosition,
        before: DateTime<Utc>,
        most: usize,
    ) -> Result<Option<EventPosition>, StoreError> {
        // The search runs before the change, so that it does not block other changes.
        let select = |_| select_forgettable(after, before, most);
        let events = self.rows("reading events", select, position).await?;
        let Some(last) = events.last().copied() else { return Ok(None) };
        let is_full = events.len() == most;
        self.commit(Changes::from_step(Step::ForgetEvents(events))).await?.require_done()?;
        Ok(is_full.then_some(last))
    }
}

/// Adds the number of events with one severity to a page.
fn add_count(page: &mut EventPage, query: &EventQuery, row: &dyn Cells) -> Result<(), sqlx::Error> {
    let (severity, found) = (severity(row)?, unsigned("count", row.integer("found")?)?);
    for (_, count) in Severity::ALL.iter().zip(&mut page.by_severity).filter(|(one, _)| **one == severity) {
        *count = found;
    }
    if query.severities.is_empty() || query.severities.contains(&severity) {
        page.count += found;
    }
    Ok(())
}
