//! The proxies of an infra-env: the rules for valid values, and their forms in the discovery config.
//!
//! The config contains the proxies in four forms: for Ignition, for systemd units, for login shells, and for the unit
//! that downloads the root file system of a minimal ISO. Each form has its own quoting rules.
//!
//! The wrapper in `src/inventory/rules/proxy.rs` converts errors of [`Proxies::parse`] to the messages of the API.

use std::net::IpAddr;

use super::escape;
use super::input::{InputError, is_host_name, list_entries};
use super::url::HttpUrl;
use crate::builder::{ConfigBuilder, FileMode};
use crate::cidr::Cidr;
use crate::json::Json;

const NO_PROXY_FIELD: &str = "proxy.no_proxy";

/// The file with environment variables for units. Only root may read it, because proxy URLs may contain passwords.
const ENVIRONMENT_FILE: &str = "/etc/assisted/proxy.env";

/// The proxies of an infra-env.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Proxies {
    http: Option<HttpUrl>,
    https: Option<HttpUrl>,
    no_proxy: Vec<String>,
}

impl Proxies {
    /// Parses the three values of the inventory's `proxy`. If a value is empty, that proxy is not set.
    ///
    /// # Errors
    ///
    /// Returns an error if a URL is not valid, if the URL for HTTP does not have the scheme `http`, or if an entry of
    /// `no_proxy` is not `*`, an IP address, a network or a domain. Addresses and domains may have a port.
    ///
    /// # Examples
    ///
    /// ```
    /// use ignition::discovery::Proxies;
    ///
    /// let proxies = Proxies::parse("http://10.0.0.1:3128", "", "10.0.0.0/8, .example.com")?;
    /// assert_eq!(proxies, Proxies::parse(" http://10.0.0.1:3128", "", "10.0.0.0/8,.example.com,.example.com")?);
    /// let error = Proxies::parse("https://10.0.0.1", "", "").unwrap_err();
    /// assert_eq!(error.to_string(), r#"proxy.http_proxy "https://10.0.0.1": has to be an http URL"#);
    /// # Ok::<(), ignition::discovery::InputError>(())
    /// ```
    pub fn parse(http: &str, https: &str, no_proxy: &str) -> Result<Self, InputError> {
        let url = |field: &'static str, text: &str| {
            Some(text.trim())
                .filter(|text| !text.is_empty())
                .map(|text| HttpUrl::parse(field, text))
                .transpose()
        };
        let (http, https) = (url("proxy.http_proxy", http)?, url("proxy.https_proxy", https)?);
        if let Some(url) = http.as_ref().filter(|url| url.is_https()) {
            let url_text = super::url::masked_url(url.as_str());
            return Err(InputError::new("proxy.http_proxy", &url_text, "has to be an http URL"));
        }
        Ok(Self { http, https, no_proxy: parse_no_proxy(no_proxy)? })
    }

    /// Returns `true` if neither a proxy nor an exception is set.
    pub(crate) fn is_empty(&self) -> bool {
        self.variables().is_empty()
    }

    /// Returns the drop-in for `coreos-livepxe-rootfs.service` in the initrd of a minimal ISO. With it, the machine
    /// downloads the root file system through the proxies. Returns `None` if neither a proxy nor an exception is set.
    #[cfg_attr(not(any(feature = "network", test)), expect(dead_code, reason = "for static networks"))]
    pub(crate) fn rootfs_dropin(&self) -> Option<String> {
        let lines: String =
            self.variables().iter().map(|(name, value)| escape::unit_environment(name, value)).collect();
        (!lines.is_empty()).then(|| format!("[Service]\n{lines}"))
    }

    /// Returns `true` if a proxy is set. A list of exceptions alone has no effect.
    pub(crate) fn has_proxy(&self) -> bool {
        self.http.is_some() || self.https.is_some()
    }

    /// Returns the value of `ignition.proxy`.
    pub(crate) fn to_ignition_json(&self) -> Json {
        let url = |url: &Option<HttpUrl>| url.as_ref().map(|url| Json::from(url.as_str().to_owned()));
        Json::object_of_set_fields([
            ("httpProxy", url(&self.http)),
            ("httpsProxy", url(&self.https)),
            ("noProxy", Some(Json::texts(&self.no_proxy))),
        ])
    }

    /// Returns the path of the file for `EnvironmentFile=` of units, or `None` if neither a proxy nor an exception is
    /// set.
    pub(crate) fn environment_file(&self) -> Option<&'static str> {
        (!self.is_empty()).then_some(ENVIRONMENT_FILE)
    }

    /// Adds the file whose path [`Self::environment_file`] returns.
    pub(crate) fn add_environment_file(&self, builder: &mut ConfigBuilder) {
        if let Some(path) = self.environment_file() {
            builder.replace_file(path, FileMode::PRIVATE, self.to_environment_file());
        }
    }

    fn to_environment_file(&self) -> String {
        self.variables().iter().map(|(name, value)| escape::environment_file_line(name, value)).collect()
    }

    /// Returns a script for `/etc/profile.d`, which sets the variables in login shells.
    pub(crate) fn to_profile_script(&self) -> String {
        let line = |(name, value): &(&str, String)| format!("export {name}={}\n", escape::shell_word(value));
        self.variables().iter().map(line).collect()
    }

    /// Returns the environment variables in upper and lower case, because programs read different spellings.
    fn variables(&self) -> Vec<(&'static str, String)> {
        let url = |url: &Option<HttpUrl>| url.as_ref().map(|url| url.as_str().to_owned());
        let no_proxy = (!self.no_proxy.is_empty()).then(|| self.no_proxy.join(","));
        let all = [
            (["HTTP_PROXY", "http_proxy"], url(&self.http)),
            (["HTTPS_PROXY", "https_proxy"], url(&self.https)),
            (["NO_PROXY", "no_proxy"], no_proxy),
        ];
        let both = |(names, value): ([&'static str; 2], Option<String>)| {
            value.into_iter().flat_map(move |value| names.map(|name| (name, value.clone())))
        };
        all.into_iter().flat_map(both).collect()
    }
}

/// Parses the exceptions. Repeated exceptions are removed, because Ignition rejects them.
fn parse_no_proxy(text: &str) -> Result<Vec<String>, InputError> {
    let checked = |entry: &str| {
        if is_no_proxy_entry(entry) {
            return Ok(entry.to_owned());
        }
        Err(InputError::new(NO_PROXY_FIELD, entry, "is neither *, an IP address, a network, nor a domain"))
    };
    list_entries(text).map(checked).collect()
}

fn is_no_proxy_entry(entry: &str) -> bool {
    if entry == "*" || entry.parse::<IpAddr>().is_ok() || is_ip_network(entry) {
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

fn is_ip_network(entry: &str) -> bool {
    // A number parser would accept a sign in the prefix length, which is not valid.
    Cidr::parse(entry).is_some() && !entry.contains('+')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exceptions_may_be_hosts_domains_and_networks() {
        let good = "a,.b.c,*.d.e,*,10.0.0.1,10.0.0.0/8,fd00::1,fd00::/8,[fd00::1]:8080,a.b:443,10.0.0.2:80,[fd00::2]";
        let proxies = Proxies::parse("", "", &format!(" {} ,a,,a", good.replace(',', " ,\t"))).unwrap();
        assert_eq!(proxies.no_proxy.join(","), good);
        assert!(!proxies.is_empty() && !proxies.has_proxy());
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
    fn proxies_are_written_in_four_forms() {
        let proxies = Proxies::parse("http://u%40x:p$'@10.0.0.1:3128", "", ".lab,10.0.0.0/8").unwrap();
        assert_eq!(
            serde_json::to_string(&proxies.to_ignition_json()).unwrap(),
            r#"{"httpProxy":"http://u%40x:p$'@10.0.0.1:3128","noProxy":[".lab","10.0.0.0/8"]}"#
        );
        let file = proxies.to_environment_file();
        assert!(file.starts_with("HTTP_PROXY=\"http://u%40x:p\\$'@10.0.0.1:3128\"\nhttp_proxy="), "{file}");
        assert!(file.ends_with("no_proxy=\".lab,10.0.0.0/8\"\n") && !file.contains("HTTPS"), "{file}");
        let profile = proxies.to_profile_script();
        assert!(profile.starts_with("export HTTP_PROXY='http://u%40x:p$'\\''@10.0.0.1:3128'\n"), "{profile}");
        let dropin = proxies.rootfs_dropin().unwrap();
        assert!(dropin.starts_with("[Service]\nEnvironment=\"HTTP_PROXY=http://u%%40x:p$'@10"), "{dropin}");
        assert_eq!(Proxies::default().rootfs_dropin(), None);
    }

    #[test]
    fn rejects_invalid_proxies() {
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
