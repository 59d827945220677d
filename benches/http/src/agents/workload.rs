//! The rows of the result: what is measured, on which data, and within which bounds.

use serde::{Deserialize, Serialize};

use super::hardware::ReportSize;
use super::population::HostPlan;
use crate::figures::Line;
use crate::work::Size;

/// The contestant to which the bounds apply.
pub(crate) const SUBJECT: &str = "kindling";
/// The control of [`Workload::Ranges`]: the same build, whose check-ins go to a second process.
pub(crate) const CONTROL: &str = "check-ins at a second process";

/// Names of measurements with bounds.
pub(crate) const RATE: &str = "rate";
pub(crate) const CORE_SHARE: &str = "CPU time, share of one core";
pub(crate) const CPU: &str = "CPU time";
pub(crate) const FIRST_BYTE: &str = "first byte";
pub(crate) const PRIVATE_MEMORY: &str = "private memory";
pub(crate) const START: &str = "start to ready";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Workload {
    /// Ranges of images while agents check in.
    Ranges,
    /// Check-ins alone.
    CheckIns,
    /// Requests for steps, one after another.
    Steps,
    /// Inventory reports that equal the stored ones.
    SameReport,
    /// Inventory reports that differ from the stored ones.
    NewReport,
    /// A list of hosts with reports of this length.
    Hosts(ReportSize),
    /// A list of clusters.
    Clusters,
    /// A start, and the memory after a check-in of each host.
    Start,
    /// Ranges of images while simulated hosts check in.
    SimulatedRanges,
    /// Check-ins of simulated hosts alone.
    SimulatedCheckIns,
    /// A list of hosts, and the memory, while simulated hosts check in.
    SimulatedList,
}

/// The data of a server. Rows with the same data share servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DataSet {
    /// Hosts of four infra-envs with static networks.
    Networks,
    /// The infra-envs of `Networks`, with hosts of `kindling simulate`.
    Simulated,
    /// Hosts of one infra-env.
    Hosts(ReportSize),
    Clusters,
}

impl DataSet {
    pub(crate) const ALL: [Self; 5] = [
        Self::Networks,
        Self::Simulated,
        Self::Hosts(ReportSize::Large),
        Self::Hosts(ReportSize::Small),
        Self::Clusters,
    ];

    /// Returns a name for the files with this data.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Networks => "networks",
            Self::Simulated => "simulated",
            Self::Hosts(ReportSize::Large) => "hosts-43k",
            Self::Hosts(ReportSize::Small) => "hosts-2k",
            Self::Clusters => "clusters",
        }
    }
}

impl Workload {
    pub(crate) const ALL: [Self; 12] = [
        Self::Ranges,
        Self::CheckIns,
        Self::Start,
        Self::SimulatedList,
        Self::SimulatedRanges,
        Self::SimulatedCheckIns,
        Self::Steps,
        Self::SameReport,
        Self::NewReport,
        Self::Hosts(ReportSize::Large),
        Self::Hosts(ReportSize::Small),
        Self::Clusters,
    ];

    /// Returns the short name of the row, for `--only`.
    pub(crate) fn key(self) -> &'static str {
        match self {
            Self::Ranges => "ranges",
            Self::CheckIns => "check-ins",
            Self::Start => "start",
            Self::SimulatedRanges => "simulated-ranges",
            Self::SimulatedCheckIns => "simulated-check-ins",
            Self::SimulatedList => "simulated-list",
            Self::Steps => "steps",
            Self::SameReport => "same-report",
            Self::NewReport => "new-report",
            Self::Hosts(ReportSize::Large) => "list-hosts-43k",
            Self::Hosts(ReportSize::Small) => "list-hosts-2k",
            Self::Clusters => "list-clusters",
        }
    }

    pub(crate) fn title(self, sizes: &Sizes) -> String {
        let Sizes { hosts, clusters, .. } = sizes;
        match self {
            Self::Ranges => {
                let (rate, connections) = (sizes.rate, sizes.connections);
                format!("ranges of 16 KiB, {connections} connections, beside {rate:.0} check-ins/s")
            }
            Self::CheckIns => format!("{:.0} check-ins/s with all replies", sizes.rate),
            Self::Start => format!("start with {hosts} hosts, and a check-in of each"),
            Self::SimulatedRanges => {
                let (rate, connections) = (sizes.rate, sizes.connections);
                format!("ranges of 16 KiB, {connections} connections, beside {rate:.0} simulated check-ins/s")
            }
            Self::SimulatedCheckIns => format!("{:.0} simulated check-ins/s", sizes.rate),
            Self::SimulatedList => {
                format!(
                    "list of an infra-env's {} simulated hosts with 43 KiB reports",
                    hosts / sizes.infra_envs
                )
            }
            Self::Steps => "GET of the steps of a host with a 43 KiB report".to_owned(),
            Self::SameReport => "inventory report of 43 KiB, unchanged".to_owned(),
            Self::NewReport => "inventory report of 43 KiB, changed".to_owned(),
            Self::Hosts(ReportSize::Large) => format!("list of {hosts} hosts with 43 KiB reports"),
            Self::Hosts(ReportSize::Small) => format!("list of {hosts} hosts with 2 KiB reports"),
            Self::Clusters => format!("list of {clusters} clusters of three hosts"),
        }
    }

    pub(crate) fn data(self) -> DataSet {
        match self {
            Self::Ranges | Self::CheckIns | Self::Start => DataSet::Networks,
            Self::SimulatedRanges | Self::SimulatedCheckIns | Self::SimulatedList => DataSet::Simulated,
            Self::Steps | Self::SameReport | Self::NewReport => DataSet::Hosts(ReportSize::Large),
            Self::Hosts(report) => DataSet::Hosts(report),
            Self::Clusters => DataSet::Clusters,
        }
    }

    pub(crate) fn bounds(self) -> &'static [FigureBound] {
        use FigureLimit::{Highest, LowestRatio};
        match self {
            Self::Ranges | Self::SimulatedRanges => &[FigureBound { figure: RATE, limit: LowestRatio(0.95) }],
            Self::CheckIns | Self::SimulatedCheckIns => {
                &[FigureBound { figure: CORE_SHARE, limit: Highest(15.0) }]
            }
            Self::Start => &[
                FigureBound { figure: PRIVATE_MEMORY, limit: Highest(128.0) },
                FigureBound { figure: START, limit: Highest(200.0) },
            ],
            Self::SimulatedList => &[
                FigureBound { figure: PRIVATE_MEMORY, limit: Highest(128.0) },
                FigureBound { figure: FIRST_BYTE, limit: Highest(50.0) },
            ],
            Self::Steps => &[FigureBound { figure: CPU, limit: Highest(60.0) }],
            Self::SameReport => &[FigureBound { figure: CPU, limit: Highest(150.0) }],
            Self::NewReport => &[FigureBound { figure: CPU, limit: Highest(500.0) }],
            Self::Hosts(ReportSize::Large) => &[FigureBound { figure: FIRST_BYTE, limit: Highest(50.0) }],
            Self::Hosts(ReportSize::Small) => &[FigureBound { figure: CPU, limit: Highest(300.0) }],
            Self::Clusters => &[FigureBound { figure: CPU, limit: Highest(100.0) }],
        }
    }
}

/// Selects the row with exactly this key, otherwise the rows whose keys contain it, or all rows without a key.
pub(crate) fn chosen(only: Option<&str>) -> Vec<Workload> {
    let mut workloads = Workload::ALL.to_vec();
    if let Some(only) = only {
        let is_key = workloads.iter().any(|workload| workload.key() == only);
        workloads
            .retain(|workload| if is_key { workload.key() == only } else { workload.key().contains(only) });
    }
    workloads
}

/// The bound of a measurement's median.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct FigureBound {
    pub(crate) figure: &'static str,
    pub(crate) limit: FigureLimit,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum FigureLimit {
    /// Minimum ratio to the control.
    LowestRatio(f64),
    /// Maximum value, in the unit of the measurement.
    Highest(f64),
}

impl FigureBound {
    /// Returns `true` if the result of a row is within the bound. A missing measurement is out of bounds.
    pub(crate) fn is_kept(&self, line: &Line) -> bool {
        let figure = line.figure(self.figure);
        match self.limit {
            FigureLimit::LowestRatio(least) => {
                let ratio = figure.and_then(|figure| figure.ratio(SUBJECT));
                ratio.is_some_and(|ratio| ratio.spread.median >= least)
            }
            FigureLimit::Highest(most) => {
                figure.and_then(|figure| figure.median(SUBJECT)).is_some_and(|median| median <= most)
            }
        }
    }
}

/// The amounts of data and load in a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Sizes {
    pub(crate) hosts: u32,
    /// Check-ins per second.
    pub(crate) rate: f64,
    /// Number of infra-envs whose images are read.
    pub(crate) infra_envs: u32,
    /// Number of static networks of each of these infra-envs.
    pub(crate) networks: u32,
    /// Number of connections that request ranges concurrently.
    pub(crate) connections: u32,
    pub(crate) clusters: u32,
    /// Length of the base image in MiB.
    pub(crate) image_mib: u64,
}

impl Sizes {
    pub(crate) fn new(size: Size) -> Self {
        /// Time between two check-ins of a host, in seconds.
        const INTERVAL: f64 = 60.0;
        match size {
            Size::Full => Self {
                hosts: 10_000,
                rate: 10_000.0 / INTERVAL,
                infra_envs: 4,
                networks: 1_000,
                connections: 32,
                clusters: 1_000,
                image_mib: 1024,
            },
            Size::Small => Self {
                hosts: 40,
                rate: 20.0,
                infra_envs: 4,
                networks: 5,
                connections: 8,
                clusters: 4,
                image_mib: 16,
            },
        }
    }

    pub(crate) fn plan(&self, data: DataSet) -> Option<HostPlan> {
        let &Self { hosts, infra_envs, networks, .. } = self;
        match data {
            DataSet::Networks => Some(HostPlan { infra_envs, networks, hosts, report: ReportSize::Large }),
            DataSet::Hosts(report) => Some(HostPlan { infra_envs: 1, networks: 0, hosts, report }),
            DataSet::Simulated | DataSet::Clusters => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::{Better, Measure};

    #[test]
    fn keys_and_titles_are_all_different() {
        let sizes = Sizes::new(Size::Full);
        for name in
            [&|workload: &Workload| workload.key().to_owned(), &|workload: &Workload| workload.title(&sizes)]
                as [&dyn Fn(&Workload) -> String; 2]
        {
            let mut names: Vec<String> = Workload::ALL.iter().map(name).collect();
            names.sort();
            names.dedup();
            assert_eq!(names.len(), Workload::ALL.len());
        }
        assert_eq!(
            Workload::Ranges.title(&sizes),
            "ranges of 16 KiB, 32 connections, beside 167 check-ins/s"
        );
    }

    #[test]
    fn tasks_are_selected_by_key_or_part_of_it() {
        assert_eq!(chosen(None), Workload::ALL);
        assert_eq!(chosen(Some("steps")), [Workload::Steps]);
        assert_eq!(chosen(Some("report")), [Workload::SameReport, Workload::NewReport]);
        assert!(chosen(Some("nothing")).is_empty());
        assert!(
            Workload::ALL
                .iter()
                .all(|workload| DataSet::ALL.contains(&workload.data()) && !workload.bounds().is_empty())
        );
    }

    #[test]
    fn bounds_apply_to_the_median_of_all_rounds() {
        let value = |value| Measure { name: CPU, unit: "ms", better: Better::Lower, value };
        let mut line = Line::new("key", "title");
        let bound = FigureBound { figure: CPU, limit: FigureLimit::Highest(100.0) };
        assert!(!bound.is_kept(&line));
        for cpu in [90.0, 300.0, 100.0] {
            line.add(SUBJECT, &[value(cpu)]);
        }
        assert!(bound.is_kept(&line));
        line.add(SUBJECT, &[value(101.0)]);
        assert!(!bound.is_kept(&line));
    }

    #[test]
    fn bounds_of_ratios_need_a_control() {
        let rate = |value| Measure { name: RATE, unit: "1/s", better: Better::Higher, value };
        let mut line = Line::new("key", "title");
        let bound = FigureBound { figure: RATE, limit: FigureLimit::LowestRatio(0.95) };
        line.add(SUBJECT, &[rate(96.0)]);
        assert!(!bound.is_kept(&line));
        line.add(CONTROL, &[rate(100.0)]);
        assert!(bound.is_kept(&line));
        let mut slower = line.clone();
        for (subject, control) in [(94.0, 100.0), (90.0, 100.0)] {
            slower.add(SUBJECT, &[rate(subject)]);
            slower.add(CONTROL, &[rate(control)]);
        }
        assert!(!bound.is_kept(&slower));
    }
}
