//! Durations in the syntax of Go (`1h30m`), which the environment variables of the Assisted Installer use.

use std::time::Duration;

/// Units and their lengths in nanoseconds. Kindling adds days to the units of Go.
const UNITS: [(&str, u64); 9] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("μs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
    ("d", 86_400_000_000_000),
];

pub(super) fn parse_duration(text: &str) -> Result<Duration, String> {
    let expected = || "expected a duration, such as 90s, 1h30m or 4h".to_owned();
    let mut rest = text.trim();
    if rest == "0" {
        return Ok(Duration::ZERO);
    }
    let mut sum: Option<u64> = None;
    while !rest.is_empty() {
        let is_of_number = |character: char| character.is_ascii_digit() || character == '.';
        let number = rest.find(|character| !is_of_number(character)).ok_or_else(expected)?;
        let (number, after) = rest.split_at_checked(number).ok_or_else(expected)?;
        let unit = after.find(is_of_number).unwrap_or(after.len());
        let (unit, after) = after.split_at_checked(unit).ok_or_else(expected)?;
        let part = parse_nanoseconds(number, unit).ok_or_else(expected)?;
        sum = Some(sum.unwrap_or(0).checked_add(part).ok_or("the duration is longer than 584 years")?);
        rest = after;
    }
    sum.map(Duration::from_nanos).ok_or_else(expected)
}

/// Formats a duration as a whole number of the largest possible Go unit, such as `5m` or `72h`. The help texts show
/// defaults in this form.
pub(super) fn format_duration(duration: Duration) -> String {
    let nanos = duration.as_nanos();
    let is_unit = |(name, unit): &&(&str, u64)| *name != "d" && nanos.is_multiple_of(u128::from(*unit));
    match UNITS.iter().rfind(is_unit) {
        Some((name, unit)) if nanos > 0 => format!("{}{name}", nanos / u128::from(*unit)),
        _ => "0s".to_owned(),
    }
}

fn parse_nanoseconds(number: &str, unit: &str) -> Option<u64> {
    let (_, unit) = UNITS.iter().find(|(name, _)| *name == unit)?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() || fraction.contains('.') {
        return None;
    }
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let mut sum = whole.checked_mul(*unit)?;
    let mut weight = *unit;
    for digit in fraction.chars() {
        weight /= 10;
        sum = sum.checked_add(u64::from(digit.to_digit(10)?).checked_mul(weight)?)?;
    }
    Some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formatted_duration_round_trips() {
        for (millis, shown) in
            [(0, "0s"), (1, "1ms"), (1500, "1500ms"), (90_000, "90s"), (300_000, "5m"), (259_200_000, "72h")]
        {
            let duration = Duration::from_millis(millis);
            assert_eq!(format_duration(duration), shown);
            assert_eq!(parse_duration(shown), Ok(duration));
        }
    }

    #[test]
    fn parse_follows_go_syntax() {
        for (text, millis) in [
            ("0", 0),
            ("0s", 0),
            ("4h", 14_400_000),
            ("1h30m", 5_400_000),
            ("300s", 300_000),
            ("1.5h", 5_400_000),
            (".5s", 500),
            ("2.s", 2_000),
            ("1m0.25s", 60_250),
            ("100ms1000us1000000ns", 102),
            ("1000µs", 1),
            ("30d", 2_592_000_000),
        ] {
            assert_eq!(parse_duration(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for text in [
            "",
            "5",
            "h",
            "1x",
            "-1h",
            "1h30",
            "1 h",
            "1..5h",
            ".s",
            "1h-3m",
            "99999999999999999999h",
            "0x1s",
        ] {
            assert!(parse_duration(text).unwrap_err().contains("expected a duration"), "{text}");
        }
        assert!(parse_duration("5000000h5000000h").unwrap_err().contains("longer"));
    }
}
