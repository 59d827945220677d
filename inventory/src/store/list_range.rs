//! The range of a list that a client requests.

use futures_util::stream::BoxStream;
use futures_util::{Stream, StreamExt, TryStreamExt};

/// The range of a list that a client requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ListRange {
    /// Number of records to skip.
    pub offset: u64,
    /// Maximum number of records. `None` for all.
    pub limit: Option<u64>,
}

impl ListRange {
    /// The range of the whole list.
    pub const ALL: Self = Self { offset: 0, limit: None };
}

/// Returns the requested range of a list, for lists whose range the database cannot select. Errors are returned even if
/// they occur among the skipped items.
pub(crate) fn part_of_list<T: Send + 'static, E: Send + 'static>(
    items: impl Stream<Item = Result<T, E>> + Send + 'static,
    range: ListRange,
) -> BoxStream<'static, Result<T, E>> {
    let mut to_skip = range.offset;
    let items = items.try_filter(move |_| {
        let is_skipped = to_skip > 0;
        to_skip = to_skip.saturating_sub(1);
        std::future::ready(!is_skipped)
    });
    match range.limit {
        // If the limit saturates, it still exceeds the length of every list.
        Some(limit) => items.take(usize::try_from(limit).unwrap_or(usize::MAX)).boxed(),
        None => items.boxed(),
    }
}

#[cfg(test)]
mod tests {
    use futures_util::stream;

    use super::*;

    #[tokio::test]
    async fn part_of_list_has_the_items_of_its_range() {
        for (offset, limit, expected) in [
            (0, None, 0..10),
            (0, Some(3), 0..3),
            (3, None, 3..10),
            (3, Some(4), 3..7),
            (9, Some(4), 9..10),
            (10, Some(1), 0..0),
            (u64::MAX, Some(u64::MAX), 0..0),
        ] {
            let part = part_of_list(stream::iter((0..10).map(Ok::<_, ()>)), ListRange { offset, limit });
            let selected: Vec<i32> = part.try_collect().await.unwrap();
            assert_eq!(selected, expected.collect::<Vec<_>>(), "{offset} {limit:?}");
        }
    }

    #[tokio::test]
    async fn skipped_error_is_not_hidden() {
        let items = stream::iter([Ok(1), Err("gone"), Ok(2)]);
        let mut part = part_of_list(items, ListRange { offset: 2, limit: None });
        assert_eq!(part.next().await.unwrap().unwrap_err(), "gone");
    }
}
