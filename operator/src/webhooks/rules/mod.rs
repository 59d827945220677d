//! Rules of admission that need only an object, its former state and its neighbours.

pub(crate) mod agent;
pub(crate) mod agent_classification;
pub(crate) mod infra_env;
pub(crate) mod nmstate_config;

/// The denial of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Denial {
    /// The HTTP status code.
    pub(crate) code: u16,
    /// The reason of the Kubernetes API for the code.
    pub(crate) reason: &'static str,
    /// The message for the user.
    pub(crate) message: String,
    /// The fields that cause the denial.
    pub(crate) causes: Vec<FieldFault>,
}

/// A fault in a field of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FieldFault {
    /// The path of the field, such as `spec.proxy.httpProxy`.
    pub(crate) field: String,
    /// The fault.
    pub(crate) message: String,
}

impl Denial {
    /// Returns the denial of a request that violates a rule of the Assisted Installer, which names these fields.
    pub(crate) fn bad_request(message: impl Into<String>, fields: &[&str]) -> Self {
        let message = message.into();
        let causes = fields.iter().map(|field| FieldFault::new(*field, message.clone())).collect();
        Self { code: 400, reason: "BadRequest", message, causes }
    }

    /// Returns the denial of an object with faults, or `None` if it has no faults.
    pub(crate) fn from_faults(faults: Vec<FieldFault>) -> Option<Self> {
        if faults.is_empty() {
            return None;
        }
        let message = faults.iter().map(FieldFault::to_string).collect::<Vec<_>>().join("; ");
        Some(Self { code: 422, reason: "Invalid", message, causes: faults })
    }
}

impl FieldFault {
    /// Returns a fault in a field.
    pub(crate) fn new(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { field: field.into(), message: message.into() }
    }
}

impl std::fmt::Display for FieldFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.field, self.message)
    }
}

/// Divides the faults of an object into new ones and ones that its former state has too.
///
/// A fault at another index of a list is not new, so that entries before it can be removed.
pub(crate) fn divide(
    faults: Vec<FieldFault>,
    mut former: Vec<FieldFault>,
) -> (Vec<FieldFault>, Vec<FieldFault>) {
    faults.into_iter().partition(|fault| {
        let same_field = former.iter().position(|it| it == fault);
        let same = same_field.or_else(|| former.iter().position(|it| it.message == fault.message));
        same.map(|index| former.swap_remove(index)).is_none()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(field: &str, message: &str) -> FieldFault {
        FieldFault::new(field, message)
    }

    #[test]
    fn stored_fault_is_not_new_at_another_index() {
        let former = vec![fault("a[1]", "bad")];
        assert_eq!(divide(vec![fault("a[0]", "bad")], former.clone()), (vec![], vec![fault("a[0]", "bad")]));
        let twice = vec![fault("a[1]", "bad"), fault("a[2]", "bad")];
        assert_eq!(divide(twice, former), (vec![fault("a[2]", "bad")], vec![fault("a[1]", "bad")]));
    }

    #[test]
    fn denial_lists_all_fields() {
        assert_eq!(Denial::from_faults(Vec::new()), None);
        let denial = Denial::from_faults(vec![fault("a", "one"), fault("b", "two")]).unwrap();
        assert_eq!((denial.code, denial.reason), (422, "Invalid"));
        assert_eq!(denial.message, "a: one; b: two");
    }
}
