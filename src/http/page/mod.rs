//! The page for browsers: it shows infra-envs, the progress of their hosts and the base images, and has forms
//! for new infra-envs and base images.
//!
//! The page consists of static HTML, CSS and JavaScript files. It calls the API like any other client, with the
//! credentials of its user, so the files need no access control. It loads nothing from other servers, and its policy
//! makes the browser enforce that.

use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use sha2::{Digest, Sha256};

use super::content::is_listed_in_if_none_match;
use inventory::api::{ApiError, header_value, only_reads};
use inventory::auth::{GuardedRouter, RouteAccess};

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const SVG: &str = "image/svg+xml";

/// The files of the page: path, media type and contents.
const PARTS: [(&str, &str, &str); 21] = [
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
    ("/page/time.js", SCRIPT, include_str!("time.js")),
];

/// The content security policy of the page. Users choose the names of infra-envs, so a name may contain HTML. Scripts
/// and styles come only from the page's own files, no text is ever parsed as HTML, and no other page may frame this one
/// to have its buttons clicked.
const POLICY: &str = "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'; \
                      require-trusted-types-for 'script'; trusted-types 'none'";

const HEADERS: [(HeaderName, &str); 5] = [
    (header::CONTENT_SECURITY_POLICY, POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    // Browsers must always revalidate: after an upgrade, all files must be of the same version.
    (header::CACHE_CONTROL, "no-cache"),
];

/// Returns the routes of the page, at `/`, and of its other files.
pub(super) fn routes() -> GuardedRouter {
    let router = PARTS.into_iter().fold(GuardedRouter::new(), |router, (path, media_type, contents)| {
        let part = PageFile::new(media_type, contents);
        router.route(RouteAccess::open(path), async move |headers: HeaderMap| part.answer(&headers))
    });
    router.method_not_allowed_fallback(only_reads)
}

/// A file of the page, with its entity tag.
#[derive(Clone, Debug)]
struct PageFile {
    media_type: &'static str,
    contents: &'static str,
    etag: String,
}

impl PageFile {
    fn new(media_type: &'static str, contents: &'static str) -> Self {
        let digest = Sha256::digest(contents);
        let hex: String = digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
        Self { media_type, contents, etag: format!("\"{hex}\"") }
    }

    fn answer(&self, request: &HeaderMap) -> Result<Response, ApiError> {
        let mut response = if is_listed_in_if_none_match(request, &self.etag) {
            StatusCode::NOT_MODIFIED.into_response()
        } else {
            ([(header::CONTENT_TYPE, self.media_type)], self.contents).into_response()
        };
        let headers = response.headers_mut();
        headers.extend(HEADERS.map(|(name, value)| (name, HeaderValue::from_static(value))));
        headers.insert(header::ETAG, header_value(&self.etag)?);
        Ok(response)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every reference names a file of the page, so nothing is missing and nothing is loaded from other servers.
    #[test]
    fn references_name_files_of_the_page() {
        let quoted = regex::Regex::new(r##"(?:src|href|from|import)[= (]+"([^"#][^"]*)""##).unwrap();
        let mut named = 0;
        for (path, _, contents) in PARTS {
            assert!(
                !contents.contains("//cdn") && !contents.contains("@import") && !contents.contains("url("),
                "{path}"
            );
            for found in quoted.captures_iter(contents) {
                let target = found[1].replace("./", "page/");
                let is_part = PARTS.iter().any(|(path, ..)| path.strip_prefix('/') == Some(&target));
                let is_route = ["docs", "openapi.json", "health", "metrics"].contains(&&*target);
                assert!(is_part || is_route, "{path} names {target}");
                named += 1;
            }
        }
        assert!(named > 10, "{named} references were found");
    }

    #[test]
    fn entity_tag_invalid_in_a_header_is_an_error() {
        let part = PageFile::new(HTML, "text");
        part.answer(&HeaderMap::new()).unwrap();
        let part = PageFile { etag: "\n".to_owned(), ..part };
        let error = part.answer(&HeaderMap::new()).unwrap_err();
        assert_eq!(error.status(), StatusCode::INTERNAL_SERVER_ERROR);
    }

    /// The policy of the page forbids these constructions, so they would not work.
    #[test]
    fn scripts_never_parse_text_as_html() {
        for (path, _, contents) in PARTS {
            for forbidden in [
                "innerHTML",
                "outerHTML",
                "insertAdjacentHTML",
                "document.write",
                "eval(",
                " style=",
                " onclick=",
            ] {
                assert!(!contents.contains(forbidden), "{path}: {forbidden}");
            }
        }
    }
}
