//! The arguments of the `verify-vips` step: the virtual IP addresses of the cluster.

use assisted::request::{StepRequest, VipToVerify};
use assisted::step::VipType;

use crate::view::ClusterSettings;

/// Returns the API addresses and then the ingress addresses, or `None` if the cluster has no virtual IP addresses.
pub(super) fn request(cluster: &ClusterSettings) -> Option<StepRequest> {
    let api = cluster.api_vips.iter().map(|vip| (vip, VipType::Api));
    let ingress = cluster.ingress_vips.iter().map(|vip| (vip, VipType::Ingress));
    let vips: Vec<_> =
        api.chain(ingress).map(|(vip, vip_type)| VipToVerify { vip: vip.to_string(), vip_type }).collect();
    (!vips.is_empty()).then(|| StepRequest::Vips(vips.into()))
}
