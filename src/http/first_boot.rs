//! Restricts the requests without TLS on a server that also has TLS.
//!
//! Machines that boot over the network often cannot use TLS. They download their iPXE script, initrd, kernel and root
//! file system over a plain connection. This connection accepts no other requests, on any route.

use axum::extract::Request;
use axum::http::{Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use discovery::ImageRevision;
use uuid::Uuid;

use super::listener::{AllowedRequests, Peer};
use inventory::api::Query;

/// The prefix of infra-env paths in the API.
const INFRA_ENVS: &str = "/api/assisted-install/v2/infra-envs/";
/// Paths whose responses contain nothing about individual machines.
const OPEN: [&str; 4] = ["/health", "/live", "/ready", "/metrics"];

/// The boot files at the end of short infra-env URLs.
const BOOT_FILES: [&str; 4] = ["script.ipxe", "initrd", "kernel", "rootfs"];

/// Returns `true` if a request arrived on a listener for first boots.
fn is_restricted(request: &Request) -> bool {
    request.extensions().get().is_some_and(|peer: &Peer| peer.reach == AllowedRequests::FirstBoot)
}

/// Refuses requests that the listener does not accept.
pub(super) async fn plain_http_allowlist(request: Request, next: Next) -> Response {
    if !is_restricted(&request) || is_for_first_boot(&request) {
        return next.run(request).await;
    }
    (StatusCode::NOT_FOUND, "this path is only served over TLS\n").into_response()
}

fn is_for_first_boot(request: &Request) -> bool {
    let path = request.uri().path();
    if OPEN.contains(&path) || path.starts_with("/boot-artifacts/") {
        return true;
    }
    if let Some(short) = path.strip_prefix("/i/") {
        return short.rsplit_once('/').is_some_and(|(_, file)| BOOT_FILES.contains(&file));
    }
    if let Some(initrd) = path.strip_prefix("/images/") {
        return initrd.strip_suffix("/pxe-initrd").is_some_and(is_image_or_revision);
    }
    let script = path.strip_prefix(INFRA_ENVS).and_then(|path| path.strip_suffix("/downloads/files"));
    request.method() == Method::GET
        && script.is_some_and(is_lower_case_uuid)
        && Query::from_uri(request.uri()).text("file_name") == Some("ipxe-script")
}

/// Returns `true` if a path is the id of an infra-env, optionally with a revision of its image.
fn is_image_or_revision(path: &str) -> bool {
    let (id, revision) = path.split_once('/').map_or((path, None), |(id, revision)| (id, Some(revision)));
    is_lower_case_uuid(id) && revision.is_none_or(|text| text.parse::<ImageRevision>().is_ok())
}

/// Returns `true` if a path segment is an id. Ids are lower-case UUIDs.
fn is_lower_case_uuid(text: &str) -> bool {
    Uuid::try_parse(text).is_ok_and(|id| id.to_string() == text)
}

#[cfg(test)]
mod tests {
    use axum::body::Body;

    use super::*;

    const ID: &str = "6ba7b810-9dad-11d1-80b4-00c04fd430c8";

    fn passes_allowlist(method: &str, target: &str) -> bool {
        let target = target.replace("ID", ID);
        is_for_first_boot(&Request::builder().method(method).uri(target).body(Body::empty()).unwrap())
    }

    #[test]
    fn plain_http_allows_first_boot_files() {
        for target in [
            "/health",
            "/live",
            "/ready",
            "/metrics",
            "/boot-artifacts/kernel?version=4.18",
            "/boot-artifacts/rootfs?version=4.18",
            "/images/ID/pxe-initrd?version=4.18",
            "/images/ID/0123456789abcdef/pxe-initrd?version=4.18",
            "/i/ID/script.ipxe",
            "/i/ID/rootfs",
            "/i/ID/52:54:00:00:00:01/initrd",
            "/api/assisted-install/v2/infra-envs/ID/downloads/files?file_name=ipxe-script",
            "/api/assisted-install/v2/infra-envs/ID/downloads/files?mac=1&file_name=ipxe-script",
            "/api/assisted-install/v2/infra-envs/ID/downloads/files?file_name=ipxe%2Dscript",
        ] {
            assert!(passes_allowlist("GET", target), "{target}");
        }
    }

    #[test]
    fn plain_http_rejects_other_requests() {
        let files = "/api/assisted-install/v2/infra-envs/ID/downloads/files";
        for (method, target) in [
            ("GET", "/images/ID?type=full-iso&version=4.18"),
            ("GET", "/images/ID/s390x-initrd-addrsize?version=4.18"),
            ("GET", "/images/x/pxe-initrd"),
            ("GET", "/i/ID"),
            ("GET", "/i/initrd"),
            ("GET", "/i/ID/full.iso"),
            ("GET", "/i/ID/boot-trace"),
            ("GET", "/i/ID/52:54:00:00:00:01/minimal.iso"),
            ("GET", "/images/ID/x/pxe-initrd"),
            ("GET", "/images/ID/0123456789ABCDEF/pxe-initrd"),
            ("GET", "/images/ID/0123456789abcdef/0123456789abcdef/pxe-initrd"),
            ("GET", "/byid/ID/4.18/x86_64/full.iso"),
            ("GET", "/byapikey/x/4.18/x86_64/pxe-initrd"),
            ("GET", "/api/assisted-install/v2/infra-envs"),
            ("GET", "//api/assisted-install/v2/infra-envs"),
            ("GET", "/health/../api/assisted-install/v2/infra-envs"),
            ("GET", "/openapi.json"),
            ("GET", "/"),
            ("GET", "/page/page.js"),
            ("GET", "/docs"),
            ("GET", "/docs/docs.js"),
            ("GET", files),
            ("POST", &format!("{files}?file_name=ipxe-script")),
            ("GET", &format!("{files}?file_name=discovery.ign")),
            // If there are several `file_name` parameters, the API uses the last one.
            ("GET", &format!("{files}?file_name=ipxe-script&file_name=discovery.ign")),
            ("GET", &format!("{files}-presigned?file_name=ipxe-script")),
            ("GET", &format!("{files}/?file_name=ipxe-script")),
            ("GET", &format!("{}?file_name=ipxe-script", files.replace("ID", &ID.to_uppercase()))),
            ("GET", &format!("{}?file_name=ipxe-script", files.replace("ID", &ID.replace('-', "")))),
        ] {
            assert!(!passes_allowlist(method, target), "{method} {target}");
        }
    }
}
