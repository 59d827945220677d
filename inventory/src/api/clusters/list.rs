//! The JSON list of clusters, which is written while the response is sent.

use futures_util::{StreamExt, TryStreamExt, stream};

use super::hosts::{CountedHosts, ShownHosts};
use super::model::cluster_from_record;
use super::text::text;
use crate::Inventory;
use crate::api::{JsonPieces, json_array, json_piece};
use crate::cluster::ClusterRecord;
use crate::error::Error;
use crate::json::to_json;
use crate::service::clusters::ClusterQuery;
use crate::service::hosts::counts::DeletedHosts;

/// Number of clusters whose hosts one query counts. It equals the page size of the store.
const COUNTED_TOGETHER: usize = 64;

/// Returns the clusters that a query selects, as a JSON array. If the query includes deleted clusters, every cluster
/// contains its deleted hosts, as in the Assisted Installer.
pub(super) fn list_text(inventory: Inventory, query: ClusterQuery, detail: ShownHosts) -> JsonPieces {
    let deleted = if query.deleted { DeletedHosts::Included } else { DeletedHosts::Omitted };
    let records = inventory.clusters(query);
    if detail != ShownHosts::Counted {
        return json_array(records.and_then(move |record| {
            let inventory = inventory.clone();
            async move { text(&inventory, record, detail, deleted).await }
        }));
    }
    let pages = records.try_chunks(COUNTED_TOGETHER).map_err(|error| error.1);
    let texts = pages.and_then(move |records| {
        let inventory = inventory.clone();
        async move { counted_texts(&inventory, records, deleted).await }
    });
    let texts = texts.map_ok(|texts| stream::iter(texts.into_iter().map(|text| Ok(json_piece(text)))));
    json_array(texts.try_flatten().boxed())
}

/// Returns the JSON texts of a page of clusters. One query counts the hosts of all these clusters.
async fn counted_texts(
    inventory: &Inventory,
    records: Vec<ClusterRecord>,
    deleted: DeletedHosts,
) -> Result<Vec<Vec<u8>>, Error> {
    let ids: Vec<_> = records.iter().map(|record| record.id).collect();
    let hosts = CountedHosts::read(inventory, &ids, deleted).await?;
    let settings = inventory.settings();
    let mut texts = Vec::with_capacity(records.len());
    for record in records {
        let (hosts, results) = (hosts.of_cluster(record.id), inventory.cluster_results(record.id).await?);
        texts.push(to_json(&cluster_from_record(record, hosts, &results, settings)?)?);
    }
    Ok(texts)
}
