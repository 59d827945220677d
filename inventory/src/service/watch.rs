//! A stream of the changes to clusters, infra-envs and hosts.

use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};

use crate::Inventory;
use crate::id::{ClusterId, HostId, HostKey, InfraEnvId};
use crate::store::{ChangeKind, FeedEvent, FeedPosition, FeedReader, Key, Kind, RecordChange};

/// A query for the changes that [`Inventory::watch`] returns. By default, it selects all changes from now on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WatchQuery {
    /// The infra-env whose changes are returned, together with the changes to its hosts. `None` for no restriction.
    pub infra_env: Option<InfraEnvId>,
    /// Position of the last event that the caller has handled.
    pub after: Option<FeedPosition>,
}

/// An event in the stream of [`Inventory::watch`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WatchEvent {
    /// The record or the validation results of a resource have changed.
    Changed(ResourceChange),
    /// Changes may have been missed. The caller must read all resources again.
    Resync {
        /// The position after which the stream continues.
        position: FeedPosition,
    },
}

/// A change to one resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ResourceChange {
    /// The id of the changed resource, which the caller can read.
    pub resource: ResourceId,
    /// Whether the record was written or removed. Deleting a cluster or host writes its record, which is removed only
    /// after some time.
    pub kind: ChangeKind,
    /// A number that increases with every change to the record. `None` if only validation results have changed, which
    /// are not part of the record.
    pub generation: Option<i64>,
    /// The position to pass in [`WatchQuery::after`] to continue after this change.
    pub position: FeedPosition,
}

/// The id of a cluster, infra-env or host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum ResourceId {
    /// The id of a cluster, for changes to the cluster or its assessment.
    Cluster(ClusterId),
    /// The id of an infra-env.
    InfraEnv(InfraEnvId),
    /// The key of a host: its id and the id of its infra-env.
    Host(HostKey),
}

impl WatchEvent {
    /// Returns the position of the event. A watch with this position in [`WatchQuery::after`] continues with the next
    /// event.
    #[must_use]
    pub fn position(&self) -> FeedPosition {
        match self {
            Self::Changed(change) => change.position,
            Self::Resync { position } => *position,
        }
    }
}

impl ResourceId {
    /// Returns the resource of a record or of validation results. Returns `None` for other records, such as jobs.
    fn from_key(key: Key) -> Option<Self> {
        match (key.kind, key.parent) {
            (Kind::Cluster | Kind::Assessment, _) => Some(Self::Cluster(ClusterId(key.id))),
            (Kind::InfraEnv, _) => Some(Self::InfraEnv(InfraEnvId(key.id))),
            (Kind::Host | Kind::HostResults, Some(infra_env)) => {
                Some(Self::Host(HostKey { infra_env_id: InfraEnvId(infra_env), host_id: HostId(key.id) }))
            }
            _ => None,
        }
    }

    /// Returns the id of the infra-env, or of the infra-env that the host belongs to. Returns `None` for clusters.
    #[must_use]
    pub fn infra_env(self) -> Option<InfraEnvId> {
        match self {
            Self::Cluster(_) => None,
            Self::InfraEnv(id) => Some(id),
            Self::Host(key) => Some(key.infra_env_id),
        }
    }
}

impl Inventory {
    /// Returns a stream of the changes to clusters, infra-envs and hosts, including changes by other replicas.
    ///
    /// A change contains only the id of the resource, which the caller then reads. The stream may report a change
    /// twice, and the resource may have changed several times before the caller reads it. The stream does not contain
    /// check-ins. It also omits connectivity reports in which only measured numbers differ, because they change no
    /// validation.
    ///
    /// The first event is [`WatchEvent::Resync`], so that a caller can read all resources with the same code at the
    /// start and after a loss. If `query.after` is a recent position of this process, the stream continues there
    /// without a resync. The stream ends when the store is dropped.
    ///
    /// # Examples
    ///
    /// ```
    /// # use futures_util::StreamExt as _;
    /// # use inventory::Inventory;
    /// # use inventory::service::{ResourceId, WatchEvent, WatchQuery};
    /// # async fn follow(inventory: Inventory) -> Result<(), inventory::Error> {
    /// let mut events = inventory.watch(WatchQuery::default());
    /// while let Some(event) = events.next().await {
    ///     match event {
    ///         WatchEvent::Changed(change) => match change.resource {
    ///             ResourceId::Host(key) => println!("{:?}", inventory.host(key).await.map(|host| host.name())),
    ///             other => println!("{other:?} changed"),
    ///         },
    ///         _ => println!("read all resources again"),
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn watch(&self, query: WatchQuery) -> BoxStream<'static, WatchEvent> {
        let feed = self.records().store().feed();
        let (first, reader) = match query.after.and_then(|position| feed.subscribe_after(position)) {
            Some(reader) => (None, reader),
            None => {
                let reader = feed.subscribe();
                (Some(WatchEvent::Resync { position: reader.position() }), reader)
            }
        };
        let changes = stream::unfold(reader, move |mut reader| async move {
            let event = next_event(&mut reader, query.infra_env).await?;
            Some((event, reader))
        });
        stream::iter(first).chain(changes).boxed()
    }
}

/// Waits for the next event about the infra-env and its hosts, or about any resource if `infra_env` is `None`.
async fn next_event(reader: &mut FeedReader, infra_env: Option<InfraEnvId>) -> Option<WatchEvent> {
    loop {
        let event = reader.next().await?;
        let position = reader.position();
        let RecordChange { key, generation, kind } = match event {
            FeedEvent::Changed(change) => change,
            FeedEvent::Resync => return Some(WatchEvent::Resync { position }),
        };
        let Some(resource) = ResourceId::from_key(key) else { continue };
        // Validation results are removed together with their record, so only the removal of the record is returned.
        let is_of_results = matches!(key.kind, Kind::HostResults | Kind::Assessment);
        if is_of_results && kind == ChangeKind::Removed {
            continue;
        }
        let generation = (!is_of_results).then_some(generation);
        if infra_env.is_none() || resource.infra_env() == infra_env {
            return Some(WatchEvent::Changed(ResourceChange { resource, kind, generation, position }));
        }
    }
}

#[cfg(test)]
mod tests {
    use assisted::host::HostUpdateParams;
    use assisted::step::StepType;
    use futures_util::FutureExt as _;

    use super::*;
    use crate::id::HostKey;
    use crate::service::hosts::check_in::Poll;
    use crate::service::test_inventory::{
        INVENTORY_REPORT, TestInventory, infra_env_params, register_host, reply,
    };

    /// Returns the events that are ready without waiting.
    fn ready(events: &mut BoxStream<'static, WatchEvent>) -> Vec<WatchEvent> {
        std::iter::from_fn(|| events.next().now_or_never().flatten()).collect()
    }

    /// Returns the changes without positions and generations.
    fn changes(events: &[WatchEvent]) -> Vec<(ResourceId, ChangeKind)> {
        let change = |event: &WatchEvent| match event {
            WatchEvent::Changed(change) => (change.resource, change.kind),
            WatchEvent::Resync { .. } => panic!("{event:?}"),
        };
        events.iter().map(change).collect()
    }

    async fn register(inventory: &Inventory) -> InfraEnvId {
        inventory.register_infra_env(infra_env_params(), None).await.unwrap().id
    }

    #[tokio::test]
    async fn watch_begins_with_a_resync_and_continues_after_a_position() {
        let test = TestInventory::open().await;
        let inventory = &test.inventory;
        let mut events = inventory.watch(WatchQuery::default());
        let [first] = ready(&mut events)[..] else { panic!("not one event") };
        assert!(matches!(first, WatchEvent::Resync { .. }), "{first:?}");
        let (one, other) = (register(inventory).await, register(inventory).await);
        inventory.deregister_infra_env(one, None).await.unwrap();
        let expected = [
            (ResourceId::InfraEnv(one), ChangeKind::Written),
            (ResourceId::InfraEnv(other), ChangeKind::Written),
            (ResourceId::InfraEnv(one), ChangeKind::Removed),
        ];
        let received = ready(&mut events);
        assert_eq!(changes(&received), expected);
        for (event, handled) in [(first, 0), (received[0], 1), (received[2], 3)] {
            let after = Some(event.position());
            let mut again = inventory.watch(WatchQuery { after, ..WatchQuery::default() });
            assert_eq!(ready(&mut again), received[handled..]);
        }
    }

    #[tokio::test]
    async fn watch_of_an_infra_env_has_only_its_changes() {
        let test = TestInventory::open().await;
        let inventory = &test.inventory;
        let id = register(inventory).await;
        let mut events = inventory.watch(WatchQuery { infra_env: Some(id), after: None });
        assert_eq!(ready(&mut events).len(), 1);
        register(inventory).await;
        inventory.regenerate_signing_key(id, None).await.unwrap();
        assert_eq!(changes(&ready(&mut events)), [(ResourceId::InfraEnv(id), ChangeKind::Written)]);
    }

    const REPORTS: [(StepType, &str); 6] = [
        (StepType::Inventory, INVENTORY_REPORT),
        (StepType::NtpSynchronizer, r#"{"ntp_sources": [{"source_name": "a", "source_state": "synced"}]}"#),
        (StepType::NtpSynchronizer, r#"{"ntp_sources": [{"source_name": "a", "source_state": "error"}]}"#),
        (StepType::InstallationDiskSpeedCheck, r#"{"path": "/dev/sda", "io_sync_duration": 7}"#),
        (
            StepType::ContainerImageAvailability,
            r#"{"images": [{"name": "a", "result": "success", "time": 1.5}]}"#,
        ),
        (StepType::TangConnectivityCheck, r#"{"is_success": true, "tang_server_response": []}"#),
    ];

    async fn check_in(inventory: &Inventory, key: HostKey) {
        let agent_version = Some(inventory.settings().agent_image.clone());
        let poll = Poll { key, request: None, clock: None, agent_version };
        inventory.check_in(&poll).await.unwrap();
    }

    #[tokio::test]
    async fn watch_reports_each_change_of_a_host_once() {
        let test = TestInventory::open().await;
        let inventory = &test.inventory;
        let key = register_host(inventory).await;
        check_in(inventory, key).await;
        let mut events = inventory.watch(WatchQuery::default());
        ready(&mut events);
        let of_host = |events: &[WatchEvent]| {
            let events = changes(events);
            !events.is_empty()
                && events.iter().all(|event| *event == (ResourceId::Host(key), ChangeKind::Written))
        };
        for (step, output) in REPORTS {
            reply(inventory, key, step, output).await;
            let first = ready(&mut events);
            assert!(of_host(&first), "{step}: {first:?}");
            let version = async || inventory.host_details(key).await.unwrap().unwrap().version;
            let before = version().await;
            // The padded output is not recognized as a recent reply, as on another replica.
            let again = format!("{output} ");
            for output in [output, &again] {
                reply(inventory, key, step, output).await;
                check_in(inventory, key).await;
                assert_eq!(ready(&mut events), [], "{step}");
            }
            assert_eq!(version().await, before);
        }
        inventory.records().store_check_ins().await.unwrap();
        assert_eq!(ready(&mut events), []);
        inventory.approve_host(key, true).await.unwrap();
        assert!(of_host(&ready(&mut events)));
        let params = HostUpdateParams { host_name: Some("node-2".to_owned()), ..Default::default() };
        inventory.update_host(key, params, None).await.unwrap();
        assert!(of_host(&ready(&mut events)));
        inventory.deregister_host(key, None).await.unwrap();
        assert!(of_host(&ready(&mut events)));
    }

    #[tokio::test]
    async fn watch_after_an_unknown_position_begins_with_a_resync() {
        let test = TestInventory::open().await;
        let after = FeedPosition::parse("ffffffffffffffff-1");
        let mut events = test.inventory.watch(WatchQuery { after, ..WatchQuery::default() });
        assert!(matches!(ready(&mut events)[..], [WatchEvent::Resync { .. }]));
        test.inventory.close().await;
        drop(test);
    }
}
