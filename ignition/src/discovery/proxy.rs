//! The proxies of an infra-env: the rules for valid values, and how the discovery config states them.
//!
//! The config needs four forms: for Ignition, for systemd units, for login shells, and for the unit that fetches the root
//! file system of a minimal ISO. Each form is quoted in its own way.
//!
//! The wrapper in `src/inventory/rules/proxy.rs` turns errors of [`Proxies::parse`] into the messages of the API.

use std::collections::BTreeSet;
use std::net::IpAddr;

use super::escape;
use super::input::{InputError, is_host_name};
use super::parts::Parts;
use super::url::HttpUrl;
use crate::builder::FileMode;
use crate::json::Json;

const NO_PROXY: &str = "proxy.no_proxy";

/// Variables for units. It may hold passwords, so only root may read it.
const FILE: &str = "/etc/assisted/proxy.env";

/// The proxies of an infra-env.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Proxies {
    http: Option<HttpUrl>,
    https: Option<HttpUrl>,
    none_for: Vec<String>,
}

impl Proxies {
    /// Reads the three values of the inventory's `proxy`; an empty one is none.
    ///
    /// # Errors
    ///
    /// When a URL is none, when the one for HTTP is not an `http` URL, and when an entry of `no_proxy` is neither `*`,
    /// an address, a network nor a domain, all with or without a port.
    ///
    /// # Examples
    ///
    /// ```
    /// use ignition::discovery::Proxies;
    ///
    /// let proxies = Proxies::parse("http://10.0.0.1:3128", "", "10.0.0.0/8, .example.com")?;
    /// assert_eq!(proxies.none_for(), ["10.0.0.0/8", ".example.com"]);
    /// let error = Proxies::parse("https://10.0.0.1", "", "").unwrap_err();
    /// assert_eq!(error.to_string(), r#"proxy.http_proxy "https://10.0.0.1": has to be an http URL"#);
    /// # Ok::<(), ignition::discovery::InputError>(())
    /// ```
    pub fn parse(http: &str, https: &str, none_for: &str) -> Result<Self, InputError> {
        let url = |field: &'static str, text: &str| {
            Some(text.trim())
                .filter(|text| !text.is_empty())
                .map(|text| HttpUrl::parse(field, text))
                .transpose()
        };
        let (http, https) = (url("proxy.http_proxy", http)?, url("proxy.https_proxy", https)?);
        if let Some(url) = http.as_ref().filter(|url| url.is_https()) {
            let shown = super::url::masked_url(url.as_str());
            return Err(InputError::new("proxy.http_proxy", &shown, "has to be an http URL"));
        }
        Ok(Self { http, https, none_for: parse_none_for(none_for)? })
    }

    /// The proxy for HTTP.
    #[must_use]
    pub fn http(&self) -> Option<&HttpUrl> {
        self.http.as_ref()
    }

    /// The proxy for HTTPS.
    #[must_use]
    pub fn https(&self) -> Option<&HttpUrl> {
        self.https.as_ref()
    }

    /// What is reached without a proxy.
    #[must_use]
    pub fn none_for(&self) -> &[String] {
        &self.none_for
    }

    /// Whether nothing at all was given.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.variables().is_empty()
    }

    /// The drop-in for `coreos-livepxe-rootfs.service` in the initrd of a minimal image, so that the root file system comes
    /// through the proxies. Nothing when there are none.
    #[must_use]
    pub fn rootfs_dropin(&self) -> Option<String> {
        let lines: String =
            self.variables().iter().map(|(name, value)| escape::environment(name, value)).collect();
        (!lines.is_empty()).then(|| format!("[Service]\n{lines}"))
    }

    /// Whether anything goes through a proxy. A list of exceptions alone has no effect.
    pub(crate) fn is_used(&self) -> bool {
        self.http.is_some() || self.https.is_some()
    }

    /// The value of `ignition.proxy`.
    pub(crate) fn to_ignition(&self) -> Json {
        let url = |url: &Option<HttpUrl>| url.as_ref().map(|url| Json::from(url.as_str().to_owned()));
        let fields = [
            ("httpProxy", url(&self.http)),
            ("httpsProxy", url(&self.https)),
            ("noProxy", Some(Json::texts(&self.none_for))),
        ];
        let given = fields.into_iter().filter_map(|(name, value)| Some((name, value?)));
        Json::Object(given.collect())
    }

    /// The file for `EnvironmentFile=` of units, if there are any proxies.
    pub(super) fn environment(&self) -> Option<&'static str> {
        (!self.is_empty()).then_some(FILE)
    }

    /// Writes the file of [`Self::environment`].
    pub(super) fn add_environment(&self, parts: &mut Parts) {
        if let Some(path) = self.environment() {
            parts.file(path, FileMode::PRIVATE, self.to_environment_file());
        }
    }

    fn to_environment_file(&self) -> String {
        self.variables().iter().map(|(name, value)| escape::environment_file(name, value)).collect()
    }

    /// The script for `/etc/profile.d`.
    pub(crate) fn to_profile(&self) -> String {
        let line = |(name, value): &(&str, String)| format!("export {name}={}\n", escape::shell(value));
        self.variables().iter().map(line).collect()
    }

    /// The variables that programs read: some the one spelling, some the other.
    fn variables(&self) -> Vec<(&'static str, String)> {
        let url = |url: &Option<HttpUrl>| url.as_ref().map(|url| url.as_str().to_owned());
        let none_for = (!self.none_for.is_empty()).then(|| self.none_for.join(","));
        let all = [
            (["HTTP_PROXY", "http_proxy"], url(&self.http)),
            (["HTTPS_PROXY", "https_proxy"], url(&self.https)),
            (["NO_PROXY", "no_proxy"], none_for),
        ];
        let both = |(names, value): ([&'static str; 2], Option<String>)| {
            value.into_iter().flat_map(move |value| names.map(|name| (name, value.clone())))
        };
        all.into_iter().flat_map(both).collect()
    }
}

/// Splits a list at its commas. An entry that is there already is dropped: Ignition refuses repeated ones.
fn parse_none_for(text: &str) -> Result<Vec<String>, InputError> {
    let mut seen = BTreeSet::new();
    let mut entries = Vec::new();
    for entry in text.split(',').map(str::trim).filter(|entry| !entry.is_empty()) {
        if !is_exception(entry) {
            let reason = "is neither *, an IP address, a network, nor a domain";
            return Err(InputError::new(NO_PROXY, entry, reason));
        }
        if seen.insert(entry) {
            entries.push(entry.to_owned());
        }
    }
    Ok(entries)
}

fn is_exception(entry: &str) -> bool {
    if entry == "*" || entry.parse::<IpAddr>().is_ok() || is_network(entry) {
        return true;
    }
    let host = match entry.rsplit_once(':') {
        Some((host, port)) if port.parse::<u16>().is_ok() => host,
        Some(_) => return is_bracketed(entry),
        None => entry,
    };
    is_bracketed(host) || is_host_name(host.strip_prefix("*.").or(host.strip_prefix('.')).unwrap_or(host))
}

fn is_bracketed(host: &str) -> bool {
    let inner = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    inner.is_some_and(|address| address.parse::<IpAddr>().is_ok_and(|address| address.is_ipv6()))
}

fn is_network(entry: &str) -> bool {
    let Some((address, len)) = entry.split_once('/') else { return false };
    let longest = match address.parse() {
        Ok(IpAddr::V4(_)) => 32_u8,
        Ok(IpAddr::V6(_)) => 128,
        Err(_) => return false,
    };
    len.bytes().all(|byte| byte.is_ascii_digit()) && len.parse::<u8>().is_ok_and(|len| len <= longest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exceptions_are_hosts_domains_and_networks() {
        let good = "a,.b.c,*.d.e,*,10.0.0.1,10.0.0.0/8,fd00::1,fd00::/8,[fd00::1]:8080,a.b:443,10.0.0.2:80,[fd00::2]";
        let proxies = Proxies::parse("", "", &format!(" {} ,a,,a", good.replace(',', " ,\t"))).unwrap();
        assert_eq!(proxies.none_for().join(","), good);
        assert!(!proxies.is_empty() && !proxies.is_used());
        for bad in [
            "a b",
            "a\nb",
            "$(x)",
            "a%b",
            "10.0.0.0/33",
            "10.0.0.0/+8",
            "fd00::/129",
            "a:x",
            "*a",
            "http://a",
            "..a",
            "\"",
            "a\\",
        ] {
            let error = Proxies::parse("", "", &format!("good,{bad}")).unwrap_err().to_string();
            assert!(error.starts_with("proxy.no_proxy "), "{bad:?}: {error}");
        }
    }

    #[test]
    fn proxies_come_in_four_forms() {
        let proxies = Proxies::parse("http://u%40x:p$'@10.0.0.1:3128", "", ".lab,10.0.0.0/8").unwrap();
        assert_eq!(
            serde_json::to_string(&proxies.to_ignition()).unwrap(),
            r#"{"httpProxy":"http://u%40x:p$'@10.0.0.1:3128","noProxy":[".lab","10.0.0.0/8"]}"#
        );
        let file = proxies.to_environment_file();
        assert!(file.starts_with("HTTP_PROXY=\"http://u%40x:p\\$'@10.0.0.1:3128\"\nhttp_proxy="), "{file}");
        assert!(file.ends_with("no_proxy=\".lab,10.0.0.0/8\"\n") && !file.contains("HTTPS"), "{file}");
        let profile = proxies.to_profile();
        assert!(profile.starts_with("export HTTP_PROXY='http://u%40x:p$'\\''@10.0.0.1:3128'\n"), "{profile}");
        let dropin = proxies.rootfs_dropin().unwrap();
        assert!(dropin.starts_with("[Service]\nEnvironment=\"HTTP_PROXY=http://u%%40x:p$'@10"), "{dropin}");
        assert_eq!(Proxies::default().rootfs_dropin(), None);
    }

    #[test]
    fn bad_proxies_are_named() {
        for (http, https, field) in [
            ("http://a b", "", "http_proxy"),
            ("", "socks5://a", "https_proxy"),
            ("https://a", "", "http_proxy"),
        ] {
            let error = Proxies::parse(http, https, "").unwrap_err().to_string();
            assert!(error.starts_with(&format!("proxy.{field} \"")), "{error}");
        }
        assert!(Proxies::parse("", "https://a", "").is_ok());
        assert!(!format!("{:?}", Proxies::parse("http://a:hunter2@b", "", "")).contains("hunter2"));
    }
}
