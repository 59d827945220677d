//! Results of validations and checks. A host contains them as JSON in strings.

use serde::{Deserialize, Serialize};

use crate::extensible::Extensible;
use crate::string_enum::string_enum;
use crate::text::Text;
use crate::wire::reported;

string_enum! {
    /// Result of a validation.
    ValidationStatus as validation_status {
        /// The validation passed.
        Success = "success",
        /// The validation failed.
        Failure = "failure",
        /// The result is not known yet.
        Pending = "pending",
        /// The validation could not be evaluated.
        Error = "error",
        /// The validation is switched off.
        Disabled = "disabled",
    }
}

/// A validation of a host or of a cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Validation {
    /// Id of the validation. Stable.
    pub id: String,
    /// Result.
    pub status: Extensible<ValidationStatus>,
    /// Message for users.
    pub message: String,
}

reported! {
    /// Results of the checks of a disk.
    DiskInfo<'a> {
        /// Result of the speed check.
        disk_speed: Option<DiskSpeedInfo>,
        /// Device path of the disk.
        path: Text<'a>,
    }

    /// Result of a disk speed check.
    DiskSpeedInfo {
        /// Whether the disk was checked.
        tested: bool,
        /// Exit code of the check.
        exit_code: i64,
        /// Time to write and sync a block, in milliseconds.
        speed_ms: i64,
    }
}
