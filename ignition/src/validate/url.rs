//! URLs of sources, `data:` URLs with what they hold.
//!
//! ```text
//! data:[type/subtype](;attribute=value)*[;base64],data
//! ```

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;

use crate::bytes::ByteSet;
use crate::spec::Spec;

/// What may stand in the data of a `data:` URL that is not base64.
static DATA: ByteSet = ByteSet::graphic_but(b"`<>#\"{}|\\^[]");
/// What names and values of its header are made of.
static TOKEN: ByteSet = ByteSet::graphic_but(b"()<>@,;:\\\"/[]?=");

/// Where a source is fetched from.
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

/// Why a source is no URL that Ignition fetches.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum UrlError {
    #[error("the URL has a control character or a line break at byte {at}")]
    Control { at: usize },
    #[error("the URL has no scheme")]
    NoScheme,
    #[error("the URL scheme {found:?} is not known to spec {spec}")]
    Scheme { found: String, spec: Spec },
    #[error("the URL has a % without two hexadecimal digits behind it")]
    Percent,
    #[error("the port {found:?} is no number")]
    Port { found: String },
    #[error("the ARN is not one of an S3 object, arn:<partition>:s3:<region>:<account>:<object>")]
    Arn,
    #[error("a data URL begins with \"data:\" in lower case")]
    Prefix,
    #[error("the data URL has no comma")]
    NoComma,
    #[error("the data URL has the unknown media type {found:?}")]
    MediaType { found: String },
    #[error("the data URL has the parameter {found:?}, which is neither base64 nor name=value")]
    Parameter { found: String },
    #[error("the URL has the character {found:?} in a place where it must not be")]
    Character { found: char },
    #[error("the data URL is not valid base64: {0}")]
    Base64(base64::DecodeError),
}

/// Checks a source as far as Ignition does when it reads a config.
pub(crate) fn check(source: &str, spec: Spec) -> Result<Scheme, UrlError> {
    let found = scheme(source).map_err(|error| match error {
        UrlError::Scheme { found, .. } => UrlError::Scheme { found, spec },
        other => other,
    })?;
    let since = match found {
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
    match found {
        Scheme::Data => Data::of(source)?.check().map(|()| found),
        Scheme::Arn => arn(source).map(|()| found),
        _ => Ok(found),
    }
}

/// The scheme of a URL that is well formed.
pub(crate) fn scheme(url: &str) -> Result<Scheme, UrlError> {
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
        _ => return Err(UrlError::Scheme { found: name.to_owned(), spec: Spec::LATEST }),
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
    unescape(path)?;
    unescape(fragment)?;
    Ok(scheme)
}

/// The characters that stand for themselves in names of users and hosts, beside letters and digits.
const UNRESERVED: &str = "-._~!$&'()*+,;=";

/// A user and a password, a host and a port: all but the host are optional, and that may be empty.
fn check_authority(authority: &str) -> Result<(), UrlError> {
    let (user, host) = authority.rsplit_once('@').unwrap_or(("", authority));
    let of = |more: &'static str| {
        move |it: &char| !(it.is_ascii_alphanumeric() || UNRESERVED.contains(*it) || more.contains(*it))
    };
    let bad =
        user.chars().find(of(":%@")).or_else(|| host.chars().filter(char::is_ascii).find(of(":[]<>\"%")));
    if let Some(found) = bad {
        return Err(UrlError::Character { found });
    }
    unescape(user)?;
    if unescape(host)?.is_ascii() && host.contains('%') {
        return Err(UrlError::Character { found: '%' });
    }
    let behind = match host.strip_prefix('[') {
        Some(address) => {
            address.rsplit_once(']').map(|(_, port)| port).ok_or(UrlError::Character { found: '[' })?
        }
        None => host.rfind(':').and_then(|at| host.get(at..)).unwrap_or_default(),
    };
    let port = behind.strip_prefix(':').unwrap_or(behind);
    let is_port =
        (behind.is_empty() || behind.starts_with(':')) && port.bytes().all(|byte| byte.is_ascii_digit());
    if is_port { Ok(()) } else { Err(UrlError::Port { found: port.to_owned() }) }
}

fn arn(source: &str) -> Result<(), UrlError> {
    let parts: Vec<&str> = source.splitn(6, ':').collect();
    match parts.as_slice() {
        [_, _, "s3", _, _, object] if object.contains('/') => Ok(()),
        _ => Err(UrlError::Arn),
    }
}

/// The contents that a `data:` URL holds.
pub(crate) fn decode(source: &str) -> Result<Vec<u8>, UrlError> {
    scheme(source)?;
    Data::of(source)?.decode()
}

/// What a `data:` URL has behind its comma.
enum Data<'a> {
    Base64(&'a str),
    /// Characters that may be there.
    Text(&'a str),
}

impl<'a> Data<'a> {
    /// Takes a URL of this scheme.
    fn of(source: &'a str) -> Result<Self, UrlError> {
        let body = source.strip_prefix("data:").ok_or(UrlError::Prefix)?;
        let (header, data) = body.split_once(',').ok_or(UrlError::NoComma)?;
        if header_says_base64(header)? {
            return Ok(Self::Base64(data));
        }
        match DATA.first_other(data) {
            None => Ok(Self::Text(data)),
            Some(at) => {
                let found = data.get(at..).and_then(|rest| rest.chars().next()).unwrap_or_default();
                Err(UrlError::Character { found })
            }
        }
    }

    fn decode(&self) -> Result<Vec<u8>, UrlError> {
        match self {
            Self::Base64(data) => BASE64.decode(data).map_err(UrlError::Base64),
            Self::Text(data) => unescape(data).map(Cow::into_owned),
        }
    }

    /// Whether it decodes.
    fn check(&self) -> Result<(), UrlError> {
        match self {
            Self::Base64(_) => self.decode().map(|_| ()),
            Self::Text(data) => {
                let is_escape = |behind: &str| {
                    behind
                        .as_bytes()
                        .first_chunk()
                        .is_some_and(|digits: &[u8; 2]| digits.iter().all(|it| digit(*it).is_some()))
                };
                if data.split('%').skip(1).all(is_escape) { Ok(()) } else { Err(UrlError::Percent) }
            }
        }
    }
}

fn header_says_base64(header: &str) -> Result<bool, UrlError> {
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
        Some(found) => Err(UrlError::Parameter { found: found.to_owned() }),
        None => Ok(is_base64),
    }
}

fn is_token(text: &str) -> bool {
    TOKEN.first_other(text).is_none()
}

fn is_parameter(text: &str) -> bool {
    text.split_once('=').is_some_and(|(name, value)| {
        let quoted = value.strip_prefix('"').and_then(|value| value.strip_suffix('"'));
        !name.is_empty() && is_token(name) && (quoted.is_some() || !value.is_empty() && is_token(value))
    })
}

fn is_media_type(media: &str) -> bool {
    const KNOWN: [&str; 7] = ["text", "image", "audio", "video", "application", "message", "multipart"];
    media.split_once('/').is_some_and(|(kind, subtype)| {
        let is_own = kind.strip_prefix(['x', 'X']).is_some_and(|rest| rest.starts_with('-'));
        (KNOWN.contains(&kind) || is_own && is_token(kind)) && is_token(subtype)
    })
}

/// The bytes of a text in which `%` stands before two hexadecimal digits.
fn unescape(text: &str) -> Result<Cow<'_, [u8]>, UrlError> {
    if !text.contains('%') {
        return Ok(text.as_bytes().into());
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        rest = behind;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let Some(([high, low], behind)) = rest.split_first_chunk() else { return Err(UrlError::Percent) };
        let (Some(high), Some(low)) = (digit(*high), digit(*low)) else { return Err(UrlError::Percent) };
        bytes.push(high << 4 | low);
        rest = behind;
    }
    Ok(bytes.into())
}

/// The value of a hexadecimal digit.
fn digit(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        b'A'..=b'F' => Some(byte - b'A' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn schemes_come_with_versions() {
        let check = |url, spec| check(url, spec).ok();
        assert_eq!(check("http://a:80/b%20c?d=%", Spec::V3_0), Some(Scheme::Http));
        assert_eq!(check("HTTPS://[::1]:443", Spec::V3_0), Some(Scheme::Https));
        assert_eq!(check("tftp://a/b", Spec::V3_0), Some(Scheme::Tftp));
        assert_eq!(check("s3://a/b", Spec::V3_0), Some(Scheme::S3));
        assert_eq!(check("gs://a/b", Spec::V3_1), None);
        assert_eq!(check("gs://a/b", Spec::V3_2), Some(Scheme::Gs));
        let arn = "arn:aws:s3:::bucket/key";
        assert_eq!((check(arn, Spec::V3_3), check(arn, Spec::V3_4)), (None, Some(Scheme::Arn)));
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
            assert_eq!(check(bad, Spec::LATEST), None, "{bad}");
        }
    }

    #[test]
    fn an_unknown_scheme_is_told_with_the_version_of_the_config() {
        for (url, expected) in [
            ("foo://a/b", "the URL scheme \"foo\" is not known to spec 3.1.0"),
            ("gs://a/b", "the URL scheme \"gs\" is not known to spec 3.1.0"),
        ] {
            assert_eq!(check(url, Spec::V3_1).unwrap_err().to_string(), expected);
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
            assert_eq!(decode(url).as_deref(), Ok(*expected), "{url}");
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
            assert!(decode(bad).is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn percents_carry_any_bytes(bytes: Vec<u8>) {
            let escaped: String = bytes.iter().map(|byte| format!("%{byte:02X}")).collect();
            prop_assert_eq!(decode(&format!("data:,{escaped}")), Ok(bytes));
        }

        #[test]
        fn any_text_is_an_answer(text: String) {
            let _ = check(&text, Spec::LATEST);
            let _ = decode(&format!("data:{text}"));
        }
    }
}
