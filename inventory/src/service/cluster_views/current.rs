//! The view of a cluster at one time.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use rules::steps::ConnectivityTargets;
use rules::view::{ClusterSettings, ClusterView, HostView};
use uuid::Uuid;

use crate::host::stored_results::AssessmentResults;
use crate::store::{Contact, Feed, Key};

/// How long a view is valid while changes of other processes are not reported.
const FRESH: Duration = Duration::from_millis(500);

/// A host of a view.
#[derive(Clone, Debug)]
pub(crate) struct ViewedHost {
    /// Key of its record.
    pub(crate) key: Key,
    /// Generation of its record.
    pub(crate) generation: i64,
    /// Its status text.
    pub(crate) status_info: Box<str>,
    /// The reason why its last inventory report was refused. `None`: it was accepted.
    pub(crate) refusal: Option<Box<str>>,
    /// The facts.
    pub(crate) view: Arc<HostView>,
    /// The stored results of its assessment. `None`: no results are stored in the version of this release.
    pub(crate) results: Option<Arc<AssessmentResults>>,
}

impl ViewedHost {
    fn len(&self) -> usize {
        // Results have a few numbers and short texts for each validation.
        const RESULTS: usize = 2048;
        size_of::<Self>() + size_of::<HostView>() + self.view.summary.memory_len() + RESULTS
    }
}

/// The cluster of a view.
#[derive(Debug)]
pub(super) struct ViewedCluster {
    pub(super) settings: Arc<ClusterSettings>,
    /// Generation of its record.
    pub(super) generation: i64,
    /// Number of times that a host joined or left the cluster, read before its hosts.
    pub(super) membership: i64,
}

/// Returns the position of a host in a view: by id, then by infra-env.
pub(super) fn order_of(host: &Key) -> (Uuid, Option<Uuid>) {
    (host.id, host.parent)
}

/// A cluster with its hosts, and the generations of the records that it was made from.
#[derive(Debug)]
pub(crate) struct CurrentView {
    view: Arc<ClusterView>,
    /// Generation of the cluster's record.
    cluster_generation: i64,
    /// Membership of the cluster, read before its hosts.
    membership: i64,
    /// The hosts, in the order of the view.
    hosts: Vec<ViewedHost>,
    targets: OnceLock<ConnectivityTargets>,
    read_at: Instant,
    /// The connection of the feed that was listening at that time.
    listening_since: u64,
}

impl CurrentView {
    /// Returns the view of a cluster with the generation of its record and its membership. `read` is the time before the first read, and
    /// the connection of the feed that was listening then.
    pub(super) fn new(
        ViewedCluster { settings: cluster, generation: cluster_generation, membership }: ViewedCluster,
        mut hosts: Vec<ViewedHost>,
        (read_at, listening_since): (Instant, u64),
    ) -> Self {
        hosts.sort_by_key(|host| order_of(&host.key));
        let views = hosts.iter().map(|host| Arc::clone(&host.view)).collect();
        let view = Arc::new(ClusterView { cluster, hosts: views });
        Self {
            view,
            cluster_generation,
            membership,
            hosts,
            targets: OnceLock::new(),
            read_at,
            listening_since,
        }
    }

    /// Returns the facts.
    pub(crate) fn facts(&self) -> &Arc<ClusterView> {
        &self.view
    }

    /// Returns the generation of the cluster's record.
    pub(crate) fn cluster_generation(&self) -> i64 {
        self.cluster_generation
    }

    /// Returns the membership of the cluster: the number of times that a host joined or left it, read before its hosts.
    pub(crate) fn membership(&self) -> i64 {
        self.membership
    }

    /// Returns the hosts, by id.
    pub(crate) fn hosts(&self) -> &[ViewedHost] {
        &self.hosts
    }

    /// Returns a host of the cluster.
    pub(crate) fn host(&self, key: &Key) -> Option<&ViewedHost> {
        let found = self.hosts.binary_search_by_key(&order_of(key), |host| order_of(&host.key));
        found.ok().and_then(|index| self.hosts.get(index))
    }

    /// Returns the hosts whose connectivity the others check. They are listed when the first agent asks for them.
    pub(crate) fn targets(&self) -> &ConnectivityTargets {
        self.targets.get_or_init(|| {
            ConnectivityTargets::new(&self.view.hosts).unwrap_or_else(|error| {
                let cluster = self.view.cluster.id;
                tracing::error!(%cluster, %error, "the hosts of a cluster cannot be listed for connectivity checks");
                ConnectivityTargets::default()
            })
        })
    }

    /// Returns `true` if the changes of its records have been reported since it was read.
    pub(super) fn is_followed(&self, feed: &Feed) -> bool {
        match feed.contact() {
            Contact::Connected => self.listening_since == feed.listening_since(),
            Contact::Polling => self.read_at.elapsed() < FRESH,
            Contact::Reconnecting | Contact::Unusable | Contact::Unreachable => false,
        }
    }

    /// Returns its size in bytes, about.
    pub(super) fn len(&self) -> usize {
        self.hosts.iter().map(ViewedHost::len).fold(size_of::<Self>(), usize::saturating_add)
    }
}
