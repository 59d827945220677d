//! Request bodies.

use axum::extract::{FromRequest, Request};
use axum::http::header;
use serde::de::DeserializeOwned;
use serde_json::Value;
use utoipa::ToSchema;

use super::schema::{SchemaFault, Schemas, UnknownKeys, join, path_for_message};
use crate::Inventory;
use crate::api::ApiError;
use crate::background::in_background;

/// A type that is read from a request body.
pub trait RequestBody: DeserializeOwned + ToSchema + Send + 'static {
    /// The name of the body in messages.
    const NAME: &'static str;

    /// Returns the schema of the type, prepared once.
    fn rules() -> &'static Schemas;

    /// Converts other accepted forms of the body into the form of the schema.
    fn prepare(_body: &mut Value) {}
}

/// Implements [`RequestBody`] for types, with their names in messages.
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

/// A request body that was parsed and checked against its schema.
#[derive(Debug)]
pub struct Body<T>(pub T);

impl<T: RequestBody> FromRequest<Inventory> for Body<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, inventory: &Inventory) -> Result<Self, ApiError> {
        UnparsedBody::from_request(request, inventory).await?.parse().await.map(Self)
    }
}

/// A longer body is parsed in the background: 1 MiB may take a quarter of a second.
const LONG_BODY: usize = 64 << 10;

/// A request body that is not parsed yet.
#[derive(Debug)]
pub struct UnparsedBody {
    bytes: Vec<u8>,
    unknown: UnknownKeys,
}

impl FromRequest<Inventory> for UnparsedBody {
    type Rejection = ApiError;

    async fn from_request(request: Request, inventory: &Inventory) -> Result<Self, ApiError> {
        require_json(&request)?;
        let bytes = inventory.large_bodies().read(request).await?;
        let unknown =
            if inventory.settings().reject_unknown_fields { UnknownKeys::Refuse } else { UnknownKeys::Drop };
        Ok(Self { bytes, unknown })
    }
}

impl UnparsedBody {
    /// Returns the bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Parses the body, and checks it against the schema of its type. Meanwhile, other requests do not wait: this one
    /// yields first, and a long body is parsed on another thread.
    ///
    /// # Errors
    ///
    /// Returns an error if the body is not valid JSON or does not match the schema.
    pub async fn parse<T: RequestBody>(self) -> Result<T, ApiError> {
        let Self { bytes, unknown } = self;
        if bytes.len() > LONG_BODY {
            return in_background(move |_| read(&bytes, unknown)).await;
        }
        tokio::task::yield_now().await;
        read(&bytes, unknown)
    }
}

fn require_json(request: &Request) -> Result<(), ApiError> {
    let found = request.headers().get(header::CONTENT_TYPE).map(|value| value.to_str().unwrap_or("?"));
    let media_type = found.unwrap_or_default().split(';').next().unwrap_or_default().trim();
    if media_type.eq_ignore_ascii_case("application/json") {
        return Ok(());
    }
    let message = format!(
        "unsupported media type {:?}, only [application/json] are allowed",
        found.unwrap_or_default()
    );
    Err(ApiError::malformed(message))
}

/// The most values of a body. A parsed value takes about ten times the memory of its text. A static network of ten
/// thousand hosts has a tenth of this number.
const MAX_VALUES: usize = 1 << 20;

/// Returns an error if a body has too many values, before memory is allocated for them.
fn require_few_values(bytes: &[u8]) -> Result<(), String> {
    let begins = |byte: &&u8| matches!(byte, b',' | b'[' | b'{');
    // A body has more bytes than values.
    if bytes.len() > MAX_VALUES && bytes.iter().filter(begins).count() > MAX_VALUES {
        return Err(format!("it has more than {MAX_VALUES} values"));
    }
    Ok(())
}

/// Parses the first JSON value of the body. Ignores the bytes after it.
fn read<T: RequestBody>(bytes: &[u8], unknown: UnknownKeys) -> Result<T, ApiError> {
    let parsing = |reason: String| {
        ApiError::malformed(format!("parsing {} body from \"\" failed, because {reason}", T::NAME))
    };
    require_few_values(bytes).map_err(parsing)?;
    let first = serde_json::Deserializer::from_slice(bytes).into_iter::<Value>().next();
    let mut value = match first {
        None | Some(Ok(Value::Null)) => {
            return Err(ApiError::malformed(format!("{} in body is required", T::NAME)));
        }
        Some(value) => value.map_err(|error| parsing(error.to_string()))?,
    };
    T::prepare(&mut value);
    T::rules().check(&mut value, unknown).map_err(|fault| match fault {
        SchemaFault::Form(reason) => parsing(reason),
        SchemaFault::Value(message) => ApiError::malformed(message),
        SchemaFault::Schema(what) => ApiError::broken(format_args!("the schema of {}: {what}", T::NAME)),
    })?;
    if let Some(place) = path_of_nul(&value) {
        return Err(ApiError::malformed(format!(
            "{} in body must not contain a NUL character",
            path_for_message(&place)
        )));
    }
    serde_json::from_value(value).map_err(|error| parsing(error.to_string()))
}

/// Returns the path of a string or key with a NUL character, which databases, logs and hosts do not handle.
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

    use super::*;

    #[derive(Debug, Deserialize, ToSchema)]
    struct Note {
        text: String,
    }

    request_bodies! {
        Note: "note";
    }

    #[tokio::test]
    async fn short_bodies_are_parsed_after_other_requests() {
        for len in [1, LONG_BODY] {
            let text = "a".repeat(len);
            let bytes = serde_json::to_vec(&serde_json::json!({"text": text})).unwrap();
            let mut parsing =
                std::pin::pin!(UnparsedBody { bytes, unknown: UnknownKeys::Refuse }.parse::<Note>());
            // The other thread that parses a long body may be as fast as this one.
            assert!(len == LONG_BODY || futures_util::poll!(&mut parsing).is_pending());
            assert_eq!(parsing.await.unwrap().text, text);
        }
    }
}
