//! Checks of the URL itself, without sending a request.

use std::net::IpAddr;

use super::super::report::{DoctorCheck, quote_for_report};
use super::super::target::TargetUrl;
use super::{CheckFailure, CheckResult};

/// Maximum length of a URL that all BMC firmware accepts.
const MAX_SHORT: usize = 255;

pub(super) fn probe_url(target: &TargetUrl) -> Vec<(DoctorCheck, CheckResult)> {
    let url = target.url();
    let path = url.path().to_ascii_lowercase();
    let len = target.len();
    let is_address = target.host().parse::<IpAddr>().is_ok();
    let has_password = !url.username().is_empty() || url.password().is_some();
    let of_host = |is_address: bool| if is_address { "an address" } else { "a name that must be resolved" };
    let holds =
        |holds: bool, good: String, bad: String| if holds { Ok(good) } else { Err(CheckFailure::Fails(bad)) };
    let scheme = url.scheme().to_owned();
    vec![
        (
            DoctorCheck::UrlShort,
            holds(
                len <= MAX_SHORT,
                format!("{len} characters"),
                format!("{len} characters, some clients accept only {MAX_SHORT}"),
            ),
        ),
        (
            DoctorCheck::UrlSuffix,
            holds(
                path.ends_with(".iso") || path.ends_with(".img"),
                ".iso or .img".to_owned(),
                "the path ends with neither .iso nor .img".to_owned(),
            ),
        ),
        (
            DoctorCheck::UrlWithoutQuery,
            holds(url.query().is_none(), "none".to_owned(), "the URL has a query".to_owned()),
        ),
        (
            DoctorCheck::UrlWithoutPassword,
            holds(!has_password, "none".to_owned(), "the URL contains a user name or password".to_owned()),
        ),
        (
            DoctorCheck::UrlWithoutToken,
            holds(
                !target.has_token() && url.query().is_none_or(|query| !has_secret(query)),
                "no known token".to_owned(),
                "the URL contains a token, which every reader of the URL can use".to_owned(),
            ),
        ),
        (
            DoctorCheck::UrlUsualPort,
            holds(url.port().is_none(), target.port().to_string(), format!("port {}", target.port())),
        ),
        (
            DoctorCheck::UrlAddress,
            holds(
                is_address,
                of_host(true).to_owned(),
                format!("{} is {}", quote_for_report(target.host()), of_host(false)),
            ),
        ),
        (DoctorCheck::UrlEncrypted, holds(target.is_https(), scheme.clone(), scheme.clone())),
        (DoctorCheck::UrlUnencrypted, holds(!target.is_https(), scheme.clone(), scheme)),
    ]
}

/// Returns `true` if a query contains a parameter that is usually secret, or a JWT.
fn has_secret(query: &str) -> bool {
    let names = ["api_key", "image_token", "token", "access_token", "sig", "signature", "x-amz-signature"];
    query.split('&').any(|parameter| {
        let name = parameter.split('=').next().unwrap_or_default().to_ascii_lowercase();
        names.contains(&name.as_str()) || parameter.contains("eyJ")
    })
}
