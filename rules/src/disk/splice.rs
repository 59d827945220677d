//! Writes the eligibility of disks into a stored inventory report, without parsing the report.
//!
//! The eligibility depends on the role of the host and the version of its cluster, so it changes more often than
//! reports arrive. Only the JSON objects of the eligibility are replaced. The stored report is the JSON that
//! `serde_json` writes for an [`InventoryReport`](assisted::inventory_report::InventoryReport). It contains the key
//! `installation_eligibility` once for each disk, in the order of the disks. Quotes inside strings are escaped, so no
//! string value can look like the key.

use assisted::inventory_report::Eligibility;

use super::eligibility::DiskReasons;

const KEY: &str = r#""installation_eligibility":"#;

/// The JSON of an eligible disk.
const ELIGIBLE: &str = r#"{"eligible":true,"not_eligible_reasons":null}"#;

/// The reason why the eligibility cannot be written into an inventory report.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SpliceError {
    /// The number of disks in the report differs from the number of disks to write.
    #[error("the inventory report has eligibility for {found} disks, expected {expected}")]
    Count {
        /// Number of disks to write.
        expected: usize,
        /// Number of disks in the report that have an eligibility.
        found: usize,
    },
    /// The eligibility of a disk in the report has an unexpected form.
    #[error(
        "the eligibility at byte {offset} of the inventory report is not a JSON object without nested objects"
    )]
    Malformed {
        /// Byte offset of the eligibility in the report.
        offset: usize,
    },
    /// The reasons cannot be serialized as JSON.
    #[error("cannot write the reasons against a disk as JSON")]
    Json(#[source] serde_json::Error),
}

/// Returns the inventory report with `reasons` as the eligibility of its disks. `report` must be the JSON of an
/// [`InventoryReport`](assisted::inventory_report::InventoryReport) as `serde_json::to_string` writes it.
///
/// # Errors
///
/// Returns an error if the number of disks differs, or if an eligibility in the report is not a flat JSON object.
pub fn splice_eligibility(report: &str, reasons: &[DiskReasons]) -> Result<String, SpliceError> {
    let count_error = || SpliceError::Count { expected: reasons.len(), found: report.matches(KEY).count() };
    let mut spliced = String::with_capacity(report.len());
    let mut rest = report;
    for reasons in reasons {
        let (before, value) = rest.split_once(KEY).ok_or_else(count_error)?;
        spliced.extend([before, KEY]);
        push_eligibility(&mut spliced, reasons)?;
        let offset = report.len().saturating_sub(value.len());
        rest = after_object(value).ok_or(SpliceError::Malformed { offset })?;
    }
    if rest.contains(KEY) {
        return Err(count_error());
    }
    spliced.push_str(rest);
    Ok(spliced)
}

fn push_eligibility(text: &mut String, reasons: &DiskReasons) -> Result<(), SpliceError> {
    if reasons.is_eligible() {
        text.push_str(ELIGIBLE);
        return Ok(());
    }
    let not_eligible_reasons = reasons.iter().map(Into::into).collect();
    let eligibility = Eligibility { eligible: false, not_eligible_reasons };
    text.push_str(&serde_json::to_string(&eligibility).map_err(SpliceError::Json)?);
    Ok(())
}

/// Returns the text after a flat JSON object, which must be at the start of `text`.
fn after_object(text: &str) -> Option<&str> {
    if let Some(rest) = text.strip_prefix(ELIGIBLE) {
        return Some(rest);
    }
    let text = text.strip_prefix('{')?;
    let (mut is_in_string, mut is_escaped) = (false, false);
    for (index, byte) in text.bytes().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => is_in_string = !is_in_string,
            _ if is_in_string => {}
            b'{' => return None,
            b'}' => return text.get(index + 1..),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use assisted::List;
    use assisted::Text;
    use assisted::inventory_report::{Disk, InventoryReport};
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    /// Generates texts with characters that are special in JSON, and texts that contain the key
    /// `installation_eligibility`.
    fn text() -> impl Strategy<Value = String> {
        let key = Just(KEY.to_owned());
        let nested = Just(format!("{KEY}{ELIGIBLE}"));
        prop_oneof!["[\"\\\\{}:,\\n\u{1}aé🦀]{0,8}", key, nested, Just("installation_eligibility".to_owned())]
    }

    fn list(texts: Vec<String>) -> List<Text<'static>> {
        List((!texts.is_empty()).then(|| texts.into_iter().map(Text::from).collect()))
    }

    fn disk() -> impl Strategy<Value = Disk<'static>> {
        (text(), text(), any::<bool>(), vec(text(), 0..3)).prop_map(|(name, wwn, eligible, reasons)| Disk {
            name: name.into(),
            wwn: wwn.into(),
            installation_eligibility: Eligibility { eligible, not_eligible_reasons: list(reasons) },
            ..Disk::default()
        })
    }

    fn report() -> impl Strategy<Value = InventoryReport<'static>> {
        (text(), text(), vec(disk(), 0..5)).prop_map(|(bmc_address, hostname, disks)| InventoryReport {
            bmc_address: bmc_address.into(),
            hostname: hostname.into(),
            disks: disks.into(),
            ..InventoryReport::default()
        })
    }

    fn with_reasons(
        mut report: InventoryReport<'static>,
        reasons: &[Vec<String>],
    ) -> InventoryReport<'static> {
        for (disk, reasons) in report.disks.iter_mut().zip(reasons) {
            disk.installation_eligibility =
                Eligibility { eligible: reasons.is_empty(), not_eligible_reasons: list(reasons.clone()) };
        }
        report
    }

    proptest! {
        #[test]
        fn splice_equals_parse_and_serialize(
            report in report(),
            reasons in vec(vec(text(), 0..3), 5),
        ) {
            let text = serde_json::to_string(&report).unwrap();
            let reasons = &reasons[..report.disks.len()];
            let of_disks: Vec<DiskReasons> = reasons.iter().map(|it| it.iter().cloned().collect()).collect();
            let expected = serde_json::to_string(&with_reasons(report, reasons)).unwrap();
            prop_assert_eq!(splice_eligibility(&text, &of_disks).unwrap(), expected.clone());
            prop_assert_eq!(splice_eligibility(&expected, &of_disks).unwrap(), expected);
        }

        #[test]
        fn rejects_other_numbers_of_disks(report in report(), count in 0..7_usize) {
            let text = serde_json::to_string(&report).unwrap();
            let result = splice_eligibility(&text, &vec![DiskReasons::default(); count]);
            match result {
                Ok(_) => prop_assert_eq!(count, report.disks.len()),
                Err(SpliceError::Count { expected, found }) => {
                    prop_assert_eq!((expected, found), (count, report.disks.len()));
                    prop_assert_ne!(expected, found);
                }
                Err(other) => prop_assert!(false, "{}", other),
            }
        }

        #[test]
        fn arbitrary_text_does_not_panic(text in "[\"\\\\{}:,a]{0,20}") {
            let report = format!("{{{KEY}{text}");
            let reasons = [DiskReasons::default()];
            if let Ok(spliced) = splice_eligibility(&report, &reasons) {
                let expected_beginning = format!("{{{KEY}{ELIGIBLE}");
                prop_assert!(spliced.starts_with(&expected_beginning));
            }
        }
    }

    #[test]
    fn rejects_values_that_are_not_flat_objects() {
        let reasons = [DiskReasons::default()];
        for value in ["null", "[]", "{", r#"{"a":"}"#, r#"{"a":"\"}"#, r#"{"a":{}}"#, ""] {
            let error = splice_eligibility(&format!("{KEY}{value}"), &reasons).unwrap_err();
            assert!(matches!(error, SpliceError::Malformed { offset } if offset == KEY.len()), "{value}");
        }
        assert_eq!(
            splice_eligibility(&format!("{KEY}{{}}]"), &reasons).unwrap(),
            format!("{KEY}{ELIGIBLE}]")
        );
    }
}
