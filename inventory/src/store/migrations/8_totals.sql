-- Nothing reads the stage of a host. Replicas of an older release name this column in each statement that reads a document or
-- writes a record. So these statements fail from now on, and no record is written without its totals.
ALTER TABLE records DROP COLUMN stage;

-- The number and the size of the records of a parent, for limits. Each change adds to them in its own transaction, and the
-- generation of the parent stays the same.
CREATE TABLE totals (
    -- The kind of the records.
    kind TEXT NOT NULL,
    parent TEXT NOT NULL,
    -- Without deleted records.
    records BIGINT NOT NULL,
    -- The sum of records.size, including deleted records.
    bytes BIGINT NOT NULL,
    PRIMARY KEY (kind, parent)
);

INSERT INTO totals (kind, parent, records, bytes)
SELECT kind, parent, CAST(SUM(1 - deleted) AS BIGINT), CAST(SUM(size) AS BIGINT)
FROM records
WHERE parent <> ''
GROUP BY kind, parent;
