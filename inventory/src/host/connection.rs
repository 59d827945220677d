//! The connection state of a host, based on the last check-in of its agent.

use assisted::host::{HostStatus, MediaStatus};
use chrono::{DateTime, TimeDelta, Utc};

use super::record::HostRecord;
use crate::Settings;

/// Returns `true` if the host has checked in recently enough to be connected.
pub(crate) fn is_connected(host: &HostRecord, settings: &Settings, now: DateTime<Utc>) -> bool {
    let Some(last) = host.checked_in_at.0 else { return false };
    // Compare milliseconds, because check-ins are stored with millisecond precision.
    let silence = now.timestamp_millis().saturating_sub(last.timestamp_millis());
    u128::try_from(silence).map_or(true, |silence| silence <= settings.max_silence.as_millis())
}

/// Returns the earliest possible time of a connected host's last check-in.
pub(crate) fn connected_since(settings: &Settings, now: DateTime<Utc>) -> DateTime<Utc> {
    let silence = TimeDelta::from_std(settings.max_silence).ok();
    // A limit beyond the calendar never disconnects a host.
    silence.and_then(|silence| now.checked_sub_signed(silence)).unwrap_or(DateTime::<Utc>::MIN_UTC)
}

/// Returns `true` if the host is recorded as silent: a task found that its agent had not checked in for too long, and
/// the agent has not checked in since.
pub(crate) fn is_silent(host: &HostRecord) -> bool {
    host.findings.silent.unwrap_or_else(|| {
        let is_disconnected =
            matches!(host.status(), HostStatus::Disconnected | HostStatus::DisconnectedUnbound);
        // A host that lost its boot media has the same status, but is not silent.
        is_disconnected && has_media(host)
    })
}

pub(crate) fn set_silent(host: &mut HostRecord, is_silent: bool) {
    if self::is_silent(host) != is_silent {
        host.findings.silent = Some(is_silent);
    }
}

/// Returns `true` unless the agent has reported that it cannot read its boot media.
pub(crate) fn has_media(host: &HostRecord) -> bool {
    host.findings.media != Some(MediaStatus::Disconnected)
}

/// Minimum difference, in seconds, between a new and the recorded clock skew before the new one replaces it.
const SKEW_STEP: u64 = 30;

/// Limits of the clock skew, in seconds: a host's clock may be 20 minutes behind the clock of the service, or an hour
/// ahead.
const SKEW_LIMITS: [i64; 2] = [-20 * 60, 60 * 60];

/// Records the clock skew of a host: the time by which its clock is ahead. A small difference from the recorded skew is
/// ignored, so that nothing that depends on the skew changes.
pub(crate) fn record_clock_skew(host: &mut HostRecord, clock: i64, now: DateTime<Utc>) {
    // 0 means that the agent sent no time.
    if clock == 0 {
        return;
    }
    let skew = clock.saturating_sub(now.timestamp());
    let is_close = host.findings.clock_skew.is_some_and(|recorded| {
        let sides = |skew: i64| SKEW_LIMITS.map(|limit| skew.cmp(&limit));
        recorded.abs_diff(skew) < SKEW_STEP && sides(recorded) == sides(skew)
    });
    if !is_close {
        host.findings.clock_skew = Some(skew);
    }
}

#[cfg(test)]
mod tests {
    use rules::host::state::Transition;

    use super::*;
    use crate::id::{HostId, HostKey, InfraEnvId};

    #[test]
    fn clock_skew_is_recorded_on_large_change_or_limit_crossing() {
        let now = DateTime::from_timestamp(1_700_000_000, 0).unwrap();
        let key = HostKey { infra_env_id: InfraEnvId::fresh(), host_id: HostId::fresh() };
        let mut host = HostRecord::new(key, &Transition::first(false, now));
        for (skew, recorded) in [
            (-now.timestamp(), None),
            (3, Some(3)),
            (32, Some(3)),
            (33, Some(33)),
            (4, Some(33)),
            (3, Some(3)),
            (3599, Some(3599)),
            (3600, Some(3600)),
            (3601, Some(3601)),
            (3629, Some(3601)),
            (-1199, Some(-1199)),
            (-1210, Some(-1210)),
        ] {
            record_clock_skew(&mut host, now.timestamp() + skew, now);
            assert_eq!(host.findings.clock_skew, recorded, "{skew}");
        }
        record_clock_skew(&mut host, i64::MIN, now);
        assert_eq!(host.findings.clock_skew, Some(i64::MIN));
    }
}
