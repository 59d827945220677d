//! The web page of the service. It shows infra-envs, the progress of their hosts, and base images. It has forms that
//! create infra-envs and add base images.
//!
//! The page consists of static HTML, CSS and JavaScript files. It calls the API like any other client, with the
//! credentials of its user, so the files need no access control. It loads nothing from other servers. A content
//! security policy makes the browser enforce this.

use super::static_files::{self, CSS, HTML, SCRIPT, SVG};
use inventory::api::auth::GuardedRouter;

/// The files of the page: path, media type and contents.
pub(super) const PARTS: [(&str, &str, &str); 22] = [
    ("/", HTML, include_str!("index.html")),
    ("/page/page.css", CSS, include_str!("page.css")),
    ("/page/icon.svg", SVG, include_str!("icon.svg")),
    ("/page/page.js", SCRIPT, include_str!("page.js")),
    ("/page/api.js", SCRIPT, include_str!("api.js")),
    ("/page/dom.js", SCRIPT, include_str!("dom.js")),
    ("/page/base-image-form.js", SCRIPT, include_str!("base-image-form.js")),
    ("/page/base-images.js", SCRIPT, include_str!("base-images.js")),
    ("/page/card.js", SCRIPT, include_str!("card.js")),
    ("/page/changes.js", SCRIPT, include_str!("changes.js")),
    ("/page/clusters.js", SCRIPT, include_str!("clusters.js")),
    ("/page/creation.js", SCRIPT, include_str!("creation.js")),
    ("/page/deletion.js", SCRIPT, include_str!("deletion.js")),
    ("/page/form-check.js", SCRIPT, include_str!("form-check.js")),
    ("/page/form-hosts.js", SCRIPT, include_str!("form-hosts.js")),
    ("/page/host-details.js", SCRIPT, include_str!("host-details.js")),
    ("/page/host-names.js", SCRIPT, include_str!("host-names.js")),
    ("/page/host-row.js", SCRIPT, include_str!("host-row.js")),
    ("/page/hosts.js", SCRIPT, include_str!("hosts.js")),
    ("/page/infra-envs.js", SCRIPT, include_str!("infra-envs.js")),
    ("/page/status.js", SCRIPT, include_str!("status.js")),
    ("/page/time.js", SCRIPT, include_str!("time.js")),
];

/// Returns the routes for the page at `/` and for its files.
pub(super) fn routes() -> GuardedRouter {
    static_files::routes(PARTS)
}
