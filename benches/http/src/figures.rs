//! Measured values and their evaluation: medians, and the ratio of each round to the best rival.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The direction in which numbers are better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Better {
    Higher,
    Lower,
    /// Shown without a comparison.
    Neither,
}

/// One number of one measurement.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Measure {
    pub(crate) name: &'static str,
    pub(crate) unit: &'static str,
    pub(crate) better: Better,
    pub(crate) value: f64,
}

/// One measured value of all contestants in all rounds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Figure {
    pub(crate) name: String,
    pub(crate) unit: String,
    pub(crate) better: Better,
    /// Samples by contestant, in the order of rounds.
    pub(crate) samples: BTreeMap<String, Vec<f64>>,
}

/// All measured values of a piece of work.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Line {
    /// The short name for `--only`.
    pub(crate) key: String,
    pub(crate) title: String,
    pub(crate) figures: Vec<Figure>,
}

impl Line {
    pub(crate) fn new(key: &str, title: &str) -> Self {
        Self { key: key.to_owned(), title: title.to_owned(), figures: Vec::new() }
    }

    /// Adds the result of one round of a contestant.
    pub(crate) fn add(&mut self, contestant: &str, measures: &[Measure]) {
        for measure in measures {
            let existing = self.figures.iter().position(|figure| figure.name == measure.name);
            let at = existing.unwrap_or_else(|| {
                self.figures.push(Figure {
                    name: measure.name.to_owned(),
                    unit: measure.unit.to_owned(),
                    better: measure.better,
                    samples: BTreeMap::new(),
                });
                self.figures.len() - 1
            });
            if let Some(figure) = self.figures.get_mut(at) {
                figure.samples.entry(contestant.to_owned()).or_default().push(measure.value);
            }
        }
    }

    pub(crate) fn figure(&self, name: &str) -> Option<&Figure> {
        self.figures.iter().find(|figure| figure.name == name)
    }
}

/// The subject compared with the best rival.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Ratio {
    pub(crate) rival: String,
    pub(crate) spread: Spread,
}

impl Figure {
    pub(crate) fn median(&self, contestant: &str) -> Option<f64> {
        Spread::from_values(self.samples.get(contestant)?).map(|spread| spread.median)
    }

    /// Returns the ratio of each round to the rival with the best median; `None` without a rival.
    pub(crate) fn ratio(&self, subject: &str) -> Option<Ratio> {
        self.ratio_of(self.samples.get(subject)?, subject)
    }

    /// Returns the ratio of other values, measured in the same rounds, to the rivals of the subject, like
    /// [`Self::ratio`].
    pub(crate) fn ratio_of(&self, ours: &[f64], subject: &str) -> Option<Ratio> {
        let rivals = self.samples.keys().filter(|name| *name != subject);
        let medians = rivals.filter_map(|name| Some((name, self.median(name)?)));
        let (rival, _) = match self.better {
            Better::Higher => medians.max_by(|one, other| one.1.total_cmp(&other.1))?,
            Better::Lower => medians.min_by(|one, other| one.1.total_cmp(&other.1))?,
            Better::Neither => return None,
        };
        let theirs = self.samples.get(rival)?;
        let pairs = ours.iter().zip(theirs).filter(|(_, theirs)| **theirs > 0.0);
        let ratios: Vec<f64> = pairs.map(|(ours, theirs)| ours / theirs).collect();
        Some(Ratio { rival: rival.clone(), spread: Spread::from_values(&ratios)? })
    }
}

/// Median, lowest and highest value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
}

impl Spread {
    /// Returns `None` if `values` is empty or contains a NaN.
    pub(crate) fn from_values(values: &[f64]) -> Option<Self> {
        let mut sorted: Vec<f64> = values.iter().copied().filter(|value| value.is_finite()).collect();
        sorted.sort_by(f64::total_cmp);
        let middle = sorted.len() / 2;
        let upper = *sorted.get(middle)?;
        let median = if sorted.len() % 2 == 1 {
            upper
        } else {
            f64::midpoint(*sorted.get(middle.checked_sub(1)?)?, upper)
        };
        Some(Self { median, low: *sorted.first()?, high: *sorted.last()? })
    }

    pub(crate) fn sign(self) -> Sign {
        if self.low > 1.0 {
            Sign::Above
        } else if self.high < 1.0 {
            Sign::Below
        } else {
            Sign::Either
        }
    }
}

/// The side of 1 on which all ratios of a comparison are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sign {
    Above,
    Below,
    /// Some ratios are above 1 and some below.
    Either,
}

/// Returns the value below which `hundredths` percent of all values are; `None` without values.
pub(crate) fn percentile(values: &mut [f64], hundredths: usize) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let at = (values.len() * hundredths).div_ceil(100).saturating_sub(1);
    values.get(at).copied()
}

/// Converts a count to a dividend. The result is exact up to 2^53, far above any count here.
#[expect(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
pub(crate) fn float(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn figure(better: Better, samples: &[(&str, &[f64])]) -> Figure {
        let samples = samples.iter().map(|(name, values)| ((*name).to_owned(), values.to_vec())).collect();
        Figure { name: "rate".to_owned(), unit: "GiB/s".to_owned(), better, samples }
    }

    #[test]
    fn median_is_the_middle_value() {
        let spread = |values: &[f64]| {
            Spread::from_values(values).map(|spread| (spread.low, spread.median, spread.high))
        };
        assert_eq!(spread(&[3.0, 1.0, 2.0]), Some((1.0, 2.0, 3.0)));
        assert_eq!(spread(&[4.0, 1.0, 2.0, 3.0]), Some((1.0, 2.5, 4.0)));
        assert_eq!(spread(&[5.0]), Some((5.0, 5.0, 5.0)));
        assert_eq!(spread(&[f64::NAN, 5.0, f64::INFINITY]), Some((5.0, 5.0, 5.0)));
        assert_eq!(spread(&[]), None);
    }

    #[test]
    fn best_rival_is_compared_round_by_round() {
        let samples: &[(&str, &[f64])] =
            &[("k", &[2.0, 3.0, 6.0]), ("a", &[1.0, 1.0, 1.0]), ("b", &[2.0, 4.0, 2.0])];
        let ratio = figure(Better::Higher, samples).ratio("k").unwrap();
        assert_eq!(ratio.rival, "b");
        assert_eq!(ratio.spread, Spread { median: 1.0, low: 0.75, high: 3.0 });
        let ratio = figure(Better::Lower, samples).ratio("k").unwrap();
        assert_eq!((ratio.rival.as_str(), ratio.spread.median), ("a", 3.0));
        assert_eq!(figure(Better::Neither, samples).ratio("k"), None);
    }

    #[test]
    fn ratio_requires_a_rival_and_a_divisor() {
        assert_eq!(figure(Better::Higher, &[("k", &[1.0])]).ratio("k"), None);
        assert_eq!(figure(Better::Higher, &[("a", &[1.0])]).ratio("k"), None);
        assert_eq!(figure(Better::Lower, &[("k", &[1.0]), ("a", &[0.0])]).ratio("k"), None);
    }

    #[test]
    fn sign_requires_all_rounds_to_agree() {
        let sign = |values: &[f64]| Spread::from_values(values).unwrap().sign();
        assert_eq!(sign(&[1.1, 1.2]), Sign::Above);
        assert_eq!(sign(&[0.8, 0.9]), Sign::Below);
        assert_eq!(sign(&[0.9, 1.1]), Sign::Either);
        assert_eq!(sign(&[1.0]), Sign::Either);
    }

    #[test]
    fn percentiles_are_measured_values() {
        let mut values: Vec<f64> = (1..=200).rev().map(f64::from).collect();
        assert_eq!(percentile(&mut values, 50), Some(100.0));
        assert_eq!(percentile(&mut values, 99), Some(198.0));
        assert_eq!(percentile(&mut values, 100), Some(200.0));
        assert_eq!(percentile(&mut [7.0], 1), Some(7.0));
        assert_eq!(percentile(&mut [], 50), None);
    }

    #[test]
    fn rounds_are_grouped_by_figure_and_contestant() {
        let mut line = Line::new("key", "title");
        let rate = |value| Measure { name: "rate", unit: "1/s", better: Better::Higher, value };
        line.add("a", &[rate(1.0)]);
        line.add("b", &[rate(3.0)]);
        line.add("a", &[rate(2.0)]);
        assert_eq!(
            line.figures,
            [Figure {
                unit: "1/s".to_owned(),
                ..figure(Better::Higher, &[("a", &[1.0, 2.0]), ("b", &[3.0])])
            }]
        );
    }

    proptest! {
        #[test]
        fn median_lies_between_low_and_high(values in proptest::collection::vec(0.0..1e9, 1..30)) {
            let spread = Spread::from_values(&values).unwrap();
            prop_assert!(spread.low <= spread.median && spread.median <= spread.high);
            let below = values.iter().filter(|value| **value < spread.median).count();
            prop_assert!(below <= values.len() / 2);
        }
    }
}
