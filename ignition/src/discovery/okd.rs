//! Adds support for OKD. The live system of OKD lacks the programs of a node, which an image with RPMs provides.

use super::agent::AGENT_UNIT;
use super::input::ImageReference;
use crate::builder::{ConfigBuilder, FileMode, UnitState};

const SCRIPT_PATH: &str = "/usr/local/bin/okd-binaries.sh";
const DROPIN_NAME: &str = "wait-for-okd.conf";

pub(super) fn add_okd(builder: &mut ConfigBuilder, image: &ImageReference, environment: Option<&str>) {
    builder.replace_file(SCRIPT_PATH, FileMode::EXECUTABLE, include_str!("content/okd-binaries.sh"));
    builder.replace_unit("okd-overlay.service", UnitState::Enabled, &okd_unit(image, environment));
    let socket = include_str!("content/systemd-journal-gatewayd.socket");
    builder.replace_unit("systemd-journal-gatewayd.socket", UnitState::Enabled, socket);
    builder.add_dropin(AGENT_UNIT, DROPIN_NAME, include_str!("content/wait-for-okd.conf"));
    builder.add_dropin("release-image-pivot.service", DROPIN_NAME, include_str!("content/no-pivot.conf"));
}

fn okd_unit(image: &ImageReference, environment: Option<&str>) -> String {
    let environment = environment.map(|file| format!("EnvironmentFile={file}\n")).unwrap_or_default();
    format!(
        "\
[Unit]
Description=Programs of OKD for this live system
Wants=network-online.target
After=network-online.target

[Service]
Type=oneshot
{environment}ExecStart={SCRIPT_PATH} {image}

[Install]
WantedBy=multi-user.target
"
    )
}
