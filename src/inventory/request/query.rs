//! Parameters of the query.

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use axum::http::Uri;
use axum::http::request::Parts;
use uuid::Uuid;

use crate::api_error::ApiError;

/// The parameters of a query, as they came. What nobody asks for is let pass.
#[derive(Clone, Debug, Default)]
pub(crate) struct Query(Vec<(String, String)>);

impl<S: Send + Sync> FromRequestParts<S> for Query {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Infallible> {
        Ok(Self::of(&parts.uri))
    }
}

impl Query {
    /// The parameters in a URI.
    pub(crate) fn of(uri: &Uri) -> Self {
        let pairs = axum::extract::Query::<Vec<(String, String)>>::try_from_uri(uri);
        Self(pairs.map(|pairs| pairs.0).unwrap_or_default())
    }

    /// A parameter that is there and not empty; the last one of its name.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().rev().find(|(key, _)| key == name);
        found.map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
    }

    /// Whether a switch is on. What is no yes is a no.
    pub(crate) fn flag(&self, name: &str) -> bool {
        self.text(name).is_some_and(Self::is_yes)
    }

    /// Whether a text is a yes.
    pub(crate) fn is_yes(text: &str) -> bool {
        const YES: [&str; 10] = ["true", "1", "yes", "ok", "y", "on", "selected", "checked", "t", "enabled"];
        YES.contains(&text.to_lowercase().as_str())
    }

    /// An id.
    pub(crate) fn id<I: From<Uuid>>(&self, name: &str) -> Result<Option<I>, ApiError> {
        self.text(name).map(|text| parse_id(name, text)).transpose()
    }

    /// Ids with commas between them.
    pub(crate) fn ids<I: From<Uuid>>(&self, name: &str) -> Result<Vec<I>, ApiError> {
        self.list(name).map(|text| parse_id(name, text)).collect()
    }

    /// Texts with commas between them.
    pub(crate) fn list<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a str> {
        self.text(name)
            .into_iter()
            .flat_map(|text| text.split(','))
            .map(str::trim)
            .filter(|text| !text.is_empty())
    }

    /// A whole number.
    pub(crate) fn number(&self, name: &str) -> Result<Option<i64>, ApiError> {
        let read = |text: &str| {
            text.parse()
                .map_err(|_| ApiError::malformed(format!("{name} in query must be of type int64: {text:?}")))
        };
        self.text(name).map(read).transpose()
    }

    /// One of the values that a list of names and values has.
    pub(crate) fn choice<T: Copy>(&self, name: &str, choices: &[(&str, T)]) -> Result<Option<T>, ApiError> {
        self.text(name).map(|text| choose(name, text, choices)).transpose()
    }

    /// Some of the values that a list of names and values has, with commas between them.
    pub(crate) fn choices<T: Copy>(&self, name: &str, choices: &[(&str, T)]) -> Result<Vec<T>, ApiError> {
        self.list(name).map(|text| choose(name, text, choices)).collect()
    }

    /// The refusal of a query without this parameter.
    pub(crate) fn missing(name: &str) -> ApiError {
        ApiError::malformed(format!("{name} in query is required"))
    }
}

fn parse_id<I: From<Uuid>>(name: &str, text: &str) -> Result<I, ApiError> {
    let id: Result<Uuid, _> = text.parse();
    id.map(I::from)
        .map_err(|_| ApiError::malformed(format!("{name} in query must be of type uuid: {text:?}")))
}

fn choose<T: Copy>(name: &str, text: &str, choices: &[(&str, T)]) -> Result<T, ApiError> {
    let found = choices.iter().find(|(choice, _)| *choice == text);
    found.map(|(_, value)| *value).ok_or_else(|| {
        let all: Vec<_> = choices.iter().map(|(choice, _)| *choice).collect();
        ApiError::malformed(format!("{name} in query should be one of [{}]", all.join(" ")))
    })
}
