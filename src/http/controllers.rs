//! Controllers of custom resources in the process of the server, as `/metrics` and `/health` show them.

use std::fmt;
use std::sync::{Arc, OnceLock};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use serde::Serialize;
use utoipa::ToSchema;

/// The health of the controllers of custom resources.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = kubernetes_health)]
pub struct ControllerHealth {
    /// Whether this replica is the leader, which alone reconciles custom resources.
    pub leader: bool,
    /// Whether the watches of the Kubernetes API have shown all objects since the start.
    pub synced: bool,
}

/// Controllers whose metrics and health a server shows.
pub trait Controllers: Collector {
    /// Returns their health.
    fn health(&self) -> ControllerHealth;
}

/// The controllers of a server. Clones share them. Without controllers, it exports nothing.
#[derive(Clone, Debug, Default)]
pub(super) struct ControllerCollector(Arc<OnceLock<Box<dyn Controllers>>>);

impl ControllerCollector {
    /// Sets the controllers, unless the collector already has some. A process runs them once.
    pub(super) fn set(&self, controllers: Box<dyn Controllers>) {
        self.0.get_or_init(|| controllers);
    }

    /// Returns the health of the controllers. Returns `None` if the process runs none.
    pub(super) fn health(&self) -> Option<ControllerHealth> {
        self.0.get().map(|controllers| controllers.health())
    }
}

impl Collector for ControllerCollector {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        self.0.get().map_or(Ok(()), |controllers| controllers.encode(encoder))
    }
}
