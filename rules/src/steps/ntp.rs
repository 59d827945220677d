//! The arguments of the `ntp-synchronizer` step: the time servers.

use assisted::request::NtpRequest;

use super::input::StepInput;
use crate::view::ClusterSettings;

/// Returns the time servers of the host's cluster. A host without a cluster uses the time servers of its infra-env.
pub(super) fn request(input: &StepInput<'_>) -> NtpRequest {
    let ntp_source = match input.cluster {
        Some(cluster) => cluster_sources(&cluster.cluster),
        None => input.pool_ntp_sources.to_owned(),
    };
    NtpRequest { ntp_source }
}

fn cluster_sources(cluster: &ClusterSettings) -> String {
    let mut choices = [&cluster.ntp_sources, &cluster.additional_ntp_source].into_iter();
    match choices.find(|sources| !sources.is_empty()) {
        Some(sources) => sources.to_string(),
        None => cluster.infra_env_ntp_sources.join(","),
    }
}
