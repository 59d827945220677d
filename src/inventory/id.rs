//! The ids of records.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

/// An id that may stand in a path.
pub(crate) trait RecordId: From<Uuid> + Send {
    /// The name of the path's parameter.
    const PARAMETER: &'static str;
}

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident: $parameter:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
        #[serde(transparent)]
        #[schema(value_type = String, format = Uuid)]
        pub struct $name(pub Uuid);

        impl $name {
            /// An id that nothing has yet.
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

        impl RecordId for $name {
            const PARAMETER: &'static str = $parameter;
        }
    )*};
}

ids! {
    /// The id of a cluster.
    ClusterId: "cluster_id";
    /// The id of an infra-env.
    InfraEnvId: "infra_env_id";
    /// The id of a host. The agent makes it from the machine's serial numbers, so one machine that boots images of two
    /// infra-envs is two hosts of one id.
    HostId: "host_id";
}
