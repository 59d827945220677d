//! The state of the routes: the inventory, and the memory limits for request bodies.

use std::sync::Arc;

use axum::extract::FromRef;

use super::large::LargeBodies;
use super::memory_limit::AvailableMemory;
use super::work_room::WorkRoom;
use crate::Inventory;

/// The state of the routes. Clones share it.
#[derive(Clone, Debug)]
pub struct ApiState(Arc<ApiParts>);

#[derive(Debug)]
struct ApiParts {
    inventory: Inventory,
    large_bodies: LargeBodies,
    uploads: LargeBodies,
    work_room: WorkRoom,
}

impl ApiState {
    /// Creates the state for an inventory, with the memory limits of this process.
    #[must_use]
    pub fn new(inventory: Inventory) -> Self {
        let memory = AvailableMemory::from_process();
        let work_room = WorkRoom::within(memory, inventory.settings().after_large_work);
        let (large_bodies, uploads) = (LargeBodies::within(memory), LargeBodies::within(memory));
        Self(Arc::new(ApiParts { inventory, large_bodies, uploads, work_room }))
    }

    /// Returns the inventory that the routes operate on.
    #[must_use]
    pub fn inventory(&self) -> &Inventory {
        &self.0.inventory
    }

    /// Returns the memory limit for bodies read as a whole.
    pub(crate) fn large_bodies(&self) -> &LargeBodies {
        &self.0.large_bodies
    }

    /// Returns the memory limit for bodies streamed to the file store.
    pub(crate) fn uploads(&self) -> &LargeBodies {
        &self.0.uploads
    }

    /// Returns the memory limit for the work on completely received bodies.
    pub(crate) fn work_room(&self) -> &WorkRoom {
        &self.0.work_room
    }
}

impl FromRef<ApiState> for Inventory {
    fn from_ref(api: &ApiState) -> Self {
        api.inventory().clone()
    }
}
