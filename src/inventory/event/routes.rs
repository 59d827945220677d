//! The routes of this area.

use utoipa_axum::router::OpenApiRouter;

use crate::inventory::Inventory;

pub(crate) fn routes() -> OpenApiRouter<Inventory> {
    OpenApiRouter::new()
}
