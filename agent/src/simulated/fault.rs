//! Faults of simulated hosts.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::step_fault::{StepFault, UnknownStepFault, list_of};

macro_rules! faults {
    ($($(#[$doc:meta])* $name:ident = $string:literal,)+) => {
        /// A fault of a simulated host. Profiles and options contain the text that `Display` writes: a name, such as
        /// `slow-disk`, or a step and how it fails, such as `step:ntp-synchronizer=exit-1`.
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
            /// A step of the agent fails.
            Step(StepFault),
        }

        impl Fault {
            /// Every fault with a name: all except those of steps.
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
    /// A ping of this host takes 1.5 seconds longer.
    HighLatency = "high-latency",
    /// This host and the others do not reach each other. The gateway answers.
    Isolated = "isolated",
    /// Another machine in the segment has the host's address, and answers other hosts as well.
    AddressCollision = "address-collision",
    /// The host has no default route.
    NoDefaultRoute = "no-default-route",
    /// The host can resolve no names.
    NoDns = "no-dns",
    /// Names of the cluster's domain that do not exist are resolved, as with a wildcard record.
    WildcardDns = "wildcard-dns",
    /// The host finds that other machines use the cluster's virtual IP addresses.
    VipsInUse = "vips-in-use",
    /// The inventory report has more than 1 MiB.
    ReportTooLarge = "report-too-large",
    /// The report is not JSON.
    InvalidReport = "invalid-report",
    /// No container image can be downloaded.
    NoImages = "no-images",
    /// The host cannot read its boot media.
    MediaLost = "media-lost",
}

/// A text that is not a fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UnknownFault {
    /// No fault has this name.
    #[error("unknown fault {name:?}; expected one of {}, or step:STEP=FAILURE", list_of(Fault::NAMED))]
    Name {
        /// The name.
        name: String,
    },
    /// No step has this fault.
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
    fn names_are_parsed_and_unknown_ones_refused() {
        for fault in Fault::NAMED {
            assert_eq!(fault.to_string().parse(), Ok(*fault));
        }
        let error = "no-power".parse::<Fault>().unwrap_err().to_string();
        assert!(error.starts_with(r#"unknown fault "no-power"; expected one of slow-disk, "#), "{error}");
        assert!(error.ends_with(", media-lost, or step:STEP=FAILURE"), "{error}");
    }

    #[test]
    fn faults_of_profiles_are_texts() {
        let faults: Vec<Fault> = serde_json::from_str(r#"["no-ntp", "step:inventory=timeout"]"#).unwrap();
        assert_eq!(serde_json::to_string(&faults).unwrap(), r#"["no-ntp","step:inventory=timeout"]"#);
        let error = serde_json::from_str::<Fault>(r#""no-power""#).unwrap_err().to_string();
        assert!(error.contains("expected one of slow-disk, "), "{error}");
    }
}
