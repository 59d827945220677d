-- The parts of a record that are searched have columns. After this step, each record is rewritten (see ../upgrade.rs), which
-- sets its version.

-- Replicas of an older release may still run. Their documents have the old form, and they know nothing of the new tables.
-- Each of their statements that reads a document or writes a record names this column. So these statements fail from now
-- on, and no data is lost.
ALTER TABLE records RENAME COLUMN generation TO record_generation;

ALTER TABLE records ADD COLUMN schema_version BIGINT NOT NULL DEFAULT 0;
-- Status of a host or a cluster, role and installation stage of a host; '' where there is no value.
ALTER TABLE records ADD COLUMN status TEXT NOT NULL DEFAULT '';
ALTER TABLE records ADD COLUMN role TEXT NOT NULL DEFAULT '';
ALTER TABLE records ADD COLUMN stage TEXT NOT NULL DEFAULT '';
-- Last check-in of a host, in microseconds since 1970.
ALTER TABLE records ADD COLUMN checked_in_at BIGINT;

CREATE INDEX records_to_upgrade ON records (kind, parent, id) WHERE schema_version = 0;
CREATE INDEX records_by_check_in ON records (status, checked_in_at) WHERE kind = 'host' AND deleted = 0;

CREATE TABLE host_macs (
    -- In lower case.
    mac TEXT NOT NULL,
    infra_env_id TEXT NOT NULL,
    host_id TEXT NOT NULL,
    PRIMARY KEY (mac, infra_env_id, host_id)
);

CREATE INDEX macs_of_host ON host_macs (infra_env_id, host_id);

-- Events of all clusters and infra-envs, and those that are purged, are read in this order.
CREATE INDEX events_in_order ON events (event_time, id);

-- The reports of the agents of hosts. A host's document has only facts that are derived from its reports.
CREATE TABLE reports (
    infra_env_id TEXT NOT NULL,
    host_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    -- Length of the document in bytes. records.size includes it.
    size BIGINT NOT NULL,
    document TEXT NOT NULL,
    PRIMARY KEY (infra_env_id, host_id, kind)
);
