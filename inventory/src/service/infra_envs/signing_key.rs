//! Keys for signing tokens whose access is limited to the images of one infra-env.

use std::fmt::Write as _;

use futures_util::future::BoxFuture;
use rustix::rand::GetRandomFlags;

use super::queries::stored_infra_env;
use crate::error::Error;
use crate::id::InfraEnvId;
use crate::infra_env::InfraEnvRecord;
use crate::request_id::RequestId;
use crate::store::{Change, ReadSet};
use crate::{Inventory, Secret};

impl Inventory {
    /// Replaces the signing key of an infra-env. Tokens signed with the old key become invalid.
    ///
    /// # Errors
    ///
    /// Returns an error if the infra-env does not exist.
    pub fn regenerate_signing_key(
        &self,
        id: InfraEnvId,
        request: Option<RequestId>,
    ) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(async move {
            let signing_key = &fresh_key()?;
            self.records()
                .change(|reads: ReadSet| async move {
                    let (mut change, journal) = (Change::new(), self.journal(request));
                    let stored = stored_infra_env(&reads, id).await?;
                    let record = InfraEnvRecord {
                        signing_key: signing_key.clone(),
                        updated_at: journal.micros(),
                        ..stored.record
                    };
                    change.replace(&record, stored.generation)?;
                    Ok((change, ()))
                })
                .await
        })
    }
}

/// Returns 256 random bits as 64 hexadecimal digits.
pub(crate) fn fresh_key() -> Result<Secret, Error> {
    let mut bytes = [0_u8; 32];
    // The random bytes are from the kernel, because AWS-LC measures clock jitter for 25 ms before it returns its first
    // random bytes.
    let filled = rustix::rand::getrandom(&mut bytes, GetRandomFlags::empty());
    if filled != Ok(bytes.len()) {
        return Err(Error::broken("the operating system provides no random numbers"));
    }
    let mut text = String::with_capacity(64);
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    Ok(Secret::new(text))
}
