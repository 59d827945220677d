//! Rewrites the records that a release with older tables wrote.
//!
//! Migrations 4 and 5 add columns, and tables for reports and MAC addresses. SQL alone cannot fill them in both
//! dialects, so this module does. It knows the documents of that time, not the present types. Every batch of records is
//! one transaction, and a rewritten record has a schema version: if the program is killed, the next start continues.
//!
//! A damaged document stays at version 0 and cannot be read. Once it is repaired, the next start rewrites it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};
use sqlx::SqlSafeStr as _;

use super::StoreError;
use super::session::{Cells, Dialect, Session, Statement};
use crate::time;

/// Records in one transaction. A document may have a few MiB.
const BATCH: i64 = 8;

/// The most MAC addresses of one host.
const MAX_MACS: usize = 256;

/// The key of PostgreSQL's advisory lock: replicas that start at the same time do not rewrite the same records.
const LOCK: i64 = 0x6b69_6e64_6c69_6e67;

/// The reports in the document of a host, by their keys in `findings`.
const REPORTS: [&str; 9] = [
    "inventory",
    "connectivity",
    "api_vip_connectivity",
    "tang_connectivity",
    "disks_info",
    "ntp_sources",
    "images_status",
    "domain_name_resolutions",
    "free_addresses",
];

/// The key of a record as its columns have it.
#[derive(Clone, Debug, Default)]
struct OldKey {
    kind: String,
    parent: String,
    id: String,
}

/// A record of an older release.
struct OldRecord {
    key: OldKey,
    document: String,
}

/// The parts of a record that move out of its document or into a column.
#[derive(Debug, Default, PartialEq)]
struct UpgradedRecord {
    document: String,
    status: String,
    role: String,
    stage: String,
    checked_in_at: Option<i64>,
    clock: Option<i64>,
    reports: BTreeMap<&'static str, String>,
    macs: BTreeSet<String>,
}

/// Rewrites all records that have no schema version yet.
pub(super) async fn rewrite_old_records<S: Session>(connection: &mut S) -> Result<(), StoreError> {
    let mut after = Some(OldKey::default());
    while let Some(key) = after {
        after = rewrite_batch(connection, key).await?;
    }
    Ok(())
}

/// Returns the statement for the next records that have no schema version yet. Locks them in PostgreSQL: an older
/// release may still write them.
pub(super) fn select_old(dialect: Dialect) -> Statement {
    let lock = if dialect == Dialect::Postgres { " FOR UPDATE" } else { "" };
    Statement::composed(format!(
        "SELECT kind, parent, id, document FROM records \
         WHERE schema_version = 0 AND (kind, parent, id) > ($1, $2, $3) ORDER BY kind, parent, id LIMIT $4{lock}"
    ))
}

/// Rewrites some records after a key. Returns the last key, or `None` if there are no more records.
async fn rewrite_batch<S: Session>(connection: &mut S, after: OldKey) -> Result<Option<OldKey>, StoreError> {
    let failed = |source: sqlx::Error| StoreError::Migrate(source.into());
    let mut transaction = connection.begin_with(S::BEGIN_WRITE.into_sql_str()).await.map_err(failed)?;
    if S::DIALECT == Dialect::Postgres {
        let lock = Statement::new("SELECT pg_advisory_xact_lock($1)").bind_integer(LOCK);
        transaction.has_row(lock).await.map_err(failed)?;
    }
    let query = select_old(S::DIALECT).bind(after.kind).bind(after.parent).bind(after.id).bind_integer(BATCH);
    let old = |row: &S::Row| {
        let text = |column| row.text(column).map(str::to_owned);
        let key = OldKey { kind: text("kind")?, parent: text("parent")?, id: text("id")? };
        Ok(OldRecord { key, document: text("document")? })
    };
    let found = transaction.fetch(query, old).await.map_err(failed)?;
    for OldRecord { key, document } in &found {
        match upgrade_document(&key.kind, document) {
            Some(upgraded) => {
                write(&mut *transaction, key, upgraded).await.map_err(|source| StoreError::Upgrade {
                    kind: key.kind.clone(),
                    id: key.id.clone(),
                    source,
                })?;
            }
            None => tracing::error!(kind = %key.kind, id = %key.id, "damaged record not upgraded"),
        }
    }
    transaction.commit().await.map_err(failed)?;
    Ok(found.into_iter().next_back().map(|record| record.key))
}

async fn write<S: Session>(
    connection: &mut S,
    key: &OldKey,
    upgraded: UpgradedRecord,
) -> Result<(), sqlx::Error> {
    let OldKey { kind, parent, id } = key;
    // No text is longer.
    let len = |text: &str| i64::try_from(text.len()).unwrap_or(i64::MAX);
    let mut total = len(&upgraded.document);
    for (kind, report) in upgraded.reports {
        total = total.saturating_add(len(&report));
        let query = Statement::new(
            "INSERT INTO reports (infra_env_id, host_id, kind, size, document) VALUES ($1, $2, $3, $4, $5) \
             ON CONFLICT (infra_env_id, host_id, kind) DO UPDATE SET size = excluded.size, document = excluded.document",
        );
        let query = query.bind(parent).bind(id).bind(kind).bind_integer(len(&report)).bind(report);
        connection.execute(query).await?;
    }
    for mac in upgraded.macs {
        let query = Statement::new(
            "INSERT INTO host_macs (mac, infra_env_id, host_id) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING",
        );
        connection.execute(query.bind(mac).bind(parent).bind(id)).await?;
    }
    let query = Statement::new(
        "UPDATE records SET document = $4, status = $5, role = $6, stage = $7, checked_in_at = $8, clock = $9, \
         size = ($10 + 4095) / 4096 * 4096, schema_version = 1 WHERE kind = $1 AND parent = $2 AND id = $3",
    );
    let query = query.bind(kind).bind(parent).bind(id).bind(upgraded.document).bind(upgraded.status);
    let query = query.bind(upgraded.role).bind(upgraded.stage).bind_optional_integer(upgraded.checked_in_at);
    connection.execute(query.bind_optional_integer(upgraded.clock).bind_integer(total)).await?;
    Ok(())
}

/// Returns the new form of a record. Returns `None` for a damaged document.
fn upgrade_document(kind: &str, document: &str) -> Option<UpgradedRecord> {
    let Ok(Value::Object(mut fields)) = serde_json::from_str(document) else { return None };
    let upgraded = match kind {
        "host" => upgrade_host(&mut fields)?,
        "cluster" => UpgradedRecord {
            document: document.to_owned(),
            status: text_or_empty(fields.get("status")),
            ..UpgradedRecord::default()
        },
        _ => UpgradedRecord { document: document.to_owned(), ..UpgradedRecord::default() },
    };
    // PostgreSQL refuses NUL in any text. The service never wrote one.
    let UpgradedRecord { document, status, role, stage, .. } = &upgraded;
    let has_nul = [document, status, role, stage].into_iter().chain(upgraded.reports.values());
    if has_nul.into_iter().any(|text| text.contains('\0')) { None } else { Some(upgraded) }
}

fn text_or_empty(value: Option<&Value>) -> String {
    value.and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// Returns the new form of a host, or `None` if its findings are damaged.
fn upgrade_host(fields: &mut Map<String, Value>) -> Option<UpgradedRecord> {
    let is_deleted = !fields.get("deleted_at").is_none_or(Value::is_null);
    let mut reports = BTreeMap::new();
    let mut macs = BTreeSet::new();
    if let Some(findings) = fields.get_mut("findings") {
        let findings = findings.as_object_mut()?;
        for key in REPORTS {
            if let Some(Value::String(report)) = findings.get_mut(key)
                && !report.is_empty()
            {
                reports.insert(key, std::mem::take(report));
            }
            if let Some(Value::String(_)) = findings.get(key) {
                findings.shift_remove(key);
            }
        }
        let summary = |report: &String| {
            let sha256: String = Sha256::digest(report).iter().map(|byte| format!("{byte:02x}")).collect();
            json!({"sha256": sha256, "len": report.len()})
        };
        let summaries = reports.iter().map(|(kind, report)| ((*kind).to_owned(), summary(report)));
        findings.insert("reports".to_owned(), Value::Object(summaries.collect()));
        if !is_deleted {
            macs = reports.get("inventory").map(|report| macs_of(report)).unwrap_or_default();
        }
        findings.insert("macs".to_owned(), macs.iter().cloned().collect());
    }
    let checked_in_at = text_or_empty(fields.get("checked_in_at"));
    Some(UpgradedRecord {
        document: Value::Object(fields.clone()).to_string(),
        status: text_or_empty(fields.get("status")),
        role: text_or_empty(fields.get("role")),
        stage: text_or_empty(fields.get("progress").and_then(|progress| progress.get("stage"))),
        checked_in_at: time::parse(&checked_in_at).flatten().map(|time| time.timestamp_micros()),
        clock: fields.get("clock").and_then(Value::as_i64),
        reports,
        macs,
    })
}

/// Returns the valid MAC addresses in an inventory report, in lower case.
fn macs_of(report: &str) -> BTreeSet<String> {
    let Ok(report) = serde_json::from_str::<Value>(report) else { return BTreeSet::new() };
    let interfaces = report.get("interfaces").and_then(Value::as_array).into_iter().flatten();
    let macs = interfaces.map(|interface| text_or_empty(interface.get("mac_address")).to_ascii_lowercase());
    macs.filter(|mac| is_mac(mac)).take(MAX_MACS).collect()
}

fn is_mac(text: &str) -> bool {
    let is_octet = |octet: &str| octet.len() == 2 && octet.bytes().all(|byte| byte.is_ascii_hexdigit());
    (6..=20).contains(&text.split(':').count()) && text.split(':').all(is_octet)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_move_out_of_the_document_of_a_host() {
        let inventory =
            json!({"interfaces": [{"mac_address": "52:54:00:00:00:AA"}, {"mac_address": "x"}, {}]});
        let document = json!({
            "status": "known", "role": "master", "checked_in_at": "2026-01-01T00:00:01.000Z", "clock": 7,
            "deleted_at": null,
            "findings": {"inventory": inventory.to_string(), "ntp_sources": "", "hostname": "a", "future": [1]},
            "progress": {"stage": "Rebooting"}, "unknown": {"a": 1},
        });
        let found = upgrade_document("host", &document.to_string()).unwrap();
        assert_eq!((&*found.status, &*found.role, &*found.stage), ("known", "master", "Rebooting"));
        assert_eq!((found.checked_in_at, found.clock), (Some(1_767_225_601_000_000), Some(7)));
        assert_eq!(found.macs, BTreeSet::from(["52:54:00:00:00:aa".to_owned()]));
        assert_eq!(found.reports, BTreeMap::from([("inventory", inventory.to_string())]));
        let document: Value = serde_json::from_str(&found.document).unwrap();
        let sha256: String =
            Sha256::digest(inventory.to_string()).iter().map(|byte| format!("{byte:02x}")).collect();
        let summary = json!({"inventory": {"sha256": sha256, "len": inventory.to_string().len()}});
        assert_eq!(
            document["findings"],
            json!({"hostname": "a", "future": [1], "reports": summary, "macs": ["52:54:00:00:00:aa"]})
        );
        assert_eq!(document["unknown"], json!({"a": 1}));
    }

    #[test]
    fn damaged_documents_are_not_upgraded() {
        for document in ["", "{", "[]", r#"{"findings": 1}"#, r#"{"status": "a\u0000"}"#] {
            assert_eq!(upgrade_document("host", document), None, "{document}");
        }
        let nul_in_report = json!({"findings": {"inventory": "{\0}"}}).to_string();
        assert_eq!(upgrade_document("host", &nul_in_report), None);
        assert_eq!(upgrade_document("cluster", r#"{"status": "\u0000"}"#), None);
        // An escape in another part of the document is stored unchanged.
        for document in ["{}", r#"{"name": "\u0000"}"#] {
            assert_eq!(upgrade_document("infra-env", document).unwrap().document, document);
        }
    }
}
