//! Hides tokens in URLs, for the log.

use std::borrow::Cow;
use std::fmt::{self, Write as _};

use axum::http::Uri;
use percent_encoding::percent_decode_str;

/// Maximum number of characters of a URL to show.
const MAX_SHOWN: usize = 2048;
/// The text that replaces a token.
const MASK: &str = "*****";
/// Names of query parameters that contain tokens.
const PARAMETERS: [&[u8]; 3] = [b"api_key", b"image_token", b"ticket"];
/// Path segments that a token follows.
const PREFIXES: [&[u8]; 2] = [b"byapikey", b"bytoken"];
/// The start of every token: a JSON object in base64.
const TOKEN: &[u8] = b"eyJ";

/// Displays the path and query of a URL without tokens. This hides values in the usual positions, and any other text
/// that looks like a token.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RedactedUrl<'a>(pub(crate) &'a Uri);

impl fmt::Display for RedactedUrl<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        let mut is_secret = false;
        for (index, part) in self.0.path().split('/').enumerate() {
            if index > 0 {
                text.push('/');
            }
            text.push_str(if is_secret || has_token_prefix(part) { MASK } else { part });
            is_secret = is_one_of(part, &PREFIXES);
        }
        if let Some(query) = self.0.query() {
            write_query(&mut text, query)?;
        }
        match text.char_indices().nth(MAX_SHOWN) {
            Some((end, _)) => write!(f, "{}...", text.get(..end).unwrap_or_default()),
            None => f.write_str(&text),
        }
    }
}

fn write_query(text: &mut String, query: &str) -> fmt::Result {
    for (index, parameter) in query.split('&').enumerate() {
        text.push(if index == 0 { '?' } else { '&' });
        match parameter.split_once('=') {
            Some((name, value)) if is_one_of(name, &PARAMETERS) || has_token_prefix(value) => {
                write!(text, "{name}={MASK}")?
            }
            None if has_token_prefix(parameter) => text.push_str(MASK),
            _ => text.push_str(parameter),
        }
    }
    Ok(())
}

/// Returns `true` if a part of a URL is one of these names, with or without percent-encoding.
fn is_one_of(part: &str, names: &[&[u8]]) -> bool {
    names.iter().any(|name| percent_decode_str(part).eq(name.iter().copied()))
}

/// Returns `true` if a part of a URL contains the start of a token.
fn has_token_prefix(part: &str) -> bool {
    let bytes: Cow<'_, [u8]> = percent_decode_str(part).into();
    bytes.windows(TOKEN.len()).any(|start| start == TOKEN)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redacted(url: &str) -> String {
        RedactedUrl(&url.parse().unwrap()).to_string()
    }

    #[test]
    fn tokens_are_masked_everywhere() {
        for (url, expected) in [
            ("/", "/"),
            ("/v2/infra-envs?cluster_id=x&owner=", "/v2/infra-envs?cluster_id=x&owner="),
            ("/a?api_key=secret&b=c", "/a?api_key=*****&b=c"),
            ("/v2/events/stream?ticket=secret", "/v2/events/stream?ticket=*****"),
            ("/a?b&image_token=secret", "/a?b&image_token=*****"),
            ("/a?api%5Fkey=secret", "/a?api%5Fkey=*****"),
            ("/a?b=c&api_key=sec=ret", "/a?b=c&api_key=*****"),
            ("/byapikey/secret/4.18/x86_64/full.iso", "/byapikey/*****/4.18/x86_64/full.iso"),
            ("/images/bytoken/secret/4.18", "/images/bytoken/*****/4.18"),
            ("/by%61pikey/secret/4.18", "/by%61pikey/*****/4.18"),
            ("/images/%65yJh.b.c/4.18", "/images/*****/4.18"),
            ("/100%/%zz/%e", "/100%/%zz/%e"),
            ("/a?other=eyJh.b.c&eyJh.b.c", "/a?other=*****&*****"),
            ("/a?other=Bearer%20eyJh.b.c", "/a?other=*****"),
            ("http://user:secret@host/a?b=c", "/a?b=c"),
            ("/a?", "/a?"),
        ] {
            assert_eq!(redacted(url), expected, "{url}");
        }
    }

    #[test]
    fn long_urls_are_shortened() {
        let url = redacted(&format!("/{}", "a".repeat(60_000)));
        assert_eq!(url.len(), MAX_SHOWN + 3);
    }
}
