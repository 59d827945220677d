//! The target of an operation: the resources that its request names.
//!
//! An operation declares its target in the type of its [`Caller`](super::Caller): which ids it reads, and from which
//! parts of the request. The operation uses only these ids, so no other part of a request can widen a token's access.

use axum::extract::{FromRequestParts, RawPathParams};
use axum::http::request::Parts;

use crate::api::Query;
use crate::auth::{AuthKind, Named};
use crate::error::Error;
use crate::id::{ClusterId, HostId, HostKey, InfraEnvId, RecordId};

/// The part of a request that contains an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IdSource {
    /// A path parameter.
    Path(&'static str),
    /// A path parameter that contains a token of this kind. The token names an infra-env.
    PathToken(&'static str, AuthKind),
    /// A query parameter.
    Query(&'static str),
    /// A field of the body.
    Body(&'static str),
}

impl IdSource {
    /// Returns the name of the parameter or field.
    #[must_use]
    pub fn parameter_name(&self) -> &'static str {
        match self {
            Self::Path(name) | Self::PathToken(name, _) | Self::Query(name) | Self::Body(name) => name,
        }
    }
}

/// The target of an operation, read from its request before the operation begins.
pub trait Target: Sized + Send + Sync + 'static {
    /// The sources of the ids that form the target.
    const IDS: &'static [IdSource];

    /// Reads the target from the parameters of a request.
    ///
    /// # Errors
    ///
    /// Returns an error if an id is missing or is not a UUID.
    fn read(ids: &Ids<'_>) -> Result<Self, Error>;

    /// Returns the resources that the token must grant access to. `None`: the body names them, so the operation checks
    /// the token itself.
    fn named(&self) -> Option<Named>;
}

/// The path and query parameters of a request.
#[derive(Debug)]
pub struct Ids<'a> {
    path: RawPathParams,
    query: &'a Query,
}

impl<'a> Ids<'a> {
    pub(super) async fn of_request(parts: &mut Parts, query: &'a Query) -> Result<Self, Error> {
        let path = RawPathParams::from_request_parts(parts, &()).await;
        let path = path.map_err(|error| Error::malformed(error.to_string()))?;
        Ok(Self { path, query })
    }

    fn in_path<I: RecordId>(&self) -> Result<I, Error> {
        let parameter = self.path.iter().find(|(name, _)| *name == I::PARAMETER).map(|(_, text)| text);
        let Some(text) = parameter else {
            return Err(Error::broken(format_args!("the route has no parameter {}", I::PARAMETER)));
        };
        match text.parse::<uuid::Uuid>() {
            Ok(id) => Ok(I::from(id)),
            Err(_) => {
                Err(Error::malformed(format!("{} in path must be of type uuid: {text:?}", I::PARAMETER)))
            }
        }
    }

    fn in_query<I: RecordId>(&self) -> Result<Option<I>, Error> {
        self.query.id(I::PARAMETER)
    }
}

/// The service as a whole: lists, creation, versions. The token must grant access to all resources.
#[derive(Clone, Copy, Debug)]
pub struct WholeService;

impl Target for WholeService {
    const IDS: &'static [IdSource] = &[];

    fn read(_: &Ids<'_>) -> Result<Self, Error> {
        Ok(Self)
    }

    fn named(&self) -> Option<Named> {
        Some(Named::default())
    }
}

impl Target for InfraEnvId {
    const IDS: &'static [IdSource] = &[IdSource::Path("infra_env_id")];

    fn read(ids: &Ids<'_>) -> Result<Self, Error> {
        ids.in_path()
    }

    fn named(&self) -> Option<Named> {
        Some(Named { infra_env: Some(*self), ..Named::default() })
    }
}

impl Target for ClusterId {
    const IDS: &'static [IdSource] = &[IdSource::Path("cluster_id")];

    fn read(ids: &Ids<'_>) -> Result<Self, Error> {
        ids.in_path()
    }

    fn named(&self) -> Option<Named> {
        Some(Named { cluster: Some(*self), ..Named::default() })
    }
}

impl Target for HostKey {
    const IDS: &'static [IdSource] = &[IdSource::Path("infra_env_id"), IdSource::Path("host_id")];

    fn read(ids: &Ids<'_>) -> Result<Self, Error> {
        Ok(Self { infra_env_id: ids.in_path()?, host_id: ids.in_path()? })
    }

    fn named(&self) -> Option<Named> {
        Some(Named { infra_env: Some(self.infra_env_id), hosts: vec![self.host_id], ..Named::default() })
    }
}

/// The source of uploaded logs: a host of a cluster, or the cluster's controller.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LogsSource {
    pub(crate) cluster: ClusterId,
    pub(crate) host: Option<HostId>,
    pub(crate) infra_env: Option<InfraEnvId>,
}

impl Target for LogsSource {
    const IDS: &'static [IdSource] =
        &[IdSource::Path("cluster_id"), IdSource::Query("host_id"), IdSource::Query("infra_env_id")];

    fn read(ids: &Ids<'_>) -> Result<Self, Error> {
        Ok(Self { cluster: ids.in_path()?, host: ids.in_query()?, infra_env: ids.in_query()? })
    }

    fn named(&self) -> Option<Named> {
        let hosts = self.host.into_iter().collect();
        Some(Named { infra_env: self.infra_env, cluster: Some(self.cluster), hosts })
    }
}

/// The cluster whose logs a client downloads, and optionally one of its hosts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClusterLogs {
    pub(crate) cluster: ClusterId,
    pub(crate) host: Option<HostId>,
}

impl Target for ClusterLogs {
    const IDS: &'static [IdSource] = &[IdSource::Path("cluster_id"), IdSource::Query("host_id")];

    fn read(ids: &Ids<'_>) -> Result<Self, Error> {
        Ok(Self { cluster: ids.in_path()?, host: ids.in_query()? })
    }

    fn named(&self) -> Option<Named> {
        Some(Named {
            cluster: Some(self.cluster),
            hosts: self.host.into_iter().collect(),
            ..Named::default()
        })
    }
}

/// The resources whose changes a client reads: an infra-env and its hosts, or all resources.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChangesOf(pub(crate) Option<InfraEnvId>);

impl Target for ChangesOf {
    const IDS: &'static [IdSource] = &[IdSource::Query("infra_env_id")];

    fn read(ids: &Ids<'_>) -> Result<Self, Error> {
        ids.in_query().map(Self)
    }

    fn named(&self) -> Option<Named> {
        Some(Named { infra_env: self.0, ..Named::default() })
    }
}

/// The resources whose events a client requests.
#[derive(Clone, Debug)]
pub(crate) struct EventsOf(pub(crate) Named);

impl Target for EventsOf {
    const IDS: &'static [IdSource] = &[
        IdSource::Query("cluster_id"),
        IdSource::Query("infra_env_id"),
        IdSource::Query("host_id"),
        IdSource::Query("host_ids"),
    ];

    fn read(ids: &Ids<'_>) -> Result<Self, Error> {
        let mut hosts: Vec<HostId> = ids.query.ids("host_ids")?;
        hosts.extend(ids.in_query::<HostId>()?);
        Ok(Self(Named { infra_env: ids.in_query()?, cluster: ids.in_query()?, hosts }))
    }

    fn named(&self) -> Option<Named> {
        Some(self.0.clone())
    }
}

/// The target of an event, which only the body names. The operation reads the body, then calls
/// [`Caller::require`](super::Caller::require).
#[derive(Clone, Copy, Debug)]
pub(crate) struct NamedInBody;

impl Target for NamedInBody {
    const IDS: &'static [IdSource] =
        &[IdSource::Body("infra_env_id"), IdSource::Body("cluster_id"), IdSource::Body("host_id")];

    fn read(_: &Ids<'_>) -> Result<Self, Error> {
        Ok(Self)
    }

    fn named(&self) -> Option<Named> {
        None
    }
}
