-- What a record counts against the limits of its parent, in bytes: the length of its document in whole blocks of 4 KiB, so
-- that a report of about the same length as the last one changes nothing here.
ALTER TABLE records ADD COLUMN size BIGINT NOT NULL DEFAULT 0;
UPDATE records SET size = (octet_length(document) + 4095) / 4096 * 4096;

-- Counts and sums are read from this index alone.
CREATE INDEX records_sizes ON records (kind, parent, deleted, size);

-- Lists are read page by page, in the order of these.
CREATE INDEX records_in_order ON records (kind, made_at, id);
CREATE INDEX records_of_parent ON records (kind, parent, made_at, id);
DROP INDEX records_of_cluster;
CREATE INDEX records_of_cluster ON records (kind, cluster_id, made_at, id);
