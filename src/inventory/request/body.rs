//! Bodies.

use axum::extract::{FromRequest, Request};
use axum::http::header;
use serde::de::DeserializeOwned;
use serde_json::Value;
use utoipa::ToSchema;

use super::schema::{Fault, Schemas, UnknownKeys, join, shown};
use crate::api_error::ApiError;
use crate::inventory::Inventory;

/// A value that comes as the body of a request.
pub(crate) trait RequestBody: DeserializeOwned + ToSchema + Send + 'static {
    /// As messages call it.
    const NAME: &'static str;

    /// What its schema says, made ready once.
    fn rules() -> &'static Schemas;

    /// Makes other forms that are let pass into the one that the schema says.
    fn prepare(_body: &mut Value) {}
}

/// Says of types that they come as bodies, and under which names.
macro_rules! request_bodies {
    ($($body:ty: $name:literal $(, prepared by $prepare:path)?;)*) => {$(
        impl $crate::inventory::request::RequestBody for $body {
            const NAME: &'static str = $name;

            fn rules() -> &'static $crate::inventory::request::Schemas {
                static SCHEMAS: std::sync::OnceLock<$crate::inventory::request::Schemas> = std::sync::OnceLock::new();
                SCHEMAS.get_or_init($crate::inventory::request::Schemas::of::<$body>)
            }

            $(fn prepare(body: &mut serde_json::Value) {
                $prepare(body);
            })?
        }
    )*};
}
pub(crate) use request_bodies;

/// A body that was read and checked against its schema.
#[derive(Debug)]
pub(crate) struct Body<T>(pub(crate) T);

impl<T: RequestBody> FromRequest<Inventory> for Body<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, inventory: &Inventory) -> Result<Self, ApiError> {
        require_json(&request)?;
        let bytes = inventory.large_bodies().read(request).await?;
        let unknown =
            if inventory.settings().reject_unknown_fields { UnknownKeys::Refuse } else { UnknownKeys::Drop };
        read(&bytes, unknown).map(Self)
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

/// The most values of a body. Each takes some ten times the room that it has in the text, and a static network of ten
/// thousand hosts has a tenth of them.
const MOST_VALUES: usize = 1 << 20;

/// Refuses a body of more values than anybody means, before there is room for them.
fn require_few(bytes: &[u8]) -> Result<(), String> {
    let begins = |byte: &&u8| matches!(byte, b',' | b'[' | b'{');
    if bytes.iter().filter(begins).count() > MOST_VALUES {
        return Err(format!("it has more than {MOST_VALUES} values"));
    }
    Ok(())
}

/// Reads the first value in the bytes; what comes after it does not count.
fn read<T: RequestBody>(bytes: &[u8], unknown: UnknownKeys) -> Result<T, ApiError> {
    let parsing = |reason: String| {
        ApiError::malformed(format!("parsing {} body from \"\" failed, because {reason}", T::NAME))
    };
    require_few(bytes).map_err(parsing)?;
    let first = serde_json::Deserializer::from_slice(bytes).into_iter::<Value>().next();
    let mut value = match first {
        None | Some(Ok(Value::Null)) => {
            return Err(ApiError::malformed(format!("{} in body is required", T::NAME)));
        }
        Some(value) => value.map_err(|error| parsing(error.to_string()))?,
    };
    T::prepare(&mut value);
    T::rules().check(&mut value, unknown).map_err(|fault| match fault {
        Fault::Form(reason) => parsing(reason),
        Fault::Value(message) => ApiError::malformed(message),
    })?;
    if let Some(place) = place_of_nul(&value) {
        return Err(ApiError::malformed(format!("{} in body must not have a NUL", shown(&place))));
    }
    serde_json::from_value(value).map_err(|error| parsing(error.to_string()))
}

/// Where a text with a NUL is: no database, no log and no machine takes all of it.
fn place_of_nul(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => text.contains('\0').then(String::new),
        Value::Array(items) => items.iter().enumerate().find_map(|(index, item)| {
            let place = place_of_nul(item)?;
            Some(join(&index.to_string(), &place))
        }),
        Value::Object(map) => map.iter().find_map(|(key, item)| {
            if key.contains('\0') {
                return Some(key.escape_debug().to_string());
            }
            let place = place_of_nul(item)?;
            Some(join(key, &place))
        }),
        _ => None,
    }
}
