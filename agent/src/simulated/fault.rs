//! Faults of simulated hosts.

use std::fmt;

use serde::{Deserialize, Serialize};

macro_rules! faults {
    ($($(#[$doc:meta])* $name:ident = $string:literal,)+) => {
        /// A fault that a simulated host has.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[non_exhaustive]
        pub enum Fault {
            $($(#[$doc])* #[serde(rename = $string)] $name,)+
        }

        impl Fault {
            /// Every fault.
            pub const ALL: &'static [Self] = &[$(Self::$name),+];

            /// Returns the name in profiles and options.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => $string,)+
                }
            }
        }
    };
}

faults! {
    /// The disks take 50 ms for a synchronous write.
    SlowDisk = "slow-disk",
    /// The speed check of each disk fails.
    BrokenDisk = "broken-disk",
    /// Each disk has 10 GB.
    SmallDisk = "small-disk",
    /// The host has 4 GiB of memory.
    LittleMemory = "little-memory",
    /// The host reaches no time server.
    NoNtp = "no-ntp",
    /// The clock is 30 minutes behind.
    WrongClock = "wrong-clock",
    /// The host has the name of the first host.
    DuplicateHostname = "duplicate-hostname",
    /// The host name is localhost.
    InvalidHostname = "invalid-hostname",
    /// The interface with the host's address has no link, so the host reports no address.
    UnpluggedLink = "unplugged-link",
    /// Half of all packets to other hosts are lost.
    PacketLoss = "packet-loss",
    /// The inventory report has more than 1 MiB.
    ReportTooLarge = "report-too-large",
    /// The report is not JSON.
    InvalidReport = "invalid-report",
    /// No container image can be downloaded.
    NoImages = "no-images",
    /// The host cannot read its boot media.
    MediaLost = "media-lost",
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A name that is not a fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown fault {name:?}; expected one of {}", names())]
pub struct UnknownFault {
    name: String,
}

impl std::str::FromStr for Fault {
    type Err = UnknownFault;

    fn from_str(name: &str) -> Result<Self, UnknownFault> {
        let found = Self::ALL.iter().find(|fault| fault.as_str() == name);
        found.copied().ok_or_else(|| UnknownFault { name: name.to_owned() })
    }
}

fn names() -> String {
    Fault::ALL.iter().map(|fault| fault.as_str()).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_parsed_and_unknown_ones_refused() {
        for fault in Fault::ALL {
            assert_eq!(fault.as_str().parse(), Ok(*fault));
        }
        let error = "no-power".parse::<Fault>().unwrap_err().to_string();
        assert!(error.starts_with(r#"unknown fault "no-power"; expected one of slow-disk, "#), "{error}");
    }
}
