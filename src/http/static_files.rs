//! The static files of the pages for browsers, and their headers.
//!
//! The files contain no data, so they need no access control. Pages load nothing from other servers. A content security
//! policy makes the browser enforce this.

use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use sha2::{Digest, Sha256};

use discovery::representation::is_listed_in_if_none_match;
use inventory::api::auth::{GuardedRouter, RouteAccess};
use inventory::api::{ApiError, header_value, only_reads};

pub(super) const HTML: &str = "text/html; charset=utf-8";
pub(super) const CSS: &str = "text/css; charset=utf-8";
pub(super) const SCRIPT: &str = "text/javascript; charset=utf-8";
pub(super) const SVG: &str = "image/svg+xml";

/// The content security policy of the pages. Users choose the names of infra-envs, so a name may contain HTML. Scripts
/// and styles come only from the pages' own files, and text is never parsed as HTML. No other page may show these pages
/// in a frame, so it cannot trick users into clicking their buttons.
const POLICY: &str = "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'; \
                      require-trusted-types-for 'script'; trusted-types 'none'";

const HEADERS: [(HeaderName, &str); 5] = [
    (header::CONTENT_SECURITY_POLICY, POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    // Browsers must always revalidate, so that all files are from the same version after an upgrade.
    (header::CACHE_CONTROL, "no-cache"),
];

/// Returns the routes for files. Each file is a path, a media type and contents.
pub(super) fn routes(
    files: impl IntoIterator<Item = (&'static str, &'static str, &'static str)>,
) -> GuardedRouter {
    let router = files.into_iter().fold(GuardedRouter::new(), |router, (path, media_type, contents)| {
        let file = StaticFile::new(media_type, contents);
        router.route(RouteAccess::open(path), async move |headers: HeaderMap| file.answer(&headers))
    });
    router.method_not_allowed_fallback(only_reads)
}

/// A file of a page, with its entity tag.
#[derive(Clone, Debug)]
struct StaticFile {
    media_type: &'static str,
    contents: &'static str,
    etag: String,
}

impl StaticFile {
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
    use crate::http::{api_docs, page};

    fn all_files() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
        page::PARTS.into_iter().chain(api_docs::PARTS)
    }

    /// Each reference must be to a file of a page or to the API document. So no file is missing, and none is loaded
    /// from another server.
    #[test]
    fn references_name_files_of_the_pages() {
        let quoted = regex::Regex::new(r##"(?:src|href|from|import)[= (]+"([^"#][^"]*)""##).unwrap();
        let root = reqwest::Url::parse("http://service").unwrap();
        let mut count = 0;
        for (path, _, contents) in all_files() {
            assert!(
                !contents.contains("//cdn") && !contents.contains("@import") && !contents.contains("url("),
                "{path}"
            );
            for reference in quoted.captures_iter(contents) {
                let target = root.join(path).unwrap().join(&reference[1]).unwrap();
                let is_file = all_files().any(|(path, ..)| path == target.path());
                let is_route = ["/openapi.json", "/health", "/metrics"].contains(&target.path());
                let is_own = target.host_str() == root.host_str() && (is_file || is_route);
                assert!(is_own, "{path} names {target}");
                count += 1;
            }
        }
        assert!(count > 20, "{count} references were found");
    }

    /// The policy forbids these constructs, so they would not work.
    #[test]
    fn scripts_never_parse_text_as_html() {
        for (path, _, contents) in all_files() {
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

    #[test]
    fn entity_tag_invalid_in_a_header_is_an_error() {
        let file = StaticFile::new(HTML, "text");
        file.answer(&HeaderMap::new()).unwrap();
        let file = StaticFile { etag: "\n".to_owned(), ..file };
        let error = file.answer(&HeaderMap::new()).unwrap_err();
        assert_eq!(error.status(), StatusCode::INTERNAL_SERVER_ERROR);
    }
}
