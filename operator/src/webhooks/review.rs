//! Parses AdmissionReview requests and creates the responses, in version 1 of the format.

use serde::Deserialize;
use serde_json::{Value, json};

use super::rules::Denial;

const API_VERSION: &str = "admission.k8s.io/v1";
const KIND: &str = "AdmissionReview";
/// Maximum number of warnings in a response. The API server limits their total length.
const MAX_WARNINGS: usize = 10;
/// Maximum number of characters in a warning. The API server truncates longer warnings.
const MAX_WARNING_LEN: usize = 250;

/// The request in an AdmissionReview.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct AdmissionRequest {
    /// Id of the request. The response repeats it.
    pub(crate) uid: String,
    /// Resource of the object, such as `infraenvs`.
    pub(crate) resource: GroupVersionResource,
    /// Subresource, such as `status`. `None` for the object itself.
    pub(crate) sub_resource: Option<String>,
    /// Name of the object. Empty if the API server generates it.
    pub(crate) name: String,
    /// Namespace of the object.
    pub(crate) namespace: Option<String>,
    /// `CREATE`, `UPDATE`, `DELETE` or `CONNECT`.
    pub(crate) operation: String,
    /// The object after the operation. `None` for a deletion.
    pub(crate) object: Option<Value>,
    /// The object before the operation. `None` for a creation.
    pub(crate) old_object: Option<Value>,
}

/// A resource, with its API group and version.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub(crate) struct GroupVersionResource {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) resource: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Envelope {
    api_version: String,
    kind: String,
    request: Option<AdmissionRequest>,
}

/// The result of a review.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Verdict {
    /// The denial, or `None` if the request is allowed.
    pub(crate) denial: Option<Denial>,
    /// Warnings for the user, which `kubectl` prints.
    pub(crate) warnings: Vec<String>,
}

impl Verdict {
    /// Returns a verdict that allows the request, without warnings.
    pub(crate) fn allowed() -> Self {
        Self::default()
    }
}

impl From<Denial> for Verdict {
    fn from(denial: Denial) -> Self {
        Self { denial: Some(denial), warnings: Vec::new() }
    }
}

/// Parses an AdmissionReview.
///
/// # Errors
///
/// Returns an error message if the body is not a valid AdmissionReview of version 1.
pub(crate) fn parse(body: &[u8]) -> Result<AdmissionRequest, String> {
    let envelope: Envelope =
        serde_json::from_slice(body).map_err(|error| format!("cannot parse the AdmissionReview: {error}"))?;
    let Envelope { api_version, kind, request } = envelope;
    if (api_version.as_str(), kind.as_str()) != (API_VERSION, KIND) {
        return Err(format!("expected {KIND} of {API_VERSION}, not {kind:?} of {api_version:?}"));
    }
    request
        .filter(|request| !request.uid.is_empty())
        .ok_or_else(|| "the AdmissionReview has no request with a uid".to_owned())
}

/// Returns the AdmissionReview for the response.
pub(crate) fn response(request: &AdmissionRequest, verdict: &Verdict) -> Value {
    let mut response = json!({"uid": request.uid, "allowed": verdict.denial.is_none()});
    if let Some(members) = response.as_object_mut() {
        if let Some(denial) = &verdict.denial {
            members.insert("status".to_owned(), status(request, denial));
        }
        if !verdict.warnings.is_empty() {
            let warnings = verdict.warnings.iter().take(MAX_WARNINGS).map(|text| one_line(text));
            members.insert("warnings".to_owned(), warnings.collect());
        }
    }
    json!({"apiVersion": API_VERSION, "kind": KIND, "response": response})
}

fn status(request: &AdmissionRequest, denial: &Denial) -> Value {
    let cause = |cause: &super::rules::FieldFault| json!({"reason": "FieldValueInvalid", "field": cause.field, "message": cause.message});
    let causes: Value = denial.causes.iter().map(cause).collect();
    let details = json!({"group": request.resource.group, "kind": request.resource.resource,
        "name": request.name, "causes": causes});
    json!({"apiVersion": "v1", "kind": "Status", "status": "Failure", "code": denial.code,
        "reason": denial.reason, "message": denial.message, "details": details})
}

/// Converts a text into a warning. Warnings are HTTP headers, so control characters are replaced and long texts are
/// truncated.
fn one_line(text: &str) -> String {
    let characters = text.chars().map(|character| if character.is_control() { ' ' } else { character });
    characters.take(MAX_WARNING_LEN).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rejects_bodies_without_a_review_of_version_1() {
        let review = |version: &str, kind: &str, request: Value| {
            json!({"apiVersion": version, "kind": kind, "request": request}).to_string()
        };
        let request = || json!({"uid": "1"});
        assert!(parse(review(API_VERSION, KIND, request()).as_bytes()).is_ok());
        for body in [
            String::new(),
            "[]".to_owned(),
            "{}".to_owned(),
            review("admission.k8s.io/v1beta1", KIND, request()),
            review(API_VERSION, "Pod", request()),
            review(API_VERSION, KIND, Value::Null),
            review(API_VERSION, KIND, json!({})),
            review(API_VERSION, KIND, json!({"uid": 1})),
        ] {
            assert!(parse(body.as_bytes()).is_err(), "{body}");
        }
    }

    #[test]
    fn warnings_are_truncated_and_have_no_control_characters() {
        let warnings = vec![format!("a\n{}", "é".repeat(400)); 20];
        let verdict = Verdict { denial: None, warnings };
        let response = response(&AdmissionRequest::default(), &verdict);
        let warnings = response["response"]["warnings"].as_array().unwrap();
        assert_eq!(warnings.len(), MAX_WARNINGS);
        let text = warnings[0].as_str().unwrap();
        assert!(text.starts_with("a é") && text.chars().count() == MAX_WARNING_LEN, "{text}");
    }
}
