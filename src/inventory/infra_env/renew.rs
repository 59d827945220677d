//! Tokens in the URLs of infra-envs after the policy, or its key, has changed.

use super::{InfraEnvRecord, Kind};
use crate::api_error::ApiError;
use crate::inventory::id::InfraEnvId;
use crate::inventory::store::{Change, Stored};
use crate::inventory::time::Micros;
use crate::inventory::{Inventory, Secret};

impl Inventory {
    /// Gives a new token to each infra-env whose own one is signed with another key, and none where the policy wants none. To
    /// be done before requests are served. Says how many infra-envs have other URLs than before.
    ///
    /// # Errors
    ///
    /// When the database fails.
    pub async fn renew_url_tokens(&self) -> Result<usize, ApiError> {
        let outdated =
            self.records().store().signed_otherwise(Kind::InfraEnv, self.policy().token_key()).await?;
        for key in &outdated {
            let id = InfraEnvId(key.id);
            let token = self.policy().url_token(id).unwrap_or_default();
            self.renew_url_token(id, &token).await?;
        }
        Ok(outdated.len())
    }

    async fn renew_url_token(&self, id: InfraEnvId, token: &Secret) -> Result<(), ApiError> {
        let token_key = self.policy().token_key();
        self.records()
            .change(|| async {
                let mut change = Change::new();
                let found = self.records().find::<InfraEnvRecord>(None, id.0).await?;
                // Another replica may have been here, or somebody who has no more use for it.
                let outdated = found.filter(|stored| stored.record.token_key != token_key);
                if let Some(Stored { record, generation, .. }) = outdated {
                    let now = Micros::now();
                    // The token is in the images too: machines have it from there.
                    let record = InfraEnvRecord {
                        url_token: token.clone(),
                        token_key,
                        image_generation: record.image_generation + 1,
                        image_changed_at: record.image_changed_at.later_than(),
                        updated_at: now,
                        ..record
                    };
                    change.replace(&record, generation);
                }
                Ok((change, ()))
            })
            .await
    }
}
