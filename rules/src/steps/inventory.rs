//! The arguments of the `inventory` step: limits for the report.

use assisted::request::InventoryRequest;

use super::input::StepSettings;
use crate::view::HostView;

/// Returns the limits for the inventory report. A configured limit of 0 means no limit.
pub(super) fn request(host: &HostView, settings: &StepSettings) -> InventoryRequest {
    let limit = |bytes: Option<u64>| bytes.filter(|bytes| *bytes > 0);
    InventoryRequest {
        host_id: host.id,
        output_max_size: limit(settings.inventory_max_size),
        disk_min_size: limit(settings.disk_min_size),
    }
}
