//! Results of the steps that prepare an installation: `installation-disk-speed-check` and
//! `container-image-availability`.
//!
//! Each reply covers only some of the disks or images. So the service stores the results of all replies in one JSON
//! object, and the summary is created from this object.

use std::collections::BTreeMap;

use assisted::reply::ImageReport;
use assisted::step::StepType;
use serde::Deserialize;

use super::compact::compact;
use super::error::InvalidReply;
use super::excess::{ExcessLog, ExcessPart, ListLimit};
use super::limits::{MAX_DISK_SPEEDS, MAX_IMAGES, MAX_TEXT};

const DISK_SPEEDS: ListLimit = ListLimit::new(ExcessPart::DiskSpeeds, MAX_DISK_SPEEDS);
const IMAGES: ListLimit = ListLimit::new(ExcessPart::Images, MAX_IMAGES);

/// Minimum download rate of a usable image, in megabytes per second.
const MIN_DOWNLOAD_RATE: f64 = 0.001;

compact! {
    /// The result of the speed check of a disk.
    #[derive(Eq)]
    DiskSpeed {
        /// Path or id of the disk, as in the arguments of the step.
        path: Box<str>,
        /// Exit code of the check on the host.
        exit_code: i64,
        /// Duration of writing and syncing one block, in milliseconds.
        speed_ms: i64,
    }

    /// The availability of a container image on the host.
    #[derive(Eq)]
    ImageAvailability {
        /// Reference of the image, as in the arguments of the step.
        name: Box<str>,
        /// Whether the image can be used: it is on the host, and its download was not too slow.
        is_available: bool,
    }
}

/// The results for one disk in the stored object.
#[derive(Default, Deserialize)]
#[serde(default)]
struct StoredDisk {
    disk_speed: StoredSpeed,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct StoredSpeed {
    tested: bool,
    exit_code: i64,
    speed_ms: i64,
}

/// Converts the stored object into the results of speed checks.
pub(super) fn read_disk_speeds(log: &mut ExcessLog, stored: &str) -> Result<Vec<DiskSpeed>, InvalidReply> {
    let disks: BTreeMap<String, StoredDisk> = parse(log.step(), stored)?;
    let tested = disks.into_iter().filter(|(_, disk)| disk.disk_speed.tested);
    Ok(log.list(DISK_SPEEDS, tested, |log, (path, disk)| DiskSpeed {
        path: log.text(&path, MAX_TEXT),
        exit_code: disk.disk_speed.exit_code,
        speed_ms: disk.disk_speed.speed_ms,
    }))
}

/// Converts the stored object into the availability of container images.
pub(super) fn read_images(log: &mut ExcessLog, stored: &str) -> Result<Vec<ImageAvailability>, InvalidReply> {
    let images: BTreeMap<String, ImageReport<'_>> = parse(log.step(), stored)?;
    Ok(log.list(IMAGES, images, |log, (name, image)| ImageAvailability {
        name: log.text(&name, MAX_TEXT),
        is_available: is_available(&image),
    }))
}

fn parse<'a, T: Deserialize<'a> + Default>(step: StepType, stored: &'a str) -> Result<T, InvalidReply> {
    if stored.is_empty() {
        return Ok(T::default());
    }
    serde_json::from_str(stored).map_err(|error| InvalidReply::json(step, &error))
}

/// Returns `true` if the image was already on the host or was downloaded fast enough.
fn is_available(image: &ImageReport<'_>) -> bool {
    let is_slow = image.size_bytes > 0.0 && image.download_rate < MIN_DOWNLOAD_RATE;
    image.result != "failure" && !is_slow
}
