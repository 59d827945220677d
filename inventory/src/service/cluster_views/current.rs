//! The view of a cluster: the cluster with the facts about all its hosts at one time.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use rules::steps::ConnectivityTargets;
use rules::view::{ClusterSettings, ClusterView, HostView};
use uuid::Uuid;

use crate::host::stored_results::AssessmentResults;
use crate::store::{Contact, Feed, Key};

/// Time for which a view is valid while the feed does not report changes by other processes.
const FRESH: Duration = Duration::from_millis(500);

/// A host in a view.
#[derive(Clone, Debug)]
pub(crate) struct ViewedHost {
    /// Key of the host's record.
    pub(crate) key: Key,
    /// Generation of the host's record.
    pub(crate) generation: i64,
    /// Status info of the host, as shown to users.
    pub(crate) status_info: Box<str>,
    /// The reason why the service refused the last inventory report. `None` if it was accepted.
    pub(crate) refusal: Option<Box<str>>,
    /// The facts about the host that rules read.
    pub(crate) view: Arc<HostView>,
    /// The stored results of the host's last assessment. `None` if no results are stored in the format of this release.
    pub(crate) results: Option<Arc<AssessmentResults>>,
}

impl ViewedHost {
    fn len(&self) -> usize {
        // Approximate size of the validation results in bytes: a few numbers and short texts for each validation.
        const RESULTS: usize = 2048;
        size_of::<Self>() + size_of::<HostView>() + self.view.summary.memory_len() + RESULTS
    }
}

/// The cluster of a view.
#[derive(Debug)]
pub(super) struct ViewedCluster {
    pub(super) settings: Arc<ClusterSettings>,
    /// Generation of the cluster's record.
    pub(super) generation: i64,
    /// Number of times that hosts have joined or left the cluster. Read before the hosts.
    pub(super) membership: i64,
}

/// Returns the sort key of a host in a view: its id, then its infra-env.
pub(super) fn order_of(host: &Key) -> (Uuid, Option<Uuid>) {
    (host.id, host.parent)
}

/// A cluster with its hosts, and the generations of the records they were read from.
#[derive(Debug)]
pub(crate) struct CurrentView {
    view: Arc<ClusterView>,
    cluster_generation: i64,
    /// Number of times that hosts have joined or left the cluster. Read before the hosts.
    membership: i64,
    /// The hosts, in the order of [`order_of`].
    hosts: Vec<ViewedHost>,
    targets: OnceLock<ConnectivityTargets>,
    read_at: Instant,
    /// The [number](Feed::listening_since) of the feed's connection at `read_at`.
    listening_since: u64,
}

impl CurrentView {
    /// Returns the view of a cluster and its hosts. `read_at` is the time before the first read, and `listening_since`
    /// the number of the feed's connection at that time.
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

    /// Returns the facts about the cluster and its hosts.
    pub(crate) fn facts(&self) -> &Arc<ClusterView> {
        &self.view
    }

    pub(crate) fn cluster_generation(&self) -> i64 {
        self.cluster_generation
    }

    /// Returns the number of times that hosts have joined or left the cluster. It was read before the hosts.
    pub(crate) fn membership_changes(&self) -> i64 {
        self.membership
    }

    /// Returns the hosts, sorted by id.
    pub(crate) fn hosts(&self) -> &[ViewedHost] {
        &self.hosts
    }

    /// Returns a host of the cluster by its key.
    pub(crate) fn host(&self, key: &Key) -> Option<&ViewedHost> {
        let position = self.hosts.binary_search_by_key(&order_of(key), |host| order_of(&host.key));
        position.ok().and_then(|index| self.hosts.get(index))
    }

    /// Returns the hosts to which the other hosts check their connectivity. The list is built when the first agent
    /// needs it.
    pub(crate) fn targets(&self) -> &ConnectivityTargets {
        self.targets.get_or_init(|| {
            ConnectivityTargets::new(&self.view.hosts).unwrap_or_else(|error| {
                let cluster = self.view.cluster.id;
                tracing::error!(%cluster, %error, "the hosts of a cluster cannot be listed for connectivity checks");
                ConnectivityTargets::default()
            })
        })
    }

    /// Returns `true` if the feed has reported all changes to the view's records since they were read.
    pub(super) fn is_followed(&self, feed: &Feed) -> bool {
        match feed.contact() {
            Contact::Connected => self.listening_since == feed.listening_since(),
            Contact::Polling => self.read_at.elapsed() < FRESH,
            Contact::Reconnecting | Contact::Unusable | Contact::Unreachable => false,
        }
    }

    /// Returns the approximate size of the view in bytes.
    pub(super) fn len(&self) -> usize {
        self.hosts.iter().map(ViewedHost::len).fold(size_of::<Self>(), usize::saturating_add)
    }
}
