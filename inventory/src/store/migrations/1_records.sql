-- Clusters, infra-envs and hosts are documents: what is looked up has a column, the rest is in the document.
CREATE TABLE records (
    kind TEXT NOT NULL,
    -- The infra-env of a host; '' for others.
    parent TEXT NOT NULL,
    id TEXT NOT NULL,
    cluster_id TEXT,
    -- 1 for what is deleted and kept for a while.
    deleted BIGINT NOT NULL,
    generation BIGINT NOT NULL,
    -- Microseconds since 1970; the order of lists.
    made_at BIGINT NOT NULL,
    document TEXT NOT NULL,
    PRIMARY KEY (kind, parent, id)
);

CREATE INDEX records_of_cluster ON records (kind, cluster_id);

CREATE TABLE events (
    -- Of events of one time, the one that was written later has the greater id.
    id TEXT NOT NULL PRIMARY KEY,
    -- Microseconds since 1970.
    event_time BIGINT NOT NULL,
    name TEXT NOT NULL,
    severity TEXT NOT NULL,
    category TEXT NOT NULL,
    cluster_id TEXT,
    host_id TEXT,
    infra_env_id TEXT,
    request_id TEXT,
    message TEXT NOT NULL,
    -- The message in small letters, which is what is searched: the databases disagree on the small letters of most alphabets.
    searched TEXT NOT NULL,
    props TEXT
);

CREATE INDEX events_of_cluster ON events (cluster_id, event_time, id);
CREATE INDEX events_of_infra_env ON events (infra_env_id, event_time, id);
CREATE INDEX events_of_host ON events (host_id, event_time, id);
