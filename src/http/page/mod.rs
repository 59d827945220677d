//! A page for browsers: what there is to boot, a form for more of it, and how far machines are.
//!
//! It is some files of HTML, CSS and JavaScript, as they are in the source. The page calls the API as any client does, with
//! the rights of whoever looks at it: here is nothing to guard, and nothing to keep in step but the API itself. It fetches
//! nothing from anywhere else, and a browser is told to let it do nothing else either.

use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use sha2::{Digest, Sha256};

use super::content::is_known;
use crate::api_error::only_reads;
use crate::inventory::auth::{GuardedRouter, RouteAccess};

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const SVG: &str = "image/svg+xml";

/// The parts of the page: where each is, what it is, and what is in it.
const PARTS: [(&str, &str, &str); 10] = [
    ("/", HTML, include_str!("index.html")),
    ("/page/page.css", CSS, include_str!("page.css")),
    ("/page/icon.svg", SVG, include_str!("icon.svg")),
    ("/page/page.js", SCRIPT, include_str!("page.js")),
    ("/page/api.js", SCRIPT, include_str!("api.js")),
    ("/page/dom.js", SCRIPT, include_str!("dom.js")),
    ("/page/card.js", SCRIPT, include_str!("card.js")),
    ("/page/creation.js", SCRIPT, include_str!("creation.js")),
    ("/page/infra-envs.js", SCRIPT, include_str!("infra-envs.js")),
    ("/page/live-images.js", SCRIPT, include_str!("live-images.js")),
];

/// What a browser may do with the page. Names of infra-envs are whatever somebody chose: scripts and styles come from our
/// files alone, no text is ever read as HTML, and no other page may frame this one and have its buttons pressed.
const POLICY: &str = "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'; \
                      require-trusted-types-for 'script'; trusted-types 'none'";

const HEADERS: [(HeaderName, &str); 5] = [
    (header::CONTENT_SECURITY_POLICY, POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    // The next version of the program has other parts, which have to fit each other.
    (header::CACHE_CONTROL, "no-cache"),
];

/// The page, at `/`, and its parts.
pub(super) fn routes() -> GuardedRouter {
    let router = PARTS.into_iter().fold(GuardedRouter::new(), |router, (path, media_type, contents)| {
        let part = Part::new(media_type, contents);
        router.route(RouteAccess::open(path), get(async move |headers: HeaderMap| part.answer(&headers)))
    });
    router.map(|router| router.method_not_allowed_fallback(only_reads))
}

/// A part of the page, with what tells it from that of another version.
#[derive(Clone, Debug)]
struct Part {
    media_type: &'static str,
    contents: &'static str,
    etag: String,
}

impl Part {
    fn new(media_type: &'static str, contents: &'static str) -> Self {
        let digest = Sha256::digest(contents);
        let hex: String = digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
        Self { media_type, contents, etag: format!("\"{hex}\"") }
    }

    fn answer(&self, request: &HeaderMap) -> Response {
        let mut response = if is_known(request, &self.etag) {
            StatusCode::NOT_MODIFIED.into_response()
        } else {
            ([(header::CONTENT_TYPE, self.media_type)], self.contents).into_response()
        };
        let headers = response.headers_mut();
        headers.extend(HEADERS.map(|(name, value)| (name, HeaderValue::from_static(value))));
        headers.extend(HeaderValue::from_str(&self.etag).ok().map(|etag| (header::ETAG, etag)));
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each reference in a part is to a part, so that nothing is missing and nothing comes from elsewhere.
    #[test]
    fn the_parts_fit_each_other() {
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
                assert!(is_part || target == "openapi.json", "{path} names {target}");
                named += 1;
            }
        }
        assert!(named > 10, "{named} references were found");
    }

    /// The policy of the page forbids what these do; they would not work.
    #[test]
    fn nothing_reads_text_as_html() {
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
