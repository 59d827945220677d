//! Query parameters of a request, and their conversion into numbers, ids, lists and choices.

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use axum::http::Uri;
use axum::http::request::Parts;
use uuid::Uuid;

use crate::error::Error;
use crate::store::ListRange;

/// The query parameters of a request. Unknown ones are ignored.
#[derive(Clone, Debug, Default)]
pub struct Query(Vec<(String, String)>);

impl<S: Send + Sync> FromRequestParts<S> for Query {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Infallible> {
        Ok(Self::from_uri(&parts.uri))
    }
}

impl Query {
    /// Returns the query parameters of a URI.
    pub fn from_uri(uri: &Uri) -> Self {
        let pairs = axum::extract::Query::<Vec<(String, String)>>::try_from_uri(uri);
        // A list of pairs accepts any query and replaces bytes that are not UTF-8, so the conversion cannot fail.
        Self(pairs.map(|pairs| pairs.0).unwrap_or_default())
    }

    /// Returns the value of the last parameter with this name, unless it is empty.
    pub fn text(&self, name: &str) -> Option<&str> {
        let parameter = self.0.iter().rev().find(|(key, _)| key == name);
        parameter.map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
    }

    /// Returns `true` if the value of a parameter means "yes". Any other value means "no".
    pub fn flag(&self, name: &str) -> bool {
        self.text(name).is_some_and(Self::is_yes)
    }

    /// Returns `true` if a text means "yes". Upper and lower case are equivalent.
    pub fn is_yes(text: &str) -> bool {
        const YES: [&str; 10] = ["true", "1", "yes", "ok", "y", "on", "selected", "checked", "t", "enabled"];
        YES.contains(&text.to_lowercase().as_str())
    }

    /// Parses a parameter as an id.
    ///
    /// # Errors
    ///
    /// Returns an error if the value is not a UUID.
    pub fn id<I: From<Uuid>>(&self, name: &str) -> Result<Option<I>, Error> {
        self.text(name).map(|text| parse_id(name, text)).transpose()
    }

    /// Parses a parameter as a comma-separated list of ids.
    ///
    /// # Errors
    ///
    /// Returns an error if a part of the value is not a UUID.
    pub fn ids<I: From<Uuid>>(&self, name: &str) -> Result<Vec<I>, Error> {
        self.list(name).map(|text| parse_id(name, text)).collect()
    }

    /// Splits a parameter at commas.
    pub fn list<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a str> {
        self.text(name)
            .into_iter()
            .flat_map(|text| text.split(','))
            .map(str::trim)
            .filter(|text| !text.is_empty())
    }

    /// Parses a parameter as an integer.
    ///
    /// # Errors
    ///
    /// Returns an error if the value is not an integer of 64 bits.
    pub fn number(&self, name: &str) -> Result<Option<i64>, Error> {
        let read = |text: &str| {
            text.parse()
                .map_err(|_| Error::malformed(format!("{name} in query must be of type int64: {text:?}")))
        };
        self.text(name).map(read).transpose()
    }

    /// Parses the parameters `offset` and `limit` as the requested part of a list. Without these parameters, the
    /// requested part is the whole list.
    ///
    /// # Errors
    ///
    /// Returns an error if `offset` is negative, if `limit` is not positive, or if one of them is not an integer.
    pub fn list_range(&self) -> Result<ListRange, Error> {
        let at_least = |name: &str, least: u64| {
            let Some(number) = self.number(name)? else { return Ok(None) };
            let number = u64::try_from(number).ok().filter(|number| *number >= least);
            number.map(Some).ok_or_else(|| {
                Error::malformed(format!("{name} in query should be greater than or equal to {least}"))
            })
        };
        Ok(ListRange { offset: at_least("offset", 0)?.unwrap_or(0), limit: at_least("limit", 1)? })
    }

    /// Returns the choice named by a parameter.
    ///
    /// # Errors
    ///
    /// Returns an error with the names of all choices if the value is not one of them.
    pub fn choice<T: Copy>(&self, name: &str, choices: &[(&str, T)]) -> Result<Option<T>, Error> {
        self.text(name).map(|text| choose(name, text, choices)).transpose()
    }

    /// Returns the choices named by a comma-separated parameter, each once, in the order of `choices`.
    ///
    /// # Errors
    ///
    /// Returns an error with the names of all choices if a part of the value is not one of them.
    pub fn choices<T: Copy>(&self, name: &str, choices: &[(&str, T)]) -> Result<Vec<T>, Error> {
        for text in self.list(name) {
            choose(name, text, choices)?;
        }
        let is_named = |choice: &str| self.list(name).any(|text| text == choice);
        Ok(choices.iter().filter(|(choice, _)| is_named(choice)).map(|(_, value)| *value).collect())
    }

    /// Returns the error for a missing parameter.
    pub fn missing(name: &str) -> Error {
        Error::malformed(format!("{name} in query is required"))
    }
}

fn parse_id<I: From<Uuid>>(name: &str, text: &str) -> Result<I, Error> {
    let id: Result<Uuid, _> = text.parse();
    id.map(I::from).map_err(|_| Error::malformed(format!("{name} in query must be of type uuid: {text:?}")))
}

fn choose<T: Copy>(name: &str, text: &str, choices: &[(&str, T)]) -> Result<T, Error> {
    let entry = choices.iter().find(|(choice, _)| *choice == text);
    entry.map(|(_, value)| *value).ok_or_else(|| {
        let all: Vec<_> = choices.iter().map(|(choice, _)| *choice).collect();
        Error::malformed(format!("{name} in query should be one of [{}]", all.join(" ")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list_range(query: &str) -> Result<ListRange, String> {
        let uri = format!("/list?{query}").parse().unwrap();
        Query::from_uri(&uri).list_range().map_err(|error| error.reason().to_owned())
    }

    #[test]
    fn list_range_is_the_whole_list_by_default() {
        for query in ["", "offset=&limit=", "offset=0", "Limit=3"] {
            assert_eq!(list_range(query), Ok(ListRange::ALL), "{query}");
        }
        assert_eq!(list_range("limit=1&offset=2"), Ok(ListRange { offset: 2, limit: Some(1) }));
        assert_eq!(list_range("limit=1&limit=7"), Ok(ListRange { offset: 0, limit: Some(7) }));
        let most = i64::MAX.unsigned_abs();
        let query = format!("limit={most}&offset={most}");
        assert_eq!(list_range(&query), Ok(ListRange { offset: most, limit: Some(most) }));
    }

    #[test]
    fn rejects_invalid_list_ranges() {
        for (query, reason) in [
            ("limit=0", "limit in query should be greater than or equal to 1"),
            ("limit=-1", "limit in query should be greater than or equal to 1"),
            ("offset=-1&limit=1", "offset in query should be greater than or equal to 0"),
            ("limit=all", "limit in query must be of type int64: \"all\""),
            ("offset=1.5", "offset in query must be of type int64: \"1.5\""),
            ("limit=9223372036854775808", "limit in query must be of type int64: \"9223372036854775808\""),
        ] {
            assert_eq!(list_range(query), Err(reason.to_owned()), "{query}");
        }
    }

    #[test]
    fn choices_are_returned_once_and_in_order() {
        const CHOICES: [(&str, u8); 3] = [("one", 1), ("two", 2), ("three", 3)];
        let choices = |list: &str| {
            let uri = format!("/list?names={list}").parse().unwrap();
            Query::from_uri(&uri).choices("names", &CHOICES)
        };
        assert_eq!(choices("three,one,three,,one").unwrap(), [1, 3]);
        assert!(choices("").unwrap().is_empty());
        assert!(choices("one,four").is_err());
    }
}
