//! Records and reports in their form in the database.

use std::collections::BTreeMap;
use std::fmt;

use uuid::Uuid;

use super::Columns;

/// A kind of record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A cluster.
    Cluster,
    /// An infra-env.
    InfraEnv,
    /// A host of an infra-env.
    Host,
    /// A base image that a client added.
    OsImage,
    /// The list of base images that clients added. It is one record.
    OsImageList,
    /// A job.
    Job,
    /// The assessment of a cluster. It has the id of the cluster, and is removed with it.
    Assessment,
    /// The validation results of a host, with the key of the host. This kind is only in the feed: the results are the
    /// report [`ReportKind::Results`], and no record has this kind. A cache must not return such keys in
    /// [`FeedCache::cached`](super::FeedCache::cached).
    HostResults,
}

impl Kind {
    /// All kinds.
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

    /// Returns the name of the kind in the database.
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
    /// The kind.
    pub kind: Kind,
    /// The parent: the infra-env of a host. Other records have none.
    pub parent: Option<Uuid>,
    /// The id.
    pub id: Uuid,
}

impl Key {
    /// Returns the key of a cluster's assessment.
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

/// The schema version of the documents that this program writes.
///
/// It increases when a document gets a new field. A program reads documents of newer versions if it understands the
/// values of the fields that it knows. When it replaces such a document, it keeps all unknown fields of objects, at any
/// depth; a list that it changes is replaced.
pub const SCHEMA_VERSION: i64 = 1;

/// A record in its form in the database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The key.
    pub key: Key,
    /// The searchable parts.
    pub columns: Columns,
    /// Increases by 1 with each write. A record that is created again after it was removed starts with a larger one, so
    /// that a change that was planned before is refused.
    pub generation: i64,
    /// The newest schema version that the document was written with. See [`SCHEMA_VERSION`].
    pub schema_version: i64,
    /// The record, as JSON.
    pub document: String,
    /// The length of the reports that the record names, in bytes, if the writer knows it. Otherwise the database counts
    /// them. `None` in records that were read.
    pub reports_len: Option<u64>,
}

impl Row {
    /// Returns a new record.
    #[must_use]
    pub fn new(key: Key, document: String) -> Self {
        let columns = Columns::default();
        Self { key, columns, generation: 1, schema_version: SCHEMA_VERSION, document, reports_len: None }
    }
}

assisted::string_enum! {
    /// A kind of report on a host. Most are from the host's agent. Reports are stored apart from the host, because they
    /// are long and most operations do not need them.
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
        /// The facts in the other reports that validations need.
        Summary = "summary",
        /// Results of the host's validations. See [`ReportKind::is_named_by_host`].
        Results = "results",
    }
}

impl ReportKind {
    /// Returns `true` if the document of the host names its report of this kind.
    ///
    /// A report that the document does not name is written without the host, and the feed reports its changes as
    /// [`Kind::HostResults`]. It does not count against the limits of the infra-env. It is kept when the host registers
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

/// A set of kinds of reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReportKinds(&'static [ReportKind]);

impl ReportKinds {
    /// No reports.
    pub const NONE: Self = Self(&[]);

    /// Returns the set of these kinds.
    #[must_use]
    pub const fn new(kinds: &'static [ReportKind]) -> Self {
        Self(kinds)
    }

    /// Returns `true` for the empty set.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    /// Returns the kinds.
    pub fn iter(self) -> impl Iterator<Item = ReportKind> {
        self.0.iter().copied()
    }
}

/// Reports of one host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reports(pub BTreeMap<ReportKind, String>);

impl Reports {
    /// Returns a report.
    #[must_use]
    pub fn get(&self, kind: ReportKind) -> Option<&str> {
        self.0.get(&kind).map(String::as_str)
    }
}

/// Returns the size that counts against a [`Bound`](super::Bound) for a record whose document and reports have this
/// length together: the length rounded up to whole blocks.
///
/// Reports of about the same length count the same. So few changes need a check against a bound.
#[must_use]
pub fn counted_size(len: usize) -> u64 {
    const BLOCK: u64 = 4 << 10;
    // A longer document exceeds every bound.
    u64::try_from(len).unwrap_or(u64::MAX).div_ceil(BLOCK).saturating_mul(BLOCK)
}
