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

    pub(super) fn add_authorities(&mut self, options: &Customization) {
        for file in &options.ignition_ca {
            self.live.add_certificate_authority(file.contents());
        }
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
                    parent.add_certificate_authority(file.contents());
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

#[cfg(test)]
mod tests {
    use super::super::Capabilities;
    use super::*;

    const CONFIG: &str = r#"{"ignition":{"version":"3.4.0"}}"#;

    fn file(path: &str, contents: &str) -> InputFile {
        InputFile::new(path, contents).unwrap()
    }

    fn image() -> Capabilities {
        Capabilities {
            installer_config: true,
            installer_directives: ["console".to_owned()].into(),
            live_initrd_network: true,
            live_kargs: false,
        }
    }

    fn build(options: &Customization) -> Customized {
        options.build(&image()).unwrap()
    }

    /// The files of the live config, path and contents, in its order.
    fn files(made: &Customized) -> Vec<(String, String)> {
        let json = made.live_config.as_deref().unwrap();
        let Config::V3_3(config) = config::parse(json).unwrap().config else {
            panic!("not spec 3.3.0");
        };
        let text = |resource| String::from_utf8(ignition::resource::decode(&resource).unwrap()).unwrap();
        let files = config.storage.unwrap_or_default().files.unwrap_or_default();
        files.into_iter().map(|file| (file.path, text(file.contents.unwrap()))).collect()
    }

    #[test]
    fn no_options_make_nothing() {
        assert_eq!(build(&Customization::default()), Customized::default());
    }

    #[test]
    fn files_come_in_a_fixed_order_and_our_own_config_is_the_last() {
        let made = build(&Customization {
            dest_ignition: vec![file("dest", CONFIG)],
            dest_device: Some("/dev/sda".to_owned()),
            network_keyfiles: vec![file("net/a.nmconnection", "")],
            pre_install: vec![file("hook", "1")],
            post_install: vec![file("hook", "2")],
            installer_config: vec![file("a/x.yaml", "{}"), file("b/x.yaml", "offline: true")],
            ..Customization::default()
        });
        let own = "ignition-file: /etc/coreos/dest.ign\ncopy-network: true\ndest-device: /dev/sda\n";
        let expected = [
            ("/usr/local/bin/pre-install-hook", "1"),
            ("/usr/local/bin/post-install-hook", "2"),
            ("/etc/coreos/installer.d/0000-x.yaml", "{}"),
            ("/etc/coreos/installer.d/0001-x.yaml", "offline: true"),
            ("/etc/coreos/dest.ign", "{\"ignition\":{\"version\":\"3.4.0\"}}\n"),
            ("/etc/coreos/installer.d/0002-customize.yaml", own),
        ];
        assert_eq!(files(&made), expected.map(|(path, text)| (path.to_owned(), text.to_owned())));
        assert_eq!(made.network_files.into_keys().collect::<Vec<_>>(), ["a.nmconnection"]);
        assert_eq!(made.notices, ["Boot media will automatically install to /dev/sda without confirmation."]);
        assert!(made.runs_installer);
    }

    #[test]
    fn authorities_put_a_parent_around_the_destination_config() {
        let made = build(&Customization {
            dest_ignition: vec![file("dest", CONFIG)],
            ignition_ca: vec![file("ca", "pem")],
            ..Customization::default()
        });
        let (path, parent) = files(&made).swap_remove(0);
        assert_eq!(path, DESTINATION_CONFIG);
        assert!(parent.starts_with(r#"{"ignition":{"config":{"merge":[{"#), "{parent}");
        assert!(parent.contains(r#""certificateAuthorities":[{"#), "{parent}");
        assert_eq!(made.notices, ["Boot media will automatically run installer."]);
    }

    #[test]
    fn a_foreign_installer_config_alone_needs_no_config_of_our_own() {
        let mut options = Customization {
            installer_config: vec![file("x.yaml", "dest-device: /dev/sda")],
            ..Customization::default()
        };
        assert_eq!(files(&build(&options)).len(), 1);
        options.network_keyfiles.push(file("a", ""));
        let own = files(&build(&options)).swap_remove(1);
        assert_eq!(own.0, "/etc/coreos/installer.d/0001-customize.yaml");
        assert_eq!(own.1, "copy-network: true\n");
    }

    #[test]
    fn keyfiles_of_one_name_are_refused_wherever_they_come_from() {
        let nmstate = "interfaces: [{name: eth1, type: ethernet, state: up}]";
        let given = || vec![file("a/eth1.nmconnection", "")];
        let generated = || vec![file("a.yaml", nmstate)];
        let cases = [
            ([given(), given()].concat(), vec![]),
            (given(), generated()),
            (vec![], [generated(), generated()].concat()),
        ];
        for (network_keyfiles, network_nmstate) in cases {
            let options = Customization { network_keyfiles, network_nmstate, ..Customization::default() };
            let error = options.build(&image()).unwrap_err();
            assert_eq!(error.to_string(), "config already specifies keyfile eth1.nmconnection");
        }
    }

    #[test]
    fn features_are_checked_before_files_are_looked_at() {
        let options = Customization { network_nmstate: vec![file("a", "[")], ..Customization::default() };
        let error = options.build(&Capabilities::default()).unwrap_err();
        assert_eq!(error.to_string(), "This OS image does not support customizing network settings.");
        let error = options.build(&image()).unwrap_err();
        assert_eq!(error.to_string(), "converting nmstate document a");
    }

    #[test]
    fn unknown_keys_are_remarked_upon() {
        let config = r#"{"ignition":{"version":"3.0.0"},"colour":1}"#;
        let options = Customization { live_ignition: vec![file("a/b", config)], ..Customization::default() };
        assert_eq!(build(&options).notices, ["Warning parsing a/b: unused key: $.colour"]);
    }
}
