//! What operations cost when somebody looked last, as a file of lines, and what has grown since.
//!
//! A line is a name, the instructions of one operation, and its system calls. A call that waits takes no instructions: what
//! sleeps where it did not before shows in the calls.

use std::fmt;

/// What one operation costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cost {
    pub(crate) instructions: u64,
    /// System calls.
    pub(crate) calls: u64,
}

/// By how much a cost may be above the one of the baseline, in percent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tolerance {
    pub(crate) instructions: u64,
    pub(crate) calls: u64,
}

/// A cost that was counted just now.
#[derive(Debug, Clone)]
pub(crate) struct Counted {
    pub(crate) name: String,
    pub(crate) cost: Cost,
    pub(crate) tolerance: Tolerance,
}

/// What was counted when somebody looked last.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Baseline {
    /// The programs that it was counted with; with others, counts differ by themselves.
    pub(crate) tools: String,
    lines: Vec<(String, Cost)>,
}

/// What of the costs is not as it was.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Difference {
    /// More than the tolerance allows: of what, from, to.
    Grown(String, &'static str, u64, u64),
    /// Less than the tolerance would allow the other way round. No failure, but the baseline hides what grows from here.
    Shrunk(String, &'static str, u64, u64),
    /// Nobody knows what it cost.
    New(String),
    /// Nobody counted it any more.
    Gone(String),
}

impl Baseline {
    /// Reads the lines of a file.
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
                    return Err(format!("line {}: {} is there twice", number + 1, parsed.0));
                }
                baseline.lines.push(parsed);
            }
        }
        Ok(baseline)
    }

    fn cost(&self, name: &str) -> Option<Cost> {
        self.lines.iter().find(|(known, _)| known == name).map(|(_, cost)| *cost)
    }

    /// What is not as it was. Where only some operations were counted, the others are not missed.
    pub(crate) fn compare(&self, counted: &[Counted], is_everything: bool) -> Vec<Difference> {
        let mut found = Vec::new();
        for Counted { name, cost, tolerance } in counted {
            let Some(before) = self.cost(name) else {
                found.push(Difference::New(name.clone()));
                continue;
            };
            let instructions = (before.instructions, cost.instructions, tolerance.instructions);
            found.extend(difference(name, "instructions", instructions));
            found.extend(difference(name, "system calls", (before.calls, cost.calls, tolerance.calls)));
        }
        let is_counted = |name: &str| counted.iter().any(|counted| counted.name == name);
        let gone = self.lines.iter().filter(|(name, _)| is_everything && !is_counted(name));
        found.extend(gone.map(|(name, _)| Difference::Gone(name.clone())));
        found
    }

    /// The baseline of what was counted now; of what was not counted, the lines stay, unless all of it was.
    pub(crate) fn updated(self, counted: &[Counted], is_everything: bool, tools: String) -> Self {
        let mut lines = if is_everything { Vec::new() } else { self.lines };
        for Counted { name, cost, .. } in counted {
            match lines.iter_mut().find(|(known, _)| known == name) {
                Some((_, known)) => *known = *cost,
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
    /// Whether it has to be put right.
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
