//! The summary that `discovery create` prints at the end.

use std::fmt::Write;

use ignition::discovery::masked_url;
use isogen::write::FileAccess;
use serde_json::{Value, json};

use super::output::WrittenFiles;
use super::prepare::PreparedInputs;
use super::private_files::PrivateFiles;
use crate::cli::output::{EscapedLines, print_bytes, print_json};

impl PreparedInputs {
    /// Returns the common inputs of all images, as JSON.
    pub(super) fn to_json(&self) -> Value {
        let inputs = self.images.inputs();
        json!({
            "infra_env_id": inputs.infra_env().id.as_str(),
            "openshift_version": inputs.version().as_str(),
            "service_url": masked_url(inputs.service().base_url.as_str()),
            "hosts": self.draft.hosts.iter().map(|host| &host.name).collect::<Vec<_>>(),
            "kernel_arguments": inputs.kernel_arguments(),
            "findings": self.findings,
        })
    }

    /// Returns the common inputs of all images, as text.
    pub(super) fn to_text(&self) -> Result<String, std::fmt::Error> {
        let inputs = self.images.inputs();
        let mut out = EscapedLines::default();
        writeln!(out, "Base image:        {}", self.images.base().source().name())?;
        writeln!(out, "Infra-env:         {}", inputs.infra_env().id)?;
        writeln!(out, "OpenShift version: {}", inputs.version())?;
        writeln!(out, "Service:           {}", masked_url(inputs.service().base_url.as_str()))?;
        let names: Vec<&str> = self.draft.hosts.iter().map(|host| host.name.as_str()).collect();
        /// Maximum number of hosts to list by name.
        const NAMED: usize = 8;
        match names.as_slice() {
            [] => writeln!(out, "Static networks:   none; machines use DHCP")?,
            all if all.len() <= NAMED => writeln!(out, "Static networks:   {}", all.join(", "))?,
            all => writeln!(out, "Static networks:   {} hosts", all.len())?,
        }
        for change in inputs.kernel_arguments().changes() {
            writeln!(out, "Kernel argument:   {} {}", change.operation(), change.value())?;
        }
        Ok(out.into_text())
    }
}

/// Prints the inputs and the written files.
pub(super) fn print_summary(
    prepared: &PreparedInputs,
    files: &[WrittenFiles],
    as_json: bool,
) -> anyhow::Result<()> {
    let private = PrivateFiles::new(files);
    if as_json {
        let image = |file: &WrittenFiles| {
            json!({
                "path": file.path.display().to_string(),
                "what": file.what,
                "size": file.len,
                "sha256": file.sha256.map(|digest| digest.to_string()),
                "layout": file.layout,
                "private": file.access == FileAccess::Private,
            })
        };
        let mut json = prepared.to_json();
        if let Some(map) = json.as_object_mut() {
            map.insert("images".to_owned(), files.iter().map(image).collect());
            map.insert("private_files".to_owned(), json!(private));
        }
        return print_json(&json);
    }
    let mut out = prepared.to_text()?;
    for file in files {
        writeln!(out, "\n{}", file.path.display())?;
        let layout = file.layout.as_ref().map(|layout| format!(", {layout}")).unwrap_or_default();
        let mode = if file.access == FileAccess::Private { ", mode 0600" } else { "" };
        writeln!(out, "  {}, {} bytes{layout}{mode}", file.what, file.len)?;
        if let Some(digest) = &file.sha256 {
            writeln!(out, "  SHA-256 {digest}")?;
        }
    }
    if let Some(private) = private {
        write!(out, "\n{private}")?;
    }
    print_bytes(out.as_bytes())
}
