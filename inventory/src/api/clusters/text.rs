//! The JSON text of a cluster with its hosts. The text may be longer than the memory of a request.

use futures_util::{StreamExt, TryStreamExt};

use super::hosts::{CountedHosts, HostSummary, Hosts, ShownHosts};
use super::model::cluster_from_record;
use super::split::split_at_list;
use crate::Inventory;
use crate::api::hosts::view::views_of_cluster;
use crate::api::{JsonPieces, comma_separated, json_piece};
use crate::cluster::ClusterRecord;
use crate::error::Error;
use crate::id::ClusterId;
use crate::json::{append_json, to_json};
use crate::service::hosts::counts::DeletedHosts;

/// Maximum length of the host texts held in memory. If the texts are longer, the hosts are read again while the
/// response is sent.
const MAX_KEPT_TEXTS: usize = 512 << 10;

/// Returns the JSON text of a cluster. If the cluster has many hosts, they are read while the client receives them. The
/// host counts, which are earlier in the text, may then differ from the hosts.
pub(super) async fn text(
    inventory: &Inventory,
    record: ClusterRecord,
    detail: ShownHosts,
    deleted: DeletedHosts,
) -> Result<JsonPieces, Error> {
    let (id, settings) = (record.id, inventory.settings());
    let results = &inventory.cluster_results(id).await?;
    if detail == ShownHosts::Counted {
        let hosts = CountedHosts::read(inventory, &[id], deleted).await?.of_cluster(id);
        return to_json(&cluster_from_record(record, hosts, results, settings)?).map(json_piece);
    }
    let (hosts, texts) = summary(inventory, id, detail, deleted).await?;
    if hosts.counts.total == 0 {
        return to_json(&cluster_from_record(record, hosts, results, settings)?).map(json_piece);
    }
    let texts = texts.map_or_else(
        || {
            let views = views_of_cluster(inventory, id, detail.host_detail(), deleted);
            comma_separated(views.map(|host| to_json(&host?).map(json_piece)))
        },
        json_piece,
    );
    let (start, end) = split_at_list(&cluster_from_record(record, hosts, results, settings)?, "hosts")?;
    Ok(json_piece(start).chain(texts).chain(json_piece(end)).boxed())
}

/// Returns the host counts and networks for the response. If the texts of the hosts are short, also returns these
/// texts, separated by commas.
async fn summary(
    inventory: &Inventory,
    id: ClusterId,
    detail: ShownHosts,
    deleted: DeletedHosts,
) -> Result<(Hosts, Option<Vec<u8>>), Error> {
    let mut summary = HostSummary::default();
    let mut texts = Some(Vec::new());
    let mut hosts = views_of_cluster(inventory, id, detail.host_detail(), deleted);
    while let Some(host) = hosts.try_next().await? {
        summary.add(&host)?;
        if let Some(all) = &mut texts {
            all.extend_from_slice(if all.is_empty() { b"" } else { b"," });
            append_json(all, &host)?;
        }
        texts = texts.filter(|all| all.len() <= MAX_KEPT_TEXTS);
    }
    Ok((summary.into_hosts(), texts))
}
