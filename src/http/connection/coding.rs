//! The `Transfer-Encoding` of a request (RFC 9112, 6.1).
//!
//! hyper answers 400 if `chunked` is not the last coding, or the request is of HTTP/1.0. It closes the connection after
//! a request that has a `Content-Length` as well.

use axum::http::{HeaderMap, header};

/// Reports whether the body has a transfer coding that the server does not decode: any but one `chunked`.
pub(super) fn is_unknown(headers: &HeaderMap) -> bool {
    let mut codings = headers.get_all(header::TRANSFER_ENCODING).iter();
    let is_chunked =
        codings.next().is_none_or(|coding| coding.as_bytes().trim_ascii().eq_ignore_ascii_case(b"chunked"));
    !is_chunked || codings.next().is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_unknown_of(codings: &[&str]) -> bool {
        let headers = codings.iter().map(|coding| (header::TRANSFER_ENCODING, coding.parse().unwrap()));
        let mut map = HeaderMap::new();
        headers.for_each(|(name, value)| {
            map.append(name, value);
        });
        is_unknown(&map)
    }

    #[test]
    fn only_chunked_is_known() {
        for codings in [&[][..], &["chunked"], &["Chunked"], &[" chunked\t"]] {
            assert!(!is_unknown_of(codings), "{codings:?}");
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
            assert!(is_unknown_of(codings), "{codings:?}");
        }
    }
}
