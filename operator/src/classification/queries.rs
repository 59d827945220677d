//! Caches parsed queries.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};

use lru::LruCache;

use super::jq::{JqQuery, QueryError};

/// Maximum number of parsed queries in memory.
const MAX_PARSED: NonZeroUsize = NonZeroUsize::MIN.saturating_add(255);

/// A cache of parsed queries, keyed by query text. Each query is parsed once for all Agents.
#[derive(Debug)]
pub struct Queries(Mutex<LruCache<String, Result<Arc<JqQuery>, QueryError>>>);

impl Default for Queries {
    fn default() -> Self {
        Self(Mutex::new(LruCache::new(MAX_PARSED)))
    }
}

impl Queries {
    /// Returns the parsed query for a text.
    ///
    /// # Errors
    ///
    /// Returns an error if the text is not a valid or supported query.
    pub fn parsed(&self, text: &str) -> Result<Arc<JqQuery>, QueryError> {
        // A poisoned lock is harmless: each change of the cache is complete or does not happen.
        let mut cache = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(query) = cache.get(text) {
            return query.clone();
        }
        let query = JqQuery::parse(text).map(Arc::new);
        // These errors are not cached: a thread may be available for the next query, and an overlong text would waste
        // memory.
        if !matches!(query, Err(QueryError::Thread | QueryError::Length(_))) {
            cache.put(text.to_owned(), query.clone());
        }
        query
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn query_is_parsed_once() {
        let queries = Queries::default();
        let first = queries.parsed(".cpu").unwrap();
        assert!(Arc::ptr_eq(&first, &queries.parsed(".cpu").unwrap()));
        assert_eq!(queries.parsed(".cpu[").unwrap_err(), queries.parsed(".cpu[").unwrap_err());
    }

    #[test]
    fn cache_is_bounded() {
        let queries = Queries::default();
        for i in 0..300 {
            queries.parsed(&format!("{i}")).unwrap();
        }
        assert_eq!(queries.0.lock().unwrap().len(), MAX_PARSED.get());
    }
}
