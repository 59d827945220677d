//! The background tasks of the inventory.

mod assess_clusters;
mod jobs;
mod retention;
mod silence;
mod uploads;

use super::task::Task;
use crate::Inventory;

/// The name of the task that disconnects silent hosts. One run of this task is one pass of the monitor.
pub const SILENCE: &str = silence::NAME;

pub(super) fn all(inventory: &Inventory) -> Vec<Box<dyn Task>> {
    vec![
        Box::new(silence::Silence::new(inventory.clone())),
        Box::new(assess_clusters::AssessClusters::new(inventory.clone())),
        Box::new(jobs::Jobs::new(inventory.clone())),
        Box::new(retention::Retention(inventory.clone())),
        Box::new(uploads::Uploads(inventory.clone())),
    ]
}
