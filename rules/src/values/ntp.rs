//! Checks the lists of time servers (NTP sources).

use std::net::IpAddr;
use std::sync::LazyLock;

use regex::Regex;

use super::error::InvalidValue;

#[expect(clippy::unwrap_used, reason = "the pattern is ours, and a test uses it")]
static HOST_NAME: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"^[a-z0-9][a-z0-9\-\.]{0,61}[a-z0-9]$").unwrap());

/// Checks both lists of time servers, one of which must be empty. `default` is always accepted, because the operator of
/// the service configured it.
///
/// # Errors
///
/// Returns an error if both lists have entries, or if an entry is neither a host name nor an IP address.
pub fn check_ntp_sources(additional: &str, only: &str, default: &str) -> Result<(), InvalidValue> {
    if !additional.is_empty() && !only.is_empty() {
        return Err(InvalidValue::new("ntp_sources and additional_ntp_sources are mutually exclusive"));
    }
    for list in [additional, only] {
        let is_source = |text: &str| text.parse::<IpAddr>().is_ok() || HOST_NAME.is_match(text);
        if !list.is_empty() && list != default && !list.split(',').all(is_source) {
            return Err(InvalidValue::new(format!("Invalid NTP source: {list}")));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ntp_sources_are_host_names_or_addresses() {
        for good in ["", "1.2.3.4", "a.example.com,2001:db8::1", "ntp1"] {
            check_ntp_sources(good, "", "").unwrap();
            check_ntp_sources("", good, "").unwrap();
        }
        for bad in ["a, b", "A.example.com", "x", "a_b.c", "a;b"] {
            let refusal = check_ntp_sources(bad, "", "").unwrap_err();
            assert_eq!(refusal.to_string(), format!("Invalid NTP source: {bad}"));
        }
        check_ntp_sources("Odd Default", "", "Odd Default").unwrap();
        assert!(check_ntp_sources("one.example", "two.example", "").is_err());
    }
}
