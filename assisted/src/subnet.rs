//! The type of IP networks, which the API contains in CIDR notation.

use std::fmt;

use serde::{Deserialize, Serialize};

/// An IP network in CIDR notation: an address and a prefix length.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Subnet(
    /// The network as text, such as `10.0.0.0/16`. Deserialization does not validate it.
    pub String,
);

impl Subnet {
    /// Regular expression for the networks that services accept.
    pub const PATTERN: &str = r"^(?:(?:(?:[0-9]{1,3}\.){3}[0-9]{1,3}\/(?:(?:[0-9])|(?:[1-2][0-9])|(?:3[0-2])))|(?:(?:[0-9a-fA-F]*:[0-9a-fA-F]*){2,})/(?:(?:[0-9])|(?:[1-9][0-9])|(?:1[0-1][0-9])|(?:12[0-8])))$";
}

impl From<&str> for Subnet {
    fn from(cidr: &str) -> Self {
        Self(cidr.to_owned())
    }
}

impl fmt::Display for Subnet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(feature = "openapi")]
mod schema {
    use std::borrow::Cow;

    use utoipa::openapi::RefOr;
    use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
    use utoipa::{PartialSchema, ToSchema};

    use super::Subnet;

    impl PartialSchema for Subnet {
        fn schema() -> RefOr<Schema> {
            ObjectBuilder::new().schema_type(Type::String).pattern(Some(Self::PATTERN)).build().into()
        }
    }

    impl ToSchema for Subnet {
        fn name() -> Cow<'static, str> {
            "subnet".into()
        }
    }
}
