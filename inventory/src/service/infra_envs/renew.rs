//! Renews the tokens in infra-env URLs after the authentication policy or its signing key has changed.

use futures_util::future::BoxFuture;

use crate::error::Error;
use crate::id::InfraEnvId;
use crate::infra_env::InfraEnvRecord;
use crate::store::{Change, Kind, ReadSet, Reader as _, Stored};
use crate::{Inventory, Secret};

impl Inventory {
    /// Renews the URL token of each infra-env whose token is signed with another key. If the policy requires no tokens,
    /// removes them. Must run before the server accepts requests. Returns the number of infra-envs whose URLs have
    /// changed.
    ///
    /// # Errors
    ///
    /// Returns an error if the database fails or a token cannot be signed.
    pub fn renew_url_tokens(&self) -> BoxFuture<'_, Result<usize, Error>> {
        Box::pin(async move {
            let store = self.records().store();
            let outdated = store.with_other_token_key(Kind::InfraEnv, self.policy().token_key()).await?;
            for key in &outdated {
                let id = InfraEnvId(key.id);
                let token = self.policy().url_token(id)?;
                self.renew_url_token(id, &token).await?;
            }
            Ok(outdated.len())
        })
    }

    async fn renew_url_token(&self, id: InfraEnvId, token: &Secret) -> Result<(), Error> {
        let token_key = self.policy().token_key();
        self.records()
            .change(|reads: ReadSet| async move {
                let (mut change, journal) = (Change::new(), self.journal(None));
                let stored = reads.find::<InfraEnvRecord>(None, id.0).await?;
                // Another replica may have renewed the token, or the infra-env may have been deleted.
                let outdated = stored.filter(|stored| stored.record.token_key != token_key);
                if let Some(Stored { record, generation, .. }) = outdated {
                    // The images contain the token for agents, so the image generation changes too.
                    let record = InfraEnvRecord {
                        url_token: token.clone(),
                        token_key,
                        image_generation: record.image_generation + 1,
                        image_changed_at: record.time_of_next_change(journal.now())?,
                        updated_at: journal.micros(),
                        ..record
                    };
                    change.replace(&record, generation)?;
                }
                Ok((change, ()))
            })
            .await
    }
}
