//! The ids of API resources, with a separate type for each kind of resource.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(value_type = String, format = Uuid))]
        pub struct $name(
            /// The UUID. Its text form is lower case, with dashes.
            pub Uuid,
        );

        impl $name {
            /// Returns a new random id.
            #[must_use]
            pub fn fresh() -> Self {
                Self(Uuid::new_v4())
            }
        }

        impl From<Uuid> for $name {
            fn from(id: Uuid) -> Self {
                Self(id)
            }
        }

        impl FromStr for $name {
            type Err = uuid::Error;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                text.parse().map(Self)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    )*};
}

ids! {
    /// The id of a cluster.
    ClusterId;
    /// The id of an infra-env.
    InfraEnvId;
    /// The id of a host. The agent derives it from the machine's serial numbers. A machine that boots the images of two
    /// infra-envs becomes two hosts with the same id.
    HostId;
}
