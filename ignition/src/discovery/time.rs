//! The time servers of a machine.
//!
//! The servers of an infra-env are appended to the live system's `chrony.conf`, or replace the file, so no script is
//! needed. If a directive such as `makestep` is repeated, chrony uses the last one.

use std::net::IpAddr;

use super::input::{InputError, is_host_name, list_entries};
use crate::builder::{ConfigBuilder, FileMode};

/// A time server or a pool of time servers: a host name or an IP address.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NtpSource(String);

impl NtpSource {
    /// Parses a comma-separated list. White space around an entry, empty entries and repeated entries are removed.
    ///
    /// # Errors
    ///
    /// Returns an error if an entry is neither a host name nor an IP address.
    pub(crate) fn parse_list(field: &'static str, text: &str) -> Result<Vec<Self>, InputError> {
        let source = |entry: &str| {
            if entry.parse::<IpAddr>().is_err() && !is_host_name(entry) {
                return Err(InputError::new(field, entry, "is neither a host name nor an IP address"));
            }
            Ok(Self(entry.to_owned()))
        };
        list_entries(text).map(source).collect()
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

/// The time sources of a machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum TimeSources {
    /// The time sources in the live system's `chrony.conf`.
    #[default]
    System,
    /// These time sources in addition to the live system's time sources.
    Additional(Vec<NtpSource>),
    /// Only these time sources.
    Only(Vec<NtpSource>),
}

impl TimeSources {
    /// Parses the two lists of the inventory. One of them must be empty.
    ///
    /// # Errors
    ///
    /// Returns an error if an entry is neither a host name nor an IP address, or if both lists have entries.
    ///
    /// # Examples
    ///
    /// ```
    /// use ignition::discovery::TimeSources;
    ///
    /// assert_eq!(TimeSources::parse("", "")?, TimeSources::System);
    /// let sources = TimeSources::parse("a.example.com, 192.0.2.1", "")?;
    /// assert!(matches!(sources, TimeSources::Additional(list) if list.len() == 2));
    /// assert!(TimeSources::parse("a", "b").is_err());
    /// # Ok::<(), ignition::discovery::InputError>(())
    /// ```
    pub fn parse(additional: &str, only: &str) -> Result<Self, InputError> {
        let additional_sources = NtpSource::parse_list("additional_ntp_sources", additional)?;
        let only_sources = NtpSource::parse_list("ntp_sources", only)?;
        match (additional_sources.is_empty(), only_sources.is_empty()) {
            (true, true) => Ok(Self::System),
            (false, true) => Ok(Self::Additional(additional_sources)),
            (true, false) => Ok(Self::Only(only_sources)),
            (false, false) => {
                Err(InputError::new("ntp_sources", only, "cannot be combined with additional_ntp_sources"))
            }
        }
    }

    pub(crate) fn add_to(&self, builder: &mut ConfigBuilder) {
        const CHRONY_CONF: &str = "/etc/chrony.conf";
        match self {
            Self::Additional(sources) if !sources.is_empty() => {
                // chrony may step the clock at any time, because a clock may be wrong by years and the servers may
                // become reachable only long after boot.
                let lines = format!("\nmakestep 1.0 -1\n{}", server_lines(sources));
                builder.append_to_file(CHRONY_CONF, &lines);
            }
            Self::Only(sources) if !sources.is_empty() => {
                let settings = include_str!("content/chrony.conf");
                builder.replace_file(CHRONY_CONF, FileMode::PUBLIC, server_lines(sources) + settings);
            }
            _ => {}
        }
    }
}

/// Returns lines that make chrony use these servers, with a fast first synchronisation.
fn server_lines(sources: &[NtpSource]) -> String {
    sources.iter().map(|source| format!("server {} iburst\n", source.as_str())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rejects_sources_other_than_names_and_addresses() {
        let good = "0.pool.ntp.org,192.0.2.1,2001:db8::1,Clock";
        let sources =
            NtpSource::parse_list("f", &format!(" {},192.0.2.1", good.replace(',', " , ,"))).unwrap();
        assert_eq!(sources.iter().map(NtpSource::as_str).collect::<Vec<_>>().join(","), good);
        for bad in ["a b", "a\nserver evil", "a;b", "$(reboot)", "'", "a%", "\\", "-a", "[::1]", "ä"] {
            let error = TimeSources::parse(&format!("good,{bad}"), "").unwrap_err();
            let prefix = format!("additional_ntp_sources {bad:?}: ");
            assert!(error.to_string().starts_with(&prefix), "{error}");
        }
    }
}
