//! Where the machine gets the time.
//!
//! There is no script for this: the servers of an infra-env are appended to the system's `chrony.conf`, or the file is
//! replaced. Of a directive that is given twice, `makestep` for one, chrony takes the last.

use std::collections::BTreeSet;
use std::net::IpAddr;

use super::input::{InputError, is_host_name};
use super::parts::Parts;
use crate::builder::FileMode;

/// A server or pool of NTP servers: a host name or an address.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NtpSource(String);

impl NtpSource {
    /// Reads a list that is separated by commas. Blanks around an entry, empty and repeated entries are dropped.
    ///
    /// # Errors
    ///
    /// When an entry is neither a host name nor an address.
    pub fn parse_list(field: &'static str, text: &str) -> Result<Vec<Self>, InputError> {
        let mut seen = BTreeSet::new();
        let mut sources = Vec::new();
        for entry in text.split(',').map(str::trim).filter(|entry| !entry.is_empty()) {
            if entry.parse::<IpAddr>().is_err() && !is_host_name(entry) {
                return Err(InputError::new(field, entry, "is neither a host name nor an IP address"));
            }
            if seen.insert(entry) {
                sources.push(Self(entry.to_owned()));
            }
        }
        Ok(sources)
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The time sources of a machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum TimeSources {
    /// Those of the system.
    #[default]
    System,
    /// Those of the system and these.
    Additional(Vec<NtpSource>),
    /// Only these.
    Only(Vec<NtpSource>),
}

impl TimeSources {
    /// Reads the inventory's two lists, of which one has to be empty.
    ///
    /// # Errors
    ///
    /// When an entry is neither a host name nor an address, and when both lists hold something.
    ///
    /// # Examples
    ///
    /// ```
    /// use ignition::discovery::TimeSources;
    ///
    /// assert_eq!(TimeSources::parse("", "")?, TimeSources::System);
    /// assert!(matches!(TimeSources::parse("a.example.com, 192.0.2.1", "")?, TimeSources::Additional(list) if list.len() == 2));
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
            (false, false) => Err(InputError::new(
                "ntp_sources",
                only,
                "excludes additional_ntp_sources, which is given too",
            )),
        }
    }

    /// Tells chrony of them.
    pub(super) fn add(&self, parts: &mut Parts) {
        const CHRONY: &str = "/etc/chrony.conf";
        match self {
            Self::Additional(sources) if !sources.is_empty() => {
                // The clock of a machine may be years off, and may be so whenever the servers come into reach.
                let lines = format!("\nmakestep 1.0 -1\n{}", servers(sources));
                parts.append(CHRONY, &lines);
            }
            Self::Only(sources) if !sources.is_empty() => {
                let settings = include_str!("content/chrony.conf");
                parts.file(CHRONY, FileMode::PUBLIC, servers(sources) + settings);
            }
            _ => {}
        }
    }
}

/// The lines that make chrony ask these servers, quickly at first.
fn servers(sources: &[NtpSource]) -> String {
    sources.iter().map(|source| format!("server {} iburst\n", source.as_str())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_names_and_addresses() {
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
