//! Formats disk sizes for messages.

use super::GB;

const UNITS: [(&str, i64); 6] = [
    ("EB", 1_000_000_000 * GB),
    ("PB", 1_000_000 * GB),
    ("TB", 1000 * GB),
    ("GB", GB),
    ("MB", 1_000_000),
    ("KB", 1000),
];

/// Formats a size in decimal units with at most three decimals, rounded up: `53.688 GB`.
pub(super) fn format_size(bytes: i64) -> String {
    let Some((name, unit)) = UNITS.into_iter().find(|(_, unit)| bytes >= *unit) else {
        return format!("{bytes} B");
    };
    let thousandths = (i128::from(bytes) * 1000 + i128::from(unit) - 1) / i128::from(unit);
    let text = format!("{}.{:03}", thousandths / 1000, thousandths % 1000);
    format!("{} {name}", text.trim_end_matches('0').trim_end_matches('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_sizes_up_to_three_decimals() {
        for (bytes, text) in [
            (i64::MIN, "-9223372036854775808 B"),
            (0, "0 B"),
            (999, "999 B"),
            (1000, "1 KB"),
            (1001, "1.001 KB"),
            (1_000_001, "1.001 MB"),
            (53_687_091_200, "53.688 GB"),
            (99_999_999_999, "100 GB"),
            (100_000_000_000, "100 GB"),
            (120_500_000_000, "120.5 GB"),
            (2_000_398_934_016, "2.001 TB"),
            (3_000_000_000_000_000, "3 PB"),
            (i64::MAX, "9.224 EB"),
        ] {
            assert_eq!(format_size(bytes), text);
        }
    }
}
