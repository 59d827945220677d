//! Ratios as horizontal bars, with their spread as whiskers and a line at 1: an SVG that can be read on light and on dark.

use std::fmt::Write as _;

use crate::figures::{Better, Ratio};
use crate::report::Report;

const WIDTH: f64 = 860.0;
const ROW: f64 = 22.0;
const TOP: f64 = 58.0;
/// Where bars begin, and where the scale ends.
const LEFT: f64 = 300.0;
const RIGHT: f64 = 770.0;
/// What is beyond this is cut off, and told as a number.
const MOST: f64 = 3.0;
const LEAST: f64 = 1.5;

const STYLE: &str = "<style>
text { font: 13px system-ui, sans-serif; fill: #1f2328; }
.title { font-weight: 600; font-size: 15px; }
.note { fill: #59636e; }
.good { fill: #2f81b7; }
.bad { fill: #c4722c; }
.one, .whisker { stroke: #1f2328; stroke-width: 1.5; }
.grid { stroke: #8c959f; stroke-opacity: 0.35; }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3; }
  .note { fill: #9198a1; }
  .good { fill: #4c9ed0; }
  .bad { fill: #d98a4a; }
  .one, .whisker { stroke: #e6edf3; }
}
</style>
";

/// Draws the ratios of all lines that have this figure.
pub(crate) fn ratios(report: &Report, name: &str) -> String {
    let mut rows: Vec<(&str, Better, Ratio)> = Vec::new();
    for line in &report.lines {
        let Some(figure) = line.figure(name) else { continue };
        if let Some(ratio) = figure.ratio(&report.subject) {
            rows.push((&line.title, figure.better, ratio));
        }
    }
    let highest = rows.iter().map(|(_, _, ratio)| ratio.spread.high).fold(LEAST, f64::max);
    let scale = Scale { end: highest.min(MOST) };
    let height = rows.iter().fold(TOP, |height, _| height + ROW) + 28.0;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" \
         aria-label=\"{}\">\n{STYLE}",
        escaped(name)
    );
    title(&mut svg, report, name, rows.first().map(|(_, better, _)| *better));
    let foot = height - 24.0;
    for step in ["0", "0.5", "1", "1.5", "2", "2.5", "3"] {
        let x = scale.at(step.parse().unwrap_or_default());
        if x <= RIGHT && step.parse::<f64>().is_ok_and(|step| step <= scale.end) {
            let class = if step == "1" { "one" } else { "grid" };
            let _ = writeln!(
                svg,
                "<line class=\"{class}\" x1=\"{x:.1}\" y1=\"{:.1}\" x2=\"{x:.1}\" y2=\"{foot:.1}\"/>\n\
                 <text class=\"note\" x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{step}</text>",
                TOP - 6.0,
                foot + 16.0
            );
        }
    }
    let mut y = TOP;
    for (title, better, ratio) in rows {
        row(&mut svg, scale, y, (title, better, &ratio));
        y += ROW;
    }
    svg.push_str("</svg>\n");
    svg
}

fn title(svg: &mut String, report: &Report, name: &str, better: Option<Better>) {
    let rivals: Vec<&str> = report
        .contestants
        .iter()
        .map(|(contestant, _)| contestant.as_str())
        .filter(|contestant| *contestant != report.subject)
        .collect();
    let direction = match better {
        Some(Better::Lower) => "below 1 is better",
        _ => "above 1 is better",
    };
    let better_of = if rivals.len() > 1 { "the better of " } else { "" };
    let heading = format!("{}: {name}, over that of {better_of}{}", report.subject, rivals.join(" and "));
    let note = format!("{direction}; bars are medians of {} rounds, whiskers all of them", report.rounds);
    let _ = writeln!(
        svg,
        "<text class=\"title\" x=\"8\" y=\"20\">{}</text>\n<text class=\"note\" x=\"8\" y=\"40\">{}</text>",
        escaped(&heading),
        escaped(&note)
    );
}

fn row(svg: &mut String, scale: Scale, y: f64, (title, better, ratio): (&str, Better, &Ratio)) {
    let spread = ratio.spread;
    let is_good = if better == Better::Lower { spread.median <= 1.0 } else { spread.median >= 1.0 };
    let class = if is_good { "good" } else { "bad" };
    let [low, middle, high] = [spread.low, spread.median, spread.high].map(|ratio| scale.at(ratio));
    let center = y + ROW / 2.0;
    let _ = writeln!(
        svg,
        "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>\n\
         <rect class=\"{class}\" x=\"{LEFT}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\"/>\n\
         <line class=\"whisker\" x1=\"{low:.1}\" y1=\"{center:.1}\" x2=\"{high:.1}\" y2=\"{center:.1}\"/>\n\
         <text x=\"{:.1}\" y=\"{:.1}\">{:.2}</text>",
        LEFT - 8.0,
        center + 4.5,
        escaped(title),
        y + 4.0,
        middle - LEFT,
        ROW - 8.0,
        high.max(middle).max(scale.at(1.0)) + 8.0,
        center + 4.5,
        spread.median
    );
}

/// Where a ratio is.
#[derive(Clone, Copy)]
struct Scale {
    end: f64,
}

impl Scale {
    fn at(self, ratio: f64) -> f64 {
        LEFT + (RIGHT - LEFT) * ratio.clamp(0.0, self.end) / self.end
    }
}

pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::{assert_golden, example};

    #[test]
    fn plots_are_golden() {
        assert_golden("rate.svg", &ratios(&example(), "rate"));
        assert_golden("processor-time.svg", &ratios(&example(), "processor time of the server"));
    }

    #[test]
    fn what_is_beyond_the_scale_is_cut_off() {
        let scale = Scale { end: 3.0 };
        assert!(
            [scale.at(3.0), scale.at(1e9), scale.at(f64::INFINITY)].iter().all(|x| (x - RIGHT).abs() < 1e-9)
        );
        assert!((scale.at(-1.0) - LEFT).abs() < 1e-9);
    }

    #[test]
    fn names_do_not_break_the_drawing() {
        assert_eq!(escaped("a<b>&\"c"), "a&lt;b&gt;&amp;&quot;c");
        assert!(!ratios(&example(), "rate").contains("<of>"));
    }

    #[test]
    fn without_figures_there_is_an_empty_plot() {
        let svg = ratios(&example(), "nothing");
        assert!(svg.starts_with("<svg") && svg.ends_with("</svg>\n") && !svg.contains("<rect"));
    }
}
