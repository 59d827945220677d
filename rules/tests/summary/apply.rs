//! Creates summaries from replies in JSON.

use rules::summary::{HostSummary, InvalidReply, VirtualInterfaces};
use serde::Deserialize;
use serde_json::Value;

/// Applies the reply to a step to the summary. The reply is JSON; for a failed `tang-connectivity-check`, it is the
/// error output as a JSON string.
pub(crate) fn apply(summary: &mut HostSummary, step: &str, reply: &Value) -> Result<(), InvalidReply> {
    let text = reply.to_string();
    match step {
        "inventory" => summary.set_inventory(&parse(&text), VirtualInterfaces::Drop),
        "connectivity-check" => summary.set_connectivity(&parse(&text)),
        "free-network-addresses" => return summary.set_free_addresses(&parse(&text)),
        "ntp-synchronizer" => summary.set_time_sources(&parse(&text)),
        "domain-resolution" => summary.set_names(&parse(&text)),
        "verify-vips" => return summary.set_vips(&parse(&text)),
        "dhcp-lease-allocate" => return summary.set_leases(&parse(&text)),
        "api-vip-connectivity-check" => return summary.set_ignition_endpoint(&parse(&text)),
        "tang-connectivity-check" => match reply.as_str() {
            Some(error) => summary.set_tang(Err(error)),
            None => summary.set_tang(Ok(&parse(&text))),
        },
        "installation-disk-speed-check" => return summary.set_disk_speeds(&text),
        "container-image-availability" => return summary.set_images(&text),
        _ => panic!("{step}"),
    }
    Ok(())
}

fn parse<'a, T: Deserialize<'a>>(text: &'a str) -> T {
    serde_json::from_str(text).unwrap()
}

/// Creates a summary from one reply.
pub(crate) fn summary(step: &str, reply: &Value) -> HostSummary {
    let mut summary = HostSummary::default();
    apply(&mut summary, step, reply).unwrap();
    summary
}
