//! The routes of this area.

mod actions;
mod agent;
mod listing;
mod user;

use utoipa_axum::router::OpenApiRouter;

use crate::inventory::Inventory;

pub(crate) fn routes() -> OpenApiRouter<Inventory> {
    OpenApiRouter::new()
        .merge(agent::routes())
        .merge(listing::routes())
        .merge(user::routes())
        .merge(actions::routes())
}
