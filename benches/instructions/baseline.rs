//! The recorded costs of operations, in a file of lines, and the differences of new counts.
//!
//! A line has a name, the instructions of one operation, and its system calls. A blocked system call executes no
//! instructions, so a new wait shows only in the number of system calls.

use std::fmt;

/// The cost of one operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cost {
    pub(crate) instructions: u64,
    pub(crate) calls: u64,
}

/// Percentages by which costs may exceed the baseline.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tolerance {
    pub(crate) instructions: u64,
    pub(crate) calls: u64,
}

#[derive(Debug, Clone)]
pub(crate) struct MeasuredOperation {
    pub(crate) name: String,
    pub(crate) cost: Cost,
    pub(crate) tolerance: Tolerance,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Baseline {
    /// The programs with which the costs were counted. Other versions return other counts.
    pub(crate) tools: String,
    lines: Vec<(String, Cost)>,
}

/// A difference from the baseline.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Difference {
    /// Above the tolerance: name, kind of cost, old cost, new cost.
    Grown(String, &'static str, u64, u64),
    /// Below the tolerance. Not a failure, but the old baseline would hide later growth.
    Shrunk(String, &'static str, u64, u64),
    /// The operation has no baseline.
    New(String),
    /// The operation was not counted.
    Gone(String),
}

impl Baseline {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut baseline = Self::default();
        for (number, line) in text.lines().enumerate() {
            if let Some(tools) = line.strip_prefix("# counted with ") {
                tools.clone_into(&mut baseline.tools);
            } else if !line.starts_with('#') && !line.trim().is_empty() {
                let parsed = parse(line).ok_or_else(|| {
                    format!("line {}: not a name, instructions and system calls: {line:?}", number + 1)
                })?;
                if baseline.cost(&parsed.0).is_some() {
                    return Err(format!("line {}: duplicate entry {}", number + 1, parsed.0));
                }
                baseline.lines.push(parsed);
            }
        }
        Ok(baseline)
    }

    fn cost(&self, name: &str) -> Option<Cost> {
        self.lines.iter().find(|(line_name, _)| line_name == name).map(|(_, cost)| *cost)
    }

    /// Returns all differences. If only some operations were counted, the others are not reported as missing.
    pub(crate) fn compare(&self, counted: &[MeasuredOperation], is_everything: bool) -> Vec<Difference> {
        let mut differences = Vec::new();
        for MeasuredOperation { name, cost, tolerance } in counted {
            let Some(before) = self.cost(name) else {
                differences.push(Difference::New(name.clone()));
                continue;
            };
            let instructions = (before.instructions, cost.instructions, tolerance.instructions);
            differences.extend(difference(name, "instructions", instructions));
            differences.extend(difference(name, "system calls", (before.calls, cost.calls, tolerance.calls)));
        }
        let is_counted = |name: &str| counted.iter().any(|counted| counted.name == name);
        let missing = self.lines.iter().filter(|(name, _)| is_everything && !is_counted(name));
        differences.extend(missing.map(|(name, _)| Difference::Gone(name.clone())));
        differences
    }

    /// Returns a new baseline with these costs. Lines of other operations stay, unless all operations were counted.
    pub(crate) fn updated(self, counted: &[MeasuredOperation], is_everything: bool, tools: String) -> Self {
        let mut lines = if is_everything { Vec::new() } else { self.lines };
        for MeasuredOperation { name, cost, .. } in counted {
            match lines.iter_mut().find(|(line_name, _)| line_name == name) {
                Some((_, stored)) => *stored = *cost,
                None => lines.push((name.clone(), *cost)),
            }
        }
        Self { tools, lines }
    }
}

fn parse(line: &str) -> Option<(String, Cost)> {
    let mut words = line.split_whitespace();
    let name = words.next()?.to_owned();
    let cost = Cost { instructions: words.next()?.parse().ok()?, calls: words.next()?.parse().ok()? };
    words.next().is_none().then_some((name, cost))
}

fn difference(name: &str, what: &'static str, (before, now, percent): (u64, u64, u64)) -> Option<Difference> {
    let is_above = |high: u64, low: u64| u128::from(high) * 100 > u128::from(low) * u128::from(100 + percent);
    if is_above(now, before) {
        Some(Difference::Grown(name.to_owned(), what, before, now))
    } else if is_above(before, now) {
        Some(Difference::Shrunk(name.to_owned(), what, before, now))
    } else {
        None
    }
}

impl Difference {
    /// Returns `true` if the difference is a failure.
    pub(crate) fn is_failure(&self) -> bool {
        !matches!(self, Self::Shrunk(..))
    }
}

impl fmt::Display for Baseline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "# What one operation costs: its name, instructions, and system calls.")?;
        writeln!(f, "# Written by `.ci/instructions --update`, compared with by `.ci/instructions`.")?;
        writeln!(f, "# counted with {}", self.tools)?;
        for (name, cost) in &self.lines {
            writeln!(f, "{name:<24} {:>10} {:>6}", cost.instructions, cost.calls)?;
        }
        Ok(())
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let change = |before: u64, now: u64| {
            let tenths = u128::from(before.abs_diff(now)) * 1000 / u128::from(before.max(1));
            format!("{}.{} %", tenths / 10, tenths % 10)
        };
        match self {
            Self::Grown(name, what, before, now) => {
                write!(f, "{name}: {what} grew from {before} to {now}, by {}", change(*before, *now))
            }
            Self::Shrunk(name, what, before, now) => {
                write!(f, "{name}: {what} fell from {before} to {now}, by {}", change(*before, *now))
            }
            Self::New(name) => write!(f, "{name}: is not in the baseline"),
            Self::Gone(name) => write!(f, "{name}: is in the baseline, but was not counted"),
        }
    }
}
