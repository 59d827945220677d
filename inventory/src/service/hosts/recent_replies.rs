//! Detects replies that repeat an earlier reply, without parsing them.
//!
//! Agents send the same reports again and again. A repeated reply changes nothing if the host still has the generation
//! that resulted from the earlier reply.

use std::num::NonZero;
use std::sync::Mutex;

use assisted::step::StepType;
use lru::LruCache;
use sha2::{Digest as _, Sha256};

use crate::id::HostKey;

/// Maximum number of hosts whose replies are remembered. A host takes about 300 bytes.
const MAX_HOSTS: NonZero<usize> = NonZero::new(20_000).unwrap();

/// The SHA-256 digest of a reply without its step id, which is different in each reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReplyDigest([u8; 32]);

impl ReplyDigest {
    /// Returns the digest of a reply body.
    ///
    /// Two replies with the same digest differ at most in the id that follows the same key `"step_id"`. The id contains
    /// no quotation marks and backslashes, so the rest of both replies has the same meaning. If one reply is valid
    /// JSON, its id is a string value of this key, so the other reply is also valid.
    pub(crate) fn new(body: &[u8]) -> Self {
        let (before, after) = without_step_id(body);
        let mut digest = Sha256::new();
        digest.update(before.len().to_le_bytes());
        digest.update(before);
        digest.update(after);
        Self(digest.finalize().into())
    }
}

/// Returns the parts of a body before and after the step id. If the body has no step id in the usual form, the first
/// part is the whole body.
fn without_step_id(body: &[u8]) -> (&[u8], &[u8]) {
    const KEY: &[u8] = br#""step_id":"#;
    /// Maximum distance of the key from the start or the end of the body, in bytes. A step can have a long output,
    /// which is entirely before or entirely after the key.
    const NEAR: usize = 256;
    let search = |start: usize| {
        let part = body.get(start..)?.get(..NEAR.min(body.len() - start))?;
        let key = part.windows(KEY.len()).position(|window| window == KEY)?;
        let value = start + key + KEY.len();
        let spaces = body.get(value..)?.iter().take_while(|byte| **byte == b' ').count();
        let id = value + spaces + 1;
        let rest = body.get(id..)?;
        let len = rest.iter().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'-').count();
        let is_string = body.get(id - 1) == Some(&b'"') && rest.get(len) == Some(&b'"');
        is_string.then(|| (body.split_at(id).0, rest.split_at(len).1))
    };
    search(0).or_else(|| search(body.len().saturating_sub(NEAR))).unwrap_or((body, &[]))
}

/// A reply with the resulting generation of its host.
#[derive(Clone, Copy, Debug)]
struct RecentReply {
    step: StepType,
    digest: ReplyDigest,
    generation: i64,
}

/// The latest reply of each host for each type of step.
#[derive(Debug)]
pub(crate) struct RecentReplies(Mutex<LruCache<HostKey, Vec<RecentReply>>>);

impl Default for RecentReplies {
    fn default() -> Self {
        Self(Mutex::new(LruCache::new(MAX_HOSTS)))
    }
}

impl RecentReplies {
    fn with_replies<T>(&self, access: impl FnOnce(&mut LruCache<HostKey, Vec<RecentReply>>) -> T) -> T {
        let mut replies = self.0.lock().unwrap_or_else(|poisoned| {
            // A panic may have left the map inconsistent, so it is cleared, and repeated replies are parsed again.
            let mut replies = poisoned.into_inner();
            replies.clear();
            self.0.clear_poison();
            replies
        });
        access(&mut replies)
    }

    /// Returns the generation of a host that resulted from a remembered reply. If the host still has this generation,
    /// the reply changes nothing.
    pub(crate) fn generation_after(&self, host: HostKey, digest: ReplyDigest) -> Option<i64> {
        self.with_replies(|all| {
            let same = all.get(&host)?.iter().find(|reply| reply.digest == digest)?;
            Some(same.generation)
        })
    }

    /// Remembers a reply, with the generation of its host after the reply.
    pub(crate) fn remember(&self, host: HostKey, step: StepType, digest: ReplyDigest, generation: i64) {
        self.with_replies(|all| {
            let replies = all.get_or_insert_mut(host, Vec::new);
            replies.retain(|reply| reply.step != step);
            replies.push(RecentReply { step, digest, generation });
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{HostId, InfraEnvId};

    fn digest(body: &str) -> ReplyDigest {
        ReplyDigest::new(body.as_bytes())
    }

    #[test]
    fn digest_ignores_the_step_id() {
        let output = "x".repeat(1000);
        for form in [
            r#"{"step_type":"inventory","step_id":"@","output":"#,
            r#"{"output":"%","step_id":"@","step_type":"inventory"}"#,
            r#"{"output":"%","step_id":  "@"}"#,
        ] {
            let form = form.replace('%', &output);
            let first = digest(&form.replace('@', "inventory-00000001"));
            assert_eq!(first, digest(&form.replace('@', "inventory-0000002a")), "{form}");
            assert_eq!(first, digest(&form.replace('@', "")), "{form}");
            assert_ne!(first, digest(&form.replace('@', r#"\u0000"#)), "{form}");
            assert_ne!(first, digest(&form.replace('@', r#"a","output":"b"#)), "{form}");
            assert_ne!(first, digest(&form.replace("step_id", "step_ie").replace('@', "a")), "{form}");
        }
    }

    #[test]
    fn digest_covers_everything_except_the_step_id() {
        let all = [
            r#"{"step_id":"a","output":"1"}"#,
            r#"{"step_id":"a","output":"2"}"#,
            r#"{"step_id":"a","output":"1" }"#,
            r#"{"step_id":1,"output":"1"}"#,
            r#"{"step_id":2,"output":"1"}"#,
            r#"{"step_id":"a"#,
            r#"{"step_id":"#,
            r#"{"step_id""#,
            "",
        ];
        for (index, one) in all.iter().enumerate() {
            for other in all.iter().skip(index + 1) {
                assert_ne!(digest(one), digest(other), "{one} {other}");
            }
        }
    }

    #[test]
    fn last_reply_of_each_step_is_remembered_with_its_generation() {
        let replies = RecentReplies::default();
        let host = HostKey { infra_env_id: InfraEnvId::fresh(), host_id: HostId::fresh() };
        let other = HostKey { host_id: HostId::fresh(), ..host };
        let (one, two) = (digest("1"), digest("2"));
        assert_eq!(replies.generation_after(host, one), None);
        replies.remember(host, StepType::Inventory, one, 2);
        replies.remember(host, StepType::NtpSynchronizer, two, 3);
        assert_eq!([one, two].map(|reply| replies.generation_after(host, reply)), [Some(2), Some(3)]);
        assert_eq!(replies.generation_after(other, one), None);
        replies.remember(host, StepType::Inventory, two, 4);
        assert_eq!(replies.generation_after(host, one), None);
    }
}
