//! Records and reports as rows of the database.

use std::collections::BTreeMap;
use std::fmt;

use uuid::Uuid;

use super::Columns;

/// The kind of a record. Records of all kinds share one table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A cluster to install, or an installed cluster.
    Cluster,
    /// An infra-env.
    InfraEnv,
    /// A host, whose parent is its infra-env.
    Host,
    /// A base image that a client has added.
    OsImage,
    /// The list of the base images that clients have added. There is a single record of this kind.
    OsImageList,
    /// A background job with retries, such as the deletion of a cluster's files.
    Job,
    /// The assessment of a cluster. It has the id of the cluster and is removed with the cluster.
    Assessment,
    /// The validation results of a host, with the key of the host. No record has this kind: the results are stored as
    /// the report [`ReportKind::Results`], and only the change feed uses the kind. A cache must not return such keys in
    /// [`FeedCache::cached`](super::FeedCache::cached).
    HostResults,
}

impl Kind {
    /// All kinds, in the order of their declaration.
    pub const ALL: [Self; 8] = [
        Self::Cluster,
        Self::InfraEnv,
        Self::Host,
        Self::OsImage,
        Self::OsImageList,
        Self::Job,
        Self::Assessment,
        Self::HostResults,
    ];

    /// Returns the name of the kind in the database, such as `infra-env`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Cluster => "cluster",
            Self::InfraEnv => "infra-env",
            Self::Host => "host",
            Self::OsImage => "os-image",
            Self::OsImageList => "os-image-list",
            Self::Job => "job",
            Self::Assessment => "assessment",
            Self::HostResults => "host_results",
        }
    }
}

/// The key of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// The kind of the record.
    pub kind: Kind,
    /// The id of the host's infra-env. `None` for all other kinds.
    pub parent: Option<Uuid>,
    /// The id, unique among records with the same kind and parent.
    pub id: Uuid,
}

impl Key {
    /// Returns the key of the assessment of a cluster.
    #[must_use]
    pub fn of_assessment(cluster: Uuid) -> Self {
        Self { kind: Kind::Assessment, parent: None, id: cluster }
    }

    /// Returns the key of a host's validation results in the feed.
    #[must_use]
    pub fn of_host_results(host: Self) -> Self {
        Self { kind: Kind::HostResults, ..host }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind.as_str(), self.id)
    }
}

/// The schema version of the documents that this release writes.
///
/// The version increases when a document gets a new field. A release can read documents of a newer version if it
/// understands the values of all fields that the two versions share. When it replaces such a document, it keeps all
/// unknown fields of objects at any depth, but replaces a changed list completely.
pub const SCHEMA_VERSION: i64 = 1;

/// A record as a row of the database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The key, which is unique in the database.
    pub key: Key,
    /// The searchable parts, each in a separate column.
    pub columns: Columns,
    /// A number that increases by 1 with each write. If a removed record is created again, the record starts with a
    /// larger generation, so that the store refuses a change planned for the old record.
    pub generation: i64,
    /// The newest [schema version](SCHEMA_VERSION) that any release has written the document with.
    pub schema_version: i64,
    /// The record, serialized as JSON.
    pub document: String,
    /// The total length of the reports that the record names, in bytes. If `None`, the database computes it. Always
    /// `None` in records read from the database.
    pub reports_len: Option<u64>,
}

impl Row {
    /// Returns the row of a new record at generation 1, with default columns.
    #[must_use]
    pub fn new(key: Key, document: String) -> Self {
        let columns = Columns::default();
        Self { key, columns, generation: 1, schema_version: SCHEMA_VERSION, document, reports_len: None }
    }
}

assisted::string_enum! {
    /// A kind of report about a host. The host's agent sends most of them. Reports are stored apart from the host,
    /// because they are long and most operations do not need them.
    ReportKind {
        /// The hardware of the host.
        Inventory = "inventory",
        /// Connectivity to other hosts.
        Connectivity = "connectivity",
        /// Connectivity to the API of the cluster that the host joins.
        ApiVipConnectivity = "api_vip_connectivity",
        /// Connectivity to Tang servers.
        TangConnectivity = "tang_connectivity",
        /// Speed of the disks.
        DisksInfo = "disks_info",
        /// Time servers and their state.
        NtpSources = "ntp_sources",
        /// Availability of container images.
        ImagesStatus = "images_status",
        /// Results of DNS lookups.
        DomainNameResolutions = "domain_name_resolutions",
        /// Unused addresses.
        FreeAddresses = "free_addresses",
        /// Verification of the virtual IP addresses of the cluster.
        VerifiedVips = "verified_vips",
        /// DHCP leases of the virtual IP addresses of the cluster.
        VipLeases = "vip_leases",
        /// The facts from the other reports that validations need.
        Summary = "summary",
        /// Results of the host's validations. The only kind that the document of a host does not
        /// [name](ReportKind::is_named_by_host).
        Results = "results",
    }
}

impl ReportKind {
    /// Returns `true` if the document of a host names its report of this kind.
    ///
    /// A report that the document does not name is written without the host. The feed reports its changes as
    /// [`Kind::HostResults`]. It does not count toward the limits of the infra-env. It is kept when the host registers
    /// again, and removed when the host is deleted.
    #[must_use]
    pub fn is_named_by_host(self) -> bool {
        self != Self::Results
    }

    /// Returns the kinds that the document of a host does not name.
    pub(super) fn all_unnamed() -> impl Iterator<Item = Self> {
        Self::ALL.iter().copied().filter(|kind| !kind.is_named_by_host())
    }
}

/// A set of report kinds to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReportKinds(&'static [ReportKind]);

impl ReportKinds {
    /// The empty set, for reads without reports.
    pub const NONE: Self = Self(&[]);

    /// Returns the set of the listed kinds.
    #[must_use]
    pub const fn new(kinds: &'static [ReportKind]) -> Self {
        Self(kinds)
    }

    /// Returns `true` if the set contains no kinds.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    /// Returns the kinds in the order of the list.
    pub fn iter(self) -> impl Iterator<Item = ReportKind> {
        self.0.iter().copied()
    }
}

/// The JSON documents of one host's reports.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reports(pub BTreeMap<ReportKind, String>);

impl Reports {
    /// Returns the JSON document of a report.
    #[must_use]
    pub fn get(&self, kind: ReportKind) -> Option<&str> {
        self.0.get(&kind).map(String::as_str)
    }
}

/// Returns the size that counts toward a [`Bound`](super::Bound) for a record. `len` is the total length of its
/// document and reports, in bytes. The size is `len` rounded up to whole blocks of 4 KiB.
///
/// Because of the rounding, most small changes to the length do not change the size, so only few changes need a check
/// of the bound.
#[must_use]
pub fn counted_size(len: usize) -> u64 {
    const BLOCK: u64 = 4 << 10;
    // If the conversion saturates, the size exceeds every bound.
    u64::try_from(len).unwrap_or(u64::MAX).div_ceil(BLOCK).saturating_mul(BLOCK)
}
