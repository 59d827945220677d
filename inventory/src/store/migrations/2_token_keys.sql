-- The key that the token in the URLs of an infra-env is signed with; '' where there is none.
ALTER TABLE records ADD COLUMN token_key TEXT NOT NULL DEFAULT '';

CREATE INDEX records_of_token_key ON records (kind, token_key, parent, id);
