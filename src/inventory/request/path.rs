//! Ids in the path.

use axum::extract::{FromRequestParts, RawPathParams};
use axum::http::request::Parts;

use crate::inventory::Refusal;
use crate::inventory::id::RecordId;

/// The id of a record in the path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct At<I>(pub(crate) I);

impl<S: Send + Sync, I: RecordId> FromRequestParts<S> for At<I> {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refusal> {
        let parameters = RawPathParams::from_request_parts(parts, state).await;
        let parameters = parameters.map_err(|error| Refusal::malformed(error.to_string()))?;
        let found = parameters.iter().find(|(name, _)| *name == I::PARAMETER);
        let text = found.map(|(_, text)| text).unwrap_or_default();
        match text.parse::<uuid::Uuid>() {
            Ok(id) => Ok(Self(I::from(id))),
            Err(_) => {
                Err(Refusal::malformed(format!("{} in path must be of type uuid: {text:?}", I::PARAMETER)))
            }
        }
    }
}
