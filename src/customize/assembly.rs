//! The steps that turn a customisation into files. Their order determines the order of files in the result.

use std::collections::BTreeMap;

use ignition::builder::{ConfigBuilder, FileMode};
use ignition::network;
use ignition::rewrite::rewrite;

use super::hook::{self, HookStage};
use super::installer_config::InstallerConfig;
use super::{Customization, CustomizeError, Customized, InputFile, console};

/// The directory of installer configs in the live system. The installer applies the files in the order of their names.
const INSTALLER_CONFIG_DIR: &str = "/etc/coreos/installer.d";

/// The path of the destination config in the live system, where the installer reads it.
const DESTINATION_CONFIG: &str = "/etc/coreos/dest.ign";

/// The name of the installer config generated from the options. It applies after the user's configs.
const OWN_INSTALLER_CONFIG: &str = "customize.yaml";

/// The state of a customisation while its files are generated.
#[derive(Default)]
pub(super) struct Assembly {
    live: ConfigBuilder,
    /// Destination configs in the form that `coreos-installer` writes.
    destination: Vec<String>,
    installer: InstallerConfig,
    installer_files: usize,
    network_files: BTreeMap<String, Vec<u8>>,
    notices: Vec<String>,
}

impl Assembly {
    /// Reads the destination configs, and copies the options that are installer options too.
    pub(super) fn read_destination(&mut self, options: &Customization) -> Result<(), CustomizeError> {
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

    pub(super) fn add_network(&mut self, options: &Customization) -> Result<(), CustomizeError> {
        for file in &options.network_keyfiles {
            self.add_keyfile(file.name().to_owned(), file.contents().to_vec())?;
        }
        for file in &options.network_nmstate {
            let keyfiles = network::keyfiles(file.contents())
                .map_err(|source| CustomizeError::Nmstate { path: file.path().to_owned(), source })?;
            for keyfile in keyfiles {
                self.add_keyfile(keyfile.name, keyfile.contents.into_bytes())?;
            }
        }
        Ok(())
    }

    fn add_keyfile(&mut self, name: String, contents: Vec<u8>) -> Result<(), CustomizeError> {
        if self.network_files.contains_key(&name) {
            return Err(CustomizeError::DuplicateKeyfile { name });
        }
        self.network_files.insert(name, contents);
        Ok(())
    }

    pub(super) fn add_authorities(&mut self, options: &Customization) {
        for file in &options.ignition_ca {
            self.live.add_certificate_authority(file.contents());
        }
    }

    pub(super) fn add_hooks(&mut self, options: &Customization) -> Result<(), CustomizeError> {
        for (stage, scripts) in
            [(HookStage::Pre, &options.pre_install), (HookStage::Post, &options.post_install)]
        {
            for script in scripts {
                let warning = hook::add_hook(&mut self.live, stage, script)?;
                self.notices.extend(warning);
            }
        }
        Ok(())
    }

    pub(super) fn add_installer_configs(&mut self, options: &Customization) -> Result<(), CustomizeError> {
        for file in &options.installer_config {
            InstallerConfig::parse(file.contents())
                .map_err(|source| CustomizeError::InstallerConfig { path: file.path().to_owned(), source })?;
            self.add_installer_config(file.name(), file.contents())?;
        }
        Ok(())
    }

    fn add_installer_config(&mut self, name: &str, contents: &[u8]) -> Result<(), CustomizeError> {
        let path = format!("{INSTALLER_CONFIG_DIR}/{:04}-{name}", self.installer_files);
        self.live.add_file(path, contents, FileMode::PRIVATE)?;
        self.installer_files = self.installer_files.saturating_add(1);
        Ok(())
    }

    pub(super) fn add_live_configs(&mut self, options: &Customization) -> Result<(), CustomizeError> {
        for file in &options.live_ignition {
            let config = self.read_config(file)?;
            self.live.merge(&config);
        }
        Ok(())
    }

    /// Returns a config in the form that `coreos-installer` embeds.
    fn read_config(&mut self, file: &InputFile) -> Result<String, CustomizeError> {
        let path = file.path();
        let rewritten = rewrite(file.contents())
            .map_err(|source| CustomizeError::IgnitionConfig { path: path.to_owned(), source })?;
        for warning in rewritten.warnings {
            self.notices.push(format!("Warning parsing {path}: {warning}"));
        }
        Ok(rewritten.json)
    }

    /// Adds the files that depend on all others, and returns the result.
    pub(super) fn finish(mut self, options: &Customization) -> Result<Customized, CustomizeError> {
        self.add_destination_config(options)?;
        let runs_installer = options.runs_installer();
        if runs_installer {
            self.notices.push(boot_notice(options));
            self.installer.copy_network = options.configures_network();
        }
        if self.installer != InstallerConfig::default() {
            let yaml = self.installer.to_yaml().map_err(CustomizeError::WriteInstallerConfig)?;
            self.add_installer_config(OWN_INSTALLER_CONFIG, yaml.as_bytes())?;
        }
        Ok(Customized {
            live_config: self.live.to_installer_json().map_err(CustomizeError::WriteConfig)?,
            network_files: self.network_files,
            notices: self.notices,
            runs_installer,
        })
    }

    fn add_destination_config(&mut self, options: &Customization) -> Result<(), CustomizeError> {
        let Some(json) = self.destination_config(options)? else {
            return Ok(());
        };
        self.live.add_file(DESTINATION_CONFIG, &json, FileMode::PRIVATE)?;
        self.installer.ignition_file = Some(DESTINATION_CONFIG.to_owned());
        Ok(())
    }

    /// Returns the destination config. A single config is used unchanged. Several configs, or certificate authorities,
    /// need a parent config that merges them. Returns `None` without a config, even if there are certificate
    /// authorities.
    fn destination_config(&self, options: &Customization) -> Result<Option<Vec<u8>>, CustomizeError> {
        match (self.destination.as_slice(), options.ignition_ca.as_slice()) {
            ([], _) => Ok(None),
            ([only], []) => Ok(Some(format!("{only}\n").into_bytes())),
            (configs, authorities) => {
                let mut parent = ConfigBuilder::new();
                for file in authorities {
                    parent.add_certificate_authority(file.contents());
                }
                for config in configs {
                    parent.merge(config);
                }
                parent.to_installer_json().map_err(CustomizeError::WriteConfig)
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
    use std::io::Read as _;

    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD as BASE64;
    use flate2::read::GzDecoder;
    use serde_json::Value;

    use super::super::Capabilities;
    use super::*;

    const CONFIG: &str = r#"{"ignition":{"version":"3.4.0"}}"#;

    fn input_file(path: &str, contents: &str) -> InputFile {
        InputFile::new(path, contents).unwrap()
    }

    fn capable_image() -> Capabilities {
        Capabilities {
            installer_config: true,
            installer_directives: ["console".to_owned()].into(),
            live_initrd_network: true,
            live_kargs: false,
        }
    }

    fn build_customization(options: &Customization) -> Customized {
        options.build(&capable_image()).unwrap()
    }

    /// Returns the path and contents of each file of the live config, in order.
    fn live_files(customized: &Customized) -> Vec<(String, String)> {
        let json: Value = serde_json::from_slice(customized.live_config.as_deref().unwrap()).unwrap();
        assert_eq!(json["ignition"]["version"], "3.3.0");
        let files = json["storage"]["files"].as_array().unwrap().iter();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        files
            .map(|file| (text(&file["path"]), unpacked_resource(&text(&file["contents"]["source"]))))
            .collect()
    }

    fn unpacked_resource(source: &str) -> String {
        let packed = BASE64.decode(source.strip_prefix("data:;base64,").unwrap()).unwrap();
        let mut text = String::new();
        GzDecoder::new(packed.as_slice()).read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn empty_options_add_nothing() {
        assert_eq!(build_customization(&Customization::default()), Customized::default());
    }

    #[test]
    fn files_are_ordered_with_own_config_last() {
        let customized = build_customization(&Customization {
            dest_ignition: vec![input_file("dest", CONFIG)],
            dest_device: Some("/dev/sda".to_owned()),
            network_keyfiles: vec![input_file("net/a.nmconnection", "")],
            pre_install: vec![input_file("hook", "1")],
            post_install: vec![input_file("hook", "2")],
            installer_config: vec![input_file("a/x.yaml", "{}"), input_file("b/x.yaml", "offline: true")],
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
        assert_eq!(live_files(&customized), expected.map(|(path, text)| (path.to_owned(), text.to_owned())));
        assert_eq!(customized.network_files.into_keys().collect::<Vec<_>>(), ["a.nmconnection"]);
        assert_eq!(
            customized.notices,
            ["Boot media will automatically install to /dev/sda without confirmation."]
        );
        assert!(customized.runs_installer);
    }

    #[test]
    fn authorities_wrap_destination_config_in_parent() {
        let customized = build_customization(&Customization {
            dest_ignition: vec![input_file("dest", CONFIG)],
            ignition_ca: vec![input_file("ca", "pem")],
            ..Customization::default()
        });
        let (path, parent) = live_files(&customized).swap_remove(0);
        assert_eq!(path, DESTINATION_CONFIG);
        assert!(parent.starts_with(r#"{"ignition":{"config":{"merge":[{"#), "{parent}");
        assert!(parent.contains(r#""certificateAuthorities":[{"#), "{parent}");
        assert_eq!(customized.notices, ["Boot media will automatically run installer."]);
    }

    #[test]
    fn installer_config_alone_adds_no_own_config() {
        let mut options = Customization {
            installer_config: vec![input_file("x.yaml", "dest-device: /dev/sda")],
            ..Customization::default()
        };
        assert_eq!(live_files(&build_customization(&options)).len(), 1);
        options.network_keyfiles.push(input_file("a", ""));
        let own = live_files(&build_customization(&options)).swap_remove(1);
        assert_eq!(own.0, "/etc/coreos/installer.d/0001-customize.yaml");
        assert_eq!(own.1, "copy-network: true\n");
    }

    #[test]
    fn rejects_keyfiles_with_the_same_name() {
        let nmstate = "interfaces: [{name: eth1, type: ethernet, state: up}]";
        let provided = || vec![input_file("a/eth1.nmconnection", "")];
        let generated = || vec![input_file("a.yaml", nmstate)];
        let cases = [
            ([provided(), provided()].concat(), vec![]),
            (provided(), generated()),
            (vec![], [generated(), generated()].concat()),
        ];
        for (network_keyfiles, network_nmstate) in cases {
            let options = Customization { network_keyfiles, network_nmstate, ..Customization::default() };
            let error = options.build(&capable_image()).unwrap_err();
            assert_eq!(error.to_string(), "config already specifies keyfile eth1.nmconnection");
        }
    }

    #[test]
    fn features_are_checked_before_files() {
        let options =
            Customization { network_nmstate: vec![input_file("a", "[")], ..Customization::default() };
        let error = options.build(&Capabilities::default()).unwrap_err();
        assert_eq!(error.to_string(), "This OS image does not support customizing network settings.");
        let error = options.build(&capable_image()).unwrap_err();
        assert_eq!(error.to_string(), "converting nmstate document a");
    }

    #[test]
    fn unknown_keys_are_reported() {
        let config = r#"{"ignition":{"version":"3.0.0"},"colour":1}"#;
        let options =
            Customization { live_ignition: vec![input_file("a/b", config)], ..Customization::default() };
        assert_eq!(build_customization(&options).notices, ["Warning parsing a/b: unused key: $.colour"]);
    }
}
