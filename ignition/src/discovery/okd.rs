//! OKD, whose live system comes without the programs of a node: they are in an image with RPMs.

use super::agent::AGENT_UNIT;
use super::input::ImageReference;
use super::parts::Parts;
use crate::builder::{FileMode, UnitState};

const SCRIPT: &str = "/usr/local/bin/okd-binaries.sh";
const DROPIN: &str = "wait-for-okd.conf";

pub(super) fn add(parts: &mut Parts, image: &ImageReference, environment: Option<&str>) {
    parts.file(SCRIPT, FileMode::EXECUTABLE, include_str!("content/okd-binaries.sh"));
    parts.unit("okd-overlay.service", UnitState::Enabled, &unit(image, environment));
    let socket = include_str!("content/systemd-journal-gatewayd.socket");
    parts.unit("systemd-journal-gatewayd.socket", UnitState::Enabled, socket);
    parts.dropin(AGENT_UNIT, DROPIN, include_str!("content/wait-for-okd.conf"));
    parts.dropin("release-image-pivot.service", DROPIN, include_str!("content/no-pivot.conf"));
}

fn unit(image: &ImageReference, environment: Option<&str>) -> String {
    let environment = environment.map(|file| format!("EnvironmentFile={file}\n")).unwrap_or_default();
    format!(
        "\
[Unit]
Description=Programs of OKD for this live system
Wants=network-online.target
After=network-online.target

[Service]
Type=oneshot
{environment}ExecStart={SCRIPT} {image}

[Install]
WantedBy=multi-user.target
"
    )
}
