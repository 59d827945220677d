//! Admission rules that need only an object, its previous state and related objects.

pub(crate) mod agent;
pub(crate) mod agent_classification;
pub(crate) mod infra_env;
pub(crate) mod nmstate_config;

/// The denial of an admission request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Denial {
    /// HTTP status code of the denial.
    pub(crate) code: u16,
    /// Kubernetes API reason that corresponds to the code.
    pub(crate) reason: &'static str,
    /// Message for the user.
    pub(crate) message: String,
    /// The faulty fields.
    pub(crate) causes: Vec<FieldFault>,
}

/// A fault in a field of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FieldFault {
    /// Path of the field, such as `spec.proxy.httpProxy`.
    pub(crate) field: String,
    pub(crate) message: String,
}

impl Denial {
    /// Returns the denial of a request that violates a rule of the Assisted Installer. `fields` are the faulty fields.
    pub(crate) fn bad_request(message: impl Into<String>, fields: &[&str]) -> Self {
        let message = message.into();
        let causes = fields.iter().map(|field| FieldFault::new(*field, message.clone())).collect();
        Self { code: 400, reason: "BadRequest", message, causes }
    }

    /// Returns the denial of an object with faults, or `None` without faults.
    pub(crate) fn from_faults(faults: Vec<FieldFault>) -> Option<Self> {
        if faults.is_empty() {
            return None;
        }
        let message = faults.iter().map(FieldFault::to_string).collect::<Vec<_>>().join("; ");
        Some(Self { code: 422, reason: "Invalid", message, causes: faults })
    }
}

impl FieldFault {
    pub(crate) fn new(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { field: field.into(), message: message.into() }
    }
}

impl std::fmt::Display for FieldFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.field, self.message)
    }
}

/// Splits the faults of an object into new faults and faults that its previous state also had.
///
/// A fault that moves to another list index is not new. So users can remove entries before a faulty one.
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
    fn fault_at_another_index_is_not_new() {
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
