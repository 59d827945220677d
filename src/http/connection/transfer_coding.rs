//! Checks of the `Transfer-Encoding` header (RFC 9112, 6.1).
//!
//! hyper itself responds with 400 if `chunked` is not the last coding, or to an HTTP/1.0 request. It closes the
//! connection after a request that also has a `Content-Length`.

use axum::http::{HeaderMap, header};

/// Returns `true` if the body has a transfer coding that the server does not decode. It decodes only a single
/// `chunked`.
pub(super) fn has_unknown_transfer_coding(headers: &HeaderMap) -> bool {
    let mut codings = headers.get_all(header::TRANSFER_ENCODING).iter();
    let is_chunked =
        codings.next().is_none_or(|coding| coding.as_bytes().trim_ascii().eq_ignore_ascii_case(b"chunked"));
    !is_chunked || codings.next().is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn has_unknown(codings: &[&str]) -> bool {
        let headers = codings.iter().map(|coding| (header::TRANSFER_ENCODING, coding.parse().unwrap()));
        let mut map = HeaderMap::new();
        headers.for_each(|(name, value)| {
            map.append(name, value);
        });
        has_unknown_transfer_coding(&map)
    }

    #[test]
    fn only_chunked_transfer_coding_is_supported() {
        for codings in [&[][..], &["chunked"], &["Chunked"], &[" chunked\t"]] {
            assert!(!has_unknown(codings), "{codings:?}");
        }
        for codings in [
            &["gzip, chunked"][..],
            &["gzip", "chunked"],
            &["chunked, chunked"],
            &["chunked", "chunked"],
            &["identity, chunked"],
            &[", chunked"],
            &["chunked;a=b"],
            &[""],
        ] {
            assert!(has_unknown(codings), "{codings:?}");
        }
    }
}
