//! Checks the URLs of sources and decodes the contents of `data:` URLs.
//!
//! ```text
//! data:[type/subtype](;attribute=value)*[;base64],data
//! ```

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use percent_encoding::percent_decode_str;

use crate::byte_set::ByteSet;
use crate::spec::Spec;

/// Characters that the data of a `data:` URL may contain if it is not base64.
static DATA_CHARACTERS: ByteSet = ByteSet::graphic_except(b"`<>#\"{}|\\^[]");
/// Characters that names and values in the header of a `data:` URL may contain.
static TOKEN_CHARACTERS: ByteSet = ByteSet::graphic_except(b"()<>@,;:\\\"/[]?=");

/// The scheme of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub(crate) enum Scheme {
    Http,
    Https,
    Tftp,
    S3,
    Gs,
    Arn,
    Data,
}

/// The reason why Ignition rejects the URL of a source.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum UrlError {
    #[error("the URL has a control character or a line break at byte {at}")]
    Control { at: usize },
    #[error("the URL has no scheme")]
    NoScheme,
    #[error("the URL scheme {found:?} is not known to spec {spec}")]
    Scheme { found: String, spec: Spec },
    #[error("the URL has a % that is not followed by two hexadecimal digits")]
    Percent,
    #[error("the port {found:?} is not a number")]
    Port { found: String },
    #[error("the ARN does not name an S3 object, arn:<partition>:s3:<region>:<account>:<object>")]
    Arn,
    #[error("a data URL begins with \"data:\" in lower case")]
    Prefix,
    #[error("the data URL has no comma")]
    NoComma,
    #[error("the data URL has the unknown media type {found:?}")]
    MediaType { found: String },
    #[error("the data URL has the parameter {found:?}, which is neither base64 nor name=value")]
    Parameter { found: String },
    #[error("the character {found:?} is not allowed at its position in the URL")]
    Character { found: char },
    #[error("the data URL is not valid base64: {0}")]
    Base64(base64::DecodeError),
}

/// Checks a source with the rules that Ignition applies when it reads a config.
pub(crate) fn check_source(source: &str, spec: Spec) -> Result<Scheme, UrlError> {
    let scheme = parse_scheme(source, spec)?;
    let since = match scheme {
        Scheme::Gs => Spec::V3_2,
        Scheme::Arn => Spec::V3_4,
        _ => Spec::OLDEST,
    };
    if spec < since {
        return Err(UrlError::Scheme {
            found: source.split(':').next().unwrap_or_default().to_owned(),
            spec,
        });
    }
    match scheme {
        Scheme::Data => DataUrl::parse(source)?.check_encoding().map(|()| scheme),
        Scheme::Arn => check_arn(source).map(|()| scheme),
        _ => Ok(scheme),
    }
}

/// Returns the scheme of a well-formed URL. The error for an unknown scheme contains the spec version.
pub(crate) fn parse_scheme(url: &str, spec: Spec) -> Result<Scheme, UrlError> {
    if let Some(at) = url.bytes().position(|byte| byte.is_ascii_control()) {
        return Err(UrlError::Control { at });
    }
    let (name, rest) = url.split_once(':').ok_or(UrlError::NoScheme)?;
    let is_name = name.starts_with(|first: char| first.is_ascii_alphabetic())
        && name.chars().all(|it| it.is_ascii_alphanumeric() || "+-.".contains(it));
    if !is_name {
        return Err(UrlError::NoScheme);
    }
    let scheme = match name.to_ascii_lowercase().as_str() {
        "data" => return Ok(Scheme::Data),
        "arn" => return Ok(Scheme::Arn),
        "http" => Scheme::Http,
        "https" => Scheme::Https,
        "tftp" => Scheme::Tftp,
        "s3" => Scheme::S3,
        "gs" => Scheme::Gs,
        _ => return Err(UrlError::Scheme { found: name.to_owned(), spec }),
    };
    let (rest, fragment) = rest.split_once('#').unwrap_or((rest, ""));
    let hierarchy = rest.split('?').next().unwrap_or_default();
    let path = match hierarchy.strip_prefix("//") {
        Some(rest) => {
            let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            check_authority(authority)?;
            path
        }
        None => hierarchy,
    };
    check_escapes(path)?;
    check_escapes(fragment)?;
    Ok(scheme)
}

/// Characters other than letters and digits that user and host names may contain unescaped.
const UNRESERVED: &str = "-._~!$&'()*+,;=";

/// Checks a user, password, host and port. All parts except the host are optional, and the host may be empty.
fn check_authority(authority: &str) -> Result<(), UrlError> {
    let (user, host) = authority.rsplit_once('@').unwrap_or(("", authority));
    let is_outside = |more: &'static str| {
        move |it: &char| !(it.is_ascii_alphanumeric() || UNRESERVED.contains(*it) || more.contains(*it))
    };
    let bad = user
        .chars()
        .find(is_outside(":%@"))
        .or_else(|| host.chars().filter(char::is_ascii).find(is_outside(":[]<>\"%")));
    if let Some(character) = bad {
        return Err(UrlError::Character { found: character });
    }
    check_escapes(user)?;
    if percent_decode(host)?.is_ascii() && host.contains('%') {
        return Err(UrlError::Character { found: '%' });
    }
    let after_host = match host.strip_prefix('[') {
        Some(address) => {
            address.rsplit_once(']').map(|(_, port)| port).ok_or(UrlError::Character { found: '[' })?
        }
        None => host.rfind(':').and_then(|at| host.get(at..)).unwrap_or_default(),
    };
    let port = after_host.strip_prefix(':').unwrap_or(after_host);
    let is_port = (after_host.is_empty() || after_host.starts_with(':'))
        && port.bytes().all(|byte| byte.is_ascii_digit());
    if is_port { Ok(()) } else { Err(UrlError::Port { found: port.to_owned() }) }
}

fn check_arn(source: &str) -> Result<(), UrlError> {
    let parts: Vec<&str> = source.splitn(6, ':').collect();
    match parts.as_slice() {
        [_, _, "s3", _, _, object] if object.contains('/') => Ok(()),
        _ => Err(UrlError::Arn),
    }
}

/// Returns the contents of a `data:` URL.
pub(crate) fn decode_data_url(source: &str) -> Result<Vec<u8>, UrlError> {
    parse_scheme(source, Spec::LATEST)?;
    DataUrl::parse(source)?.decode()
}

/// The part of a `data:` URL after its comma.
enum DataUrl<'a> {
    Base64(&'a str),
    /// Text that contains only allowed characters.
    Text(&'a str),
}

impl<'a> DataUrl<'a> {
    fn parse(source: &'a str) -> Result<Self, UrlError> {
        let body = source.strip_prefix("data:").ok_or(UrlError::Prefix)?;
        let (header, data) = body.split_once(',').ok_or(UrlError::NoComma)?;
        if is_base64_header(header)? {
            return Ok(Self::Base64(data));
        }
        match DATA_CHARACTERS.first_outside(data) {
            None => Ok(Self::Text(data)),
            Some(character) => Err(UrlError::Character { found: character }),
        }
    }

    fn decode(&self) -> Result<Vec<u8>, UrlError> {
        match self {
            Self::Base64(data) => BASE64.decode(data).map_err(UrlError::Base64),
            Self::Text(data) => percent_decode(data).map(Cow::into_owned),
        }
    }

    /// Checks that the data can be decoded.
    fn check_encoding(&self) -> Result<(), UrlError> {
        match self {
            Self::Base64(_) => self.decode().map(|_| ()),
            Self::Text(data) => check_escapes(data),
        }
    }
}

fn is_base64_header(header: &str) -> Result<bool, UrlError> {
    let mut parts = header.split(';');
    let media = parts.next().unwrap_or_default();
    if !media.is_empty() && !is_media_type(media) {
        return Err(UrlError::MediaType { found: media.to_owned() });
    }
    let mut parameters: Vec<&str> = parts.collect();
    let is_base64 = parameters.last() == Some(&"base64");
    if is_base64 {
        parameters.pop();
    }
    match parameters.into_iter().find(|parameter| !is_parameter(parameter)) {
        Some(parameter) => Err(UrlError::Parameter { found: parameter.to_owned() }),
        None => Ok(is_base64),
    }
}

fn is_token(text: &str) -> bool {
    TOKEN_CHARACTERS.first_outside(text).is_none()
}

fn is_parameter(text: &str) -> bool {
    text.split_once('=').is_some_and(|(name, value)| {
        let quoted = value.strip_prefix('"').and_then(|value| value.strip_suffix('"'));
        !name.is_empty() && is_token(name) && (quoted.is_some() || !value.is_empty() && is_token(value))
    })
}

fn is_media_type(media: &str) -> bool {
    const MEDIA_TYPES: [&str; 7] = ["text", "image", "audio", "video", "application", "message", "multipart"];
    media.split_once('/').is_some_and(|(kind, subtype)| {
        let is_own = kind.strip_prefix(['x', 'X']).is_some_and(|rest| rest.starts_with('-'));
        (MEDIA_TYPES.contains(&kind) || is_own && is_token(kind)) && is_token(subtype)
    })
}

/// Checks that each `%` is followed by two hexadecimal digits.
fn check_escapes(text: &str) -> Result<(), UrlError> {
    let is_escape = |after: &str| {
        after.as_bytes().first_chunk::<2>().is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    };
    if text.split('%').skip(1).all(is_escape) { Ok(()) } else { Err(UrlError::Percent) }
}

/// Returns the bytes of a text after decoding its escapes.
fn percent_decode(text: &str) -> Result<Cow<'_, [u8]>, UrlError> {
    check_escapes(text)?;
    Ok(percent_decode_str(text).into())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn rejects_schemes_of_later_versions() {
        let check_source = |url, spec| super::check_source(url, spec).ok();
        assert_eq!(check_source("http://a:80/b%20c?d=%", Spec::V3_0), Some(Scheme::Http));
        assert_eq!(check_source("HTTPS://[::1]:443", Spec::V3_0), Some(Scheme::Https));
        assert_eq!(check_source("tftp://a/b", Spec::V3_0), Some(Scheme::Tftp));
        assert_eq!(check_source("s3://a/b", Spec::V3_0), Some(Scheme::S3));
        assert_eq!(check_source("gs://a/b", Spec::V3_1), None);
        assert_eq!(check_source("gs://a/b", Spec::V3_2), Some(Scheme::Gs));
        let arn = "arn:aws:s3:::bucket/key";
        assert_eq!((check_source(arn, Spec::V3_3), check_source(arn, Spec::V3_4)), (None, Some(Scheme::Arn)));
        for bad in [
            "/a",
            "",
            "ftp://a",
            "1http://a",
            "http://a/%zz",
            "http://a:b/",
            "arn:aws:ec2:::a/b",
            "http://a\n",
        ] {
            assert_eq!(check_source(bad, Spec::LATEST), None, "{bad}");
        }
    }

    #[test]
    fn unknown_scheme_error_names_version_of_config() {
        for (url, expected) in [
            ("foo://a/b", "the URL scheme \"foo\" is not known to spec 3.1.0"),
            ("gs://a/b", "the URL scheme \"gs\" is not known to spec 3.1.0"),
        ] {
            assert_eq!(check_source(url, Spec::V3_1).unwrap_err().to_string(), expected);
        }
    }

    #[test]
    fn data_is_decoded() {
        let hello: &[(&str, &[u8])] = &[
            ("data:,", b""),
            ("data:,a%20b+c%0A", b"a b+c\n"),
            ("data:text/plain;charset=utf-8,%C3%A4", "ä".as_bytes()),
            ("data:;base64,aGk=", b"hi"),
            ("data:x-own/type;a=b;base64,", b""),
        ];
        for (url, expected) in hello {
            assert_eq!(decode_data_url(url).as_deref(), Ok(*expected), "{url}");
        }
        for bad in [
            "data:",
            "data:text,",
            "data:TEXT/plain,",
            "data:font/woff,",
            "data:text/plain;base65,a",
            "data:,a b",
            "data:,ä",
            "data:,<",
            "data:,%a",
            "data:,%zz",
            "data:;base64,aGk",
            "data:;base64,aGk=\n",
            "data:;base64,_-==",
        ] {
            assert!(decode_data_url(bad).is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn percent_escapes_decode_to_any_bytes(bytes: Vec<u8>) {
            let escaped: String = bytes.iter().map(|byte| format!("%{byte:02X}")).collect();
            prop_assert_eq!(decode_data_url(&format!("data:,{escaped}")), Ok(bytes));
        }

        #[test]
        fn any_text_is_decoded_or_rejected(text: String) {
            let _ = check_source(&text, Spec::LATEST);
            let _ = decode_data_url(&format!("data:{text}"));
        }
    }
}
