//! The faults that a simulated host can have, such as a slow disk or a clock that is behind.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::step_fault::{StepFault, UnknownStepFault, list_of};

macro_rules! faults {
    ($($(#[$doc:meta])* $name:ident = $string:literal,)+) => {
        /// A fault of a simulated host. Profiles and options contain the fault as the text that `Display` writes: a
        /// name such as `slow-disk`, or a step and its failure such as `step:ntp-synchronizer=exit-1`.
        ///
        /// # Examples
        ///
        /// ```
        /// use agent::simulated::{Fault, StepFailureMode};
        /// use assisted::step::StepType;
        ///
        /// assert_eq!("slow-disk".parse(), Ok(Fault::SlowDisk));
        /// let Fault::Step(fault) = "step:ntp-synchronizer=exit-1".parse()? else { unreachable!() };
        /// assert_eq!((fault.step(), fault.mode()), (StepType::NtpSynchronizer, StepFailureMode::Exit1));
        /// # Ok::<(), agent::simulated::UnknownFault>(())
        /// ```
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Fault {
            $($(#[$doc])* $name,)+
            /// One step always fails in the same way.
            Step(StepFault),
        }

        impl Fault {
            /// All faults with a fixed name, which excludes the faults of individual steps.
            pub const NAMED: &'static [Self] = &[$(Self::$name),+];

            fn parse_name(name: &str) -> Option<Self> {
                match name {
                    $($string => Some(Self::$name),)+
                    _ => None,
                }
            }
        }

        impl fmt::Display for Fault {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    $(Self::$name => f.pad($string),)+
                    Self::Step(fault) => fault.fmt(f),
                }
            }
        }
    };
}

faults! {
    /// A synchronous write to a disk takes 50 ms.
    SlowDisk = "slow-disk",
    /// The speed check of each disk fails.
    BrokenDisk = "broken-disk",
    /// The size of each disk is 10 GB.
    SmallDisk = "small-disk",
    /// The host has 4 GiB of memory.
    LittleMemory = "little-memory",
    /// The host cannot reach any time server.
    NoNtp = "no-ntp",
    /// The clock is 30 minutes behind.
    WrongClock = "wrong-clock",
    /// The host reports the name of the first host.
    DuplicateHostname = "duplicate-hostname",
    /// The host name is localhost.
    InvalidHostname = "invalid-hostname",
    /// The interface with the host's address has no link, so the host reports no address.
    UnpluggedLink = "unplugged-link",
    /// Half of all packets to other hosts are lost.
    PacketLoss = "packet-loss",
    /// Each ping from this host takes 1.5 seconds longer.
    HighLatency = "high-latency",
    /// This host and the other hosts cannot reach each other. The gateway is still reachable.
    Isolated = "isolated",
    /// Another machine in the segment uses the host's address and also replies to ARP requests for it.
    AddressCollision = "address-collision",
    /// The host has no default route.
    NoDefaultRoute = "no-default-route",
    /// The host cannot resolve any name.
    NoDns = "no-dns",
    /// Nonexistent names in the cluster's domain are resolved, as with a wildcard record.
    WildcardDns = "wildcard-dns",
    /// The host reports that other machines use the cluster's virtual IP addresses.
    VipsInUse = "vips-in-use",
    /// The inventory report is larger than 1 MiB.
    ReportTooLarge = "report-too-large",
    /// The report is not JSON.
    InvalidReport = "invalid-report",
    /// No container image can be downloaded.
    NoImages = "no-images",
    /// The host cannot read its boot media.
    MediaLost = "media-lost",
}

/// The error for a text that is not a fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UnknownFault {
    /// No fault has this name.
    #[error("unknown fault {name:?}; expected one of {}, or step:STEP=FAILURE", list_of(Fault::NAMED))]
    Name {
        /// The unknown name, as in the profile or option.
        name: String,
    },
    /// The text after `step:` contains an unknown step or failure.
    #[error(transparent)]
    Step(#[from] UnknownStepFault),
}

impl FromStr for Fault {
    type Err = UnknownFault;

    fn from_str(text: &str) -> Result<Self, UnknownFault> {
        if let Some(fault) = text.strip_prefix(StepFault::PREFIX) {
            return Ok(Self::Step(StepFault::parse(fault)?));
        }
        Self::parse_name(text).ok_or_else(|| UnknownFault::Name { name: text.to_owned() })
    }
}

impl Serialize for Fault {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Fault {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_fault_names_and_rejects_unknown_ones() {
        for fault in Fault::NAMED {
            assert_eq!(fault.to_string().parse(), Ok(*fault));
        }
        let error = "no-power".parse::<Fault>().unwrap_err().to_string();
        assert!(error.starts_with(r#"unknown fault "no-power"; expected one of slow-disk, "#), "{error}");
        assert!(error.ends_with(", media-lost, or step:STEP=FAILURE"), "{error}");
    }

    #[test]
    fn faults_in_profiles_are_strings() {
        let faults: Vec<Fault> = serde_json::from_str(r#"["no-ntp", "step:inventory=timeout"]"#).unwrap();
        assert_eq!(serde_json::to_string(&faults).unwrap(), r#"["no-ntp","step:inventory=timeout"]"#);
        let error = serde_json::from_str::<Fault>(r#""no-power""#).unwrap_err().to_string();
        assert!(error.contains("expected one of slow-disk, "), "{error}");
    }
}
