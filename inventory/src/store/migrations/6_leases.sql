-- Tasks that run in one replica at a time, each with the replica that runs it.
CREATE TABLE leases (
    name TEXT NOT NULL PRIMARY KEY,
    -- A random id of the process.
    holder TEXT NOT NULL,
    -- Microseconds since 1970, by the clock of the database. After that, another replica may take the lease.
    expires_at BIGINT NOT NULL
);
