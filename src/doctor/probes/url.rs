//! What is to be said about a URL before anybody is asked.

use std::net::IpAddr;

use super::super::report::{Check, quoted};
use super::super::target::Target;
use super::{Miss, Tried};

/// The longest URL that firmware of management controllers takes.
const MAX_SHORT: usize = 255;

pub(super) fn all(target: &Target) -> Vec<(Check, Tried)> {
    let url = target.url();
    let path = url.path().to_ascii_lowercase();
    let len = target.len();
    let is_address = target.host().parse::<IpAddr>().is_ok();
    let has_password = !url.username().is_empty() || url.password().is_some();
    let of_host =
        |is_address: bool| if is_address { "an address" } else { "a name, which has to be resolved" };
    let holds = |holds: bool, good: String, bad: String| if holds { Ok(good) } else { Err(Miss::Fails(bad)) };
    let scheme = url.scheme().to_owned();
    vec![
        (
            Check::UrlShort,
            holds(
                len <= MAX_SHORT,
                format!("{len} characters"),
                format!("{len} characters, and {MAX_SHORT} are taken by all"),
            ),
        ),
        (
            Check::UrlSuffix,
            holds(
                path.ends_with(".iso") || path.ends_with(".img"),
                "as media have it".to_owned(),
                "the path ends with neither .iso nor .img".to_owned(),
            ),
        ),
        (
            Check::UrlWithoutQuery,
            holds(url.query().is_none(), "none".to_owned(), "there is a ? in the URL".to_owned()),
        ),
        (
            Check::UrlWithoutPassword,
            holds(!has_password, "none".to_owned(), "there is a user name or password in the URL".to_owned()),
        ),
        (
            Check::UrlWithoutToken,
            holds(
                !target.has_token() && url.query().is_none_or(|query| !has_secret(query)),
                "none that is known as such".to_owned(),
                "there is one, and whoever reads the URL has it".to_owned(),
            ),
        ),
        (
            Check::UrlUsualPort,
            holds(url.port().is_none(), target.port().to_string(), format!("it is {}", target.port())),
        ),
        (
            Check::UrlAddress,
            holds(
                is_address,
                of_host(true).to_owned(),
                format!("{} is {}", quoted(target.host()), of_host(false)),
            ),
        ),
        (Check::UrlEncrypted, holds(target.is_https(), scheme.clone(), scheme.clone())),
        (Check::UrlUnencrypted, holds(!target.is_https(), scheme.clone(), scheme)),
    ]
}

/// Whether a query has a parameter that is one of the usual names of secrets.
fn has_secret(query: &str) -> bool {
    let names = ["api_key", "image_token", "token", "access_token", "sig", "signature", "x-amz-signature"];
    query.split('&').any(|parameter| {
        let name = parameter.split('=').next().unwrap_or_default().to_ascii_lowercase();
        names.contains(&name.as_str()) || parameter.contains("eyJ")
    })
}
