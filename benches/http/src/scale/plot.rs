//! Small plots of all curves in one SVG, on light and on dark: both scales are logarithmic, so that what grows with its size
//! climbs a decade in each decade, and what does not grow is level.

use std::fmt::Write as _;

use super::report::Curve;
use crate::figures::float;
use crate::plot::escaped;

const COLUMNS: usize = 3;
/// A plot with its numbers, and the way to the next one.
const STEP: f64 = 306.0;
const LEFT: f64 = 52.0;
const WIDTH: f64 = 230.0;
const HEIGHT: f64 = 130.0;
const HEAD: f64 = 30.0;
const TITLE: f64 = 22.0;
const LEGEND: f64 = 16.0;
const FOOT: f64 = 26.0;
/// Units that say the same as others beside them.
const REPEATED: [&str; 2] = ["GiB/s", "s/GiB"];

const STYLE: &str = "<style>
text { font: 11px system-ui, sans-serif; fill: #1f2328; }
.head { font-weight: 600; font-size: 15px; }
.title { font-weight: 600; font-size: 12px; }
.note { fill: #59636e; }
.grid { stroke: #8c959f; stroke-opacity: 0.35; }
.line { fill: none; stroke-width: 1.8; }
.c0 { stroke: #2f81b7; } .c1 { stroke: #c4722c; } .c2 { stroke: #3c8a4e; } .c3 { stroke: #a34bb0; }
.c4 { stroke: #b03a48; } .c5 { stroke: #6e7781; } .c6 { stroke: #8a6d00; }
.d1 { stroke-dasharray: 6 2; } .d2 { stroke-dasharray: 2 2; }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3; }
  .note { fill: #9198a1; }
  .c0 { stroke: #4c9ed0; } .c1 { stroke: #d98a4a; } .c2 { stroke: #5fb573; } .c3 { stroke: #c77fd3; }
  .c4 { stroke: #e0707c; } .c5 { stroke: #9ba3ac; } .c6 { stroke: #c9a72c; }
}
</style>
";
/// Colours above, which begin anew with other dashes.
const COLOURS: usize = 7;

/// The figures of a curve that have one unit.
struct Panel<'a> {
    title: String,
    series: Vec<(&'a str, Vec<(f64, f64)>)>,
}

/// Draws all curves.
pub(crate) fn curves(curves: &[Curve]) -> String {
    let mut body = String::new();
    let mut top = 0.0;
    for curve in curves {
        let panels = panels(curve);
        if panels.is_empty() {
            continue;
        }
        let _ = writeln!(
            body,
            "<text class=\"head\" x=\"8\" y=\"{:.1}\">{}</text>",
            top + 20.0,
            escaped(&curve.title)
        );
        top += HEAD;
        for row in panels.chunks(COLUMNS) {
            let mut left = 0.0;
            for panel in row {
                draw(&mut body, panel, (left, top));
                left += STEP;
            }
            let lines = row.iter().map(|panel| panel.series.len()).max().unwrap_or_default();
            top += TITLE + HEIGHT + FOOT + legend(lines) + 12.0;
        }
    }
    let width = STEP * 3.0;
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {top:.0}\" role=\"img\" \
         aria-label=\"How cost grows\">\n{STYLE}{body}</svg>\n"
    )
}

fn legend(lines: usize) -> f64 {
    float(u64::try_from(lines).unwrap_or_default()) * LEGEND
}

/// One for each unit. What is 0, or was not measured, has no place on a logarithmic scale.
fn panels(curve: &Curve) -> Vec<Panel<'_>> {
    let mut panels: Vec<(&str, Panel<'_>)> = Vec::new();
    for (name, unit) in curve.figures() {
        let medians = curve.medians(name).into_iter().map(|(size, median)| (float(size), median));
        let places: Vec<(f64, f64)> =
            medians.filter(|(size, median)| *size > 0.0 && *median > 0.0 && median.is_finite()).collect();
        if places.is_empty() || REPEATED.contains(&unit) {
            continue;
        }
        match panels.iter_mut().find(|(known, _)| *known == unit) {
            Some((_, panel)) => panel.series.push((name, places)),
            None => {
                let title = format!("{unit}, by {}", curve.unit);
                panels.push((unit, Panel { title, series: vec![(name, places)] }));
            }
        }
    }
    panels.into_iter().map(|(_, panel)| panel).collect()
}

fn draw(svg: &mut String, panel: &Panel<'_>, (left, top): (f64, f64)) {
    let values = |pick: fn(&(f64, f64)) -> f64| {
        panel.series.iter().flat_map(move |(_, places)| places.iter().map(pick))
    };
    let across = Scale::over(values(|place| place.0), (left + LEFT, left + LEFT + WIDTH));
    let upwards = Scale::over(values(|place| place.1), (top + TITLE + HEIGHT, top + TITLE));
    let _ = writeln!(
        svg,
        "<text class=\"title\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
        left + LEFT,
        top + 12.0,
        escaped(&panel.title)
    );
    grid(svg, across, upwards);
    let mut y = top + TITLE + HEIGHT + FOOT + 8.0;
    for (number, (name, places)) in panel.series.iter().enumerate() {
        let class = class(number);
        let points: Vec<String> =
            places.iter().map(|(x, y)| format!("{:.1},{:.1}", across.at(*x), upwards.at(*y))).collect();
        let _ = writeln!(svg, "<polyline class=\"line {class}\" points=\"{}\"/>", points.join(" "));
        for (x, y) in places {
            let (x, y) = (across.at(*x), upwards.at(*y));
            let _ = writeln!(svg, "<circle class=\"line {class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"2\"/>");
        }
        let x = left + LEFT;
        let _ = writeln!(
            svg,
            "<line class=\"line {class}\" x1=\"{x:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\"/>\n\
             <text x=\"{:.1}\" y=\"{y:.1}\">{}</text>",
            y - 4.0,
            x + 18.0,
            y - 4.0,
            x + 24.0,
            escaped(name)
        );
        y += LEGEND;
    }
}

fn class(number: usize) -> String {
    format!("c{} d{}", number % COLOURS, (number / COLOURS).min(2))
}

fn grid(svg: &mut String, across: Scale, upwards: Scale) {
    let (left, right) = (across.start, across.end);
    let (foot, top) = (upwards.start, upwards.end);
    for decade in across.decades() {
        let x = across.at(decade);
        let _ = writeln!(
            svg,
            "<line class=\"grid\" x1=\"{x:.1}\" y1=\"{top:.1}\" x2=\"{x:.1}\" y2=\"{foot:.1}\"/>\n\
             <text class=\"note\" x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            foot + 14.0,
            short(decade)
        );
    }
    for decade in upwards.decades() {
        let y = upwards.at(decade);
        let _ = writeln!(
            svg,
            "<line class=\"grid\" x1=\"{left:.1}\" y1=\"{y:.1}\" x2=\"{right:.1}\" y2=\"{y:.1}\"/>\n\
             <text class=\"note\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            left - 6.0,
            y + 4.0,
            short(decade)
        );
    }
}

/// A power of ten as people write it.
fn short(decade: f64) -> String {
    match decade {
        many if many >= 1e6 => format!("{:.0}M", many / 1e6),
        many if many >= 1e3 => format!("{:.0}k", many / 1e3),
        one if one >= 1.0 => format!("{one:.0}"),
        few => format!("{few:.6}").trim_end_matches('0').to_owned(),
    }
}

/// Whole decades between two places of the drawing.
#[derive(Clone, Copy)]
struct Scale {
    /// Powers of ten at the ends.
    low: i32,
    high: i32,
    start: f64,
    end: f64,
}

impl Scale {
    /// Numbers from a millionth to a billion have their place; there are none beyond them.
    const MOST: i32 = 9;
    const LEAST: i32 = -6;

    fn over(values: impl Iterator<Item = f64>, (start, end): (f64, f64)) -> Self {
        let (mut low, mut high) = (Self::MOST, Self::LEAST);
        for value in values {
            low = low.min(decade_below(value));
            high = high.max(decade_above(value));
        }
        if low >= high {
            // Of one decade alone, or of nothing.
            low = low.min(Self::MOST - 1);
            high = low + 1;
        }
        Self { low, high, start, end }
    }

    fn at(self, value: f64) -> f64 {
        let part = (value.log10() - f64::from(self.low)) / f64::from(self.high - self.low);
        self.start + (self.end - self.start) * part.clamp(0.0, 1.0)
    }

    fn decades(self) -> impl Iterator<Item = f64> {
        (self.low..=self.high).map(|power| 10_f64.powi(power))
    }
}

/// The power of the highest decade that is not above a value.
fn decade_below(value: f64) -> i32 {
    (Scale::LEAST..=Scale::MOST).rev().find(|power| 10_f64.powi(*power) <= value).unwrap_or(Scale::LEAST)
}

/// The power of the lowest decade that is not below a value.
fn decade_above(value: f64) -> i32 {
    (Scale::LEAST..=Scale::MOST).find(|power| 10_f64.powi(*power) >= value).unwrap_or(Scale::MOST)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::report::tests::assert_golden;
    use crate::scale::axis::Axis;
    use crate::scale::report::tests::example;

    #[test]
    fn plots_are_golden() {
        assert_golden("scale.svg", &curves(&example().curves));
    }

    #[test]
    fn what_is_zero_has_no_place() {
        let svg = curves(&example().curves);
        assert!(svg.contains(">rate<") && !svg.contains(">growth<"), "{svg}");
        assert!(!svg.contains("<API>"));
        let nothing = curves(&[Curve::new(Axis::Hosts)]);
        assert!(nothing.starts_with("<svg") && !nothing.contains("<polyline"));
    }

    #[test]
    fn decades_are_told_shortly() {
        let told = [1e-6, 0.01, 1.0, 100.0, 1e3, 1e4, 1e6, 1e9].map(short);
        assert_eq!(told, ["0.000001", "0.01", "1", "100", "1k", "10k", "1M", "1000M"]);
    }

    proptest! {
        #[test]
        fn every_number_lies_within_its_scale(values in proptest::collection::vec(1e-5..1e8, 0..20)) {
            let scale = Scale::over(values.iter().copied(), (10.0, 110.0));
            prop_assert!(scale.low < scale.high && scale.decades().count() <= 16);
            for value in &values {
                prop_assert!(10_f64.powi(scale.low) <= *value && *value <= 10_f64.powi(scale.high));
                prop_assert!((10.0..=110.0).contains(&scale.at(*value)));
            }
            for pair in values.windows(2).filter(|pair| pair[0] < pair[1]) {
                prop_assert!(scale.at(pair[0]) <= scale.at(pair[1]));
            }
        }
    }
}
