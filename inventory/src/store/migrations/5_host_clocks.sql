-- Clock of a host at its last check-in, in seconds since 1970. NULL: as in the document, which older releases write.
ALTER TABLE records ADD COLUMN clock BIGINT;
