-- The number of records that fit into a page, and the size of all, are read from an index alone.
DROP INDEX records_sizes;
DROP INDEX records_of_parent;
CREATE INDEX records_of_parent ON records (kind, parent, made_at, id, deleted, size);
DROP INDEX records_of_cluster;
CREATE INDEX records_of_cluster ON records (kind, cluster_id, made_at, id, deleted, size);
