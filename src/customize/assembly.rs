//! The steps in which a customisation becomes files, in the order in which they must happen.

use std::collections::BTreeMap;

use ignition::builder::{ConfigBuilder, FileMode};
use ignition::config::{self, Config};
use ignition::network;

use super::hook::{self, Stage};
use super::installer_config::InstallerConfig;
use super::{Customization, Customized, Error, InputFile, console};

/// Where the live system looks for installer configs. It applies them in the order of their names.
const INSTALLER_CONFIG_DIR: &str = "/etc/coreos/installer.d";

/// Where the installer finds the destination config.
const DESTINATION_CONFIG: &str = "/etc/coreos/dest.ign";

/// The name of the installer config made from our own options, always the last.
const OWN_INSTALLER_CONFIG: &str = "customize.yaml";

/// A customisation half-way to its files.
#[derive(Default)]
pub(super) struct Assembly {
    live: ConfigBuilder,
    destination: Vec<Config>,
    installer: InstallerConfig,
    installer_files: usize,
    network_files: BTreeMap<String, Vec<u8>>,
    notices: Vec<String>,
}

impl Assembly {
    /// Reads the destination configs and takes the plain options over.
    pub(super) fn read_destination(&mut self, options: &Customization) -> Result<(), Error> {
        for file in &options.dest_ignition {
            let config = self.read_config(file)?;
            self.destination.push(config);
        }
        self.notices.extend(console::karg_hint(&options.dest_karg_append));
        self.installer.dest_device.clone_from(&options.dest_device);
        self.installer.console.clone_from(&options.dest_console);
        self.installer.append_karg.clone_from(&options.dest_karg_append);
        self.installer.delete_karg.clone_from(&options.dest_karg_delete);
        Ok(())
    }

    pub(super) fn add_network(&mut self, options: &Customization) -> Result<(), Error> {
        for file in &options.network_keyfiles {
            self.add_keyfile(file.name().to_owned(), file.contents().to_vec())?;
        }
        for file in &options.network_nmstate {
            let keyfiles = network::keyfiles(file.contents())
                .map_err(|source| Error::Nmstate { path: file.path().to_owned(), source })?;
            for keyfile in keyfiles {
                self.add_keyfile(keyfile.name, keyfile.contents.into_bytes())?;
            }
        }
        Ok(())
    }

    fn add_keyfile(&mut self, name: String, contents: Vec<u8>) -> Result<(), Error> {
        if self.network_files.contains_key(&name) {
            return Err(Error::DuplicateKeyfile { name });
        }
        self.network_files.insert(name, contents);
        Ok(())
    }

    pub(super) fn add_authorities(&mut self, options: &Customization) -> Result<(), Error> {
        for file in &options.ignition_ca {
            self.live.add_certificate_authority(file.contents())?;
        }
        Ok(())
    }

    pub(super) fn add_hooks(&mut self, options: &Customization) -> Result<(), Error> {
        for (stage, scripts) in [(Stage::Pre, &options.pre_install), (Stage::Post, &options.post_install)] {
            for script in scripts {
                let remark = hook::add(&mut self.live, stage, script)?;
                self.notices.extend(remark);
            }
        }
        Ok(())
    }

    pub(super) fn add_installer_configs(&mut self, options: &Customization) -> Result<(), Error> {
        for file in &options.installer_config {
            InstallerConfig::parse(file.contents())
                .map_err(|source| Error::InstallerConfig { path: file.path().to_owned(), source })?;
            self.add_installer_config(file.name(), file.contents())?;
        }
        Ok(())
    }

    fn add_installer_config(&mut self, name: &str, contents: &[u8]) -> Result<(), Error> {
        let path = format!("{INSTALLER_CONFIG_DIR}/{:04}-{name}", self.installer_files);
        self.live.add_file(path, contents, FileMode::PRIVATE)?;
        self.installer_files = self.installer_files.saturating_add(1);
        Ok(())
    }

    pub(super) fn add_live_configs(&mut self, options: &Customization) -> Result<(), Error> {
        for file in &options.live_ignition {
            let config = self.read_config(file)?;
            self.live.merge(&config)?;
        }
        Ok(())
    }

    fn read_config(&mut self, file: &InputFile) -> Result<Config, Error> {
        let path = file.path();
        let parsed = config::parse(file.contents())
            .map_err(|source| Error::IgnitionConfig { path: path.to_owned(), source })?;
        for warning in parsed.warnings {
            self.notices.push(format!("Warning parsing {path}: {warning}"));
        }
        Ok(parsed.config)
    }

    /// Adds what depends on everything else, and hands the result over.
    pub(super) fn finish(mut self, options: &Customization) -> Result<Customized, Error> {
        self.add_destination_config(options)?;
        let runs_installer = options.runs_installer();
        if runs_installer {
            self.notices.push(boot_notice(options));
            self.installer.copy_network = options.sets_network();
        }
        if self.installer != InstallerConfig::default() {
            let yaml = self.installer.to_yaml().map_err(Error::WriteInstallerConfig)?;
            self.add_installer_config(OWN_INSTALLER_CONFIG, yaml.as_bytes())?;
        }
        Ok(Customized {
            live_config: self.live.to_json()?,
            network_files: self.network_files,
            notices: self.notices,
            runs_installer,
        })
    }

    fn add_destination_config(&mut self, options: &Customization) -> Result<(), Error> {
        let Some(json) = self.destination_config(options)? else {
            return Ok(());
        };
        self.live.add_file(DESTINATION_CONFIG, &json, FileMode::PRIVATE)?;
        self.installer.ignition_file = Some(DESTINATION_CONFIG.to_owned());
        Ok(())
    }

    /// A single config without authorities stays as it is; anything more needs a parent around it. Authorities
    /// alone make no destination config.
    fn destination_config(&self, options: &Customization) -> Result<Option<Vec<u8>>, Error> {
        match (self.destination.as_slice(), options.ignition_ca.as_slice()) {
            ([], _) => Ok(None),
            ([only], []) => {
                let mut json = config::to_json(only).map_err(Error::WriteDestination)?;
                json.push(b'\n');
                Ok(Some(json))
            }
            (configs, authorities) => {
                let mut parent = ConfigBuilder::new();
                for file in authorities {
                    parent.add_certificate_authority(file.contents())?;
                }
                for config in configs {
                    parent.merge(config)?;
                }
                Ok(parent.to_json()?)
            }
        }
    }
}

fn boot_notice(options: &Customization) -> String {
    match &options.dest_device {
        Some(device) => {
            format!("Boot media will automatically install to {device} without confirmation.")
        }
        None => "Boot media will automatically run installer.".to_owned(),
    }
}
