//! The JSON output of a failed command.

use assisted::client::ClientError;
use serde::Serialize;
use serde_json::{Value, json};

use super::error_lines;
use super::output::{IncompleteOutput, print_line};
use super::refusal::RefusedInputs;

#[derive(Debug, Serialize)]
struct FailureReport {
    message: String,
    causes: Vec<String>,
    /// Findings about the inputs, each with at least `severity` and `message`.
    findings: Vec<Value>,
    /// HTTP status of the response, if the service refused a request.
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
}

/// Prints an error as one line of JSON to stdout. Prints nothing if stdout already contains an incomplete JSON list.
pub(super) fn print_as_json(error: &anyhow::Error) {
    if error.is::<IncompleteOutput>() {
        return;
    }
    // If stdout is closed, the user still has the text of the error on stderr.
    let _ = print_line(json!({ "error": FailureReport::new(error) }));
}

impl FailureReport {
    fn new(error: &anyhow::Error) -> Self {
        let mut lines = error_lines(error).into_iter();
        let response = error.chain().find_map(|cause| cause.downcast_ref::<ClientError>());
        let refused = error.downcast_ref::<RefusedInputs>();
        Self {
            message: lines.next().unwrap_or_default(),
            causes: lines.collect(),
            findings: match (refused, response) {
                (Some(refused), _) => {
                    refused.findings.as_slice().iter().map(|finding| json!(finding)).collect()
                }
                (None, Some(response)) => response.findings().to_vec(),
                (None, None) => Vec::new(),
            },
            status: response.and_then(ClientError::status),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use discovery::{DiscoveryReport, SourceLocation};

    fn report(error: &anyhow::Error) -> Value {
        serde_json::to_value(FailureReport::new(error)).unwrap()
    }

    #[test]
    fn report_has_causes_and_findings() {
        let error = anyhow::anyhow!("cause").context("top");
        assert_eq!(report(&error), json!({"message": "top", "causes": ["cause"], "findings": []}));
        let mut findings = DiscoveryReport::default();
        findings.error(SourceLocation::whole("a.yaml"), "wrong");
        let error = RefusedInputs::print_and_refuse(findings, false, "nothing was written").into();
        let finding = json!({"severity": "error", "file": "a.yaml", "message": "wrong"});
        let expected =
            json!({"message": "1 error; nothing was written", "causes": [], "findings": [finding]});
        assert_eq!(report(&error), expected);
    }
}
