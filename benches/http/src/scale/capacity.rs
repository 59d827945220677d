//! Calculates the capacity of a server from measured costs: the variables of the formulas in `docs/scale.md`, and an
//! example.

use std::fmt::Write as _;

use super::axis::Axis;
use super::report::{Curve, grouped};
use crate::report::number;

/// Gigabits on the network for each GiB of bodies.
const GBIT_PER_GIB: f64 = 8.589_934_592;
/// Share of a network card's rate that is available for bodies, after packet headers and other traffic.
const USABLE: f64 = 0.9;
const CARDS: [f64; 3] = [10.0, 25.0, 100.0];
/// The example: 1,000 machines, each of which reads `GIB_EACH` GiB.
const MACHINES: f64 = 1000.0;
const GIB_EACH: f64 = 1.0;

/// A variable of the formulas.
#[derive(Debug, PartialEq)]
struct Variable {
    name: &'static str,
    what: String,
    value: f64,
    unit: &'static str,
}

/// Writes the measured variables, and the part of the example that depends only on these variables.
pub(crate) fn markdown(curves: &[Curve]) -> String {
    let variables = variables(curves);
    let mut text = String::new();
    if variables.is_empty() {
        return text;
    }
    text.push_str("\n### Named costs\n\n| name | what | value |\n|---|---|---:|\n");
    for Variable { name, what, value, unit } in &variables {
        let _ = writeln!(text, "| `{name}` | {what} | {} {unit} |", number(*value));
    }
    let value = |name| variables.iter().find(|variable| variable.name == name).map(|variable| variable.value);
    if let Some(cost) = value("C") {
        example(&mut text, cost, value("m"));
    }
    text
}

fn variables(curves: &[Curve]) -> Vec<Variable> {
    let mut variables = Vec::new();
    let mut add = |axis: Axis, (name, figure, unit): (&'static str, &str, &'static str)| {
        let Some(curve) = curves.iter().find(|curve| curve.key == axis.key()) else { return };
        // Use the largest size, because capacity is planned for it.
        if let Some((size, value)) = curve.medians(figure).last() {
            let what = format!("{figure}, {}: {}", curve.unit, grouped(*size));
            variables.push(Variable { name, what, value: *value, unit });
        }
    };
    add(Axis::Connections, ("C", "CPU time of bytes", "s/GiB"));
    add(Axis::Connections, ("m", "private memory of a connection", "KiB"));
    add(Axis::InfraEnvs, ("F", "unseen image, first byte", "ms"));
    add(Axis::Hosts, ("H", "full image, first byte after a restart", "ms"));
    add(Axis::InfraEnvs, ("S", "start to ready", "ms"));
    variables
}

fn example(text: &mut String, cost: f64, memory: Option<f64>) {
    let _ = writeln!(
        text,
        "\n{MACHINES:.0} machines that read {GIB_EACH:.0} GiB each over one network card, {:.0} % of which carries bodies:\n\n\
         | card | rate | all have it after | cores of the server, `C` x rate |\n|---|---:|---:|---:|",
        USABLE * 100.0
    );
    for card in CARDS {
        let rate = rate(card);
        let minutes = MACHINES * GIB_EACH / rate / 60.0;
        let _ = writeln!(
            text,
            "| {card:.0} Gbit/s | {} GiB/s | {} minutes | {} |",
            number(rate),
            number(minutes),
            number(rate * cost)
        );
    }
    if let Some(memory) = memory {
        let _ = writeln!(
            text,
            "\nThe connections of the hosts take `m` x {MACHINES:.0} = {} MiB.",
            number(memory * MACHINES / 1024.0)
        );
    }
}

/// Converts a network rate to GiB of bodies per second.
fn rate(gbit: f64) -> f64 {
    gbit * USABLE / GBIT_PER_GIB
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::lower;

    fn connections(costs: &[(u64, f64)]) -> Curve {
        let mut curve = Curve::new(Axis::Connections);
        for (size, cost) in costs {
            let memory = lower("private memory of a connection", "KiB", 1024.0 / 100.0);
            curve.add(*size, &[lower("CPU time of bytes", "s/GiB", *cost), memory]);
        }
        curve
    }

    #[test]
    fn capacity_example_is_calculated() {
        let text = markdown(&[connections(&[(1, 0.75), (1000, 0.5)])]);
        assert!(text.contains("| `C` | CPU time of bytes, connections: 1,000 | 0.500 s/GiB |"), "{text}");
        // 9 of 10 Gbit/s are 1.0477 GiB/s: 954 s for 1,000 GiB.
        assert!(text.contains("| 10 Gbit/s | 1.05 GiB/s | 15.9 minutes | 0.524 |"), "{text}");
        assert!(text.contains("| 100 Gbit/s | 10.5 GiB/s | 1.59 minutes | 5.24 |"), "{text}");
        assert!(text.ends_with("`m` x 1000 = 10.0 MiB.\n"), "{text}");
    }

    #[test]
    fn unmeasured_variables_are_omitted() {
        assert_eq!(markdown(&[]), "");
        assert_eq!(markdown(&[Curve::new(Axis::Connections), Curve::new(Axis::Hosts)]), "");
    }
}
