//! Messages about resources that are below the minimum for all roles.

use std::fmt;

/// Number of bytes in a MiB.
pub(super) const MIB: i128 = 1 << 20;

/// Returns the message for a resource that is too small for every role.
pub(super) fn below_minimum(resource: &str, minimum: impl fmt::Display, actual: impl fmt::Display) -> String {
    format!(
        "The host is not eligible to participate in Openshift Cluster because the minimum required {resource} for any \
         role is {minimum}, found only {actual}"
    )
}

/// Formats a size in binary units with two decimals: `8.00 GiB`.
pub(super) fn format_bytes(bytes: i128) -> String {
    const UNITS: [(&str, i128); 4] = [("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", MIB), ("KiB", 1 << 10)];
    match UNITS.into_iter().find(|(_, unit)| bytes >= *unit) {
        Some((name, unit)) => {
            let hundredths = bytes % unit * 100 / unit;
            format!("{}.{hundredths:02} {name}", bytes / unit)
        }
        None => format!("{bytes} bytes"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_binary_units() {
        for (bytes, text) in [
            (0, "0 bytes"),
            (-1, "-1 bytes"),
            (1023, "1023 bytes"),
            (1024, "1.00 KiB"),
            (8 << 30, "8.00 GiB"),
            ((8 << 30) - 1, "7.99 GiB"),
            (3 << 39, "1.50 TiB"),
            (i128::from(i64::MAX), "8388607.99 TiB"),
        ] {
            assert_eq!(format_bytes(bytes), text);
        }
    }
}
