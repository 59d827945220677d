//! Disks and container images of a simulated machine.

use assisted::reply::{DiskSpeedReport, ExitCode, ImageReport, ImagesReport, ReplyPayload};
use assisted::request::{DiskSpeedRequest, ImagesRequest};

use super::fault::Fault;
use super::machine::SimulatedMachine;
use super::profile::DescribedDisk;
use crate::jitter::mix_text;
use crate::machine::StepFailure;

/// Time of a synchronous write to a slow disk, in milliseconds.
const SLOW_SYNC: i64 = 50;
/// Size of the smallest image, in MB.
const MIN_IMAGE_SIZE: u64 = 200;
/// Difference between the smallest and the largest image, in MB.
const IMAGE_RANGE: u64 = 400;

impl SimulatedMachine {
    /// Checks the speed of a disk.
    pub(super) fn disk_speed(
        &self,
        request: &DiskSpeedRequest,
    ) -> Result<DiskSpeedReport<'static>, StepFailure> {
        let path = request.path.clone();
        let failed = |message: String| {
            let report = DiskSpeedReport { path: path.clone().into(), ..DiskSpeedReport::default() };
            StepFailure::new(ExitCode::FAILED, message).with_output(ReplyPayload::DiskSpeed(report))
        };
        let Some(disk) = self.find_disk(&path) else { return Err(failed(format!("no disk {path:?}"))) };
        if self.has_fault(Fault::BrokenDisk) {
            return Err(failed(format!("fio: {path}: Input/output error")));
        }
        let sync = if self.has_fault(Fault::SlowDisk) { SLOW_SYNC } else { disk.sync_ms.into() };
        Ok(DiskSpeedReport { path: path.into(), io_sync_duration: sync })
    }

    /// Returns the disk with this device path, by-id path or by-path path.
    fn find_disk(&self, path: &str) -> Option<&DescribedDisk> {
        let report = self.inventory_report();
        let mut disks = report.disks.iter().zip(&self.slot.group.disks);
        let matched =
            disks.find(|(disk, _)| [&disk.path, &disk.by_id, &disk.by_path].iter().any(|it| ***it == *path));
        matched.map(|(_, described)| described)
    }

    /// Downloads container images. The size of an image follows from its name, and the time from its size and the
    /// download rate.
    pub(super) fn images(&self, request: &ImagesRequest) -> Result<ImagesReport<'static>, StepFailure> {
        let is_online = self.address().is_some() && !self.has_fault(Fault::NoImages);
        let rate = f64::from(self.site.profile().download_mb_per_second);
        let mut left = match u32::try_from(request.timeout) {
            Ok(seconds) if seconds > 0 => f64::from(seconds),
            _ => f64::INFINITY,
        };
        let mut has_failed = false;
        let images = request.images.iter().map(|name| {
            let megabytes = f64::from(image_size(name));
            let time = megabytes / rate;
            if !is_online || time > left {
                has_failed = true;
                left = left.min(0.0);
                return ImageReport {
                    name: name.clone().into(),
                    result: "failure".into(),
                    ..ImageReport::default()
                };
            }
            left -= time;
            ImageReport {
                name: name.clone().into(),
                result: "success".into(),
                size_bytes: megabytes * 1e6,
                time,
                download_rate: rate,
            }
        });
        let report = ImagesReport { images: images.collect() };
        if has_failed {
            let failure = StepFailure::new(ExitCode::IMAGE_UNAVAILABLE, "cannot pull all images");
            return Err(failure.with_output(ReplyPayload::Images(report)));
        }
        Ok(report)
    }
}

/// Returns the size of an image in MB, computed from its name.
fn image_size(name: &str) -> u32 {
    u32::try_from(MIN_IMAGE_SIZE + mix_text(name) % IMAGE_RANGE).unwrap_or(u32::MAX)
}
