//! The two JSON documents that error responses contain.
//!
//! Operations respond with [`OperationError`]. The steps before an operation (routing, authentication, parameter
//! parsing) respond with [`InfraError`]. Clients must accept both with any status, and also other bodies: a proxy, for
//! example, may respond with HTML.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::wire::null_as_default;

/// An error of an operation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = error))]
pub struct OperationError {
    /// The status, as text.
    pub code: String,
    /// Always empty.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub href: Cow<'static, str>,
    /// The status, as a number.
    pub id: u16,
    /// Always `Error`.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub kind: Cow<'static, str>,
    /// The reason, for people.
    pub reason: String,
    /// The findings about static network configs.
    #[serde(default, deserialize_with = "null_as_default", skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "openapi", schema(value_type = Vec<Object>, required = false))]
    pub findings: Vec<Value>,
}

impl OperationError {
    /// Returns the error with this status and reason.
    pub fn new(status: u16, reason: impl Into<String>) -> Self {
        Self {
            code: status.to_string(),
            href: "".into(),
            id: status,
            kind: "Error".into(),
            reason: reason.into(),
            findings: Vec::new(),
        }
    }
}

/// An error of the router, of authentication or of parameter parsing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = infra_error))]
pub struct InfraError {
    /// The HTTP status.
    pub code: u16,
    /// The reason, for people.
    pub message: String,
}

/// An error document of either kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = refusal))]
pub enum EitherError {
    /// An error of an operation.
    Operation(OperationError),
    /// An error of a step before the operation: routing, authentication or parameter parsing.
    Infra(InfraError),
}

impl EitherError {
    /// Returns the reason, for people.
    ///
    /// # Examples
    ///
    /// ```
    /// use assisted::error::EitherError;
    ///
    /// let error: EitherError = serde_json::from_str(r#"{"code":401,"message":"no token"}"#)?;
    /// assert_eq!(error.reason(), "no token");
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    #[must_use]
    pub fn reason(&self) -> &str {
        match self {
            Self::Operation(error) => &error.reason,
            Self::Infra(error) => &error.message,
        }
    }
}
