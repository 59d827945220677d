//! The interface to controllers of custom resources in this process, for `/metrics` and `/health`.

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
    /// Whether this replica is the leader. Only the leader reconciles custom resources.
    pub leader: bool,
    /// Whether the watches of the Kubernetes API have listed all objects since the start.
    pub synced: bool,
}

/// Controllers with metrics and a health report.
pub trait Controllers: Collector {
    /// Returns the current health, for `/health`.
    fn health(&self) -> ControllerHealth;
}

/// The controllers of a server. Exports nothing until controllers are set. Clones share the controllers.
#[derive(Clone, Debug, Default)]
pub(super) struct ControllerCollector(Arc<OnceLock<Box<dyn Controllers>>>);

impl ControllerCollector {
    /// Sets the controllers. Later calls have no effect, because a process runs controllers only once.
    pub(super) fn set(&self, controllers: Box<dyn Controllers>) {
        self.0.get_or_init(|| controllers);
    }

    /// Returns the health of the controllers. Returns `None` if this process runs none.
    pub(super) fn health(&self) -> Option<ControllerHealth> {
        self.0.get().map(|controllers| controllers.health())
    }
}

impl Collector for ControllerCollector {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        self.0.get().map_or(Ok(()), |controllers| controllers.encode(encoder))
    }
}
