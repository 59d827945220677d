//! Progress of a cluster's installation.

use serde::{Deserialize, Serialize};

use crate::extensible::Extensible;
use crate::string_enum::string_enum;
use crate::time::Millis;
use crate::wire::is_default;

string_enum! {
    /// A stage of a cluster whose hosts are installed, as the controller in the cluster reports it.
    FinalizingStage as finalizing_stage {
        /// Waiting for the built-in operators.
        WaitingForClusterOperators = "Waiting for cluster operators",
        /// Adding the CA certificate of the ingress to the kubeconfig.
        AddingRouterCa = "Adding router ca",
        /// Applying manifests of operators that OLM installs.
        ApplyingOlmManifests = "Applying olm manifests",
        /// Waiting until OLM has created the operators' ClusterServiceVersions.
        WaitingForOlmCsvInitialization = "Waiting for olm operators csv initialization",
        /// Waiting until OLM has installed the operators.
        WaitingForOlmCsv = "Waiting for olm operators csv",
        /// Waiting for jobs that set up operators.
        WaitingForOlmSetupJobs = "Waiting for OLM operator setup jobs",
        /// All operators are available.
        Done = "Done",
    }

    /// Result of an attempt to prepare an installation.
    #[derive(Default)]
    PreparationStatus as preparation_status {
        /// No attempt was made.
        #[default]
        NotStarted = "not_started",
        /// The attempt failed.
        Failed = "failed",
        /// The attempt succeeded.
        Success = "success",
    }
}

/// Progress of a cluster's installation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(
    feature = "openapi",
    derive(utoipa::ToSchema),
    schema(
        as = cluster_progress_info,
        description = "Progress of an installation. Always empty: this service does not install clusters."
    )
)]
pub struct ClusterProgress {
    /// Progress of the whole installation, in percent.
    #[serde(default, skip_serializing_if = "is_default")]
    #[cfg_attr(feature = "openapi", schema(ignore))]
    pub total_percentage: i64,
    /// Progress of the preparation, in percent.
    #[serde(default, skip_serializing_if = "is_default")]
    #[cfg_attr(feature = "openapi", schema(ignore))]
    pub preparing_for_installation_stage_percentage: i64,
    /// Progress of the host installations, in percent.
    #[serde(default, skip_serializing_if = "is_default")]
    #[cfg_attr(feature = "openapi", schema(ignore))]
    pub installing_stage_percentage: i64,
    /// Progress of the stages after the host installations, in percent.
    #[serde(default, skip_serializing_if = "is_default")]
    #[cfg_attr(feature = "openapi", schema(ignore))]
    pub finalizing_stage_percentage: i64,
    /// Current finalizing stage. Absent until the hosts are installed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(ignore))]
    pub finalizing_stage: Option<Extensible<FinalizingStage>>,
    /// Time when the current finalizing stage started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(ignore))]
    pub finalizing_stage_started_at: Option<Millis>,
    /// Whether the current finalizing stage has timed out.
    #[serde(default, skip_serializing_if = "is_default")]
    #[cfg_attr(feature = "openapi", schema(ignore))]
    pub finalizing_stage_timed_out: bool,
}

/// Result of an attempt to prepare an installation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = last_installation_preparation))]
pub struct LastInstallationPreparation {
    /// Result of the last attempt, or `not_started`.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required = true, schema_with = schema::not_started))]
    pub status: Extensible<PreparationStatus>,
    /// Reason for a failure.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[cfg_attr(feature = "openapi", schema(ignore))]
    pub reason: String,
}

/// A finalizing stage, as the controller in the cluster reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClusterProgressParams {
    /// Current stage.
    pub finalizing_stage: FinalizingStage,
}

#[cfg(feature = "openapi")]
mod schema {
    use utoipa::openapi::schema::{Object, ObjectBuilder, Type};

    pub(super) fn not_started() -> Object {
        ObjectBuilder::new().schema_type(Type::String).description(Some("Always `not_started`.")).build()
    }
}
