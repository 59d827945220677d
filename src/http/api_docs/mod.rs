//! The page at `/docs`, which shows the OpenAPI document of the service.
//!
//! Published viewers break the rules for these pages (`static_files`). The crates `utoipa-redoc`, `utoipa-rapidoc` and
//! `utoipa-scalar` load their viewers from other servers, and start them with inline scripts. `utoipa-swagger-ui`
//! embeds its viewer, but the viewer consists of 1.9 MB of scripts and styles, and parses text as HTML.

use super::static_files::{self, CSS, HTML, SCRIPT};
use inventory::api::auth::GuardedRouter;

/// The files of the page: path, media type and contents. The page also uses the style sheet and helpers of the page at
/// `/`.
pub(super) const PARTS: [(&str, &str, &str); 7] = [
    ("/docs", HTML, include_str!("index.html")),
    ("/docs/docs.css", CSS, include_str!("docs.css")),
    ("/docs/docs.js", SCRIPT, include_str!("docs.js")),
    ("/docs/document.js", SCRIPT, include_str!("document.js")),
    ("/docs/operation.js", SCRIPT, include_str!("operation.js")),
    ("/docs/schema.js", SCRIPT, include_str!("schema.js")),
    ("/docs/curl.js", SCRIPT, include_str!("curl.js")),
];

/// Returns the routes for the page at `/docs` and for its files.
pub(super) fn routes() -> GuardedRouter {
    static_files::routes(PARTS)
}
