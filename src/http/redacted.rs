//! URLs as they may be seen.

use std::fmt::{self, Write as _};

use axum::http::Uri;

use super::escape::unescaped;

/// The most characters of a URL that are shown.
const MAX_SHOWN: usize = 2048;
/// What stands in the place of a token.
const MASK: &str = "*****";
/// The names of parameters that hold tokens.
const PARAMETERS: [&[u8]; 2] = [b"api_key", b"image_token"];
/// The parts of paths that come before tokens.
const PREFIXES: [&[u8]; 2] = [b"byapikey", b"bytoken"];
/// How all tokens begin: with an object of JSON in base64.
const TOKEN: &[u8] = b"eyJ";

/// The path and query of a URL without the tokens in it: those where tokens belong, and whatever looks like one elsewhere.
#[derive(Clone, Copy, Debug)]
pub struct Redacted<'a>(pub &'a Uri);

impl fmt::Display for Redacted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        let mut is_secret = false;
        for (index, part) in self.0.path().split('/').enumerate() {
            if index > 0 {
                text.push('/');
            }
            text.push_str(if is_secret || is_token(part) { MASK } else { part });
            is_secret = PREFIXES.contains(&unescaped(part).as_slice());
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
            Some((name, value)) if is_token_name(name) || is_token(value) => write!(text, "{name}={MASK}")?,
            None if is_token(parameter) => text.push_str(MASK),
            _ => text.push_str(parameter),
        }
    }
    Ok(())
}

fn is_token_name(name: &str) -> bool {
    PARAMETERS.contains(&unescaped(name).as_slice())
}

/// Whether a text has something in it that begins as tokens do, with whatever before it.
fn is_token(text: &str) -> bool {
    unescaped(text).windows(TOKEN.len()).any(|part| part == TOKEN)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(url: &str) -> String {
        Redacted(&url.parse().unwrap()).to_string()
    }

    #[test]
    fn tokens_are_not_shown_wherever_they_stand() {
        for (url, expected) in [
            ("/", "/"),
            ("/v2/infra-envs?cluster_id=x&owner=", "/v2/infra-envs?cluster_id=x&owner="),
            ("/a?api_key=secret&b=c", "/a?api_key=*****&b=c"),
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
            assert_eq!(shown(url), expected, "{url}");
        }
    }

    #[test]
    fn what_is_shown_is_bounded() {
        let url = shown(&format!("/{}", "a".repeat(60_000)));
        assert_eq!(url.len(), MAX_SHOWN + 3);
    }
}
