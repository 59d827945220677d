-- How often the hosts of a cluster have changed: each host that joins or leaves counts, in its own transaction, and the
-- generation of the cluster stays the same. A cluster without a row never had a host.
CREATE TABLE memberships (
    cluster_id TEXT NOT NULL PRIMARY KEY,
    changes BIGINT NOT NULL
);

INSERT INTO memberships (cluster_id, changes)
SELECT DISTINCT cluster_id, 1
FROM records
WHERE kind = 'host' AND deleted = 0 AND cluster_id IS NOT NULL;

-- What the assessment of a cluster depends on besides the database: the release of the service and its settings. Empty for
-- other records.
ALTER TABLE records ADD COLUMN seen_basis TEXT NOT NULL DEFAULT '';
