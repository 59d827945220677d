//! Request bodies: their parsing and the check against the published schema.

use std::fmt;

use axum::extract::{FromRequest, Request};
use axum::http::header;
use serde::de::DeserializeOwned;
use serde_json::Value;
use utoipa::ToSchema;

use super::large::{JsonContent, ReceivedBody};
use super::schema::{SchemaFault, Schemas, UnknownKeys, join, path_for_message};
use super::state::ApiState;
use super::work_room::{RequestMemory, WorkRoom};
use crate::blocking::in_background;
use crate::error::Error;

/// A type parsed from a request body.
pub trait RequestBody: DeserializeOwned + ToSchema + Send + 'static {
    /// The name of the body in error messages.
    const NAME: &'static str;

    /// Returns the schema of the type. The schema is prepared once.
    fn rules() -> &'static Schemas;

    /// Converts other accepted forms of the body into the form of the schema.
    fn prepare(_body: &mut Value) {}
}

/// Implements [`RequestBody`] for types, with the names of their bodies in error messages.
macro_rules! request_bodies {
    ($($body:ty: $name:literal $(, prepared by $prepare:path)?;)*) => {$(
        impl $crate::api::RequestBody for $body {
            const NAME: &'static str = $name;

            fn rules() -> &'static $crate::api::Schemas {
                static SCHEMAS: std::sync::OnceLock<$crate::api::Schemas> = std::sync::OnceLock::new();
                SCHEMAS.get_or_init($crate::api::Schemas::for_type::<$body>)
            }

            $(fn prepare(body: &mut serde_json::Value) {
                $prepare(body);
            })?
        }
    )*};
}
pub(crate) use request_bodies;

/// A parsed request body that matches its schema.
#[derive(Debug)]
pub struct Body<T>(pub T);

impl<T: RequestBody> FromRequest<ApiState> for Body<T> {
    type Rejection = Error;

    async fn from_request(request: Request, api: &ApiState) -> Result<Self, Error> {
        UnparsedBody::from_request(request, api).await?.parse().await.map(Self)
    }
}

/// A received request body that is not parsed yet.
#[derive(Debug)]
pub struct UnparsedBody {
    body: ReceivedBody,
    unknown: UnknownKeys,
    room: WorkRoom,
    memory: RequestMemory,
}

impl FromRequest<ApiState> for UnparsedBody {
    type Rejection = Error;

    async fn from_request(request: Request, api: &ApiState) -> Result<Self, Error> {
        require_json(&request)?;
        let memory = RequestMemory::from_request(&request);
        let body = api.large_bodies().read(request).await?;
        let unknown = if api.inventory().settings().reject_unknown_fields {
            UnknownKeys::Refuse
        } else {
            UnknownKeys::Drop
        };
        Ok(Self { body, unknown, room: api.work_room().clone(), memory })
    }
}

impl UnparsedBody {
    /// Returns the bytes of the body.
    pub fn bytes(&self) -> &[u8] {
        &self.body.bytes
    }

    /// Parses the body and checks it against the schema of its type. Waits until memory for this work is available.
    /// Other requests are not delayed: this function yields first, and a large body is parsed on another thread,
    /// because 1 MiB may take a quarter of a second.
    ///
    /// # Errors
    ///
    /// Returns an error if the body is not valid JSON or does not match the schema, or if the service is working on too
    /// many large bodies.
    pub async fn parse<T: RequestBody>(self) -> Result<T, Error> {
        let Self { body, unknown, room, memory } = self;
        if !body.is_large() {
            tokio::task::yield_now().await;
            return read(body, unknown);
        }
        require_few_values(body.content).map_err(|reason| parsing_error::<T>(&reason))?;
        memory.reserve(&room, &body).await?;
        in_background(move |_| {
            let parsed = read(body, unknown);
            // The closure owns the reserved memory, because parsing continues even if the client disconnects.
            drop(memory);
            parsed
        })
        .await
    }
}

fn require_json(request: &Request) -> Result<(), Error> {
    let content_type = request.headers().get(header::CONTENT_TYPE).map(|value| value.to_str().unwrap_or("?"));
    let media_type = content_type.unwrap_or_default().split(';').next().unwrap_or_default().trim();
    if media_type.eq_ignore_ascii_case("application/json") {
        return Ok(());
    }
    let message = format!(
        "unsupported media type {:?}, only [application/json] are allowed",
        content_type.unwrap_or_default()
    );
    Err(Error::malformed(message))
}

/// Maximum number of JSON values in a body. A parsed value takes about ten times the memory of its text. The static
/// network config of ten thousand hosts has a tenth of this number.
const MAX_VALUES: usize = 1 << 20;

/// Returns an error if a body contains too many values, before memory is allocated for them.
fn require_few_values(content: JsonContent) -> Result<(), String> {
    if content.values > MAX_VALUES {
        return Err(format!("it has more than {MAX_VALUES} values"));
    }
    Ok(())
}

fn parsing_error<T: RequestBody>(reason: &dyn fmt::Display) -> Error {
    Error::malformed(format!("parsing {} body from \"\" failed, because {reason}", T::NAME))
}

/// Parses the first JSON value of the body. Ignores the bytes after it.
fn read<T: RequestBody>(body: ReceivedBody, unknown: UnknownKeys) -> Result<T, Error> {
    let parsing = |reason: &dyn fmt::Display| parsing_error::<T>(reason);
    let first = serde_json::Deserializer::from_slice(&body.bytes).into_iter::<Value>().next();
    // Frees the text before the value is converted.
    drop(body);
    let mut value = match first {
        None | Some(Ok(Value::Null)) => {
            return Err(Error::malformed(format!("{} in body is required", T::NAME)));
        }
        Some(value) => value.map_err(|error| parsing(&error))?,
    };
    T::prepare(&mut value);
    T::rules().check(&mut value, unknown).map_err(|fault| match fault {
        SchemaFault::Form(reason) => parsing(&reason),
        SchemaFault::Value(message) => Error::malformed(message),
        SchemaFault::Schema(what) => Error::broken(format_args!("the schema of {}: {what}", T::NAME)),
    })?;
    if let Some(place) = path_of_nul(&value) {
        return Err(Error::malformed(format!(
            "{} in body must not contain a NUL character",
            path_for_message(&place)
        )));
    }
    serde_json::from_value(value).map_err(|error| parsing(&error))
}

/// Returns the path of a string or key with a NUL character. Databases, logs and hosts cannot handle NUL characters.
fn path_of_nul(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => text.contains('\0').then(String::new),
        Value::Array(items) => items.iter().enumerate().find_map(|(index, item)| {
            let place = path_of_nul(item)?;
            Some(join(&index.to_string(), &place))
        }),
        Value::Object(map) => map.iter().find_map(|(key, item)| {
            if key.contains('\0') {
                return Some(key.escape_debug().to_string());
            }
            let place = path_of_nul(item)?;
            Some(join(key, &place))
        }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::super::large::SMALL;
    use super::super::memory_limit::AvailableMemory;
    use super::*;

    #[derive(Debug, Deserialize, ToSchema)]
    struct Note {
        text: String,
    }

    request_bodies! {
        Note: "note";
    }

    fn note(text: &str) -> Vec<u8> {
        serde_json::to_vec(&serde_json::json!({"text": text})).unwrap()
    }

    async fn unparsed(bytes: Vec<u8>) -> UnparsedBody {
        let (body, room) =
            (ReceivedBody::from_bytes(bytes).await, WorkRoom::within(AvailableMemory::default(), || ()));
        UnparsedBody { body, unknown: UnknownKeys::Refuse, room, memory: RequestMemory::default() }
    }

    #[tokio::test]
    async fn short_bodies_are_parsed_after_other_requests() {
        for len in [1, SMALL] {
            let text = "a".repeat(len);
            let mut parsing = std::pin::pin!(unparsed(note(&text)).await.parse::<Note>());
            // The other thread, which parses a large body, may finish before the poll.
            assert!(len == SMALL || futures_util::poll!(&mut parsing).is_pending());
            assert_eq!(parsing.await.unwrap().text, text);
        }
    }

    #[tokio::test]
    async fn rejects_a_body_with_too_many_values() {
        let refusal = unparsed(note(&",".repeat(MAX_VALUES))).await.parse::<Note>().await.unwrap_err();
        assert!(refusal.reason().ends_with("it has more than 1048576 values"), "{refusal}");
        unparsed(note(&",".repeat(MAX_VALUES - 1))).await.parse::<Note>().await.unwrap();
    }
}
