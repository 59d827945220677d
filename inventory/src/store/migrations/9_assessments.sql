-- What the assessment of a cluster has seen. NULL for other records. The number of the cluster's hosts and a sum of their
-- generations, both without deleted hosts, and the generation of the cluster.
ALTER TABLE records ADD COLUMN seen_hosts BIGINT;
ALTER TABLE records ADD COLUMN seen_generations BIGINT;
ALTER TABLE records ADD COLUMN seen_cluster BIGINT;

-- The generations of a cluster's hosts are summed from this index alone.
DROP INDEX records_of_cluster;
CREATE INDEX records_of_cluster ON records (kind, cluster_id, made_at, id, deleted, size, record_generation);
